/*
 * Ping-pong: two parties pass a turn to each other; nanoseconds for a round trip, which is two
 * hand-overs. On one thread, and on two ("threads").
 *
 *   bide                 two coroutines, on one run loop or on one each; with two events, "auto"
 *                        (single waiter, auto-reset) or "manual" (the woken party resets). On two
 *                        threads "idle": "looks", the default: a loop polls for a while before it
 *                        sleeps; or "sleeps" at once
 *   bide-inline          the same without a loop: the woken party continues when the setter suspends
 *   bide-cxx-g++         two tasks of C++20 on bide (bide/bide.hpp) with auto-reset events, on one run
 *                        loop or on one each, compiled by g++
 *   futex                two threads, a futex each: "sleeps" at once, or "looks" first, as often as a
 *                        run loop does
 *   cxx20-inline-g++     two C++20 coroutines, two auto-reset events whose set resumes on the
 *                        setter's stack
 *   cxx20-loop-g++       the same on a minimal event loop: a queue under a mutex, and a condition
 *                        variable
 *   ..-clang             the same, compiled by clang
 *
 * (peers/event.sh adds goroutines and channels.)
 */
#define _GNU_SOURCE
#include "bench.h"
#include "loops.h"

#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/single_consumer_event.h"
#include "bide/task.h"

#include "cxx/cxx.h"
#include "peers/event.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 11, ON_ONE = 1000000, ON_TWO = 100000, ASLEEP = 10000 };

struct pair {
    const bide_point *bodies[2];
};

struct setting {
    uint64_t round_trips;
    unsigned threads;
    enum bench_idling idling;
    const struct pair *pair; /* bide's */
};

static uint64_t check_turns(uint64_t turns, uint64_t round_trips)
{
    if (turns != round_trips)
        bench_fail("event", "a turn was lost");
    return turns;
}

/* ---- bide ---- */

struct player {
    bide_task task;
    uint64_t left;
    uint64_t turns;
    struct player *other;
    bide_single_consumer_auto_event turn;
    bide_single_consumer_auto_event_waiter wait;
    bide_event manual_turn;
    bide_event_waiter manual_wait;
};

bide_coroutine(first_body)
{
    bide_begin(first_body, struct player * self);
    for (; self->left != 0; self->left--) {
        bide_single_consumer_auto_event_set(&self->other->turn);
        bide_await(bide_single_consumer_auto_event_wait(&self->wait, &self->turn));
        self->turns++;
    }
    bide_end();
}

bide_coroutine(second_body)
{
    bide_begin(second_body, struct player * self);
    for (; self->left != 0; self->left--) {
        bide_await(bide_single_consumer_auto_event_wait(&self->wait, &self->turn));
        self->turns++;
        bide_single_consumer_auto_event_set(&self->other->turn);
    }
    bide_end();
}

bide_coroutine(first_manual_body)
{
    bide_begin(first_manual_body, struct player * self);
    for (; self->left != 0; self->left--) {
        bide_event_set(&self->other->manual_turn);
        bide_await(bide_event_wait(&self->manual_wait, &self->manual_turn));
        bide_event_reset(&self->manual_turn);
        self->turns++;
    }
    bide_end();
}

bide_coroutine(second_manual_body)
{
    bide_begin(second_manual_body, struct player * self);
    for (; self->left != 0; self->left--) {
        bide_await(bide_event_wait(&self->manual_wait, &self->manual_turn));
        bide_event_reset(&self->manual_turn);
        self->turns++;
        bide_event_set(&self->other->manual_turn);
    }
    bide_end();
}

static void init_players(struct player players[2], uint64_t round_trips)
{
    for (unsigned i = 0; i < 2; i++) {
        players[i].left = round_trips;
        players[i].turns = 0;
        players[i].other = &players[1 - i];
        bide_single_consumer_auto_event_init(&players[i].turn, false);
        bide_event_init(&players[i].manual_turn, false);
    }
}

static uint64_t run_bide(const void *argument)
{
    static struct player players[2];
    static bench_party parties[2];
    const struct setting *setting = argument;
    init_players(players, setting->round_trips);
    for (unsigned i = 0; i < 2; i++) {
        parties[i].awaiter = bide_task_init(&players[i].task, setting->pair->bodies[i]);
        parties[i].loop = setting->threads == 1 ? 0 : i;
    }
    bench_loops_run(parties, 2, setting->idling);
    return check_turns(players[1].turns, setting->round_trips);
}

/*
 * The same without a loop: the woken party continues on the setter's thread as soon as the setter
 * suspends.
 */
static uint64_t run_inline(const void *argument)
{
    static struct player players[2];
    const struct setting *setting = argument;
    init_players(players, setting->round_trips);
    for (unsigned i = 2; i-- > 0;) {
        bide_start(&players[i].task.frame, setting->pair->bodies[i], &bide_default_context);
        bide_resume(&players[i].task.frame);
    }
    return check_turns(players[1].turns, setting->round_trips);
}

/* ---- A futex each ---- */

enum { LOOKS = 2048, NOBODYS = 0, TURN = 1, PARKED = 2 };

struct sleeper {
    _Atomic uint32_t
        turn; /* NOBODYS; TURN: this party's; PARKED: not its own, and it sleeps or is about to */
    struct sleeper *other;
    const struct setting *setting;
    uint64_t turns;
};

static bool is_turn(struct sleeper *self)
{
    return atomic_load_explicit(&self->turn, memory_order_acquire) == TURN;
}

static void await_turn(struct sleeper *self)
{
    int looks = self->setting->idling == BENCH_LOOKS ? LOOKS : 0;
    for (int i = 0; i < looks && !is_turn(self); i++)
        bide_cpu_relax();
    uint32_t nobodys = NOBODYS;
    if (atomic_compare_exchange_strong_explicit(&self->turn, &nobodys, PARKED, memory_order_relaxed,
                                                memory_order_relaxed)) {
        while (!is_turn(self))
            syscall(SYS_futex, &self->turn, FUTEX_WAIT_PRIVATE, PARKED, NULL, NULL, 0);
    }
    (void)is_turn(self); /* acquires */
    atomic_store_explicit(&self->turn, NOBODYS, memory_order_relaxed);
    self->turns++;
}

static void hand_over(struct sleeper *self)
{
    if (atomic_exchange_explicit(&self->other->turn, TURN, memory_order_release) == PARKED)
        syscall(SYS_futex, &self->other->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *run_second_sleeper(void *argument)
{
    struct sleeper *self = argument;
    bench_place_thread(1);
    for (uint64_t i = 0; i < self->setting->round_trips; i++) {
        await_turn(self);
        hand_over(self);
    }
    return NULL;
}

static uint64_t run_futex(const void *argument)
{
    struct setting setting = *(const struct setting *)argument;
    _Alignas(64) struct sleeper first = {.setting = &setting};
    _Alignas(64) struct sleeper second = {.setting = &setting, .other = &first};
    first.other = &second;
    bench_place_thread(0);
    pthread_t thread = bench_start_thread(run_second_sleeper, &second);
    for (uint64_t i = 0; i < setting.round_trips; i++) {
        hand_over(&first);
        await_turn(&first);
    }
    pthread_join(thread, NULL);
    return check_turns(second.turns, setting.round_trips);
}

/* ---- C++20 ---- */

#if BENCH_GXX || BENCH_CLANG
struct cxx_setting {
    uint64_t (*const *run)(uint64_t round_trips);
    uint64_t round_trips;
};

struct on_bide {
    const struct cxx_event *subject;
    uint64_t round_trips;
    unsigned loops;
    enum bench_idling idling;
};

static uint64_t run_cxx(const void *argument)
{
    const struct cxx_setting *setting = argument;
    return check_turns((*setting->run)(setting->round_trips), setting->round_trips);
}

static uint64_t run_on_bide(const void *argument)
{
    const struct on_bide *on_bide = argument;
    return check_turns(on_bide->subject->run(on_bide->round_trips, on_bide->loops, on_bide->idling),
                       on_bide->round_trips);
}

#define ON_BIDE(name, subject, round_trips, loops, idling, params)                                 \
    {                                                                                              \
        name, run_on_bide, &(const struct on_bide){&(subject), round_trips, loops, idling}, params \
    }
#define CXX(name, peer, function, round_trips, params)                                    \
    {                                                                                     \
        name, run_cxx, &(const struct cxx_setting){&(peer).function, round_trips}, params \
    }
#endif

#define ONE(by)       "{\"threads\": 1, \"by\": \"" by "\"}"
#define TWO(by, idle) "{\"threads\": 2, \"by\": \"" by "\", \"idle\": \"" idle "\"}"
#define SETTING(round_trips, threads, idling, pair) \
    &(const struct setting)                         \
    {                                               \
        round_trips, threads, idling, pair          \
    }

int main(void)
{
    static const struct pair by_auto = {{&first_body, &second_body}};
    static const struct pair by_manual = {{&first_manual_body, &second_manual_body}};
    const bench_subject subjects[] = {
        {"bide", run_bide, SETTING(ON_ONE, 1, BENCH_LOOKS, &by_auto), ONE("auto")},
        {"bide", run_bide, SETTING(ON_ONE, 1, BENCH_LOOKS, &by_manual), ONE("manual")},
        {"bide-inline", run_inline, SETTING(ON_ONE, 1, BENCH_LOOKS, &by_auto), ONE("auto")},
        {"bide", run_bide, SETTING(ON_TWO, 2, BENCH_LOOKS, &by_auto), TWO("auto", "looks")},
        {"bide", run_bide, SETTING(ON_TWO, 2, BENCH_LOOKS, &by_manual), TWO("manual", "looks")},
        {"bide", run_bide, SETTING(ASLEEP, 2, BENCH_SLEEPS, &by_auto), TWO("auto", "sleeps")},
        {"bide", run_bide, SETTING(ASLEEP, 2, BENCH_SLEEPS, &by_manual), TWO("manual", "sleeps")},
        {"futex", run_futex, SETTING(ON_TWO, 2, BENCH_LOOKS, NULL), TWO("futex", "looks")},
        {"futex", run_futex, SETTING(ASLEEP, 2, BENCH_SLEEPS, NULL), TWO("futex", "sleeps")},
#if BENCH_GXX
        ON_BIDE("bide-cxx-g++", cxx_event_gxx, ON_ONE, 1, BENCH_LOOKS, ONE("auto")),
        ON_BIDE("bide-cxx-g++", cxx_event_gxx, ASLEEP, 2, BENCH_SLEEPS, TWO("auto", "sleeps")),
        CXX("cxx20-inline-g++", peer_event_gxx, resumed_inline, ON_ONE, ONE("auto")),
        CXX("cxx20-loop-g++", peer_event_gxx, on_a_loop, ON_ONE, ONE("auto")),
        CXX("cxx20-loop-g++", peer_event_gxx, on_two_loops, ASLEEP, TWO("auto", "sleeps")),
#endif
#if BENCH_CLANG
        ON_BIDE("bide-cxx-clang", cxx_event_clang, ON_ONE, 1, BENCH_LOOKS, ONE("auto")),
        ON_BIDE("bide-cxx-clang", cxx_event_clang, ASLEEP, 2, BENCH_SLEEPS, TWO("auto", "sleeps")),
        CXX("cxx20-inline-clang", peer_event_clang, resumed_inline, ON_ONE, ONE("auto")),
        CXX("cxx20-loop-clang", peer_event_clang, on_a_loop, ON_ONE, ONE("auto")),
        CXX("cxx20-loop-clang", peer_event_clang, on_two_loops, ASLEEP, TWO("auto", "sleeps")),
#endif
    };
    bench_run("event", BENCH_NANOSECONDS_EACH, subjects, sizeof subjects / sizeof subjects[0],
              ROUNDS);
    return 0;
}
