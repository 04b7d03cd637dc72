/*
 * The table of weaker orders: a row for each order of the files of the suite, made weaker by one
 * step.
 */
#define _GNU_SOURCE
#include "weaken.h"

#include "jobs.h"
#include "orders.h"
#include "seconds.h"
#include "source_location.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
 * Explores the scenarios that should find nothing, and returns the first finding. A bad or
 * unfinished scenario has no finding; *unknown is then the reason, and *where its name. A scenario that
 * limits itself is not unfinished at its own limit.
 */
static bide_check_finding find_mistake(const main_options *o, const bide_check_suite *suite,
                                       const char **where, const char **unknown)
{
    *unknown = NULL;
    for (size_t i = 0; suite->scenarios[i] != NULL; i++) {
        if (!command_wants(o, suite->scenarios[i]) ||
            suite->scenarios[i]->expected != BIDE_CHECK_NOTHING)
            continue;
        bide_check_scenario s = command_limits(o, suite->scenarios[i]);
        bide_check_result r;
        bide_check_finding finding = bide_check_explore(&s, &r);
        if (finding == BIDE_CHECK_BAD_SCENARIO)
            fprintf(stderr, "%s: %s\n", s.name, r.message);
        uint64_t limit = suite->scenarios[i]->max_executions;
        bool limits_itself = limit != 0 && s.max_executions == limit;
        bool is_unfinished = r.is_unfinished && !limits_itself;
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
 * Prints one row of the table. False if the order could be weaker and no reason is given for it, or
 * if a reason is given for an order that is needed.
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

bool weaken_all(const main_options *o, const bide_check_suite *suite)
{
    const char *where, *unknown;
    weaker all = {.options = o, .suite = suite};
    unsigned count, relaxed = 0;
    double begun = seconds_now();
    /* Once with the orders of the source, to find all operations. */
    if (find_mistake(o, suite, &where, &unknown) != BIDE_CHECK_NOTHING || unknown != NULL) {
        fprintf(stderr, "%s fails with the orders of the source%s%s\n", where,
                unknown != NULL ? ": " : "", unknown != NULL ? unknown : "");
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
