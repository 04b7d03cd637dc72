/*
 * The command line of a program that checks scenarios, and the table of weakened orders.
 */
#define _GNU_SOURCE
#include "bide/check.h"

#include "jobs.h"
#include "junit.h"
#include "orders.h"
#include "progress.h"
#include "source_location.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct main_options {
    bool list, verbose, weaken, tap;
    const char *replay, *dot, *junit;
    unsigned preemptions, jobs;
    double seconds;
    uint64_t executions;
    char **names;
    int names_count;
} main_options;

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool is_wanted(const main_options *o, const bide_check_scenario *s)
{
    for (int i = 0; i < o->names_count; i++) {
        if (strcmp(o->names[i], s->name) == 0)
            return true;
    }
    return o->names_count == 0;
}

/* Reports a name that is not a scenario's, and returns false. */
static bool are_known(const main_options *o, const bide_check_suite *suite)
{
    for (int i = 0; i < o->names_count; i++) {
        size_t j = 0;
        while (suite->scenarios[j] != NULL && strcmp(suite->scenarios[j]->name, o->names[i]) != 0)
            j++;
        if (suite->scenarios[j] == NULL) {
            fprintf(stderr, "there is no scenario %s\n", o->names[i]);
            return false;
        }
    }
    return true;
}

/* Returns the scenario with the limits of the command line. */
static bide_check_scenario with_limits(const main_options *o, const bide_check_scenario *given)
{
    bide_check_scenario s = *given;
    if (o->preemptions != 0)
        s.preemptions = o->preemptions;
    if (o->seconds > 0)
        s.max_seconds = o->seconds;
    if (o->executions != 0 && (s.max_executions == 0 || o->executions < s.max_executions))
        s.max_executions = o->executions;
    return s;
}

/*
 * The result of one scenario, or the worst of several. A scenario that found what it expects is
 * complete, if that is a finding or if each of its executions was explored; or bounded, if those with
 * more preemptions were left out.
 */
typedef enum verdict { COMPLETE, BOUNDED, UNFINISHED, BAD } verdict;

static verdict verdict_of(const bide_check_scenario *s, const bide_check_result *r)
{
    if (r->is_unfinished)
        return UNFINISHED;
    if (r->finding != s->expected)
        return BAD;
    return r->finding == BIDE_CHECK_NOTHING && r->is_bounded ? BOUNDED : COMPLETE;
}

static void print_found(FILE *out, const bide_check_scenario *s, const bide_check_result *r,
                        verdict v)
{
    if (v == UNFINISHED) {
        fprintf(out, "not finished: %" PRIu64 " explored", r->executions + r->blocked);
        return;
    }
    fputs(bide_check_finding_name(r->finding), out);
    if (v == BAD)
        fprintf(out, " (not %s)", bide_check_finding_name(s->expected));
    fprintf(out, ": %" PRIu64 " executions", r->executions);
    if (r->blocked != 0)
        fprintf(out, " and %" PRIu64 " given up", r->blocked);
    if (v == BOUNDED)
        fprintf(out, ", bounded: at most %u preemption%s", s->preemptions,
                s->preemptions == 1 ? "" : "s");
    else if (v == COMPLETE && r->finding == BIDE_CHECK_NOTHING)
        fputs(", complete", out);
}

static void print_trace(FILE *out, const bide_check_scenario *s, const bide_check_result *r)
{
    if (r->message != NULL)
        fprintf(out, "    %s\n", r->message);
    if (r->trace != NULL)
        fprintf(out, "%s    to replay it: --replay '%s' %s\n", r->trace, r->replay, s->name);
}

static void add_to_junit(unsigned number, const bide_check_scenario *s, const bide_check_result *r,
                         verdict v, double seconds)
{
    char *summary = NULL, *details = NULL;
    size_t size;
    FILE *out = open_memstream(&summary, &size);
    print_found(out, s, r, v);
    fclose(out);
    out = open_memstream(&details, &size);
    print_trace(out, s, r);
    fclose(out);
    junit_add(number, &(junit_case){.name = s->name,
                                    .seconds = seconds,
                                    .kind = v == BAD          ? JUNIT_FAILED
                                            : v == UNFINISHED ? JUNIT_SKIPPED
                                                              : JUNIT_PASSED,
                                    .summary = summary,
                                    .details = v == BAD ? details : NULL});
    free(summary);
    free(details);
}

/* Writes the graph of the execution that was shown. False: it could not be written. */
static bool write_graph(const char *path, const bide_check_result *r)
{
    if (r->graph == NULL) {
        fprintf(stderr, "%s is not written: nothing was found\n", path);
        return true;
    }
    FILE *out = fopen(path, "we");
    bool is_written = out != NULL && fputs(r->graph, out) >= 0;
    if (out != NULL)
        is_written = fclose(out) == 0 && is_written;
    if (!is_written)
        fprintf(stderr, "bide_check: %s: %s\n", path, strerror(errno));
    return is_written;
}

/* As a line of TAP: what is not finished counts as skipped. */
static void print_tap(unsigned number, const bide_check_scenario *s, const bide_check_result *r,
                      verdict v)
{
    printf("%s %u - %s%s: ", v == BAD ? "not ok" : "ok", number, v == UNFINISHED ? "# SKIP " : "",
           s->name);
    print_found(stdout, s, r, v);
    putchar('\n');
}

static verdict check_scenario(const main_options *o, unsigned number,
                              const bide_check_scenario *given)
{
    bide_check_scenario s = with_limits(o, given);
    bide_check_result r;
    double begun = seconds_now();
    progress_show(s.name);
    if (o->replay != NULL)
        bide_check_replay(&s, o->replay, &r);
    else
        bide_check_explore(&s, &r);
    progress_show(NULL);
    double seconds = seconds_now() - begun;
    verdict v = o->replay == NULL ? verdict_of(&s, &r) : r.finding == s.expected ? COMPLETE : BAD;
    if (o->tap) {
        print_tap(number, &s, &r, v);
    } else {
        printf("%-40s ", s.name);
        print_found(stdout, &s, &r, v);
        printf(", %.2f s\n", seconds);
    }
    if (v == BAD || o->verbose || o->replay != NULL)
        print_trace(stdout, &s, &r);
    if (o->verbose) {
        for (size_t i = 0; i < r.outcomes_count; i++)
            printf("    %s: %" PRIu64 "\n", r.outcomes[i], r.counts[i]);
    }
    fflush(stdout);
    if (o->junit != NULL)
        add_to_junit(number, &s, &r, v, seconds);
    if (o->dot != NULL && !write_graph(o->dot, &r))
        v = BAD;
    bide_check_result_free(&r);
    return v;
}

/* ---- Weaker orders ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static bool is_of_suite(const bide_check_suite *suite, const char *file)
{
    if (suite->files == NULL)
        return true;
    for (const char *const *f = suite->files; *f != NULL; f++) {
        if (ends_with(file, *f))
            return true;
    }
    return false;
}

/*
 * Explores the scenarios that should find nothing, and returns the first finding. A bad or unfinished
 * scenario has no finding; *unknown is then the reason, and *where its name.
 */
static bide_check_finding find_mistake(const main_options *o, const bide_check_suite *suite,
                                       const char **where, const char **unknown)
{
    *unknown = NULL;
    for (size_t i = 0; suite->scenarios[i] != NULL; i++) {
        if (!is_wanted(o, suite->scenarios[i]) ||
            suite->scenarios[i]->expected != BIDE_CHECK_NOTHING)
            continue;
        bide_check_scenario s = with_limits(o, suite->scenarios[i]);
        bide_check_result r;
        bide_check_finding finding = bide_check_explore(&s, &r);
        if (finding == BIDE_CHECK_BAD_SCENARIO)
            fprintf(stderr, "%s: %s\n", s.name, r.message);
        bool is_unfinished = r.is_unfinished;
        bide_check_result_free(&r);
        if (finding != BIDE_CHECK_NOTHING && finding != BIDE_CHECK_BAD_SCENARIO) {
            *where = s.name;
            return finding;
        }
        if (finding != BIDE_CHECK_NOTHING || is_unfinished) {
            *unknown = is_unfinished ? "NOT FINISHED" : "A BAD SCENARIO";
            *where = s.name;
        }
    }
    return BIDE_CHECK_NOTHING;
}

/* `from` is the order in the source, `order` the weaker one. */
static const bide_check_reason *reason_for(const bide_check_suite *suite, const known_operation *k,
                                           const char *from, const char *order)
{
    char both[64];
    snprintf(both, sizeof both, "%s to %s", from, order);
    for (const bide_check_reason *r = suite->reasons; r != NULL && r->function != NULL; r++) {
        if (strcmp(r->function, k->site->function) == 0 &&
            strcmp(r->operation, step_name(k->step)) == 0 &&
            strcmp(r->object, k->site->object) == 0 &&
            (strcmp(r->order, order) == 0 || strcmp(r->order, both) == 0))
            return r;
    }
    return NULL;
}

static void print_operation(const known_operation *k)
{
    const char *object = k->site->object;
    if (k->step != STEP_FENCE && object[0] == '\0') /* an atomic of C11: named by its line */
        printf("| `%s` | %s | line %u | ", k->site->function, step_name(k->step), k->site->line);
    else
        printf("| `%s` | %s | `%s` | ", k->site->function, step_name(k->step),
               object[0] == '&' ? object + 1 : object);
}

/*
 * Prints one row of the table. False if the order could be weaker and no reason is given for it, or if
 * a reason is given for an order that is needed.
 */
static bool check_weakening(const main_options *o, const bide_check_suite *suite,
                            const weakening *w)
{
    unsigned count;
    known_operation k = orders_known(&count)[w->operation];
    const char *failed = w->if_failed ? "if failed " : "";
    char order[32];
    snprintf(order, sizeof order, "%s%s", failed, order_name(w->to));
    orders_weaken(w);
    const char *where = "", *unknown;
    bide_check_finding finding = find_mistake(o, suite, &where, &unknown);
    orders_restore();

    const char *from = order_name(w->if_failed ? k.written.order_if_failed : k.written.order);
    const bide_check_reason *reason = reason_for(suite, &k, from, order);
    print_operation(&k);
    printf("%s%s | %s | ", failed, from, order);
    if (finding != BIDE_CHECK_NOTHING)
        printf("%s, in `%s` |\n", bide_check_finding_name(finding), where);
    else if (unknown != NULL)
        printf("%s, `%s` |\n", unknown, where);
    else
        printf("kept: %s |\n",
               reason != NULL ? reason->why : "NOTHING IS FOUND, NO REASON IS GIVEN");
    fflush(stdout);
    if (finding != BIDE_CHECK_NOTHING && reason != NULL)
        fprintf(stderr, "%s, %s, %s: a reason is given, but there is a finding\n", k.site->function,
                step_name(k.step), order);
    return unknown == NULL && (finding == BIDE_CHECK_NOTHING) == (reason != NULL);
}

/* The rows of the table. */
typedef struct weaker {
    const main_options *options;
    const bide_check_suite *suite;
    weakening *rows;
    bool *is_relaxed; /* a row is only its operation, whose order cannot be weaker */
    unsigned count, bad;
} weaker;

static void add_row(weaker *all, const weakening *w, bool is_relaxed)
{
    weakening *rows = realloc(all->rows, (all->count + 1) * sizeof *rows);
    all->rows = rows != NULL ? rows : all->rows;
    bool *relaxed = realloc(all->is_relaxed, all->count + 1);
    all->is_relaxed = relaxed != NULL ? relaxed : all->is_relaxed;
    if (rows == NULL || relaxed == NULL) {
        fputs("bide_check: out of memory\n", stderr);
        exit(1);
    }
    all->rows[all->count] = *w;
    all->is_relaxed[all->count++] = is_relaxed;
}

static int check_row(void *context, unsigned part)
{
    const weaker *all = context;
    unsigned count;
    if (!all->is_relaxed[part])
        return !check_weakening(all->options, all->suite, &all->rows[part]);
    known_operation k = orders_known(&count)[all->rows[part].operation];
    print_operation(&k);
    puts("relaxed | | |");
    return 0;
}

static void count_row(void *context, unsigned part, int status)
{
    (void)part;
    ((weaker *)context)->bad += status != 0;
}

static bool weaken_all(const main_options *o, const bide_check_suite *suite)
{
    const char *where, *unknown;
    weaker all = {.options = o, .suite = suite};
    unsigned count, relaxed = 0;
    double begun = seconds_now();
    /* Once with the orders of the source, to find all operations. */
    if (find_mistake(o, suite, &where, &unknown) != BIDE_CHECK_NOTHING || unknown != NULL) {
        fprintf(stderr, "%s fails with the orders of the source\n", where);
        return false;
    }
    puts("| function | operation | object | order | made weaker | found |\n"
         "| --- | --- | --- | --- | --- | --- |");
    orders_known(&count);
    for (unsigned i = 0, n = 0; i < count; i++) {
        known_operation k = orders_known(&count)[i];
        source_location_resolve(k.site);
        bool is_wanted_here = is_of_suite(suite, k.site->file), is_relaxed = true;
        for (weakening w; orders_weakening(n, &w) && w.operation == i; n++) {
            is_relaxed = false;
            if (is_wanted_here)
                add_row(&all, &w, false);
        }
        if (is_wanted_here && is_relaxed) {
            add_row(&all, &(weakening){.operation = i}, true);
            relaxed++;
        }
    }
    jobs_run(all.count, o->jobs, check_row, count_row, &all);
    fprintf(stderr, "%u orders made weaker, %u of them without a finding or a reason; %.1f s\n",
            all.count - relaxed, all.bad, seconds_now() - begun);
    free(all.rows);
    free(all.is_relaxed);
    return all.bad == 0;
}

/* ---- The command line ---- */

/* Seconds above 0, with or without a fraction. */
static bool read_seconds(const char *text, double *seconds)
{
    size_t length = strlen(text);
    if (length > 12 || strspn(text, "0123456789.") != length || text[0] == '.')
        return false;
    char *end;
    *seconds = strtod(text, &end);
    return *end == '\0' && *seconds > 0;
}

/* A number above 0 with at most `max_digits` digits. */
static bool is_number(const char *text, size_t max_digits)
{
    size_t digits = strspn(text, "0123456789");
    return text[0] != '0' && digits > 0 && digits <= max_digits && text[digits] == '\0';
}

static bool read_options(main_options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (strcmp(a, "--list") == 0)
            o->list = true;
        else if (strcmp(a, "--verbose") == 0)
            o->verbose = true;
        else if (strcmp(a, "--weaken") == 0)
            o->weaken = true;
        else if (strcmp(a, "--tap") == 0)
            o->tap = true;
        else if (strcmp(a, "--replay") == 0 && i + 1 < argc)
            o->replay = argv[++i];
        else if (strcmp(a, "--dot") == 0 && i + 1 < argc)
            o->dot = argv[++i];
        else if (strcmp(a, "--junit") == 0 && i + 1 < argc)
            o->junit = argv[++i];
        else if (strcmp(a, "--preemptions") == 0 && i + 1 < argc && is_number(argv[i + 1], 3))
            o->preemptions = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(a, "--jobs") == 0 && i + 1 < argc && is_number(argv[i + 1], 3))
            o->jobs = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(a, "--time") == 0 && i + 1 < argc && read_seconds(argv[i + 1], &o->seconds))
            i++;
        else if (strcmp(a, "--executions") == 0 && i + 1 < argc && is_number(argv[i + 1], 18))
            o->executions = strtoull(argv[++i], NULL, 10);
        else if (a[0] == '-')
            return false;
        else
            o->names[o->names_count++] = argv[i];
    }
    if (o->junit != NULL && (o->weaken || o->list))
        return false;
    return (o->replay == NULL && o->dot == NULL) || (o->names_count == 1 && !o->weaken && !o->list);
}

/* The scenarios that are asked for, and the worst verdict so far. */
typedef struct chosen {
    const main_options *options;
    const bide_check_scenario **scenarios;
    unsigned count;
    verdict worst;
} chosen;

static int check_part(void *context, unsigned part)
{
    const chosen *c = context;
    return (int)check_scenario(c->options, part + 1, c->scenarios[part]);
}

static void note_verdict(void *context, unsigned part, int status)
{
    chosen *c = context;
    verdict v = status == JOBS_LOST ? BAD : (verdict)status;
    if (status == JOBS_LOST && c->options->tap)
        printf("not ok %u - %s: its process was lost\n", part + 1, c->scenarios[part]->name);
    else if (status == JOBS_LOST)
        printf("%-40s its process was lost\n", c->scenarios[part]->name);
    if (status == JOBS_LOST)
        junit_add(part + 1, &(junit_case){.name = c->scenarios[part]->name,
                                          .kind = JUNIT_FAILED,
                                          .summary = "its process was lost"});
    c->worst = v > c->worst ? v : c->worst;
}

static verdict check_chosen(const main_options *o, const bide_check_suite *suite)
{
    size_t all = 0;
    while (suite->scenarios[all] != NULL)
        all++;
    chosen c = {.options = o, .scenarios = calloc(all + 1, sizeof *c.scenarios)};
    if (c.scenarios == NULL) {
        fputs("bide_check: out of memory\n", stderr);
        return BAD;
    }
    for (size_t i = 0; i < all; i++) {
        if (is_wanted(o, suite->scenarios[i]))
            c.scenarios[c.count++] = suite->scenarios[i];
    }
    for (unsigned i = 0; o->list && i < c.count; i++)
        puts(c.scenarios[i]->name);
    if (!o->list)
        jobs_run(c.count, o->jobs, check_part, note_verdict, &c);
    if (o->tap)
        printf("1..%u\n", c.count);
    free(c.scenarios);
    return c.worst;
}

int bide_check_main(int argc, char **argv, const bide_check_suite *suite)
{
    main_options o = {.names = calloc((size_t)argc + 1, sizeof *o.names), .jobs = 1};
    if (o.names == NULL || !read_options(&o, argc, argv)) {
        fprintf(stderr,
                "usage: %s [--list] [--verbose] [--tap] [--weaken] [--preemptions N]\n"
                "          [--time SECONDS] [--executions N] [--jobs N] [--junit FILE] [NAME...]\n"
                "       %s [--dot FILE] [--replay TEXT] NAME\n",
                argv[0], argv[0]);
        free(o.names);
        return 2;
    }
    if (!are_known(&o, suite) || (o.junit != NULL && !junit_open(o.junit))) {
        free(o.names);
        return 2;
    }
    verdict worst = !o.weaken ? check_chosen(&o, suite) : weaken_all(&o, suite) ? COMPLETE : BAD;
    const char *slash = strrchr(argv[0], '/');
    if (!junit_close(slash != NULL ? slash + 1 : argv[0]))
        worst = BAD;
    free(o.names);
    static const int statuses[] = {[COMPLETE] = 0, [BOUNDED] = 4, [UNFINISHED] = 3, [BAD] = 1};
    return o.tap && worst != BAD ? 0 : statuses[worst];
}
