/*
 * The corpus of an exploration: a file of the seeds that have failed.
 *
 *     # comment
 *     31500 call.2:2,own.4:1
 *     77
 *
 * Each line is a seed, and behind it the draws of the simplest run found that failed, if there is one. The lines are run before
 * anything else, each in a process of its own: the seed, which finds its failure while the test draws what it drew then;
 * and the draws, which find it in spite of small changes. Seeds that the search finds are added.
 */
#define _GNU_SOURCE
#include "sim_explorer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

/* Takes a line apart; `draws` is NULL if it has none. False: it is neither a seed nor empty. */
static bool corpus_parse(char *line, bool *is_empty, uint64_t *seed, char **draws)
{
    char *end;
    line[strcspn(line, "#\n")] = '\0';
    line += strspn(line, " \t");
    *is_empty = *line == '\0';
    *draws = NULL;
    if (*is_empty)
        return true;
    errno = 0;
    *seed = strtoull(line, &end, 10);
    if (end == line || errno != 0 || *line == '-' || strchr(" \t", *end) == NULL)
        return false;
    end += strspn(end, " \t");
    end[strcspn(end, " \t")] = '\0';
    if (*end != '\0')
        *draws = end;
    return true;
}

/* Runs a seed in a child. Returns 1 or a negative errno. */
static int corpus_run(explorer *self, uint64_t seed, const recipe *given)
{
    int status;
    self->shared->runs = 0;
    self->shared->faults_count = 0;
    pid_t id = bide_sim_fork_(self);
    if (id < 0)
        return (int)id;
    if (id == 0) {
        bide_sim_run_seed_(self, seed, given, false);
        fflush(NULL);
        _exit(0);
    }
    while (waitpid(id, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    bide_sim_read_status_(self->shared, status);
    bide_sim_result *result = self->result;
    result->replayed += self->shared->runs;
    bide_sim_add_faults_(result->faults, &result->faults_count, self->shared->faults,
                         self->shared->faults_count);
    return 1;
}

/* Runs a line. Returns 1 or a negative errno. */
static int corpus_run_line(explorer *self, uint64_t seed, const char *draws)
{
    int made = corpus_run(self, seed, NULL);
    if (made < 0 || self->shared->failure != BIDE_SIM_PASSED || draws == NULL)
        return made;
    self->has_given_draws = true;
    made = corpus_run(self, seed, &self->best);
    self->has_given_draws = self->shared->failure != BIDE_SIM_PASSED;
    return made;
}

int bide_sim_replay_(explorer *self)
{
    const char *path = self->options->corpus;
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char *line = NULL;
    size_t room = 0;
    int made = 1;
    self->shared->failure = BIDE_SIM_PASSED;
    if (file == NULL) {
        if (path == NULL || errno == ENOENT)
            return 1;
        made = -errno;
        fprintf(self->out, "bide: %s: %s\n", path, strerror(-made));
        return made;
    }
    for (unsigned number = 1;
         made > 0 && self->shared->failure == BIDE_SIM_PASSED && getline(&line, &room, file) >= 0;
         number++) {
        bool is_empty;
        uint64_t seed;
        char *draws;
        if (!corpus_parse(line, &is_empty, &seed, &draws) ||
            (draws != NULL && bide_sim_parse_draws_(draws, &self->best) != NULL)) {
            fprintf(self->out, "bide: %s:%u: this is no seed, with draws or without\n", path,
                    number);
            made = -EINVAL;
        } else if (!is_empty) {
            made = corpus_run_line(self, seed, draws);
        }
    }
    free(line);
    fclose(file);
    return made;
}

void bide_sim_keep_(explorer *self)
{
    const char *path = self->options->corpus;
    if (path == NULL)
        return;
    FILE *file = fopen(path, "ae");
    bool kept = file != NULL && flock(fileno(file), LOCK_EX) == 0;
    if (kept) {
        fprintf(file, "%" PRIu64, self->seed);
        if (!self->options->as_found) {
            fputc(' ', file);
            bide_sim_print_draws_(file, &self->best);
        }
        fputc('\n', file);
        kept = fflush(file) == 0;
    }
    if (kept)
        fprintf(self->out, "added to %s\n", path);
    else
        fprintf(self->out, "bide: %s: the seed is not added: %s\n", path, strerror(errno));
    if (file != NULL)
        fclose(file);
}
