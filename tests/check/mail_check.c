/*
 * Remote requests from other threads to an io. Requests to cancel: each operation ends once, on the
 * thread of its loop, and sees data that was written before the request, whether it completes in
 * between or not; nothing accesses the memory afterwards. Forwarded operations begin on their own
 * loop, before their cancellation. Remote calls are complete when their sender continues, also if
 * two loops call each other. Requests of a thread to its own loop need no other thread.
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
#include "../../src/schedule/run_loop_events.h"

enum { WAITERS = 3, WITHOUT_SOURCE = 2 };

struct wait {
    bide_io_operation operation;
    bool opens, is_opened, is_released;
};

struct waiter {
    bide_task task;
    struct wait *wait; /* freed when it has ended */
    struct state *state;
    bide_stop_source stop;
    bide_context context;
    int reason; /* of its early end */
    int data;   /* written before the request */
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
    bide_io *other; /* that the loop's coroutine calls */
} state;

/* ---- An io that performs no operation ---- */

void bide_io_release(bide_io_operation *operation)
{
    struct wait *wait = bide_container_of(operation, struct wait, operation);
    bide_check_assert(!wait->is_released);
    wait->is_released = true;
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
    struct wait *wait = bide_container_of(operation, struct wait, operation);
    wait->is_opened = wait->opens;
    operation->state |= wait->opens ? IO_WAITING | IO_OPENED : IO_WAITING;
    return NULL;
}

static bide_frame *wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
    const struct waiter *waiter = bide_container_of(frame->context, struct waiter, context);
    bide_io *io = &waiter->state->io;
    if (waiter->state->is_sent_home)
        return bide_io_forward_(io, operation);
    operation->io = io;
    return bide_io_begin_(io, operation, frame);
}

static int wait_resume(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_io_operation, awaiter)->status;
}

static bide_awaiter *begin(struct waiter *self)
{
    static const bide_awaiter_ops ops = {
        .suspend = wait_suspend, .resume = wait_resume, .cancel = bide_io_cancel, .name = "wait"};
    self->wait = bide_check_alloc(sizeof *self->wait);
    self->wait->opens = self == self->state->waiters; /* the first */
    self->wait->is_opened = self->wait->is_released = false;
    bide_io_operation_init(&self->wait->operation, &ops, BIDE_IO_RECV, NULL);
    return &self->wait->operation.awaiter;
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
    bide_check_assert(self->wait->operation.state == 0);
    bide_check_assert(self->wait->is_released == self->wait->is_opened);
    bide_check_free(self->wait);
    bide_check_assert(self->status == 0 || self->status == self->reason);
    if (self->status != 0)
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
    waiter->reason = waiter == s->waiters ? -ECANCELED : -ETIMEDOUT;
    bide_stop_source_init(&waiter->stop);
    waiter->context = s->loop.context;
    waiter->context.stop = waiter == &s->waiters[WITHOUT_SOURCE] ? NULL : &waiter->stop;
}

static void begin_waiter(state *s, struct waiter *waiter)
{
    init_waiter(s, waiter);
    bide_start(&waiter->task.frame, &waiter_body, &waiter->context);
}

/* (what is not initialised holds no zeros) */
static void init_io(state *s)
{
    for (size_t i = 0; i < sizeof s->io; i++)
        ((unsigned char *)&s->io)[i] = 0xa5;
    bide_io_init(&s->io, &table, &s->loop.scheduler);
    bide_check_assert(s->io.in_flight == 0 && s->io.begun == 0);
    bide_check_assert(s->io.descriptors == NULL && s->io.group == NULL);
    const bide_context *context = &s->io.context;
    bide_check_assert(context->scheduler == &s->loop.scheduler);
    bide_check_assert(context->stop == NULL && context->name == NULL);
    bide_check_assert(context->on_unhandled_error == NULL && context->values == NULL);
}

static void setup_of(state *s, unsigned count)
{
    bide_run_loop_init(&s->loop);
    init_io(s);
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
    if (s->ended == 0 && (s->waiters[0].wait->operation.state & IO_WAITING) != 0)
        bide_io_finish_waiting(&s->waiters[0].wait->operation, BIDE_IO_DONE);
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
    bide_stop_request_with(&waiter->stop, waiter->reason);
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

/* ---- On the loop's own thread ---- */

/* Three ends, none of which sends anything: of one that is done, one that is cancelled, one that is closed. */
static bide_next end_step(bide_frame *frame, unsigned depth)
{
    state *s = bide_container_of(frame, state, completer);
    struct waiter *closed = &s->waiters[WITHOUT_SOURCE];
    (void)depth;
    bide_io_finish_waiting(&s->waiters[0].wait->operation, BIDE_IO_DONE);
    request(&s->waiters[0]);
    request(&s->waiters[1]);
    closed->reason = -EPIPE;
    closed->data = 1;
    bide_io_finish_waiting(&closed->wait->operation, BIDE_IO_CLOSED);
    for (unsigned i = 0; i < WAITERS; i++)
        bide_check_assert(s->waiters[i].wait->operation.state == 0);
    bide_check_assert(bide_atomic_load(&s->io.remote_requests, relaxed) == 0);
    return bide_next_none();
}

static const bide_coroutine_code end_code = {end_step, "ender", __FILE__, NULL, NULL};
static const bide_point end_point = BIDE_POINT_START(&end_code);

static void setup_ended_here(void *p)
{
    state *s = p;
    s->is_done_inside = true;
    setup_of(s, WAITERS);
    post_completer(s, &end_point);
}

static bide_next errand_step(bide_frame *frame, unsigned depth)
{
    (void)depth;
    send_errand(bide_container_of(frame, state, completer));
    return bide_next_none();
}

static const bide_coroutine_code errand_code = {errand_step, "errand", __FILE__, NULL, NULL};
static const bide_point errand_point = BIDE_POINT_START(&errand_code);

static void setup_called_here(void *p)
{
    setup_of(p, 0);
    ((state *)p)->wanted = 3;
}

/* Without a group, in a child of fork, and by the loop. */
static void call_here(void *p)
{
    state *s = p;
    send_errand(s);
    s->io.group = &group;
    s->io.generation++;
    send_errand(s);
    s->io.generation--;
    post_completer(s, &errand_point);
    run(s);
}

/* ---- Two loops that call each other ---- */

typedef struct pair {
    struct bide_io_group_ group;
    state *owners[2];
    state sides[2];
} pair;

static bool serve_pair(const struct bide_io_group_ *of_pair)
{
    const pair *both = bide_container_of(of_pair, pair, group);
    for (unsigned i = 0; i < 2; i++) {
        if (bide_io_on_owner_thread_(&both->owners[i]->io)) {
            bide_run_loop_run_posted_(&both->owners[i]->loop);
            return true;
        }
    }
    return false;
}

static bide_next call_step(bide_frame *frame, unsigned depth)
{
    state *s = bide_container_of(frame, state, completer);
    int value = 0;
    (void)depth;
    bide_io_call_remote_(s->other, do_errand, &value);
    bide_check_assert(value == 7);
    s->errands++;
    stop_at_end(s);
    return bide_next_none();
}

static const bide_coroutine_code call_code = {call_step, "caller", __FILE__, NULL, NULL};
static const bide_point call_point = BIDE_POINT_START(&call_code);

static void setup_pair(void *p)
{
    pair *both = p;
    both->group.serve = serve_pair;
    for (unsigned i = 0; i < 2; i++) {
        state *s = both->owners[i] = &both->sides[i];
        setup_sent(s, 0, 2);
        s->io.group = &both->group;
        s->other = &both->sides[1 - i].io;
        post_completer(s, &call_point);
    }
}

static void run_first(void *p)
{
    run(&((pair *)p)->sides[0]);
}

static void run_second(void *p)
{
    run(&((pair *)p)->sides[1]);
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

static const bide_check_scenario ended_here = {
    .name = "a_loop_ends_operations_of_its_own",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_ended_here,
    .threads = {run},
};

static const bide_check_scenario called_here = {
    .name = "calls_that_need_no_other_thread",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_called_here,
    .threads = {call_here},
};

static const bide_check_scenario mutual = {
    .name = "two_loops_call_each_other",
    .size = sizeof(pair),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup_pair,
    .threads = {run_first, run_second},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &ended_here, &called_here,    &mutual,  &one,           &one_after_the_other, &beside_done,
        &sent_home,  &sent_home_done, &errands, &beside_errand, &requested_at_home,   NULL};
    static const char *const files[] = {"remote.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
