// How late a timer is, and how long a task that was woken by a thread outside waits, with other work: see latency.c.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::yield_now;

const WORKERS: usize = 2;
const SAMPLES: usize = 200;
const INTERVAL: Duration = Duration::from_millis(5);
const TURN: Duration = Duration::from_millis(1);

static OVER: AtomicBool = AtomicBool::new(false);

fn is_over() -> bool {
    OVER.load(Ordering::Relaxed)
}

async fn load(name: &'static str) {
    match name {
        "ready" => {
            let (sender, mut receiver) = unbounded_channel();
            while !is_over() {
                sender.send(1).expect("a channel");
                receiver.recv().await;
            }
        }
        "turns" => {
            while !is_over() {
                let begun = Instant::now();
                while begun.elapsed() < TURN {}
                yield_now().await;
            }
        }
        _ => {
            while !is_over() {
                yield_now().await;
            }
        }
    }
}

async fn timer() -> Vec<f64> {
    let mut late = Vec::new();
    for _ in 0..SAMPLES {
        let until = Instant::now() + INTERVAL;
        tokio::time::sleep_until(until.into()).await;
        late.push(until.elapsed().as_nanos() as f64 / 1e3);
    }
    late
}

async fn post() -> Vec<f64> {
    let (sender, mut receiver) = unbounded_channel();
    let thread = std::thread::spawn(move || {
        for _ in 0..SAMPLES {
            std::thread::sleep(INTERVAL);
            sender.send(Instant::now()).expect("a channel");
        }
    });
    let mut late = Vec::new();
    while let Some(posted) = receiver.recv().await {
        late.push(posted.elapsed().as_nanos() as f64 / 1e3);
    }
    thread.join().expect("a thread");
    late
}

fn show(load: &str, of: &str, mut late: Vec<f64>) {
    late.sort_by(|a, b| a.partial_cmp(b).expect("a number"));
    for (at, i) in [("p50", SAMPLES / 2), ("p99", SAMPLES * 99 / 100), ("max", SAMPLES - 1)] {
        println!(
            "{{\"bench\": \"latency\", \"subject\": \"tokio\", \"value\": {:.2}, \"unit\": \"us\", \
             \"params\": {{\"load\": \"{}\", \"of\": \"{}\", \"at\": \"{}\"}}}}",
            late[i], load, of, at
        );
    }
}

fn measure(runtime: &Runtime, name: &'static str, each: usize, of: &'static str) {
    OVER.store(false, Ordering::Relaxed);
    let others: Vec<_> = (0..each * WORKERS).map(|_| runtime.spawn(load(name))).collect();
    let probe = runtime.spawn(async move { if of == "timer" { timer().await } else { post().await } });
    let late = runtime.block_on(probe).expect("a probe");
    OVER.store(true, Ordering::Relaxed);
    for other in others {
        runtime.block_on(other).expect("a load");
    }
    show(name, of, late);
}

fn main() {
    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_time().build().expect("a runtime");
    for (name, each) in [("idle", 0), ("ready", 1), ("turns", 4), ("yielders", 256)] {
        for of in ["timer", "post"] {
            measure(&runtime, name, each, of);
        }
    }
}
