// A million tasks of tokio's that wait for a Notify: memory for each, and the time to start them, until all wait, and to
// resume them, until all have ended. On one thread.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::task::{spawn_local, yield_now, LocalSet};

const TASKS: usize = 1_000_000;
const ROUNDS: usize = 9;

extern "C" {
    fn malloc_usable_size(memory: *mut u8) -> usize;
}

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// The bytes from malloc, with its own overhead.
struct Counting;

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let memory = System.alloc(layout);
        IN_USE.fetch_add(malloc_usable_size(memory) + 8, Ordering::Relaxed);
        memory
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(malloc_usable_size(memory) + 8, Ordering::Relaxed);
        System.dealloc(memory, layout);
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct All {
    ready: Notify,
    waiting: Cell<usize>,
    ended: Cell<usize>,
}

async fn wait(all: Rc<All>) {
    all.waiting.set(all.waiting.get() + 1);
    all.ready.notified().await;
    all.ended.set(all.ended.get() + 1);
}

fn figure(value: f64, unit: &str, of: &str) {
    println!(
        "{{\"bench\": \"memory\", \"subject\": \"tokio-task\", \"value\": {:.2}, \"unit\": \"{}\", \
         \"params\": {{\"of\": \"{}\", \"threads\": 1}}}}",
        value, unit, of
    );
}

fn main() {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let (mut make, mut resume): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut bytes = 0.0;
    for round in 0..=ROUNDS {
        let local = LocalSet::new();
        let all = Rc::new(All { ready: Notify::new(), waiting: Cell::new(0), ended: Cell::new(0) });
        let before = IN_USE.load(Ordering::Relaxed);
        local.block_on(&runtime, async {
            let begun = Instant::now();
            for _ in 0..TASKS {
                spawn_local(wait(all.clone())); // the handle is dropped: detached
            }
            while all.waiting.get() < TASKS {
                yield_now().await;
            }
            let all_wait = begun.elapsed();
            if round == 0 {
                bytes = (IN_USE.load(Ordering::Relaxed) - before) as f64 / TASKS as f64;
            }
            let begun = Instant::now();
            all.ready.notify_waiters();
            while all.ended.get() < TASKS {
                yield_now().await;
            }
            if round > 0 {
                make.push(all_wait.as_nanos() as f64 / TASKS as f64);
                resume.push(begun.elapsed().as_nanos() as f64 / TASKS as f64);
            }
        });
    }
    make.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    resume.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    figure(bytes, "bytes", "task");
    figure(make[ROUNDS / 2], "ns/op", "make");
    figure(resume[ROUNDS / 2], "ns/op", "resume");
}
