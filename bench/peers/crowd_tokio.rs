// The cost of an operation in a crowd of waiting tasks, on one thread; the figures of bench/crowd.c for which tokio has
// an equivalent. The event is a Notify, which wakes all waiters at once.
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, Notify, Semaphore};
use tokio::task::{spawn_local, yield_now, JoinHandle, LocalSet};

const ROUNDS: usize = 5;

#[derive(Clone, Copy, PartialEq)]
enum Object {
    Event,
    Semaphore,
}

struct Crowd {
    object: Object,
    event: Notify,
    semaphore: Semaphore,
    ended: Cell<usize>,
}

impl Crowd {
    fn new(object: Object) -> Rc<Crowd> {
        Rc::new(Crowd {
            object,
            event: Notify::new(),
            semaphore: Semaphore::new(0),
            ended: Cell::new(0),
        })
    }

    async fn wait(&self) {
        match self.object {
            Object::Event => self.event.notified().await,
            Object::Semaphore => self.semaphore.acquire().await.expect("open").forget(),
        }
    }
}

// Counts the tasks that are dropped.
struct Ends(Rc<Crowd>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.ended.set(self.0.ended.get() + 1);
    }
}

fn times_for(nanoseconds: f64) -> usize {
    ((5e7 / nanoseconds) as usize).clamp(20, 200_000)
}

// The set runs some tens of its tasks at a time.
async fn let_all_wait(count: usize) {
    for _ in 0..count / 8 + 10 {
        yield_now().await;
    }
}

fn begin(crowd: &Rc<Crowd>) -> JoinHandle<()> {
    let ends = Ends(crowd.clone());
    spawn_local(async move { ends.0.wait().await })
}

async fn cancel_some(object: Object, count: usize, times: usize) -> f64 {
    let crowd = Crowd::new(object);
    let mut tasks: Vec<JoinHandle<()>> = (0..count).map(|_| begin(&crowd)).collect();
    let mut random: u64 = 42;
    let_all_wait(count).await;
    let begun = Instant::now();
    for _ in 0..times {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let i = (random >> 33) as usize % count;
        tasks[i].abort();
        tasks[i] = begin(&crowd);
        yield_now().await;
    }
    let took = begun.elapsed().as_nanos() as f64;
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        let _ = task.await;
    }
    assert_eq!(crowd.ended.get(), times + count, "a wait was lost");
    took / times as f64
}

async fn time_out_all(object: Object, count: usize, _: usize) -> f64 {
    let crowd = Crowd::new(object);
    let deadline = tokio::time::Instant::now() + Duration::from_micros(2000 + 5 * count as u64);
    let tasks: Vec<JoinHandle<bool>> = (0..count)
        .map(|_| {
            let crowd = crowd.clone();
            spawn_local(async move {
                tokio::time::timeout_at(deadline, crowd.wait()).await.is_err()
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.expect("its end"), "a wait was lost");
    }
    deadline.elapsed().as_nanos() as f64 / count as f64
}

async fn select_messages(object: Object, count: usize, times: usize) -> f64 {
    let crowd = Crowd::new(object);
    let received = Rc::new(Cell::new(0usize));
    let mut senders = Vec::new();
    let mut tasks = Vec::new();
    for _ in 0..count {
        let (sender, mut receiver) = mpsc::channel::<u64>(1);
        let (crowd, received) = (crowd.clone(), received.clone());
        senders.push(sender);
        tasks.push(spawn_local(async move {
            loop {
                tokio::select! {
                    _ = receiver.recv() => received.set(received.get() + 1),
                    _ = crowd.event.notified() => break,
                }
            }
        }));
    }
    let_all_wait(count).await;
    let begun = Instant::now();
    for n in 0..times {
        senders[n % count].send(1).await.expect("a receiver");
        yield_now().await;
    }
    let took = begun.elapsed().as_nanos() as f64;
    while received.get() != times {
        yield_now().await;
    }
    crowd.event.notify_waiters();
    for task in tasks {
        task.await.expect("its end");
    }
    took / times as f64
}

fn measure<F, R>(of: &str, object: Object, count: usize, run: F)
where
    F: Fn(Object, usize, usize) -> R,
    R: Future<Output = f64>,
{
    let once = |times: usize| {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        LocalSet::new().block_on(&runtime, run(object, count, times))
    };
    let first = once(20);
    let mut each: Vec<f64> = (0..ROUNDS).map(|_| once(times_for(first))).collect();
    each.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    println!(
        "{{\"bench\": \"crowd\", \"subject\": \"tokio\", \"value\": {:.2}, \"unit\": \"ns/op\", \
         \"params\": {{\"of\": \"{}\", \"on\": \"{}\", \"waiters\": {}}}}}",
        each[ROUNDS / 2],
        of,
        if object == Object::Event { "event" } else { "semaphore" },
        count
    );
}

fn main() {
    for count in [10usize, 1000, 100_000] {
        for object in [Object::Event, Object::Semaphore] {
            measure("cancelled", object, count, cancel_some);
            measure("timeout", object, count, time_out_all);
        }
        measure("select", Object::Event, count, select_messages);
    }
}
