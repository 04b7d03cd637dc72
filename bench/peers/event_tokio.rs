// Ping-pong of two tasks of tokio's over two Notifies: nanoseconds a round trip. On one thread.
use std::rc::Rc;
use std::time::Instant;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::task::{spawn_local, LocalSet};

const ROUND_TRIPS: usize = 300_000;
const ROUNDS: usize = 11;

struct Table {
    ping: Notify,
    pong: Notify,
}

async fn answer(table: Rc<Table>) {
    for _ in 0..ROUND_TRIPS {
        table.ping.notified().await;
        table.pong.notify_one();
    }
}

async fn serve(table: Rc<Table>) {
    for _ in 0..ROUND_TRIPS {
        table.ping.notify_one();
        table.pong.notified().await;
    }
}

fn main() {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let mut each: Vec<f64> = Vec::new();
    for round in 0..=ROUNDS {
        let local = LocalSet::new();
        let table = Rc::new(Table { ping: Notify::new(), pong: Notify::new() });
        let begun = Instant::now();
        local.block_on(&runtime, async {
            let other = spawn_local(answer(table.clone()));
            spawn_local(serve(table)).await.expect("it ends");
            other.await.expect("it ends");
        });
        if round > 0 {
            each.push(begun.elapsed().as_nanos() as f64 / ROUND_TRIPS as f64);
        }
    }
    each.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    println!(
        "{{\"bench\": \"event\", \"subject\": \"tokio-notify\", \"value\": {:.2}, \"unit\": \"ns/op\", \
         \"params\": {{\"threads\": 1, \"by\": \"notify\"}}}}",
        each[ROUNDS / 2]
    );
}
