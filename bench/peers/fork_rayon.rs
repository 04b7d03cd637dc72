// The Fibonacci number 30 by rayon's join: nanoseconds a call.
use rayon::{join, ThreadPoolBuilder};
use std::time::Instant;

const N: u64 = 30;
const RESULT: u64 = 832040;
const CALLS: f64 = 2692537.0;
const ROUNDS: usize = 21;

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (one, other) = join(|| fib(n - 1), || fib(n - 2));
    one + other
}

fn main() {
    for threads in 1..=2 {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let mut each: Vec<f64> = Vec::new();
        for round in 0..=ROUNDS {
            let begun = Instant::now();
            assert_eq!(pool.install(|| fib(N)), RESULT);
            if round > 0 {
                each.push(begun.elapsed().as_nanos() as f64 / CALLS);
            }
        }
        each.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        println!(
            "{{\"bench\": \"fork\", \"subject\": \"rayon\", \"value\": {:.2}, \"unit\": \"ns/op\", \"params\": {{\"threads\": {}}}}}",
            each[ROUNDS / 2], threads
        );
    }
}
