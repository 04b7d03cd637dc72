// Numbers through tokio's mpsc channel from one task to another, of some capacities: nanoseconds each. On one thread, and
// on two: a runtime of one thread on each.
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{channel, Receiver, Sender};

const ROUNDS: usize = 11;

fn runtime() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

async fn send(sender: Sender<u64>, items: u64) {
    for number in 0..items {
        sender.send(number).await.expect("a receiver");
    }
}

async fn receive(mut receiver: Receiver<u64>) -> u64 {
    let mut sum = 0u64;
    while let Some(number) = receiver.recv().await {
        sum += number;
    }
    sum
}

fn transfer(threads: usize, capacity: usize, items: u64) {
    let (sender, receiver) = channel::<u64>(capacity);
    let sum = if threads == 1 {
        runtime().block_on(async {
            tokio::spawn(send(sender, items));
            tokio::spawn(receive(receiver)).await.expect("its sum")
        })
    } else {
        let other = std::thread::spawn(move || runtime().block_on(receive(receiver)));
        runtime().block_on(send(sender, items));
        other.join().expect("its sum")
    };
    assert_eq!(sum, items * (items - 1) / 2, "the receiver's sum is wrong");
}

fn main() {
    let threads: usize = std::env::args().nth(1).expect("threads").parse().expect("a number");
    for capacity in [1usize, 16, 128, 1024] {
        let items: u64 = if capacity < 2 { 100_000 } else { 500_000 };
        let mut each: Vec<f64> = Vec::new();
        for round in 0..=ROUNDS {
            let begun = Instant::now();
            transfer(threads, capacity, items);
            if round > 0 {
                each.push(begun.elapsed().as_nanos() as f64 / items as f64);
            }
        }
        each.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        println!(
            "{{\"bench\": \"channel\", \"subject\": \"tokio\", \"value\": {:.2}, \"unit\": \"ns/op\", \
             \"params\": {{\"threads\": {}, \"capacity\": {}}}}}",
            each[ROUNDS / 2], threads, capacity
        );
    }
}
