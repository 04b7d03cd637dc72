/*
 * A program that fails in the way that FAILING names, to show that failures are reported: 1 an
 * assertion, 2 a wait that can never end, 3 a misuse, 4 a stack that is too small.
 */
#include "testing.h"

#include "bide/event.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#if FAILING == 1
static void fails(void **state)
{
    (void)state;
    assert_int_equal(1, 2);
}
#elif FAILING == 2
static void fails(void **state)
{
    (void)state;
    bide_event event;
    bide_event_waiter wait;
    bide_event_init(&event, false);
    bide_sync_wait(bide_event_wait(&wait, &event));
}
#elif FAILING == 3
struct nothing {
    bide_task task;
};

bide_coroutine(nothing_body)
{
    bide_begin(nothing_body, struct nothing * self);
    (void)self;
    bide_end();
}

static void fails(void **state)
{
    (void)state;
    struct nothing nothing;
    bide_sync_wait(bide_task_init(&nothing.task, &nothing_body));
    bide_sync_wait(&nothing.task.frame.awaiter);
}
#else
static unsigned deeper(volatile unsigned *above)
{
    volatile unsigned here = *above + 1;
    return here == 0 ? 0 : deeper(&here) + here;
}

static void fails(void **state)
{
    (void)state;
    volatile unsigned top = 0;
    deeper(&top);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
