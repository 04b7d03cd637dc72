// The cost of tokio's tasks: nanoseconds each. hop: yield_now; spawn: a thousand short ones from one, and their handles. On
// one thread, the runtime of one; on more, the one whose workers steal.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 11;

fn runtime(threads: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads).build().expect("a runtime")
}

async fn hop(tasks: usize, operations: usize) {
    let handles: Vec<_> = (0..tasks)
        .map(|_| {
            tokio::spawn(async move {
                for _ in 0..operations / tasks {
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for handle in handles {
        handle.await.expect("its end");
    }
}

async fn spawn(tasks: usize, operations: usize) {
    let sum = Arc::new(AtomicU64::new(0));
    for _ in 0..operations / tasks {
        let handles: Vec<_> = (0..tasks).map(|number| tokio::spawn(async move { number + 1 })).collect();
        for handle in handles {
            let number = handle.await.expect("its end");
            sum.store(number as u64, Ordering::Relaxed);
        }
    }
}

fn measure(runtime: &Runtime, of: &'static str, threads: usize, tasks: usize, operations: usize) {
    let mut each: Vec<f64> = Vec::new();
    for round in 0..=ROUNDS {
        let begun = Instant::now();
        let run = async move {
            if of == "hop" {
                hop(tasks, operations).await
            } else {
                spawn(tasks, operations).await
            }
        };
        runtime.block_on(async { tokio::spawn(run).await.expect("its end") });
        if round > 0 {
            each.push(begun.elapsed().as_nanos() as f64 / operations as f64);
        }
    }
    each.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    println!(
        "{{\"bench\": \"pool\", \"subject\": \"tokio\", \"value\": {:.2}, \"unit\": \"ns/op\", \
         \"params\": {{\"of\": \"{}\", \"threads\": {}, \"tasks\": {}}}}}",
        each[ROUNDS / 2], of, threads, tasks
    );
}

fn main() {
    let threads: usize = std::env::args().nth(1).expect("threads").parse().expect("a number");
    let runtime = runtime(threads);
    if threads == 1 {
        measure(&runtime, "hop", threads, 1, 1_000_000);
    }
    measure(&runtime, "hop", threads, 1000, 1_000_000);
    measure(&runtime, "spawn", threads, 1000, 500_000);
}
