/*
 * Reads the command line.
 */
#define _GNU_SOURCE
#include "command.h"
#include "sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_RUNS = 1000 };

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

/* A number of 64 bits, in decimal. */
static bool read_seed(const char *text, uint64_t *seed)
{
    size_t digits = strspn(text, "0123456789");
    errno = 0;
    *seed = strtoull(text, NULL, 10);
    return digits > 0 && text[digits] == '\0' && errno == 0;
}

/* False if options contradict each other. */
static bool options_fit(const main_options *o)
{
    bool is_single = o->replay != NULL || o->dot != NULL;
    if (o->junit != NULL && (o->weaken || o->list))
        return false;
    if (o->samples && (o->weaken || o->replay != NULL || o->preemptions != 0 || o->executions != 0))
        return false;
    if (o->has_seed && !o->samples)
        return false;
    return !is_single || (o->names_count == 1 && !o->weaken && !o->list);
}

/* True if the option `a` has the argument `value` and was read. */
static bool read_sampling(main_options *o, const char *a, const char *value)
{
    if (strcmp(a, "--seed") == 0)
        return o->has_seed = read_seed(value, &o->sampling.seed);
    if (strcmp(a, "--random") == 0 && is_number(value, 18))
        o->sampling.runs = strtoull(value, NULL, 10);
    else if (strcmp(a, "--pct") == 0 && is_number(value, 2) &&
             strtoul(value, NULL, 10) <= SAMPLE_MAX_DEPTH)
        o->sampling.depth = (unsigned)strtoul(value, NULL, 10);
    else
        return false;
    return o->samples = true;
}

bool command_read(main_options *o, int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    o->program = slash != NULL ? slash + 1 : argv[0];
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
        else if (strcmp(a, "--progress") == 0 && i + 1 < argc &&
                 read_seconds(argv[i + 1], &o->progress))
            i++;
        else if (strcmp(a, "--unfinished") == 0 && i + 1 < argc)
            o->unfinished = argv[++i];
        else if (i + 1 < argc && read_sampling(o, a, argv[i + 1]))
            i++;
        else if (strcmp(a, "--executions") == 0 && i + 1 < argc && is_number(argv[i + 1], 18))
            o->executions = strtoull(argv[++i], NULL, 10);
        else if (a[0] == '-')
            return false;
        else
            o->names[o->names_count++] = argv[i];
    }
    if (o->sampling.runs == 0)
        o->sampling.runs = DEFAULT_RUNS;
    return options_fit(o);
}

void command_usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [--list] [--verbose] [--tap] [--weaken] [--preemptions N]\n"
            "          [--time SECONDS] [--executions N] [--jobs N] [--junit FILE]\n"
            "          [--unfinished FILE] [--progress SECONDS] [NAME...]\n"
            "       %s [--random N] [--pct D] [--seed S] [NAME...]\n"
            "       %s [--dot FILE] [--replay TEXT] NAME\n",
            program, program, program);
}

/* ---- Scenarios ---- */

bool command_wants(const main_options *o, const bide_check_scenario *s)
{
    for (int i = 0; i < o->names_count; i++) {
        if (strcmp(o->names[i], s->name) == 0)
            return true;
    }
    return o->names_count == 0;
}

bool command_names_are_known(const main_options *o, const bide_check_suite *suite)
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

/* The text of the file of scenarios that need not be finished; lines that begin with # are comments. */
static char *unfinished_names;

bool command_read_unfinished(const main_options *o)
{
    free(unfinished_names);
    unfinished_names = NULL;
    size_t size = 0;
    FILE *file = o->unfinished != NULL ? fopen(o->unfinished, "re") : NULL;
    if (o->unfinished == NULL)
        return true;
    bool is_empty = file != NULL && getdelim(&unfinished_names, &size, '\0', file) < 0;
    if (file == NULL || (is_empty && ferror(file) != 0)) {
        fprintf(stderr, "bide_check: %s: %s\n", o->unfinished, strerror(errno));
        if (file != NULL)
            fclose(file);
        return false;
    }
    fclose(file);
    if (is_empty) {
        free(unfinished_names); /* (memory without a text) */
        unfinished_names = NULL;
    }
    return true;
}

/*
 * The next name that is this program's, at or after *line: "NAME", or "PROGRAM: NAME" with the program's own name. Sets its
 * length, and *line to the line after it. NULL: there is none.
 */
static const char *next_unfinished(const char *program, const char **line, size_t *length)
{
    size_t own = strlen(program);
    while (*line != NULL && **line != '\0') {
        const char *name = *line;
        size_t n = strcspn(name, "\n"), prefix = strcspn(name, ":\n");
        *line += n + (name[n] == '\n');
        *length = n;
        if (n == 0 || name[0] == '#')
            continue;
        if (prefix == n)
            return name;
        if (prefix != own || strncmp(name, program, own) != 0)
            continue;
        prefix += 1 + strspn(name + prefix + 1, " ");
        *length = n - prefix;
        return name + prefix;
    }
    return NULL;
}

static bool is_named_unfinished(const char *program, const char *wanted)
{
    const char *line = unfinished_names, *name;
    for (size_t n; (name = next_unfinished(program, &line, &n)) != NULL;) {
        if (n == strlen(wanted) && strncmp(name, wanted, n) == 0)
            return true;
    }
    return false;
}

bool command_unfinished_are_known(const main_options *o, const bide_check_suite *suite)
{
    const char *line = unfinished_names, *name;
    for (size_t n; (name = next_unfinished(o->program, &line, &n)) != NULL;) {
        const bide_check_scenario *const *s = suite->scenarios;
        while (*s != NULL && (strlen((*s)->name) != n || strncmp((*s)->name, name, n) != 0))
            s++;
        if (*s == NULL) {
            fprintf(stderr, "bide_check: %s: there is no scenario %.*s\n", o->unfinished, (int)n,
                    name);
            return false;
        }
    }
    return true;
}

bide_check_scenario command_limits(const main_options *o, const bide_check_scenario *given)
{
    bide_check_scenario s = *given;
    if (o->preemptions != 0)
        s.preemptions = o->preemptions;
    if (o->seconds > 0)
        s.max_seconds = o->seconds;
    if (o->executions != 0 && (s.max_executions == 0 || o->executions < s.max_executions))
        s.max_executions = o->executions;
    bool has_limit = given->max_executions != 0 || given->max_seconds > 0;
    if (o->unfinished != NULL && !has_limit && !is_named_unfinished(o->program, s.name))
        s.must_finish = true;
    return s;
}
