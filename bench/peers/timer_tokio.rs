// tokio's timers: see timer.c. A sleep is reset; or all are due, and the runtime wakes their task, whose waker they
// share.
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::time::{sleep_until, Sleep};

const ROUNDS: usize = 5;
const RESTARTS: usize = 200_000;

struct Random(u64);

impl Random {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    fn away(&mut self) -> Duration {
        Duration::from_millis(10_000 + self.draw() % 20_000) + Duration::from_nanos(self.draw() % 1_000_000)
    }
}

// Polls each once, so that it is registered.
struct Register<'a>(&'a mut [Pin<Box<Sleep>>]);

impl Future for Register<'_> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        for sleep in self.0.iter_mut() {
            let _ = sleep.as_mut().poll(context);
        }
        Poll::Ready(())
    }
}

async fn restart(live: usize, random: &mut Random) -> f64 {
    let now = tokio::time::Instant::now();
    let mut sleeps: Vec<_> = (0..live).map(|_| Box::pin(sleep_until(now + random.away()))).collect();
    Register(&mut sleeps).await;
    let begun = Instant::now();
    for _ in 0..RESTARTS {
        let which = random.draw() as usize % live;
        sleeps[which].as_mut().reset(now + random.away());
    }
    begun.elapsed().as_nanos() as f64 / RESTARTS as f64
}

async fn fire(live: usize, random: &mut Random) -> f64 {
    let from = tokio::time::Instant::now() + Duration::from_millis(live as u64 / 500);
    let mut sleeps: Vec<_> = (0..live)
        .map(|_| {
            Box::pin(sleep_until(
                from + Duration::from_millis(random.draw() % 100) + Duration::from_nanos(random.draw() % 1_000_000),
            ))
        })
        .collect();
    Register(&mut sleeps).await;
    let last = from + Duration::from_millis(103);
    while tokio::time::Instant::now() < last {
        std::hint::spin_loop();
    }
    let begun = Instant::now();
    while !sleeps.iter().all(|sleep| sleep.is_elapsed()) {
        tokio::task::yield_now().await;
    }
    begun.elapsed().as_nanos() as f64 / live as f64
}

fn print(of: &str, live: usize, mut each: Vec<f64>) {
    each.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    println!(
        "{{\"bench\": \"timer\", \"subject\": \"tokio\", \"value\": {:.2}, \"unit\": \"ns/op\", \
         \"params\": {{\"live\": {}, \"of\": \"{}\"}}}}",
        each[ROUNDS / 2], live, of
    );
}

fn main() {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut random = Random(1);
    for live in [1000usize, 1_000_000] {
        let mut restarts = Vec::new();
        let mut fires = Vec::new();
        for _ in 0..ROUNDS {
            restarts.push(runtime.block_on(restart(live, &mut random)));
            fires.push(runtime.block_on(fire(live, &mut random)));
        }
        print("restart", live, restarts);
        print("fire", live, fires);
    }
}
