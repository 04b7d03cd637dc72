/*
 * A program whose every frame is created: branches that have two others in flight and wait for both, down to
 * leaves that go deeper by plain recursion. It is run with each of its allocations failing, destroyed after each
 * of its steps, and both; each time every `finally` must run, and nothing may be left.
 */
#define _GNU_SOURCE
#include "counting.h"
#include "faults.h"

#include "bide/create.h"
#include "bide/extend/root.h"
#include "bide/schedule.h"
#include "bide/task.h"
#include "bide/then.h"

#include <errno.h>

enum {
    HEIGHT = 3,
    DEPTH = 2, /* of the recursion in a leaf */
    LEAVES = 1 << HEIGHT,
    BRANCHES = 2 * LEAVES - 1, /* the leaves among them */
    FRAMES = BRANCHES + DEPTH * LEAVES,
};

/* ---- A scheduler that resumes one frame at a time, when the test asks for it ---- */

struct stepper {
    bide_scheduler scheduler;
    bide_awaiter_chain ready;
};

static void stepper_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_awaiter_chain_append(&bide_container_of(scheduler, struct stepper, scheduler)->ready,
                              first, last);
}

static bool stepper_take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    return bide_awaiter_chain_remove(
        &bide_container_of(scheduler, struct stepper, scheduler)->ready, awaiter);
}

static bool step(struct stepper *stepper)
{
    bide_awaiter *awaiter = bide_awaiter_chain_take(&stepper->ready);
    if (awaiter == NULL)
        return false;
    bide_resume(awaiter->frame);
    return true;
}

/* ---- Waiting for two ---- */

struct join;

struct part {
    bide_root root;
    struct join *join;
    bool running;
};

struct join {
    bide_awaiter awaiter;
    struct part parts[2];
    unsigned left;
    bool waiting;
    int status; /* the first error */
};

static bool join_ready(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, struct join, awaiter)->left == 0;
}

static bide_frame *join_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)frame;
    bide_container_of(awaiter, struct join, awaiter)->waiting = true;
    return NULL;
}

static int join_resume(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, struct join, awaiter)->status;
}

/* (false: it is posted already) */
static bool join_withdraw(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, struct join, awaiter)->left != 0;
}

static bide_awaiter *join_wait(struct join *join)
{
    static const bide_awaiter_ops ops = {
        .ready = join_ready,
        .suspend = join_suspend,
        .resume = join_resume,
        .withdraw = join_withdraw,
        .name = "join",
    };
    join->awaiter.ops = &ops;
    return &join->awaiter;
}

static void part_ended(bide_root *root)
{
    struct part *part = bide_container_of(root, struct part, root);
    struct join *join = part->join;
    part->running = false;
    if (join->status == 0)
        join->status = root->status;
    if (--join->left == 0 && join->waiting) {
        join->awaiter.link = NULL;
        bide_wake(&join->awaiter);
    }
}

/* ---- The program ---- */

struct program {
    bide_allocator *allocator;
    struct stepper stepper;
    bide_context context;
    int begun, finally, leaves;
};

/* Recursion: each awaits the next, and yields. */
struct deeper {
    bide_task task;
    struct program *program;
    int depth;
    bide_schedule_operation turn;
    bide_then_operation then;
};

static bide_awaiter *deeper(struct program *program, int depth);

static int same(void *unused, int status)
{
    (void)unused;
    return status;
}

bide_coroutine(deeper_body)
{
    bide_begin(deeper_body, struct deeper * self);
    self->program->begun++;
    bide_await(bide_schedule(&self->turn, &self->program->stepper.scheduler));
    if (self->depth > 1)
        bide_try(bide_then(&self->then, deeper(self->program, self->depth - 1), same, NULL));
    bide_finally();
    self->program->finally++;
    bide_end();
}

static bide_awaiter *deeper(struct program *program, int depth)
{
    struct deeper *self = bide_create(sizeof *self, &deeper_body, program->allocator);
    if (self != NULL) {
        self->program = program;
        self->depth = depth;
    }
    return bide_owned(self, &deeper_body);
}

/* Has two others in flight, and waits for both, however either ends. */
struct branch {
    bide_task task;
    struct program *program;
    int height;
    bide_schedule_operation turn;
    struct join join;
};

static void begin_parts(struct branch *self);

static void destroy_parts(struct join *join)
{
    for (int i = 0; i < 2; i++) {
        if (join->parts[i].running)
            bide_destroy(&join->parts[i].root.frame);
    }
}

bide_coroutine(branch_body)
{
    bide_begin(branch_body, struct branch * self);
    self->program->begun++;
    bide_await(bide_schedule(&self->turn, &self->program->stepper.scheduler));
    if (self->height == 0) {
        bide_try(deeper(self->program, DEPTH));
        self->program->leaves++;
        bide_return(0);
    }
    begin_parts(self);
    bide_try(join_wait(&self->join));
    bide_finally();
    self->program->finally++;
    destroy_parts(&self->join);
    bide_end();
}

static bide_awaiter *branch(struct program *program, int height)
{
    struct branch *self = bide_create(sizeof *self, &branch_body, program->allocator);
    if (self != NULL) {
        self->program = program;
        self->height = height;
        self->join.parts[0].running = false;
        self->join.parts[1].running = false;
    }
    return bide_owned(self, &branch_body);
}

static void begin_parts(struct branch *self)
{
    struct join *join = &self->join;
    join->left = 2;
    join->waiting = false;
    join->status = 0;
    for (int i = 0; i < 2; i++) {
        join->parts[i].join = join;
        join->parts[i].running = true;
        bide_root_prepare(&join->parts[i].root, &self->program->context,
                          branch(self->program, self->height - 1), part_ended, false);
        bide_resume(&join->parts[i].root.frame);
    }
}

/* ---- Running it ---- */

struct run {
    bide_root root;
    bool ended;
};

static void run_ended(bide_root *root)
{
    bide_container_of(root, struct run, root)->ended = true;
}

/*
 * Runs it for at most `steps` steps (-1: to its end) and destroys it if it has not ended then. Returns its
 * status; -ECANCELED if it was destroyed.
 */
static int run_program(struct program *program, bide_allocator *allocator, int steps)
{
    struct run run = {.ended = false};
    *program = (struct program){.allocator = allocator};
    program->stepper.scheduler.post = stepper_post;
    program->stepper.scheduler.take_back = stepper_take_back;
    program->context.scheduler = &program->stepper.scheduler;
    bide_root_prepare(&run.root, &program->context, branch(program, HEIGHT), run_ended, false);
    bide_resume(&run.root.frame);
    for (int i = 0; i != steps && step(&program->stepper); i++)
        ;
    if (!run.ended)
        bide_destroy(&run.root.frame);
    return run.ended ? run.root.status : -ECANCELED;
}

/* The nth allocation fails (0: none), for so many steps. */
static int run_counted(struct counting *counting, bide_allocator *inner, int nth, int steps)
{
    struct program program;
    count(counting, inner);
    counting->fail_at = nth;
    int status = run_program(&program, &counting->allocator, steps);
    assert_int_equal(program.begun, program.finally);
    assert_int_equal(counting->held, 0);
    assert_null(program.stepper.ready.first);
    if (status == 0)
        assert_int_equal(program.leaves, LEAVES);
    return status;
}

static void with_all_allocations_it_runs_to_its_end(void **state)
{
    (void)state;
    struct counting counting;
    assert_int_equal(run_counted(&counting, &bide_heap, 0, -1), 0);
    assert_int_equal(counting.calls, FRAMES);
    /* All branches are in flight at once. */
    assert_true(counting.max_held >= BRANCHES);
}

static void with_any_allocation_failing_it_ends_with_enomem(void **state)
{
    (void)state;
    struct counting counting;
    for (int nth = 1; nth <= FRAMES; nth++) {
        assert_int_equal(run_counted(&counting, &bide_heap, nth, -1), -ENOMEM);
        assert_true(counting.calls >= nth);
    }
    assert_int_equal(run_counted(&counting, &bide_heap, FRAMES + 1, -1), 0);
}

static void destroyed_after_any_step_it_leaves_nothing(void **state)
{
    (void)state;
    struct counting counting;
    int steps = 0;
    while (run_counted(&counting, &bide_heap, 0, steps) == -ECANCELED)
        steps++;
    assert_true(steps > FRAMES);
    for (int nth = 1; nth <= FRAMES; nth++) {
        int status = -ECANCELED;
        for (int i = 0; i < steps && status == -ECANCELED; i++)
            status = run_counted(&counting, &bide_heap, nth, i);
        assert_int_equal(status, -ENOMEM);
    }
}

static _Alignas(BIDE_ALLOCATOR_ALIGN) unsigned char memory[FRAMES * 1024];

static void an_arena_or_a_pool_of_any_size_is_used_up_and_left_empty(void **state)
{
    (void)state;
    enum { PIECE = (sizeof(struct branch) + sizeof(bide_owner) + 15) / 16 * 16 };
    struct counting counting;
    int fitted = 0;
    for (size_t pieces = 0; pieces <= FRAMES; pieces++) {
        bide_pool pool;
        bide_arena arena;
        bide_pool_init(&pool, PIECE, memory, pieces * PIECE);
        int status = run_counted(&counting, &pool.allocator, 0, -1);
        assert_true(status == 0 || status == -ENOMEM);
        fitted += status == 0;
        bide_arena_init(&arena, memory, pieces * PIECE);
        status = run_counted(&counting, &arena.allocator, 0, -1);
        assert_true(status == 0 || status == -ENOMEM);
        fitted += status == 0;
    }
    assert_true(fitted > 0);
}

static int run_on_the_heap(void *unused)
{
    struct program program;
    (void)unused;
    int status = run_program(&program, &bide_heap, -1);
    return program.begun == program.finally ? status : -EIO;
}

static void any_malloc_that_fails_is_reported_and_nothing_is_left(void **state)
{
    (void)state;
    fault function =
        _Alignof(max_align_t) >= BIDE_ALLOCATOR_ALIGN ? FAULT_MALLOC : FAULT_ALIGNED_ALLOC;
    assert_int_equal(faults_for_each_n(function, ENOMEM, run_on_the_heap, NULL), FRAMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_all_allocations_it_runs_to_its_end),
        cmocka_unit_test(with_any_allocation_failing_it_ends_with_enomem),
        cmocka_unit_test(destroyed_after_any_step_it_leaves_nothing),
        cmocka_unit_test(an_arena_or_a_pool_of_any_size_is_used_up_and_left_empty),
        cmocka_unit_test(any_malloc_that_fails_is_reported_and_nothing_is_left),
    };
    return cmocka_run_group_tests_name("allocation failure", tests, NULL, NULL);
}
