/* Runs the parties of a benchmark on one or two run loops, each on a thread of its own. */
#include "loops.h"

#include "bench.h"

#include "bide/coroutine.h"
#include "bide/task.h"

/* Starts the parties of its loop, and waits for each. */
struct host {
    bide_task task;
    bide_run_loop loop;
    bench_party *parties;
    size_t count;
    unsigned index;
    size_t next;
    bide_event_waiter wait;
};

bide_coroutine(host_body)
{
    bide_begin(host_body, struct host * self);
    for (size_t i = 0; i < self->count; i++) {
        bench_party *party = &self->parties[i];
        if (party->loop == self->index)
            bide_spawn(&party->spawned, &self->loop.context, party->awaiter);
    }
    for (self->next = 0; self->next < self->count; self->next++) {
        if (self->parties[self->next].loop != self->index)
            continue;
        bide_await(bide_event_wait(&self->wait, &self->parties[self->next].spawned.ended));
    }
    bide_end();
}

static void *run(void *argument)
{
    struct host *host = argument;
    bench_place_thread(host->index);
    bide_run_loop_wait(&host->loop, bide_task_init(&host->task, &host_body));
    return NULL;
}

static void set_up(struct host *host, unsigned index, bench_party *parties, size_t count,
                   enum bench_idling idling)
{
    host->parties = parties;
    host->count = count;
    host->index = index;
    bide_run_loop_init(&host->loop);
    if (idling == BENCH_SLEEPS) {
        host->loop.pace.spins = 0;
        host->loop.scheduler.idle = NULL;
    }
}

void bench_loops_run(bench_party *parties, size_t count, enum bench_idling idling)
{
    static struct host hosts[BENCH_LOOPS];
    bool several = false;
    for (size_t i = 0; i < count; i++)
        several |= parties[i].loop != 0;
    for (unsigned i = 0; i < BENCH_LOOPS; i++)
        set_up(&hosts[i], i, parties, count, idling);
    if (!several) {
        run(&hosts[0]);
        return;
    }
    pthread_t other = bench_start_thread(run, &hosts[1]);
    run(&hosts[0]);
    pthread_join(other, NULL);
}
