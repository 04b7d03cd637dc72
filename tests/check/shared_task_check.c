/*
 * The shared task: started once, by the first waiter; all waiters see its result; and it may be
 * freed when the waits have ended.
 */
#include "bide/check.h"
#include "bide/event.h"
#include "bide/shared_task.h"

typedef struct work {
    bide_shared_task shared;
    bide_event *waits_for; /* or NULL */
    bide_event_waiter wait;
    int runs;
    int result;
} work;

typedef struct state {
    work work;
    work *allocated;
    bide_event event;
} state;

bide_shared_coroutine(work_body)
{
    bide_begin(work_body, work * self);
    self->runs++;
    if (self->waits_for != NULL)
        bide_await(bide_event_wait(&self->wait, self->waits_for));
    self->result = 42;
    bide_return(-EDOM);
    bide_end();
}

static void setup(void *p)
{
    state *s = p;
    bide_event_init(&s->event, false);
    bide_shared_task_init(&s->work.shared, &work_body, &bide_default_context);
}

static void setup_waiting(void *p)
{
    state *s = p;
    setup(p);
    s->work.waits_for = &s->event;
}

static void setup_allocated(void *p)
{
    state *s = p;
    bide_event_init(&s->event, false);
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    s->allocated->waits_for = &s->event;
    s->allocated->runs = 0;
    bide_shared_task_init(&s->allocated->shared, &work_body, &bide_default_context);
}

static void wait_on(work *work)
{
    bide_shared_task_waiter wait;
    bide_check_assert(bide_check_await(bide_shared_task_wait(&wait, &work->shared)) == -EDOM);
    bide_check_assert(work->result == 42);
}

static void wait_for_it(void *p)
{
    wait_on(&((state *)p)->work);
}

static void ask(void *p)
{
    state *s = p;
    if (bide_shared_task_ended(&s->work.shared)) {
        bide_check_assert(bide_shared_task_error(&s->work.shared) == -EDOM);
        bide_check_assert(s->work.result == 42);
    }
}

static void set_event(void *p)
{
    bide_event_set(&((state *)p)->event);
}

static void wait_and_free(void *p)
{
    state *s = p;
    wait_on(s->allocated);
    bide_check_assert(s->allocated->runs == 1);
    bide_check_free(s->allocated);
}

static void ran_once(void *p)
{
    state *s = p;
    bide_check_assert(s->work.runs == 1);
    bide_check_assert(bide_shared_task_ended(&s->work.shared));
}

static const bide_check_scenario at_once = {
    .name = "two_wait_for_what_ends_at_once",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {wait_for_it, wait_for_it},
    .finish = ran_once,
};

static const bide_check_scenario suspended = {
    .name = "two_wait_for_what_ends_on_another_thread",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_waiting,
    .threads = {wait_for_it, wait_for_it, set_event},
    .finish = ran_once,
};

static const bide_check_scenario asked = {
    .name = "seeing_that_it_has_ended_shows_its_result",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {wait_for_it, ask},
    .finish = ran_once,
};

static const bide_check_scenario freed = {
    .name = "it_is_freed_once_the_wait_has_ended",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {wait_and_free, set_event},
};

#define NOT_SHUT "the starter never finds the list shut"

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&at_once, &suspended, &asked, &freed, NULL};
    static const char *const files[] = {"shared_task.h", "shared_task.c", NULL};
    static const bide_check_reason reasons[] = {
        {"bide_shared_task_start_", "load", "&(&shared->waiters)->word", "relaxed", NOT_SHUT},
        {"bide_shared_task_start_", "compare_exchange", "&(&shared->waiters)->word",
         "if failed relaxed", NOT_SHUT},
        {"bide_shared_task_start_", "compare_exchange", "&(&shared->waiters)->word", "relaxed",
         "the task starts after it, so its end has it; threads that take the list otherwise have "
         "not"},
        {NULL, NULL, NULL, NULL, NULL},
    };
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
