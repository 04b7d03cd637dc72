/*
 * A program that checks scenarios: explores, samples or replays those that the command line names, and reports each.
 */
#define _GNU_SOURCE
#include "bide/check.h"

#include "command.h"
#include "jobs.h"
#include "junit.h"
#include "progress.h"
#include "seconds.h"
#include "verdict.h"
#include "weaken.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_trace(FILE *out, const main_options *o, const bide_check_scenario *s,
                        const bide_check_result *r)
{
    if (r->message != NULL)
        fprintf(out, "    %s\n", r->message);
    if (r->trace != NULL)
        fprintf(out, "%s    to replay it: --replay '%s' %s\n", r->trace, r->replay, s->name);
    if (r->trace == NULL || !r->is_sampled)
        return;
    fputs("    or: --random 1 ", out);
    if (o->sampling.depth != 0)
        fprintf(out, "--pct %u ", o->sampling.depth);
    fprintf(out, "--seed %" PRIu64 " %s\n", r->seed, s->name);
}

static void print_summary(FILE *out, const bide_check_scenario *s, const bide_check_result *r,
                          verdict v, bool is_graph_lost)
{
    verdict_print(out, s, r, v);
    if (is_graph_lost)
        fputs(", its graph could not be written", out);
}

static void add_to_junit(const main_options *o, unsigned number, const bide_check_scenario *s,
                         const bide_check_result *r, verdict v, bool is_graph_lost, double seconds)
{
    char *summary = NULL, *details = NULL;
    size_t size;
    FILE *out = open_memstream(&summary, &size);
    print_summary(out, s, r, v, is_graph_lost);
    fclose(out);
    out = open_memstream(&details, &size);
    print_trace(out, o, s, r);
    fclose(out);
    junit_add(number, &(junit_case){.name = s->name,
                                    .seconds = seconds,
                                    .verdict = v,
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
                      verdict v, bool is_graph_lost)
{
    printf("%s %u - %s%s: ", v == BAD ? "not ok" : "ok", number, v == UNFINISHED ? "# SKIP " : "",
           s->name);
    print_summary(stdout, s, r, v, is_graph_lost);
    putchar('\n');
}

static verdict check_scenario(const main_options *o, unsigned number,
                              const bide_check_scenario *given)
{
    bide_check_scenario s = command_limits(o, given);
    bide_check_result r;
    double begun = seconds_now();
    progress_show(s.name);
    if (o->replay != NULL)
        bide_check_replay(&s, o->replay, &r);
    else if (o->samples)
        bide_check_sample(&s, &o->sampling, &r);
    else
        bide_check_explore(&s, &r);
    progress_show(NULL);
    double seconds = seconds_now() - begun;
    verdict v = o->replay == NULL ? verdict_of(&s, &r) : r.finding == s.expected ? COMPLETE : BAD;
    bool is_graph_lost = o->dot != NULL && !write_graph(o->dot, &r);
    if (is_graph_lost)
        v = BAD;
    if (o->tap) {
        print_tap(number, &s, &r, v, is_graph_lost);
    } else {
        printf("%-40s ", s.name);
        print_summary(stdout, &s, &r, v, is_graph_lost);
        printf(", %.2f s\n", seconds);
    }
    if (v == BAD || o->verbose || o->replay != NULL)
        print_trace(stdout, o, &s, &r);
    if (o->verbose) {
        for (size_t i = 0; i < r.outcomes_count; i++)
            printf("    %s: %" PRIu64 "\n", r.outcomes[i], r.counts[i]);
    }
    fflush(stdout);
    if (o->junit != NULL)
        add_to_junit(o, number, &s, &r, v, is_graph_lost, seconds);
    bide_check_result_free(&r);
    return v;
}

/* The scenarios that are asked for, the worst verdict so far, and how many have each. */
typedef struct chosen {
    const main_options *options;
    const bide_check_scenario **scenarios;
    unsigned count;
    verdict worst;
    unsigned counts[VERDICTS];
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
                                          .verdict = BAD,
                                          .summary = "its process was lost"});
    c->counts[v]++;
    c->worst = v > c->worst ? v : c->worst;
}

/* Says how many scenarios have each verdict. */
static void print_closing_line(const chosen *c)
{
    if (!c->options->tap && c->count < 2)
        return;
    fputs(c->options->tap ? "# scenarios: " : "scenarios: ", stdout);
    verdict_print_counts(stdout, c->counts);
    putchar('\n');
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
        if (command_wants(o, suite->scenarios[i]))
            c.scenarios[c.count++] = suite->scenarios[i];
    }
    for (unsigned i = 0; o->list && i < c.count; i++)
        puts(c.scenarios[i]->name);
    if (!o->list)
        jobs_run(c.count, o->jobs, check_part, note_verdict, &c);
    if (o->tap)
        printf("1..%u\n", c.count);
    if (!o->list)
        print_closing_line(&c);
    free(c.scenarios);
    return c.worst;
}

/* Draws a seed, unless the command line has one. */
static void set_seed(main_options *o)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (!o->has_seed)
        o->sampling.seed = (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000;
}

int bide_check_main(int argc, char **argv, const bide_check_suite *suite)
{
    main_options o = {.names = calloc((size_t)argc + 1, sizeof *o.names), .jobs = 1};
    if (o.names == NULL || !command_read(&o, argc, argv)) {
        command_usage(argv[0]);
        free(o.names);
        return 2;
    }
    if (!command_names_are_known(&o, suite) || !command_read_unfinished(&o) ||
        !command_unfinished_are_known(&o, suite) || (o.junit != NULL && !junit_open(o.junit))) {
        free(o.names);
        return 2;
    }
    set_seed(&o);
    progress_first = o.progress > 0 ? o.progress : PROGRESS_FIRST;
    verdict worst = !o.weaken ? check_chosen(&o, suite) : weaken_all(&o, suite) ? COMPLETE : BAD;
    if (!junit_close(o.program))
        worst = BAD;
    free(o.names);
    static const int statuses[] = {
        [COMPLETE] = 0, [BOUNDED] = 4, [SAMPLED] = 5, [UNFINISHED] = 3, [BAD] = 1};
    return o.tap && worst != BAD ? 0 : statuses[worst];
}
