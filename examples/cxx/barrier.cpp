// A sequence barrier of 8 bits: waits by coroutines, and by mock awaiters, while another thread publishes all numbers
// several times around; and the ring that a barrier is the cursor of.
//
// A mock awaiter waits for its number without a coroutine behind it: its frame has a step that only marks it as free again.
// So a small program has many waiters at addresses that stay, which is what a race detector needs.
#include <bide/bide.hpp>
#include <bide/sequence8.h>
#include <atomic>
#include <iostream>
#include <thread>

/* ---- Mock awaiters ---- */

struct mock_awaiter {
    bide_frame frame; // the first member
    bide_sequence_waiter8 waiter;
    std::atomic<bool> busy = false;
};

static std::atomic<long> resumed;

static bide_next mock_step(bide_frame *frame, unsigned)
{
    auto *mock = reinterpret_cast<mock_awaiter *>(frame);
    resumed++;
    mock->busy.store(false, std::memory_order_release); // partner: the acquire in wait_for
    return bide_next_none();
}

static const bide_coroutine_code mock_code = {mock_step, "mock", __FILE__, nullptr, nullptr};
static const bide_point mock_waits = BIDE_POINT(&mock_code, nullptr, 0, BIDE_AT_AWAIT);

static mock_awaiter mocks[256];
static long started;

// Waits for `target` with the mock of that number, unless it waits already.
static void wait_for(bide_sequence_barrier8 *barrier, bide_sequence8 target)
{
    mock_awaiter *mock = &mocks[target];
    if (mock->busy.exchange(true, std::memory_order_acquire))
        return;
    started++;
    bide_frame_init_in(&mock->frame, &mock_waits, &bide_default_context);
    bide_frame *next = bide_frame_await(
        &mock->frame, bide_sequence_barrier8_wait_until_published(&mock->waiter, barrier, target));
    if (next != nullptr)
        bide_resume(next); // it is published
}

static void with_mock_awaiters()
{
    enum { ROUNDS = 2000, QUARTER = 64 };
    bide_sequence_barrier8 barrier;
    bide_sequence_barrier8_init(&barrier, bide_sequence8_initial());
    wait_for(&barrier, QUARTER);
    std::atomic<bool> done = false;
    std::thread producer([&] {
        bide_sequence8 sequence = 0;
        while (!done)
            bide_sequence_barrier8_publish(&barrier, sequence++);
        // Once around, for those that are left.
        for (int i = 0; i < 256; i++)
            bide_sequence_barrier8_publish(&barrier, sequence++);
    });
    for (int i = 0; i < ROUNDS; i++) {
        bide_sequence8 last = bide_sequence_barrier8_last_published(&barrier);
        wait_for(&barrier, static_cast<bide_sequence8>(last + QUARTER)); // ahead
        wait_for(&barrier, static_cast<bide_sequence8>(last - QUARTER)); // behind
    }
    done = true;
    producer.join();
    std::cout << "mock awaiters: " << (started == resumed ? "all were resumed once" : "lost")
              << '\n';
}

/* ---- The ring ---- */

enum : size_t { SLOTS = 16, NUMBERS = 1000 };

static bide_sequence_barrier cursor, consumed;
static int slots[SLOTS];
static bide_ring(int) ring;

// Publishes the numbers; before a slot is written again its reader must have passed.
static bide::task<> produce()
{
    for (size_t i = 0; i < NUMBERS; i++) {
        (co_await bide::wait(bide_sequence_barrier_wait_until_published, &consumed, i - SLOTS))
            .value();
        *bide_ring_at(&ring, i) = static_cast<int>(i);
        bide_sequence_barrier_publish(&cursor, i);
    }
}

// Takes all that is published with one wait.
static bide::task<long> consume()
{
    long sum = 0;
    for (size_t next = 0; next < NUMBERS;) {
        size_t last =
            (co_await bide::wait(bide_sequence_barrier_wait_until_published, &cursor, next))
                .value();
        for (; next <= last; next++)
            sum += *bide_ring_at(&ring, next);
        bide_sequence_barrier_publish(&consumed, last);
    }
    co_return sum;
}

static void with_a_ring()
{
    bide_sequence_barrier_init(&cursor, bide_sequence_initial());
    bide_sequence_barrier_init(&consumed, bide_sequence_initial());
    (void)bide_ring_init(&ring, slots, SLOTS);
    std::thread producer([] { bide::sync_wait(produce()); });
    long sum = bide::sync_wait(consume());
    producer.join();
    std::cout << "the ring: " << NUMBERS << " numbers, their sum is " << sum << '\n';
}

int main()
{
    with_mock_awaiters();
    with_a_ring();
}
