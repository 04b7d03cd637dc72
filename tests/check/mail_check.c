/*
 * Remote requests from other threads to an io. Requests to cancel: each operation ends once, on the
 * thread of its loop, and sees data that was written before the request, whether it completes in
 * between or not; nothing accesses the memory afterwards. Forwarded operations begin on their own
 * loop, before their cancellation. Remote calls are complete when their sender continues.
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
    unsigned count, ended;
    unsigned wanted;      /* the loop stops after so many ends and errands */
    bool is_done_inside;  /* the first is completed by the loop */
    bool is_sent_home;    /* the operations that they wait for */
    bool is_done_at_once; /* when it begins on its own loop */
    unsigned errands;
    bide_frame completer;
} state;

/* ---- An io that performs no operation ---- */

void bide_io_release(bide_io_operation *operation)
{
    (void)operation;
}

static void cancel(bide_io *io, bide_io_operation *operation)
{
    (void)io;
    bide_io_finish_waiting(operation, BIDE_IO_CANCELLED);
}

static const bide_io_table table = {.name = "none", .cancel = cancel};

static bool serve(const struct bide_io_group_ *group)
{
    (void)group;
    return false;
}

static const struct bide_io_group_ group = {serve};

bide_frame *bide_io_begin_(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    const state *s = bide_container_of(io, state, io);
    bide_check_assert(operation->io == io);
    if (s->is_done_at_once)
        return frame;
    operation->state |= IO_WAITING;
    return NULL;
}

static bide_frame *wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
    bide_io *io = operation->io;
    return bide_container_of(io, state, io)->is_sent_home ? bide_io_forward_(io, operation)
                                                          : bide_io_begin_(io, operation, frame);
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
    bide_io_operation_init(self->operation, &ops, BIDE_IO_RECV, NULL);
    self->operation->io = &self->state->io;
    return &self->operation->awaiter;
}

/* ---- Waiters ---- */

static void stop_at_end(state *s)
{
    if (s->ended + s->errands == s->wanted)
        bide_run_loop_stop(&s->loop);
}

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_await_status(self->status, begin(self));
    bide_check_free(self->operation);
    bide_check_assert(self->status == 0 || self->status == -ECANCELED);
    if (self->status == -ECANCELED)
        bide_check_assert(self->data == 1);
    else
        bide_check_assert(self->state->is_done_at_once ||
                          (self->state->is_done_inside && self == self->state->waiters));
    self->state->ended++;
    stop_at_end(self->state);
    bide_end();
}

static void init_waiter(state *s, struct waiter *waiter)
{
    waiter->state = s;
    bide_stop_source_init(&waiter->stop);
    waiter->context = s->loop.context;
    waiter->context.stop = &waiter->stop;
}

static void begin_waiter(state *s, struct waiter *waiter)
{
    init_waiter(s, waiter);
    bide_start(&waiter->task.frame, &waiter_body, &waiter->context);
}

static void setup_of(state *s, unsigned count)
{
    bide_run_loop_init(&s->loop);
    bide_io_init(&s->io, &table, &s->loop.scheduler);
    s->count = s->wanted = count;
    for (unsigned i = 0; i < count; i++) {
        begin_waiter(s, &s->waiters[i]);
        bide_resume(&s->waiters[i].task.frame); /* it waits */
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
    bide_check_assert(s->ended == s->count);
    bide_run_loop_destroy(&s->loop);
}

/* Completes the operation of the first, if it is still waiting. */
static bide_next complete_step(bide_frame *frame, unsigned depth)
{
    state *s = bide_container_of(frame, state, completer);
    (void)depth;
    if (s->ended == 0 && (s->waiters[0].operation->state & IO_WAITING) != 0)
        bide_io_finish_waiting(s->waiters[0].operation, BIDE_IO_DONE);
    return bide_next_none();
}

static const bide_coroutine_code complete_code = {complete_step, "completer", __FILE__, NULL, NULL};
static const bide_point complete_point = BIDE_POINT_START(&complete_code);

static void post_completer(state *s, const bide_point *point)
{
    bide_frame_init_in(&s->completer, point, &s->loop.context);
    s->completer.awaiter.frame = &s->completer;
    s->loop.scheduler.post(&s->loop.scheduler, &s->completer.awaiter, &s->completer.awaiter);
}

static void setup_done_inside(void *p)
{
    state *s = p;
    s->is_done_inside = true;
    setup_of(s, 1);
    post_completer(s, &complete_point);
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

/* The io is one of several, and an operation that is awaited on this thread begins there. */
static void setup_sent(state *s, unsigned count, unsigned errands)
{
    s->is_sent_home = true;
    setup_of(s, 0);
    s->io.group = &group;
    s->count = count;
    s->wanted = count + errands;
}

static void setup_sent_home(void *p)
{
    setup_sent(p, 1, 0);
}

static void setup_done_at_once(void *p)
{
    state *s = p;
    s->is_done_at_once = true;
    setup_sent(s, 1, 0);
}

/* Awaits the operation on this thread, and cancels it. */
static void await_and_request(void *p)
{
    state *s = p;
    struct waiter *waiter = &s->waiters[0];
    begin_waiter(s, waiter);
    bide_resume(&waiter->task.frame);
    request(waiter);
}

static void await_it(void *p)
{
    state *s = p;
    begin_waiter(s, &s->waiters[0]);
    bide_resume(&s->waiters[0].task.frame);
}

static void do_errand(bide_io *io, void *argument)
{
    state *s = bide_container_of(io, state, io);
    int *value = argument;
    *value = 7;
    s->errands++;
    stop_at_end(s);
}

/* On the loop's thread, which may come before the operation has begun. */
static bide_next request_step(bide_frame *frame, unsigned depth)
{
    (void)depth;
    request(&bide_container_of(frame, state, completer)->waiters[0]);
    return bide_next_none();
}

static const bide_coroutine_code request_code = {request_step, "requester", __FILE__, NULL, NULL};
static const bide_point request_point = BIDE_POINT_START(&request_code);

static void setup_requested_at_home(void *p)
{
    state *s = p;
    setup_sent(s, 1, 0);
    init_waiter(s, &s->waiters[0]);
    post_completer(s, &request_point);
}

static void await_initialised(void *p)
{
    state *s = p;
    bide_start(&s->waiters[0].task.frame, &waiter_body, &s->waiters[0].context);
    bide_resume(&s->waiters[0].task.frame);
}

static void setup_beside_errand(void *p)
{
    state *s = p;
    s->is_done_at_once = true;
    setup_sent(s, 1, 1);
}

/* The other's errand may be the oldest request then. */
static void await_and_run(void *p)
{
    await_it(p);
    run(p);
}

static void setup_errands(void *p)
{
    setup_sent(p, 0, 2);
}

static void send_errand(void *p)
{
    int value = 0;
    bide_io_call_remote_(&((state *)p)->io, do_errand, &value);
    bide_check_assert(value == 7);
}

static void send_two_errands(void *p)
{
    send_errand(p);
    send_errand(p);
}

static const bide_check_scenario sent_home = {
    .name = "one_is_sent_home_and_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .preemptions = 2,
    .setup = setup_sent_home,
    .threads = {run, await_and_request},
};

static const bide_check_scenario sent_home_done = {
    .name = "one_is_sent_home_and_is_done_there_at_once",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_done_at_once,
    .threads = {run, await_it},
};

static const bide_check_scenario errands = {
    .name = "two_errands_one_after_the_other",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .preemptions = 2,
    .setup = setup_errands,
    .threads = {run, send_two_errands},
};

static const bide_check_scenario beside_errand = {
    .name = "one_is_sent_home_beside_an_errand",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_beside_errand,
    .threads = {await_and_run, send_errand},
};

static const bide_check_scenario requested_at_home = {
    .name = "one_is_sent_home_where_it_is_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .preemptions = 1,
    .setup = setup_requested_at_home,
    .threads = {run, await_initialised},
};

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
    static const bide_check_scenario *const all[] = {
        &one,     &one_after_the_other, &beside_done,       &sent_home, &sent_home_done,
        &errands, &beside_errand,       &requested_at_home, NULL};
    static const char *const files[] = {"remote.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
