/*
 * Words of a configuration file, and what they mean: numbers, times, networks.
 */
#ifndef PROXY_READING_H
#define PROXY_READING_H

#include "configuration.h"

#define SECOND UINT64_C(1000000000) /* in nanoseconds */

/* A file that is being read, and the line at hand. */
struct reading {
    struct configuration *configuration;
    const struct configuration *before; /* that it follows; or NULL */
    const char *file;
    unsigned line;
    char *complaint;
    size_t size;
    struct listen *listen;   /* the section at hand: one of these, or none */
    struct backend *backend;
    char *words[MAX_WORDS];
    unsigned count;
};

/* Notes what is wrong with a line. Returns false. */
__attribute__((format(printf, 3, 4))) bool reading_fail(struct reading *reading, unsigned line,
                                                        const char *format, ...);

/* Splits `text` into reading->words, in place. */
bool reading_split(struct reading *reading, char *text);

bool reading_number(struct reading *reading, const char *word, uint64_t min, uint64_t max,
                    uint64_t *number);

/* "5s", "200ms", "1m", "2h", or seconds; into nanoseconds. */
bool reading_time(struct reading *reading, const char *word, uint64_t *time);

bool reading_network(struct reading *reading, const char *word, struct network *network);

/* A copy of a word. It does not return without memory. */
char *reading_copy(const char *word);
void *reading_allocate(size_t size);

#endif
