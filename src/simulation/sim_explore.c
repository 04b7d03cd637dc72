/*
 * Exploration: many runs of a test, and a simpler version of the failing one.
 *
 * Runs are made in a child process, one after another, so a crash or a deadlock ends only the child. The
 * draws of a run are in memory that is shared with the parent. A run that fails ends its child at once,
 * since nothing can be cleaned up after a deadlock.
 *
 *     search    one child runs seed after seed; the failing one leaves its draws. Isolated runs have a child
 *               each, so that no run finds what another has left in memory; several jobs have a child each at a time
 *               (sim_search.c)
 *     again     a child runs those draws: it must fail alike, or the test is not deterministic
 *     simplify  one child for each attempt with simpler draws (sim_simplify.c)
 *     trace     a child runs the simplest draws, and records its turns
 */
#define _GNU_SOURCE
#include "sim_explorer.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of a trace: lines at its end, and, before them, lines out of order. A whole trace goes to another file. */
enum { LINES_SHOWN = 40, LINES_BEFORE = 20 };

static explorer *exploring; /* the child's */

/* ---- One run ---- */

/* The faults that have fired, as text: a few lines at most. */
static void explorer_note_fired(shared *s, const bide_sim_loop *loop)
{
    size_t used = 0;
    s->fired[0] = '\0';
    for (size_t i = 0; i < loop->faults_count && used < FIRED_MAX - 1; i++) {
        const bide_sim_fault *fault = &loop->faults[i];
        if (fault->fired != 0)
            used += (size_t)snprintf(s->fired + used, FIRED_MAX - used, "%s\"%s\" %" PRIu64,
                                     used != 0 ? ", " : "", fault->name, fault->fired);
    }
}

static void explorer_child_fails(bide_sim_loop *loop, bide_sim_failure failure, int status)
{
    shared *s = exploring->shared;
    s->failure = failure;
    s->status = status;
    explorer_note_fired(s, loop);
    fflush(NULL);
    _exit(EXIT_FAILED);
}

/*
 * Calls the body far down on the stack. So its frames stay intact after its return, while leaked
 * coroutines on them are reported.
 */
static BIDE_NOINLINE int explorer_call_body(explorer *self, bide_sim_loop *loop)
{
    char below[1 << 15];
    __asm__ volatile("" : : "r"(below) : "memory"); /* keeps all of it */
    int status = self->body(loop, self->options->argument);
    __asm__ volatile("" : : "r"(below) : "memory"); /* and the call is none in tail position */
    return status;
}

static bide_sim_failure explorer_run(explorer *self, bide_sim_loop *loop, int *status)
{
    if (self->options->max_turns != 0)
        loop->max_turns = self->options->max_turns;
    if (self->options->max_late != 0)
        loop->max_late = self->options->max_late;
    if (self->options->strategy == BIDE_SIM_PCT)
        bide_test_priorities_begin_(loop, self->options->depth, self->options->length);
    bide_sim_loop_running_ = loop;
    *status = explorer_call_body(self, loop);
    bide_sim_loop_running_ = NULL;
    bide_test_priorities_end_(loop->record);
    if (*status == -EDEADLK || *status == -ELOOP)
        return *status == -EDEADLK ? BIDE_SIM_DEADLOCK : BIDE_SIM_LIVELOCK;
    if (*status < 0)
        return BIDE_SIM_STATUS;
    if (bide_sim_loop_is_empty(loop))
        return BIDE_SIM_PASSED;
    *status = -EBUSY;
    return BIDE_SIM_LEFT;
}

/* A name that is written by the test itself is empty in the parent, but lies where it does in the child. */
static bool explorer_same_name(const char *a, const char *b)
{
    return a == b || (a[0] != '\0' && strcmp(a, b) == 0);
}

void bide_sim_add_faults_(bide_sim_fault *to, size_t *count, const bide_sim_fault *from,
                          size_t from_count)
{
    for (size_t i = 0; i < from_count; i++) {
        const bide_sim_fault *fault = &from[i];
        size_t at = 0;
        while (at < *count && !explorer_same_name(to[at].name, fault->name))
            at++;
        if (at == BIDE_SIM_FAULTS_MAX)
            continue;
        if (at == *count)
            to[(*count)++] = (bide_sim_fault){.name = fault->name};
        to[at].asked += fault->asked;
        to[at].fired += fault->fired;
    }
}

void bide_sim_run_seed_(explorer *self, uint64_t seed, const recipe *given, bool with_trace)
{
    static bide_sim_loop loop;
    static bide_sim_record_ record;
    shared *s = self->shared;
    int status;
    memset(&record, 0, sizeof record);
    record.draws = s->draws;
    record.kinds = s->kinds;
    record.streams = s->streams;
    record.capacity = DRAWS_MAX;
    record.made = &s->draws_count;
    if (given != NULL) {
        record.given = given->draws;
        record.given_streams = given->streams;
        record.given_count = given->count;
    }
    s->draws_count = 0;
    record.lines = with_trace ? s->lines : NULL;
    record.lines_count = &s->lines_count;
    record.lines_capacity = LINES_MAX;
    s->lines_count = 0;
    s->fired[0] = '\0';
    record.text = s->text;
    record.text_size = TEXT_MAX;
    record.fails = explorer_child_fails;
    s->text[0] = '\0';
    s->seed = seed;
    bide_sim_loop_init(&loop, seed);
    loop.record = &record;
    alarm(self->options->seconds != 0 ? self->options->seconds : 60);
    bide_sim_failure failure = explorer_run(self, &loop, &status);
    if (failure != BIDE_SIM_PASSED)
        explorer_child_fails(&loop, failure, status);
    bide_sim_add_faults_(s->faults, &s->faults_count, loop.faults, loop.faults_count);
    s->runs++;
}

/* ---- Children ---- */

/* The child of an attempt prints nothing and leaves no core; the child that is shown last does. */
static void explorer_mute(void)
{
    struct rlimit core;
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &core);
    }
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere == NULL)
        return;
    dup2(fileno(nowhere), STDOUT_FILENO);
    dup2(fileno(nowhere), STDERR_FILENO);
}

void bide_sim_read_status_(shared *s, int status)
{
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXIT_FAILED))
        return;
    s->failure = WIFEXITED(status)             ? BIDE_SIM_EXIT
                 : WTERMSIG(status) == SIGALRM ? BIDE_SIM_HANGS
                                               : BIDE_SIM_CRASH;
    s->status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
}

pid_t bide_sim_fork_(explorer *self)
{
    self->shared->failure = BIDE_SIM_PASSED;
    fflush(NULL);
    pid_t id = fork();
    if (id < 0)
        return -errno;
    if (id == 0) {
        exploring = self;
        signal(SIGALRM, SIG_DFL);
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        if (self->is_quiet)
            explorer_mute();
    }
    return id;
}

/*
 * Forks a child; the parent waits for its end. Returns 0 in the child, 1 in the parent, or a
 * negative errno.
 */
static int explorer_fork(explorer *self)
{
    int status;
    pid_t id = bide_sim_fork_(self);
    if (id <= 0)
        return (int)id;
    while (waitpid(id, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    bide_sim_read_status_(self->shared, status);
    return 1;
}

/* Runs the seeds in one child until one fails. */
static int explorer_run_seeds(explorer *self, uint64_t first, uint64_t seeds)
{
    int made = explorer_fork(self);
    if (made != 0)
        return made;
    for (uint64_t i = 0; i < seeds; i++)
        bide_sim_run_seed_(self, first + i, NULL, false);
    fflush(NULL);
    _exit(0);
}

/* Runs the failing seed with these draws. */
static int explorer_try_draws(explorer *self, const recipe *r, bool with_trace)
{
    int made = explorer_fork(self);
    if (made != 0)
        return made;
    bide_sim_run_seed_(self, self->seed, r, with_trace);
    fflush(NULL);
    _exit(0);
}

/* Makes `r` the draws of the last run. */
static void recipe_take_run(recipe *r, const shared *s)
{
    r->length = s->draws_count < DRAWS_MAX ? s->draws_count : DRAWS_MAX;
    r->count = r->length;
    memcpy(r->draws, s->draws, r->length * sizeof *r->draws);
    memcpy(r->kinds, s->kinds, r->length * sizeof *r->kinds);
    memcpy(r->streams, s->streams, r->length * sizeof *r->streams);
}

bool bide_sim_fails_alike_(explorer *self, recipe *r)
{
    const shared *s = self->shared;
    if (explorer_try_draws(self, r, false) < 0 || s->failure != self->failure ||
        s->status != self->status)
        return false;
    recipe_take_run(r, s);
    return true;
}

bool bide_sim_run_candidates_(explorer *self, uint64_t *number, uint64_t end,
                              size_t (*make)(explorer *self, uint64_t number))
{
    shared *s = self->shared;
    while (*number < end && bide_platform.now() < self->until) {
        s->candidate = *number;
        int made = explorer_fork(self);
        if (made < 0)
            return false;
        if (made == 0) {
            for (; s->candidate < end && bide_platform.now() < self->until; s->candidate++) {
                self->trial.count = make(self, s->candidate);
                bide_sim_run_seed_(self, self->seed, &self->trial, false);
            }
            fflush(NULL);
            _exit(0);
        }
        *number = s->candidate;
        if (s->failure == self->failure && s->status == self->status)
            return true;
        if (s->failure != BIDE_SIM_PASSED || *number < end)
            ++*number; /* it fails otherwise, or has ended its process */
    }
    return false;
}

/* ---- Reports ---- */

static const char *explorer_failure_text(bide_sim_failure failure)
{
    static const char *const texts[] = {
        [BIDE_SIM_PASSED] = "passes",
        [BIDE_SIM_STATUS] = "ends with",
        [BIDE_SIM_DEADLOCK] = "ends in a deadlock",
        [BIDE_SIM_LIVELOCK] = "does not end",
        [BIDE_SIM_LEFT] = "leaves a coroutine behind",
        [BIDE_SIM_CRASH] = "crashes with signal",
        [BIDE_SIM_EXIT] = "exits with",
        [BIDE_SIM_HANGS] = "hangs",
        [BIDE_SIM_NO_FAULT] = "never has a fault",
        [BIDE_SIM_NOT_ALIKE] = "does not run alike twice",
    };
    return texts[failure];
}

static void explorer_print_failure(explorer *self)
{
    fprintf(self->out, "bide: seed %" PRIu64 " %s", self->seed,
            explorer_failure_text(self->failure));
    if (self->failure == BIDE_SIM_CRASH)
        fprintf(self->out, " %d (%s)", self->status, strsignal(self->status));
    else if (self->failure == BIDE_SIM_STATUS)
        fprintf(self->out, " %d (%s)", self->status, strerror(-self->status));
    else if (self->failure == BIDE_SIM_EXIT)
        fprintf(self->out, " %d", self->status);
    fprintf(self->out, ", after %" PRIu64 " runs that passed\n", self->result->runs);
}

static bool is_plain_line(const test_line *line)
{
    return line->kind == DRAW_TURN && line->value == 0;
}

static const test_line *explorer_line(const shared *s, size_t number)
{
    return &s->lines[number % LINES_MAX];
}

/* The number of the first of the lines out of order that are shown before the end of the trace. */
static size_t explorer_first_shown(const shared *s, size_t kept_from)
{
    size_t at = s->lines_count > LINES_SHOWN ? s->lines_count - LINES_SHOWN : 0;
    for (size_t before = 0; at > kept_from && before < LINES_BEFORE; at--)
        before += !is_plain_line(explorer_line(s, at - 1));
    return at;
}

/* Prints the trace of the last run: what is kept of it, or a part that fits a screen. */
static void explorer_print_trace(explorer *self, FILE *to, bool whole)
{
    const shared *s = self->shared;
    size_t count = s->lines_count;
    size_t at = count > LINES_MAX ? count - LINES_MAX : 0;
    size_t left_out = 0;
    if (!whole)
        at = explorer_first_shown(s, at);
    if (at != 0)
        fprintf(to, "        ... %zu lines before\n", at);
    for (; at < count; at++) {
        if (!whole && count - at > LINES_SHOWN && is_plain_line(explorer_line(s, at))) {
            left_out++;
            continue;
        }
        if (left_out != 0)
            fprintf(to, "        ... %zu turns in order\n", left_out);
        left_out = 0;
        bide_sim_line_print_(to, explorer_line(s, at));
    }
    fputs(s->text, to);
}

/* Runs the draws again for their trace: all of it to options.trace, and, of the simplest, its end to `out`. */
static void explorer_trace(explorer *self, const recipe *r, bool is_simplest)
{
    FILE *trace = self->options->trace;
    if (trace == NULL && !is_simplest)
        return;
    explorer_try_draws(self, r, true);
    if (trace != NULL) {
        fprintf(trace, "seed %" PRIu64 "%s:\n", self->seed,
                is_simplest ? ", the simplest run found" : "");
        explorer_print_trace(self, trace, true);
        fflush(trace);
    }
    if (!is_simplest)
        return;
    if (self->shared->fired[0] != '\0')
        fprintf(self->out, "faults that fired: %s\n", self->shared->fired);
    explorer_print_trace(self, self->out, false);
}

/* The names of the streams of kinds. Those of names have numbers. */
static const char *const stream_names[] = {
    [DRAW_TURN] = "turn",   [DRAW_LATE] = "late",   [DRAW_BUDGET] = "budget",
    [DRAW_POINT] = "point", [DRAW_RATE] = "rate",   [DRAW_FAULT] = "fault",
    [DRAW_CALL] = "call",   [DRAW_DELAY] = "delay", [DRAW_OWN] = "own",
    [DRAW_FORK] = "fork",
};
enum { STREAM_NAMES = sizeof stream_names / sizeof *stream_names };

void bide_sim_print_draws_(FILE *to, const recipe *r)
{
    bool first = true;
    size_t numbers[TEST_STREAMS] = {0};
    for (size_t i = 0; i < r->count; i++) {
        uint8_t stream = r->streams[i];
        size_t number = numbers[stream]++;
        if (r->draws[i] == 0)
            continue;
        fputs(first ? "" : ",", to);
        if (stream < STREAM_NAMES)
            fputs(stream_names[stream], to);
        else
            fprintf(to, "%u", stream);
        fprintf(to, ".%zu:%u", number, r->draws[i]);
        first = false;
    }
    if (first)
        fputc('0', to);
}

static void explorer_print_reproduction(explorer *self)
{
    if (!self->has_given_draws)
        fprintf(self->out, "run it again:   BIDE_TEST_SEED=%" PRIu64 "\n", self->seed);
    if (self->options->as_found && !self->has_given_draws)
        return;
    fprintf(self->out, "%s BIDE_TEST_SEED=%" PRIu64 " BIDE_TEST_DRAWS=",
            self->options->as_found ? "run it again:  " : "the simpler one:", self->seed);
    bide_sim_print_draws_(self->out, &self->best);
    fputc('\n', self->out);
}

/* ---- From the environment ---- */

/* The stream that a text begins with; TEST_STREAMS: none. *end is behind it. */
static unsigned parse_stream(const char *text, const char **end)
{
    char *behind;
    for (unsigned i = 0; i < STREAM_NAMES; i++) {
        size_t length = strlen(stream_names[i]);
        if (strncmp(text, stream_names[i], length) == 0 && text[length] == '.') {
            *end = text + length;
            return i;
        }
    }
    unsigned long number = strtoul(text, &behind, 10);
    *end = behind;
    return behind != text && *behind == '.' && number < TEST_STREAMS ? (unsigned)number
                                                                     : TEST_STREAMS;
}

/* Sets draw `number` of a stream; those before it are 0 if they are not there. False: there are too many. */
static bool recipe_set(recipe *r, uint8_t stream, size_t number, uint16_t value)
{
    size_t at = 0;
    for (size_t seen = 0;; at++) {
        if (at == DRAWS_MAX)
            return false;
        if (at == r->count) {
            r->draws[at] = 0;
            r->streams[at] = stream;
            r->count++;
        }
        if (r->streams[at] == stream && seen++ == number)
            break;
    }
    r->draws[at] = value;
    return true;
}

const char *bide_sim_parse_draws_(const char *text, recipe *r)
{
    r->count = 0;
    if (strcmp(text, "0") == 0)
        return NULL;
    for (;;) {
        const char *at;
        char *end;
        unsigned stream = parse_stream(text, &at);
        if (stream == TEST_STREAMS)
            return text;
        uint64_t number = strtoull(at + 1, &end, 10);
        if (end == at + 1 || *end != ':' || number >= DRAWS_MAX)
            return text;
        at = end + 1;
        uint64_t value = strtoull(at, &end, 10);
        if (end == at || value > UINT16_MAX || (*end != '\0' && *end != ',') ||
            !recipe_set(r, (uint8_t)stream, (size_t)number, (uint16_t)value))
            return text;
        if (*end == '\0')
            return NULL;
        text = end + 1;
    }
}

static int explorer_error(bide_sim_failure failure, int status)
{
    static const int errors[] = {
        [BIDE_SIM_DEADLOCK] = -EDEADLK, [BIDE_SIM_LIVELOCK] = -ELOOP,   [BIDE_SIM_LEFT] = -EBUSY,
        [BIDE_SIM_CRASH] = -EFAULT,     [BIDE_SIM_EXIT] = -EFAULT,      [BIDE_SIM_HANGS] = -ETIME,
        [BIDE_SIM_NO_FAULT] = -ENODATA, [BIDE_SIM_NOT_ALIKE] = -EAGAIN,
    };
    return failure == BIDE_SIM_STATUS ? status : failure == BIDE_SIM_PASSED ? 0 : errors[failure];
}

/* One run in this process. */
static int explorer_run_here(explorer *self, const char *seed, const char *draws)
{
    bide_sim_record_ record = {.is_live = true, .lines_capacity = LINES_MAX};
    record.lines_count = &self->shared->lines_count;
    bide_sim_loop loop;
    int status;
    record.lines = self->shared->lines;
    record.draws = self->shared->draws;
    record.kinds = self->shared->kinds;
    record.streams = self->shared->streams;
    record.capacity = DRAWS_MAX;
    if (draws != NULL) {
        const char *wrong = bide_sim_parse_draws_(draws, &self->best);
        if (wrong != NULL) {
            fprintf(self->out, "bide: BIDE_TEST_DRAWS is not of draws, from \"%s\" on\n", wrong);
            return -EINVAL;
        }
        record.given = self->best.draws;
        record.given_streams = self->best.streams;
        record.given_count = self->best.count;
    }
    self->seed = strtoull(seed, NULL, 0);
    bide_sim_loop_init(&loop, self->seed);
    loop.record = &record;
    self->failure = explorer_run(self, &loop, &status);
    self->status = status;
    self->result->runs = self->failure == BIDE_SIM_PASSED;
    if (self->failure != BIDE_SIM_PASSED)
        explorer_print_failure(self);
    return explorer_error(self->failure, status);
}

/* ---- Exploration ---- */

/* Reports faults that must have fired and have not. */
static int explorer_check_faults(explorer *self)
{
    const bide_sim_result *result = self->result;
    bool missing = false;
    for (const char *const *name = self->options->faults; name != NULL && *name != NULL; name++) {
        size_t i = 0;
        while (i < result->faults_count && strcmp(result->faults[i].name, *name) != 0)
            i++;
        if (i < result->faults_count && result->faults[i].fired != 0)
            continue;
        fprintf(self->out,
                "bide: the fault \"%s\" never fired in %" PRIu64 " runs, asked for %" PRIu64
                " times\n",
                *name, result->runs, i < result->faults_count ? result->faults[i].asked : 0);
        missing = true;
    }
    self->failure = missing ? BIDE_SIM_NO_FAULT : BIDE_SIM_PASSED;
    return explorer_error(self->failure, 0);
}

/* Takes the draws of the failing seed. True: a run with them fails in the same way. */
static bool explorer_find_draws(explorer *self)
{
    recipe_take_run(&self->best, self->shared);
    self->is_quiet = true;
    bool alike = bide_sim_best_is_(self, self->best.count);
    self->is_quiet = false;
    return alike;
}

/* Whether the run fails again in the same way after those that came before it. */
static bool explorer_fails_in_a_row(explorer *self)
{
    const uint64_t first = self->row;
    const shared *s = self->shared;
    if (self->options->isolated || self->seed == first)
        return false;
    self->is_quiet = true;
    explorer_run_seeds(self, first, self->seed - first + 1);
    self->is_quiet = false;
    return s->seed == self->seed && s->failure == self->failure && s->status == self->status;
}

static int explorer_explain(explorer *self)
{
    bide_sim_result *result = self->result;
    explorer_print_failure(self);
    if (!explorer_find_draws(self)) {
        const char *again = self->shared->failure == BIDE_SIM_PASSED ? "passes" : "fails otherwise";
        if (explorer_fails_in_a_row(self))
            fprintf(self->out,
                    "bide: alone it %s: it depends on what earlier runs left in memory, such as a "
                    "static "
                    "variable; options.isolated runs each seed in a process of its own\n",
                    again);
        else
            fprintf(self->out,
                    "bide: run again it %s: something in it is not drawn from the seed\n", again);
        self->failure = BIDE_SIM_NOT_ALIKE;
        return -EAGAIN;
    }
    result->draws = self->best.nonzero;
    result->preemptions = self->best.preemptions;
    self->is_quiet = true;
    explorer_trace(self, &self->best, false);
    if (!self->options->as_found)
        bide_sim_simplify_(self);
    self->is_quiet = false;
    result->draws_left = self->best.nonzero;
    result->preemptions_left = self->best.preemptions;
    if (self->options->as_found)
        fprintf(self->out,
                "the run that failed: %zu draws that are not plain; of these preempt %zu\n",
                result->draws, result->preemptions);
    else
        fprintf(self->out,
                "the simplest run found that fails alike: %zu draws that are not plain, of %zu; of "
                "these "
                "preempt %zu, of %zu\n",
                result->draws_left, result->draws, result->preemptions_left, result->preemptions);
    explorer_trace(self, &self->best, true);
    explorer_print_reproduction(self);
    fflush(self->out);
    return explorer_error(self->failure, self->status);
}

static int explorer_explore(explorer *self, uint64_t seeds)
{
    const char *seed = getenv("BIDE_TEST_SEED");
    if (seed != NULL)
        return explorer_run_here(self, seed, getenv("BIDE_TEST_DRAWS"));
    uint64_t first = self->options->first_seed != 0 ? self->options->first_seed : 1;
    const shared *s = self->shared;
    int made = bide_sim_replay_(self);
    bool is_new = made > 0 && s->failure == BIDE_SIM_PASSED;
    if (is_new)
        made = bide_sim_search_(self, first, seeds);
    else
        self->row = s->seed;
    if (made < 0)
        return made;
    self->failure = s->failure;
    self->status = s->status;
    self->seed = s->seed;
    if (self->failure == BIDE_SIM_PASSED)
        return explorer_check_faults(self);
    int status = explorer_explain(self);
    if (is_new && self->failure != BIDE_SIM_NOT_ALIKE)
        bide_sim_keep_(self);
    fflush(self->out);
    return status;
}

void *bide_sim_map_(size_t size)
{
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

int bide_sim_loop_explore_with(bide_sim_body *body, uint64_t seeds, const bide_sim_options *options)
{
    static const bide_sim_options none;
    enum { RECIPES = 4 };
    bide_sim_result own;
    explorer self = {.body = body, .options = options != NULL ? options : &none};
    int error = -ENOMEM;
    self.result = self.options->result != NULL ? self.options->result : &own;
    self.out = self.options->out != NULL ? self.options->out : stderr;
    memset(self.result, 0, sizeof *self.result);
    self.shared = bide_sim_map_(sizeof *self.shared);
    uint16_t(*draws)[DRAWS_MAX] = bide_sim_map_(RECIPES * sizeof *draws);
    uint8_t(*kinds)[DRAWS_MAX] = bide_sim_map_(RECIPES * sizeof *kinds);
    uint8_t(*streams)[DRAWS_MAX] = bide_sim_map_(RECIPES * sizeof *streams);
    if (self.shared != NULL && draws != NULL && kinds != NULL && streams != NULL) {
        recipe *recipes[RECIPES] = {&self.best, &self.trial, &self.found, &self.other};
        for (int i = 0; i < RECIPES; i++) {
            recipes[i]->draws = draws[i];
            recipes[i]->kinds = kinds[i];
            recipes[i]->streams = streams[i];
        }
        error = explorer_explore(&self, seeds);
    }
    self.result->failure = self.failure;
    self.result->seed = self.seed;
    self.result->status = self.status;
    if (self.shared != NULL)
        munmap(self.shared, sizeof *self.shared);
    if (draws != NULL)
        munmap(draws, RECIPES * sizeof *draws);
    if (kinds != NULL)
        munmap(kinds, RECIPES * sizeof *kinds);
    if (streams != NULL)
        munmap(streams, RECIPES * sizeof *streams);
    return error;
}

int bide_sim_loop_explore(bide_sim_body *body, uint64_t seeds)
{
    return bide_sim_loop_explore_with(body, seeds, NULL);
}
