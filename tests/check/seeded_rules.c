/*
 * Seeded bugs: the rules of memory, of waiting, of the library, and of scenarios themselves.
 */
#include "seeded.h"

#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/platform.h"
#include "bide/task.h"

typedef struct state {
    bide_atomic(uint32_t) word;
    bide_event event;
    bide_task task;
    void *block;
} state;

#define SCENARIO(id, text, found, ...)      \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .expected = BIDE_CHECK_##found, __VA_ARGS__}

/* ---- Memory ---- */

static void allocate(void *p)
{
    ((state *)p)->block = bide_check_alloc(24);
}

static void free_it(void *p)
{
    bide_check_free(((state *)p)->block);
}

/* True for the first thread that comes here. */
static bool is_first(state *s)
{
    return bide_atomic_fetch_add(&s->word, 1, acq_rel) == 0;
}

static void free_it_once(void *p)
{
    if (is_first(p))
        free_it(p);
}

static void free_the_middle(void *p)
{
    bide_check_free((char *)((state *)p)->block + 8);
}

static void come(void *p)
{
    is_first(p);
}

SCENARIO(double_free, "free_by_two", DOUBLE_FREE, .setup = allocate, .threads = {free_it, free_it});
SCENARIO(double_free_mended, "free_by_the_first_of_two", NOTHING, .setup = allocate,
         .threads = {free_it_once, free_it_once});
SCENARIO(free_middle, "free_of_a_blocks_middle", DOUBLE_FREE, .setup = allocate,
         .threads = {free_the_middle}, .finish = free_it);
SCENARIO(free_begin, "free_of_a_block", NOTHING, .setup = allocate, .threads = {come},
         .finish = free_it);

/* Only if the other was first: the leak is in some of the executions. */
static void free_it_if_second(void *p)
{
    if (!is_first(p))
        free_it(p);
}

SCENARIO(leak, "leak_if_one_is_first", LEAK, .setup = allocate,
         .threads = {free_it_if_second, come});
SCENARIO(leak_mended, "no_leak_whichever_is_first", NOTHING, .setup = allocate,
         .threads = {free_it_if_second, free_it_if_second});

/* ---- Waiting ---- */

static void sleep_while_0(void *p)
{
    state *s = p;
    while (bide_atomic_load(&s->word, acquire) == 0)
        bide_platform.wait(&s->word, 0, BIDE_FOREVER);
}

static void store_1(void *p)
{
    bide_atomic_store(&((state *)p)->word, 1, release);
}

static void store_1_and_wake(void *p)
{
    store_1(p);
    bide_platform.wake(&((state *)p)->word, 1);
}

SCENARIO(parked, "sleep_and_no_wake", DEADLOCK, .threads = {store_1, sleep_while_0});
SCENARIO(parked_mended, "sleep_and_wake", NOTHING, .threads = {store_1_and_wake, sleep_while_0});
SCENARIO(parked_two, "two_sleepers_of_which_one_is_woken", DEADLOCK,
         .threads = {store_1_and_wake, sleep_while_0, sleep_while_0}, .never_spurious = true);

static void spin_while_0(void *p)
{
    while (bide_atomic_load(&((state *)p)->word, acquire) == 0)
        bide_cpu_relax();
}

SCENARIO(spin, "spin_that_never_ends", LIVELOCK, .threads = {spin_while_0});
SCENARIO(spin_mended, "spin_that_a_store_ends", NOTHING, .threads = {spin_while_0, store_1});

/* A spin that reads no atomic object: no other thread can end it. */
static void spin_on_a_block(void *p)
{
    while (((state *)p)->block == NULL)
        bide_cpu_relax();
}

SCENARIO(spin_plain, "spin_on_plain_memory", LIVELOCK, .threads = {spin_on_a_block});
SCENARIO(spin_plain_mended, "spin_on_plain_memory_that_is_there", NOTHING, .setup = allocate,
         .threads = {spin_on_a_block}, .finish = free_it);

static void count_to_100(void *p)
{
    while (bide_atomic_fetch_add(&((state *)p)->word, 1, relaxed) < 100) {
    }
}

SCENARIO(steps, "more_steps_than_the_limit", LIVELOCK, .threads = {count_to_100},
         .max_steps = 100);
SCENARIO(steps_mended, "less_steps_than_the_limit", NOTHING, .threads = {count_to_100},
         .max_steps = 300);

static void await_event(void *p)
{
    bide_event_waiter wait;
    bide_check_assert(bide_check_await(bide_event_wait(&wait, &((state *)p)->event)) == 0);
}

static void set_event(void *p)
{
    bide_event_set(&((state *)p)->event);
}

static void make_event(void *p)
{
    bide_event_init(&((state *)p)->event, false);
}

SCENARIO(await_lost, "await_of_an_event_that_is_never_set", DEADLOCK, .setup = make_event,
         .threads = {await_event, come});
SCENARIO(await_set, "await_of_an_event_that_is_set", NOTHING, .setup = make_event,
         .threads = {await_event, set_event});

/* ---- The library ---- */

bide_coroutine(body)
{
    bide_begin(body, bide_task * self);
    (void)self;
    bide_return(-7);
    bide_end();
}

static void await_task(void *p)
{
    bide_task *task = &((state *)p)->task;
    bide_check_assert(bide_check_await(bide_task_init(task, &body)) == -7);
}

static void await_task_twice(void *p)
{
    bide_task *task = &((state *)p)->task;
    await_task(p);
    bide_check_await(&task->frame.awaiter);
}

SCENARIO(twice, "await_of_a_coroutine_twice", MISUSE, .threads = {await_task_twice});
SCENARIO(once, "await_of_a_coroutine", NOTHING, .threads = {await_task});

/* ---- Scenarios ---- */

static void depend_on_a_static(void *p)
{
    static unsigned runs;
    state *s = p;
    if (runs++ % 2 == 0)
        bide_atomic_fetch_add(&s->word, 1, relaxed);
    else
        bide_atomic_load(&s->word, relaxed);
}

static void depend_on_a_choice(void *p)
{
    state *s = p;
    if (bide_check_choose(2) == 0)
        bide_atomic_fetch_add(&s->word, 1, relaxed);
    else
        bide_atomic_load(&s->word, relaxed);
}

/* One step less in each execution. */
static void do_less_each_time(void *p)
{
    static unsigned steps = 64;
    for (unsigned i = 0; i < steps; i++)
        bide_atomic_load(&((state *)p)->word, relaxed);
    steps -= steps > 0;
}

static void write_a_static(void *p)
{
    static uint32_t runs;
    bide_atomic_store(&((state *)p)->word, ++runs, relaxed);
}

static void write_a_number(void *p)
{
    bide_atomic_store(&((state *)p)->word, 1, relaxed);
}

SCENARIO(not_repeatable, "depends_on_a_static", BAD_SCENARIO,
         .threads = {depend_on_a_static, come});
SCENARIO(repeatable, "depends_on_a_choice", NOTHING, .threads = {depend_on_a_choice, come});
SCENARIO(less, "does_less_each_time", BAD_SCENARIO, .threads = {do_less_each_time, come});
SCENARIO(other_value, "writes_another_value_each_time", BAD_SCENARIO,
         .threads = {write_a_static, come});
SCENARIO(same_value, "writes_the_same_each_time", NOTHING, .threads = {write_a_number, come});

const bide_check_scenario *const seeded_rules[] = {&double_free,
                                                   &double_free_mended,
                                                   &free_middle,
                                                   &free_begin,
                                                   &leak,
                                                   &leak_mended,
                                                   &parked,
                                                   &parked_mended,
                                                   &parked_two,
                                                   &spin,
                                                   &spin_mended,
                                                   &spin_plain,
                                                   &spin_plain_mended,
                                                   &steps,
                                                   &steps_mended,
                                                   &await_lost,
                                                   &await_set,
                                                   &twice,
                                                   &once,
                                                   &not_repeatable,
                                                   &repeatable,
                                                   &less,
                                                   &other_value,
                                                   &same_value,
                                                   NULL};
