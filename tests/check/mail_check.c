/*
 * Requests to stop that come from other threads to operations on descriptors: each ends once, on the
 * thread of its loop, with what was written before the request, whether it is done meanwhile or not;
 * and the memory is nobody's afterwards.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/errors.h"
#include "bide/extend/io.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/stop.h"
#include "bide/task.h"

#include "../../src/io/operation.h"

enum { WAITERS = 2 };

struct waiter {
    bide_task task;
    bide_io_operation *operation; /* freed when it has ended */
    struct state *state;
    bide_stop_source stop;
    bide_context context;
    int data; /* written before the request */
    int status;
};

typedef struct state {
    bide_run_loop loop;
    bide_io io;
    struct waiter waiters[WAITERS];
    int count;
    unsigned ended;
    bool is_done_inside; /* the first is done by the loop */
    bide_frame completer;
} state;

/* ---- An io that carries nothing out ---- */

uint32_t bide_generation_;

void bide_io_give_back(bide_io_operation *operation)
{
    (void)operation;
}

static void cancel(bide_io *io, bide_io_operation *operation)
{
    (void)io;
    bide_io_end_waiting(operation, BIDE_IO_CANCELLED);
}

static const bide_io_table table = {"none", NULL, cancel, NULL, NULL, NULL, NULL};

static bide_frame *wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
    (void)frame;
    operation->state |= IO_WAITING;
    return NULL;
}

static int wait_resume(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_io_operation, awaiter)->status;
}

static bide_awaiter *begin(struct waiter *self)
{
    static const bide_awaiter_ops ops = {
        .suspend = wait_suspend, .resume = wait_resume, .cancel = bide_io_cancel, .name = "wait"};
    self->operation = bide_check_alloc(sizeof *self->operation);
    bide_io_operation_init(self->operation, &ops, BIDE_IO_RECEIVE, NULL);
    self->operation->io = &self->state->io;
    return &self->operation->awaiter;
}

/* ---- Those that wait ---- */

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_await_status(self->status, begin(self));
    bide_check_free(self->operation);
    bide_check_assert(self->status == 0 || self->status == -ECANCELED);
    if (self->status == -ECANCELED)
        bide_check_assert(self->data == 1);
    else
        bide_check_assert(self->state->is_done_inside && self == self->state->waiters);
    self->state->ended++;
    if (self->state->ended == (unsigned)self->state->count)
        bide_run_loop_stop(&self->state->loop);
    bide_end();
}

static void setup_of(state *s, int count)
{
    bide_run_loop_init(&s->loop);
    bide_io_init(&s->io, &table, &s->loop.scheduler);
    s->count = count;
    for (int i = 0; i < count; i++) {
        struct waiter *waiter = &s->waiters[i];
        waiter->state = s;
        bide_stop_source_init(&waiter->stop);
        waiter->context = s->loop.context;
        waiter->context.stop = &waiter->stop;
        bide_start(&waiter->task.frame, &waiter_body, &waiter->context);
        bide_resume(&waiter->task.frame); /* it waits */
    }
}

static void setup_one(void *p)
{
    setup_of(p, 1);
}

static void setup_two(void *p)
{
    setup_of(p, 2);
}

static void run(void *p)
{
    state *s = p;
    bide_run_loop_run(&s->loop);
    bide_check_assert(s->ended == (unsigned)s->count);
    bide_run_loop_destroy(&s->loop);
}

/* What the first waits for is done, if it does yet. */
static bide_next complete_step(bide_frame *frame, unsigned depth)
{
    state *s = bide_container_of(frame, state, completer);
    (void)depth;
    if (s->ended == 0 && (s->waiters[0].operation->state & IO_WAITING) != 0)
        bide_io_end_waiting(s->waiters[0].operation, BIDE_IO_DONE);
    return bide_next_none();
}

static const bide_coroutine_code complete_code = {complete_step, "completer", __FILE__, NULL, NULL};
static const bide_point complete_point = BIDE_POINT_START(&complete_code);

static void setup_done_inside(void *p)
{
    state *s = p;
    s->is_done_inside = true;
    setup_of(s, 1);
    bide_frame_init_in(&s->completer, &complete_point, &s->loop.context);
    s->completer.awaiter.frame = &s->completer;
    s->loop.scheduler.post(&s->loop.scheduler, &s->completer.awaiter, &s->completer.awaiter);
}

static void request(struct waiter *waiter)
{
    waiter->data = 1;
    bide_stop_request(&waiter->stop);
}

static void request_first(void *p)
{
    request(&((state *)p)->waiters[0]);
}

static void request_both(void *p)
{
    request_first(p);
    request(&((state *)p)->waiters[1]);
}

static const bide_check_scenario one = {
    .name = "one_is_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {run, request_first},
};

static const bide_check_scenario one_after_the_other = {
    .name = "one_thread_asks_two_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .preemptions = 1,
    .setup = setup_two,
    .threads = {run, request_both},
};

static const bide_check_scenario beside_done = {
    .name = "what_is_asked_to_stop_is_done_meanwhile",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .preemptions = 2,
    .setup = setup_done_inside,
    .threads = {run, request_first},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&one, &one_after_the_other, &beside_done, NULL};
    static const char *const files[] = {"mail.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
