/*
 * async and await beside hand-written bodies: the same work, and the size of the frames.
 *
 *   translated   async functions, translated by bidec (language_async.c)
 *   by-hand      bodies, with everything that lives across an await as a member of the frame
 *
 * language SUBJECT OF TURNS runs one of them once, to count instructions.
 */
#include "language.h"

#include "bench.h"

#include "bide/allocator.h"
#include "bide/async_generator.h"
#include "bide/create.h"
#include "bide/handle.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long language_turns = 4000000;
unsigned language_nodes;
struct language_tree *language_tree;
bide_event language_set;
bide_auto_event language_ping;
bide_allocator *language_allocator;

static long result;

/* ---- Bodies ---- */

struct child {
    bide_task task;
    long argument;
    long result;
};

bide_coroutine(child_body)
{
    bide_begin(child_body, struct child * self);
    self->result = self->argument & 0xff;
    bide_end();
}

static inline bide_awaiter *child(struct child *self, long argument)
{
    self->argument = argument;
    return bide_task_init(&self->task, &child_body);
}

struct children {
    bide_task task;
    long count, i, sum;
    struct child child;
};

bide_coroutine(children_body)
{
    bide_begin(children_body, struct children * self);
    self->sum = 0;
    for (self->i = 0; self->i < self->count; self->i++) {
        bide_await(child(&self->child, self->i));
        self->sum += self->child.result;
    }
    bide_end();
}

struct middle {
    bide_task task;
    long argument;
    long result;
    struct child inner;
};

bide_coroutine(middle_body)
{
    bide_begin(middle_body, struct middle * self);
    bide_await(child(&self->inner, self->argument));
    self->result = self->inner.result + 1;
    bide_end();
}

struct outer {
    bide_task task;
    long argument;
    long result;
    struct middle middle;
};

bide_coroutine(outer_body)
{
    bide_begin(outer_body, struct outer * self);
    self->middle.argument = self->argument;
    bide_await(bide_task_init(&self->middle.task, &middle_body));
    self->result = self->middle.result ^ 3;
    bide_end();
}

struct nested {
    bide_task task;
    long count, i, sum;
    struct outer outer;
};

bide_coroutine(nested_body)
{
    bide_begin(nested_body, struct nested * self);
    self->sum = 0;
    for (self->i = 0; self->i < self->count; self->i++) {
        self->outer.argument = self->i;
        bide_await(bide_task_init(&self->outer.task, &outer_body));
        self->sum += self->outer.result;
    }
    bide_end();
}

struct events {
    bide_task task;
    long count, i, sum;
    bide_event_waiter wait;
};

bide_coroutine(events_body)
{
    bide_begin(events_body, struct events * self);
    self->sum = 0;
    for (self->i = 0; self->i < self->count; self->i++) {
        int status;
        bide_await_status(status, bide_event_wait(&self->wait, &language_set));
        self->sum += status;
    }
    bide_end();
}

struct pings {
    bide_task task;
    long count, i, sum;
    bide_auto_event_waiter wait;
};

bide_coroutine(pings_body)
{
    bide_begin(pings_body, struct pings * self);
    self->sum = 0;
    for (self->i = 0; self->i < self->count; self->i++) {
        int status;
        bide_await_status(status, bide_auto_event_wait(&self->wait, &language_ping));
        self->sum += status;
    }
    bide_end();
}

struct work {
    bide_task task;
    long count, i, a, b, c, d;
    struct child child;
};

bide_coroutine(work_body)
{
    bide_begin(work_body, struct work * self);
    self->a = 0, self->b = 1, self->c = 2, self->d = 3;
    for (self->i = 0; self->i < self->count; self->i++) {
        for (int n = 0; n < 4; n++) {
            self->a += self->b ^ self->i;
            self->b += self->c ^ n;
            self->c += self->d;
            self->d += self->a;
        }
        bide_await(child(&self->child, self->i));
        self->a += self->child.result;
    }
    bide_end();
}

struct numbers {
    bide_async_generator generator;
    long count, i;
};

bide_async_generator_coroutine(numbers_body)
{
    bide_begin(numbers_body, struct numbers * self);
    for (self->i = 0; self->i < self->count; self->i++)
        bide_yield(&self->i);
    bide_end();
}

static inline bide_async_generator *numbers(struct numbers *self, long count)
{
    self->count = count;
    return bide_async_generator_init(&self->generator, &numbers_body);
}

struct generated {
    bide_task task;
    long count, sum;
    bide_async_generator_next_operation next;
    struct numbers numbers;
};

bide_coroutine(generated_body)
{
    bide_begin(generated_body, struct generated * self);
    self->sum = 0;
    bide_for_await (&self->next, numbers(&self->numbers, self->count))
        self->sum += *(long *)self->next.value;
    bide_end();
}

struct walk {
    bide_task task;
    bide_allocator *allocator;
    const struct language_tree *tree;
    long *result;
    long left, right;
};

bide_declare_body(walk_body);

static bide_awaiter *walk(bide_allocator *allocator, const struct language_tree *tree, long *sum)
{
    struct walk *self = bide_create(sizeof *self, &walk_body, allocator);
    if (self != NULL) {
        self->allocator = allocator;
        self->tree = tree;
        self->result = sum;
    }
    return bide_owned(self, &walk_body);
}

bide_declared_coroutine(walk_body)
{
    bide_begin(walk_body, struct walk * self);
    if (self->tree == NULL) {
        *self->result = 0;
        bide_return(0);
    }
    bide_await(walk(self->allocator, self->tree->left, &self->left));
    bide_await(walk(self->allocator, self->tree->right, &self->right));
    *self->result = self->left + self->tree->value + self->right;
    bide_end();
}

/* ---- Runs ---- */

static uint64_t run_children(void)
{
    struct children frame = {.count = language_turns};
    bide_sync_wait(bide_task_init(&frame.task, &children_body));
    result += frame.sum;
    return (uint64_t)language_turns;
}

static uint64_t run_nested(void)
{
    struct nested frame = {.count = language_turns};
    bide_sync_wait(bide_task_init(&frame.task, &nested_body));
    result += frame.sum;
    return (uint64_t)language_turns;
}

static uint64_t run_events(void)
{
    struct events frame = {.count = language_turns};
    bide_sync_wait(bide_task_init(&frame.task, &events_body));
    result += frame.sum;
    return (uint64_t)language_turns;
}

static uint64_t run_pings(void)
{
    struct pings frame = {.count = language_turns};
    bide_frame_init_in(&frame.task.frame, &pings_body, &bide_default_context);
    for (bide_resume(&frame.task.frame); !bide_done(&frame.task.frame);)
        bide_auto_event_set(&language_ping);
    result += frame.sum;
    return (uint64_t)language_turns;
}

static uint64_t run_work(void)
{
    struct work frame = {.count = language_turns};
    bide_sync_wait(bide_task_init(&frame.task, &work_body));
    result += frame.a + frame.b + frame.c + frame.d;
    return (uint64_t)language_turns;
}

static uint64_t run_generated(void)
{
    struct generated frame = {.count = language_turns};
    bide_sync_wait(bide_task_init(&frame.task, &generated_body));
    result += frame.sum;
    return (uint64_t)language_turns;
}

static uint64_t run_walks(void)
{
    long sum = 0;
    bide_sync_wait(walk(language_allocator, language_tree, &sum));
    result += sum;
    return language_nodes;
}

const struct language_subject language_by_hand[LANGUAGE_SUBJECTS] = {
    [LANGUAGE_CHILD] = {"child", run_children, sizeof(struct children)},
    [LANGUAGE_NESTED] = {"nested", run_nested, sizeof(struct nested)},
    [LANGUAGE_READY] = {"ready", run_events, sizeof(struct events)},
    [LANGUAGE_WAITS] = {"waits", run_pings, sizeof(struct pings)},
    [LANGUAGE_BETWEEN] = {"between", run_work, sizeof(struct work)},
    [LANGUAGE_GENERATOR] = {"generator", run_generated, sizeof(struct generated)},
    [LANGUAGE_TREE] = {"tree", run_walks, sizeof(struct walk)},
};

/* ---- The benchmark ---- */

static struct language_tree *grow(int depth)
{
    struct language_tree *tree = calloc(1, sizeof *tree);
    if (tree == NULL)
        bench_fail("language", "no memory");
    tree->value = depth;
    language_nodes += 2; /* and one missing child */
    if (depth > 1) {
        tree->left = grow(depth - 1);
        tree->right = grow(depth - 1);
    }
    return tree;
}

static uint64_t run(const void *subject)
{
    return ((const struct language_subject *)subject)->run();
}

static void print_sizes(char (*params)[64])
{
    for (int i = 0; i < LANGUAGE_SUBJECTS; i++) {
        bench_print("language", "translated", (double)language_translated[i].frame, "bytes",
                    params[i]);
        bench_print("language", "by-hand", (double)language_by_hand[i].frame, "bytes", params[i]);
    }
}

/* Runs one subject once. */
static int run_one(const char *subject, const char *of)
{
    for (int i = 0; i < LANGUAGE_SUBJECTS; i++) {
        if (strcmp(language_by_hand[i].name, of) == 0) {
            (strcmp(subject, "translated") == 0 ? language_translated : language_by_hand)[i].run();
            return 0;
        }
    }
    bench_fail("language", "there is no such subject");
}

int main(int argc, char **argv)
{
    static BIDE_ALIGNAS(16) char memory[1 << 16];
    static char params[LANGUAGE_SUBJECTS][64];
    bench_subject subjects[2 * LANGUAGE_SUBJECTS];
    bide_pool pool;
    bide_pool_init(&pool, 256, memory, sizeof memory);
    language_allocator = &pool.allocator;
    if (argc > 3)
        language_turns = atol(argv[3]);
    int depth = 1;
    while (depth < 16 && 1L << depth < language_turns)
        depth++;
    language_tree = grow(depth);
    bide_event_init(&language_set, true);
    bide_auto_event_init(&language_ping, false);
    if (argc > 3)
        return run_one(argv[1], argv[2]);
    for (int i = 0; i < LANGUAGE_SUBJECTS; i++) {
        snprintf(params[i], sizeof params[i], "{\"of\": \"%s\"}", language_translated[i].name);
        subjects[2 * i] = (bench_subject){"translated", run, &language_translated[i], params[i]};
        subjects[2 * i + 1] = (bench_subject){"by-hand", run, &language_by_hand[i], params[i]};
    }
    bench_run("language", BENCH_NANOSECONDS_EACH, subjects, 2 * LANGUAGE_SUBJECTS, 11);
    print_sizes(params);
    bench_keep((uint64_t)result);
    return 0;
}
