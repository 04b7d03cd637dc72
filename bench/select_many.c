/*
 * One coroutine receives from many channels, and each message comes to a channel that is drawn: nanoseconds each, on
 * one thread, sender included.
 *
 *   bide-select-set  bide_select_set: the channels stay registered
 *   bide-select      bide_select_any over all of them, anew for each message
 */
#include "bench.h"

#include "bide/channel.h"
#include "bide/coroutine.h"
#include "bide/run_loop.h"
#include "bide/select.h"
#include "bide/select_set.h"
#include "bide/spawn.h"
#include "bide/task.h"

#include <stdlib.h>

enum { ROUNDS = 5 };

typedef bide_channel(uint64_t) numbers;

typedef struct line {
    numbers channel;
    bide_channel_slot(uint64_t) slots[2];
    bide_channel_waiter receive;
    uint64_t got;
    union {
        bide_select_member member;
        bide_select_case one;
    } of;
} line;

struct receiver {
    bide_task task;
    line *lines;
    size_t count, i;
    uint64_t left, sum;
    bide_select_set set;
    bide_select_member *which;
    bide_select select;
    bide_select_case *cases;
    uint64_t random;
};

static bide_awaiter *receive(line *l)
{
    return bide_channel_recv(&l->receive, &l->channel, &l->got);
}

bide_coroutine(set_body)
{
    bide_begin(set_body, struct receiver * self);
    bide_select_set_init(&self->set);
    for (size_t i = 0; i < self->count; i++)
        bide_select_set_add(&self->set, &self->lines[i].of.member, receive(&self->lines[i]));
    for (; self->left != 0; self->left--) {
        bide_await(bide_select_set_next(&self->set, &self->which));
        line *l = bide_container_of(self->which, line, of.member);
        self->sum += l->got;
        bide_select_set_add(&self->set, &l->of.member, receive(l));
    }
    bide_await(bide_select_set_end(&self->set));
    bide_end();
}

bide_coroutine(select_body)
{
    bide_begin(select_body, struct receiver * self);
    for (; self->left != 0; self->left--) {
        for (size_t i = 0; i < self->count; i++)
            bide_select_case_init(&self->cases[i], receive(&self->lines[i]));
        bide_await(bide_select_any(&self->select, self->cases, self->count, &self->random));
        self->sum += self->lines[bide_select_winner(&self->select)].got;
    }
    bide_end();
}

struct setting {
    const bide_point *body;
    size_t count;
    uint64_t messages;
};

static uint64_t run(const void *argument)
{
    const struct setting *setting = argument;
    line *lines = calloc(setting->count, sizeof *lines);
    bide_select_case *cases = calloc(setting->count, sizeof *cases);
    struct receiver receiver = {.lines = lines,
                                .count = setting->count,
                                .left = setting->messages,
                                .cases = cases,
                                .random = 1};
    bide_run_loop loop;
    bide_spawned spawned;
    uint64_t random = 1, sum = 0;
    if (lines == NULL || cases == NULL)
        bench_fail("select_many", "no memory");
    for (size_t i = 0; i < setting->count; i++)
        bide_channel_init(&lines[i].channel, lines[i].slots, 2);
    bide_run_loop_init(&loop);
    bide_spawn(&spawned, &loop.context, bide_task_init(&receiver.task, setting->body));
    bide_run_loop_run_ready(&loop);
    for (uint64_t i = 0; i < setting->messages; i++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        bide_channel_try_send(&lines[(random >> 33) % setting->count].channel, &i);
        bide_run_loop_run_ready(&loop);
        sum += i;
    }
    if (receiver.sum != sum || !bide_event_is_set(&spawned.ended))
        bench_fail("select_many", "a message was lost");
    free(cases);
    free(lines);
    return setting->messages;
}

int main(void)
{
    static const struct setting settings[] = {
        {&set_body, 10, 1000000},   {&set_body, 1000, 1000000}, {&set_body, 100000, 1000000},
        {&select_body, 10, 100000}, {&select_body, 1000, 500},
    };
    const bench_subject subjects[] = {
        {"bide-select-set", run, &settings[0], "{\"channels\": 10}"},
        {"bide-select-set", run, &settings[1], "{\"channels\": 1000}"},
        {"bide-select-set", run, &settings[2], "{\"channels\": 100000}"},
        {"bide-select", run, &settings[3], "{\"channels\": 10}"},
        {"bide-select", run, &settings[4], "{\"channels\": 1000}"},
    };
    bench_run("select_many", BENCH_NANOSECONDS_EACH, subjects, sizeof subjects / sizeof *subjects,
              ROUNDS);
    return 0;
}
