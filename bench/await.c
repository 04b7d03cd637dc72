/*
 * Create + await + finish of a child that completes at once, with the call kept out of line; and
 * the sizes.
 *
 *   bide            the child in its parent's frame, stepped by the await's direct call
 *   bide-loop       the same, each step through the resume loop (symmetric transfer)
 *   bide-init-call  as bide, with the child's init function out of line too
 *   bide-cxx-g++    the same child as a bide::task of C++20, its frame allocated, compiled by g++
 *   bide-cxx-clang  the same, compiled by clang
 *   cxx20-task      a minimal C++20 task with symmetric transfer
 *   call            an out-of-line function that does the child's work: the floor
 */
#include "bench.h"

#include "bide/event.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#if BENCH_CXX
#include "peers/task.h"
#endif
#include "cxx/cxx.h"

enum { AWAITS = 10000000 };

struct child {
    bide_task task;
    uint64_t argument;
    uint64_t result;
};

/* (The step function of a body has labels whose address is taken, so no compiler inlines it.) */
bide_coroutine(child_body)
{
    bide_begin(child_body, struct child * self);
    self->result = self->argument & 0xff;
    bide_end();
}

static inline bide_awaiter *child(struct child *self, uint64_t argument)
{
    self->argument = argument;
    return bide_task_init(&self->task, &child_body);
}

static __attribute__((noinline)) bide_awaiter *child_out_of_line(struct child *self,
                                                                 uint64_t argument)
{
    return child(self, argument);
}

struct parent {
    bide_task task;
    uint64_t count;
    uint64_t i;
    uint64_t sum;
    struct child child;
};

bide_coroutine(parent_body)
{
    bide_begin(parent_body, struct parent * self);
    for (self->i = 0; self->i < self->count; self->i++) {
        bide_await(child(&self->child, self->i));
        self->sum += self->child.result;
    }
    bide_end();
}

bide_coroutine(parent_of_out_of_line_body)
{
    bide_begin(parent_of_out_of_line_body, struct parent * self);
    for (self->i = 0; self->i < self->count; self->i++) {
        bide_await(child_out_of_line(&self->child, self->i));
        self->sum += self->child.result;
    }
    bide_end();
}

static uint64_t run_parent(const void *body)
{
    struct parent parent = {.count = AWAITS};
    bide_sync_wait(bide_task_init(&parent.task, body));
    bench_keep(parent.sum);
    return AWAITS;
}

/* Steps the parent with no depth left for direct calls, so every child goes through this loop. */
static uint64_t run_through_loop(const void *body)
{
    struct parent parent = {.count = AWAITS};
    bide_await_later(bide_task_init(&parent.task, body));
    parent.task.frame.context = &bide_default_context;
    parent.task.frame.awaiter.frame = NULL;
    for (bide_frame *frame = &parent.task.frame; frame != NULL;)
        frame = bide_frame_step(frame, 0);
    bench_keep(parent.sum);
    return AWAITS;
}

static __attribute__((noinline)) void call(struct child *self, uint64_t argument)
{
    self->result = argument & 0xff;
    __asm__ volatile("" ::: "memory");
}

static uint64_t run_call(const void *unused)
{
    struct parent parent = {.count = AWAITS};
    (void)unused;
    for (parent.i = 0; parent.i < parent.count; parent.i++) {
        call(&parent.child, parent.i);
        parent.sum += parent.child.result;
    }
    bench_keep(parent.sum);
    return AWAITS;
}

#if BENCH_CXX
static uint64_t run_cxx(const void *unused)
{
    (void)unused;
    bench_keep(peer_cxx_task_run(AWAITS));
    return AWAITS;
}
#endif

#if BENCH_GXX || BENCH_CLANG
static uint64_t run_on_bide(const void *subject)
{
    bench_keep(((const struct cxx_await *)subject)->run(AWAITS));
    return AWAITS;
}
#endif

int main(void)
{
    const bench_subject subjects[] = {
        {"bide", run_parent, &parent_body, "{\"init\": \"inline\"}"},
        {"bide-loop", run_through_loop, &parent_body, "{\"init\": \"inline\"}"},
        {"bide-init-call", run_parent, &parent_of_out_of_line_body, "{\"init\": \"call\"}"},
#if BENCH_GXX
        {"bide-cxx-g++", run_on_bide, &cxx_await_gxx, "{}"},
#endif
#if BENCH_CLANG
        {"bide-cxx-clang", run_on_bide, &cxx_await_clang, "{}"},
#endif
#if BENCH_CXX
        {"cxx20-task", run_cxx, NULL, "{}"},
#endif
        {"call", run_call, NULL, "{}"},
    };
    bench_run("await", BENCH_NANOSECONDS_EACH, subjects, sizeof subjects / sizeof subjects[0], 21);
    bench_print("await", "bide", sizeof(bide_frame), "bytes", "{\"of\": \"frame header\"}");
    bench_print("await", "bide", sizeof(bide_task), "bytes", "{\"of\": \"task\"}");
    bench_print("await", "bide", sizeof(bide_event), "bytes", "{\"of\": \"event\"}");
    bench_print("await", "bide", sizeof(bide_event_waiter), "bytes", "{\"of\": \"event waiter\"}");
    return 0;
}
