// Create + await + finish of an async function that completes at once, its poll kept out of line: nanoseconds each.
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::runtime::Builder;

const AWAITS: u64 = 10_000_000;
const ROUNDS: usize = 21;

async fn child(argument: u64) -> u64 {
    argument & 0xff
}

struct OutOfLine<F>(F);

#[inline(never)]
fn poll_out_of_line<F: Future>(future: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> {
    future.poll(context)
}

impl<F: Future + Unpin> Future for OutOfLine<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        poll_out_of_line(Pin::new(&mut self.0), context)
    }
}

async fn parent() -> u64 {
    let mut sum = 0;
    for i in 0..AWAITS {
        let child = child(i);
        tokio::pin!(child);
        sum += OutOfLine(child).await;
    }
    sum
}

fn main() {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let mut each: Vec<f64> = Vec::new();
    let mut sum = 0;
    for round in 0..=ROUNDS {
        let begun = Instant::now();
        sum += runtime.block_on(parent());
        if round > 0 {
            each.push(begun.elapsed().as_nanos() as f64 / AWAITS as f64);
        }
    }
    assert!(sum != 0, "nothing was awaited");
    each.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    println!(
        "{{\"bench\": \"await\", \"subject\": \"rust-async-fn\", \"value\": {:.2}, \"unit\": \"ns/op\", \"params\": {{}}}}",
        each[ROUNDS / 2]
    );
}
