/*
 * The search for a seed that fails: in one process after another, or in several at a time.
 *
 * Seeds are handed out in batches of consecutive ones, the lowest first. A child runs the seeds of a batch in order, in
 * `shared` memory of its own, and ends at the first that fails.
 *
 *     free --start--> runs --its child ends--> ended --all lower batches are counted--> free
 *                      +-----a lower batch has failed: it is killed-----------------> free
 *
 * The seed that is found is the lowest that fails, whatever the number of jobs and the speed of each:
 *
 *  1. Batches begin in order. So once one has failed, all lower ones have begun.
 *  2. The failure of a batch ends the higher ones, and no other begins. The lower ones go on, and may fail too.
 *  3. Batches are counted in order. The first that has failed is the last that is counted; all seeds below its own
 *     have passed.
 *
 * So the runs and the faults of the result, too, are those of the seeds below.
 *
 * The end of a child is noticed by a pipe of which it has the other end, which waits for no other child of the program. If
 * somebody else holds that end, a look at each child ten times a second notices it.
 */
#define _GNU_SOURCE
#include "sim_explorer.h"

#include "../system/processors.h"
#include "../system/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEARCH_BATCH = 256, SEARCH_LOOK_MS = 100 };

/* Between two lines of progress, in nanoseconds: on a terminal, and elsewhere. */
#define SEARCH_TERMINAL_PAUSE UINT64_C(200000000)
#define SEARCH_PAUSE          UINT64_C(10000000000)

typedef enum search_state { SEARCH_FREE, SEARCH_RUNS, SEARCH_ENDED } search_state;

/* The memory for a batch, and who runs it. */
typedef struct search_batch {
    search_state state;
    uint64_t number;
    pid_t child;
    int pipe; /* from the child, which writes nothing */
    shared *shared;
} search_batch;

typedef struct search {
    explorer *explorer;
    uint64_t first, seeds;
    uint64_t size;    /* of a search_batch */
    uint64_t batches; /* their count; once one has failed, up to and with that */
    uint64_t begun;   /* of the batches */
    uint64_t counted; /* of those */
    unsigned jobs;    /* that run at a time */
    unsigned running;
    unsigned places; /* of `batch` */
    search_batch *batch;
    search_batch *failed; /* the first of those counted that has; or NULL */

    FILE *progress; /* or NULL */
    bool is_terminal;
    int width; /* of the line on the terminal */
    uint64_t began;
    uint64_t next_line; /* when it is due */
} search;

/* ---- The number of processes ---- */

static unsigned search_jobs(const bide_sim_options *options)
{
    unsigned jobs = options->jobs;
    const char *text = getenv("BIDE_TEST_JOBS");
    if (jobs == 0 && text != NULL)
        jobs =
            strcmp(text, "all") == 0 ? BIDE_SIM_ALL_PROCESSORS : (unsigned)strtoul(text, NULL, 10);
    if (jobs == BIDE_SIM_ALL_PROCESSORS)
        jobs = bide_processors_();
    return jobs == 0 ? 1 : jobs > BIDE_SIM_JOBS_MAX ? BIDE_SIM_JOBS_MAX : jobs;
}

/* ---- Progress ---- */

static void search_begin_progress(search *self)
{
    const bide_sim_options *options = self->explorer->options;
    self->progress = options->progress != NULL ? options->progress : stderr;
    self->is_terminal = isatty(fileno(self->progress)) == 1;
    if (options->progress == NULL && !self->is_terminal)
        self->progress = NULL;
    self->began = bide_platform.now();
    self->next_line = self->began + (self->is_terminal ? SEARCH_TERMINAL_PAUSE : SEARCH_PAUSE);
}

static uint64_t search_passed(const search *self)
{
    uint64_t passed = self->explorer->result->runs;
    for (unsigned i = 0; i < self->places; i++)
        if (self->batch[i].state != SEARCH_FREE && self->batch[i].number >= self->counted)
            passed += self->batch[i].shared->runs;
    return passed;
}

static void search_write_line(search *self)
{
    uint64_t passed = search_passed(self), took = bide_platform.now() - self->began;
    int width =
        fprintf(self->progress, "%sbide: %" PRIu64 " of %" PRIu64 " seeds passed, %.0f a second",
                self->is_terminal ? "\r" : "", passed, self->seeds,
                took != 0 ? (double)passed * 1e9 / (double)took : 0.0);
    if (self->is_terminal)
        fprintf(self->progress, "%*s", self->width > width ? self->width - width : 0, "");
    else
        fputc('\n', self->progress);
    self->width = width;
    fflush(self->progress);
}

static void search_show_progress(search *self)
{
    uint64_t now = bide_platform.now();
    if (self->progress == NULL || now < self->next_line)
        return;
    search_write_line(self);
    self->next_line = now + (self->is_terminal ? SEARCH_TERMINAL_PAUSE : SEARCH_PAUSE);
}

/* Where lines stay, the last one says what came of it; on a terminal the line is removed. */
static void search_end_progress(search *self)
{
    if (self->progress == NULL)
        return;
    if (!self->is_terminal)
        search_write_line(self);
    else if (self->width != 0)
        fprintf(self->progress, "\r%*s\r", self->width, "");
    fflush(self->progress);
}

/* ---- Batches ---- */

static search_batch *search_find(const search *self, search_state state, uint64_t number)
{
    for (unsigned i = 0; i < self->places; i++) {
        search_batch *b = &self->batch[i];
        if (b->state == state && (state == SEARCH_FREE || b->number == number))
            return b;
    }
    return NULL;
}

/* In the child. */
static BIDE_NO_RETURN void search_run_batch(search *self, const search_batch *b)
{
    uint64_t begin = b->number * self->size, end = begin + self->size;
    for (uint64_t i = begin; i < end && i < self->seeds; i++)
        bide_sim_run_seed_(self->explorer, self->first + i, NULL, false);
    fflush(NULL);
    _exit(0);
}

/* Begins the next batch. Returns 0 or a negative errno. */
static int search_start(search *self, search_batch *b)
{
    explorer *explorer = self->explorer;
    int ends[2];
    if (portable_pipe(ends, false) != 0)
        return -errno;
    b->number = self->begun;
    b->shared->runs = 0;
    b->shared->faults_count = 0;
    explorer->shared = b->shared;
    explorer->is_quiet = self->jobs > 1;
    b->child = bide_sim_fork_(explorer);
    explorer->is_quiet = false;
    if (b->child == 0) {
        close(ends[0]);
        search_run_batch(self, b);
    }
    close(ends[1]);
    if (b->child < 0) {
        close(ends[0]);
        return (int)b->child;
    }
    b->pipe = ends[0];
    b->state = SEARCH_RUNS;
    self->begun++;
    self->running++;
    return 0;
}

/* Its child has ended, with that status. */
static void search_end_batch(search *self, search_batch *b, int status)
{
    close(b->pipe);
    bide_sim_read_status_(b->shared, status);
    b->state = SEARCH_ENDED;
    self->running--;
    if (b->shared->failure != BIDE_SIM_PASSED && b->number < self->batches)
        self->batches = b->number + 1; /* 2 */
}

/* Ends the batches that nobody asks for any more: 2. */
static void search_kill_from(search *self, uint64_t number)
{
    for (unsigned i = 0; i < self->places; i++) {
        search_batch *b = &self->batch[i];
        if (b->state == SEARCH_FREE || b->number < number)
            continue;
        if (b->state == SEARCH_RUNS) {
            kill(b->child, SIGKILL);
            while (waitpid(b->child, NULL, 0) < 0 && errno == EINTR)
                continue;
            close(b->pipe);
            self->running--;
        }
        b->state = SEARCH_FREE;
    }
}

/* Counts the batches that have ended, in order: 3. */
static void search_count(search *self)
{
    bide_sim_result *result = self->explorer->result;
    search_batch *b;
    while (self->failed == NULL && (b = search_find(self, SEARCH_ENDED, self->counted)) != NULL) {
        const shared *s = b->shared;
        result->runs += s->runs;
        bide_sim_add_faults_(result->faults, &result->faults_count, s->faults, s->faults_count);
        self->counted++;
        if (s->failure != BIDE_SIM_PASSED)
            self->failed = b;
        else
            b->state = SEARCH_FREE;
    }
}

/* Waits until a child ends, or for a moment. Returns 0 or a negative errno. */
static int search_wait(search *self)
{
    struct pollfd ends[2 * BIDE_SIM_JOBS_MAX];
    search_batch *running[2 * BIDE_SIM_JOBS_MAX];
    nfds_t count = 0;
    for (unsigned i = 0; i < self->places; i++) {
        if (self->batch[i].state != SEARCH_RUNS)
            continue;
        ends[count] = (struct pollfd){.fd = self->batch[i].pipe, .events = POLLIN};
        running[count++] = &self->batch[i];
    }
    if (poll(ends, count, SEARCH_LOOK_MS) < 0 && errno != EINTR)
        return -errno;
    for (nfds_t i = 0; i < count; i++) {
        int status;
        pid_t id;
        while ((id = waitpid(running[i]->child, &status, ends[i].revents != 0 ? 0 : WNOHANG)) < 0) {
            if (errno != EINTR)
                return -errno;
        }
        if (id != 0)
            search_end_batch(self, running[i], status);
    }
    return 0;
}

/* Starts as many as may run. If the system has no process left, the running ones are enough. */
static int search_start_more(search *self)
{
    search_batch *b;
    while (self->running < self->jobs && self->begun < self->batches &&
           (b = search_find(self, SEARCH_FREE, 0)) != NULL) {
        int status = search_start(self, b);
        if (status < 0)
            return self->running != 0 ? 0 : status;
    }
    return 0;
}

static int search_run(search *self)
{
    while (self->failed == NULL && self->counted < self->batches) {
        int status = search_start_more(self);
        if (status == 0)
            status = search_wait(self);
        if (status < 0)
            return status;
        search_kill_from(self, self->batches);
        search_count(self);
        search_show_progress(self);
    }
    return 1;
}

/* Runs the seed that failed once more, where what it prints is seen. */
static void search_show_run(search *self)
{
    explorer *explorer = self->explorer;
    search_batch *b = search_find(self, SEARCH_FREE, 0);
    if (b == NULL)
        return;
    explorer->shared = b->shared;
    pid_t child = bide_sim_fork_(explorer);
    if (child == 0) {
        bide_sim_run_seed_(explorer, self->failed->shared->seed, NULL, false);
        fflush(NULL);
        _exit(0);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Copies what is known of a run. */
static void search_copy_run(shared *to, const shared *from)
{
    size_t count = from->draws_count < DRAWS_MAX ? from->draws_count : DRAWS_MAX;
    memcpy(to, from, offsetof(shared, draws));
    memcpy(to->draws, from->draws, count * sizeof *to->draws);
    memcpy(to->kinds, from->kinds, count * sizeof *to->kinds);
    memcpy(to->streams, from->streams, count * sizeof *to->streams);
}

int bide_sim_search_(explorer *explorer, uint64_t first, uint64_t seeds)
{
    search self = {.explorer = explorer, .first = first, .seeds = seeds};
    search_batch batches[2 * BIDE_SIM_JOBS_MAX] = {{SEARCH_FREE, 0, 0, 0, NULL}};
    shared *own = explorer->shared, *memory = own;
    self.jobs = search_jobs(explorer->options);
    self.size = explorer->options->isolated ? 1 : self.jobs == 1 ? seeds : SEARCH_BATCH;
    self.batches = seeds == 0 ? 0 : (seeds - 1) / self.size + 1;
    if (self.jobs > self.batches)
        self.jobs = self.batches > 1 ? (unsigned)self.batches : 1;
    self.places = self.jobs == 1 ? 1 : 2 * self.jobs;
    self.batch = batches;
    if (self.places > 1) {
        memory = bide_sim_map_(self.places * sizeof *memory);
        if (memory == NULL)
            return -ENOMEM;
    }
    for (unsigned i = 0; i < self.places; i++)
        batches[i].shared = &memory[i];
    search_begin_progress(&self);
    int status = search_run(&self);
    search_kill_from(&self, status < 0 ? 0 : self.batches);
    search_end_progress(&self);
    if (self.failed != NULL && self.jobs > 1) {
        search_show_run(&self);
        search_copy_run(own, self.failed->shared);
    }
    explorer->shared = own;
    if (self.failed != NULL)
        explorer->row = first + self.failed->number * self.size;
    else
        own->failure = BIDE_SIM_PASSED;
    if (memory != own)
        munmap(memory, self.places * sizeof *memory);
    return status;
}
