/* Parsing the words of a configuration file: numbers, times, networks. */
#ifndef PROXY_READING_H
#define PROXY_READING_H

#include "configuration.h"

#define SECOND UINT64_C(1000000000) /* nanoseconds */

/* A file that is being read, and its current line. */
struct reading {
    struct configuration *configuration;
    const struct configuration *previous; /* the one it replaces; or NULL */
    const char *file;
    unsigned line;
    char *error_text;
    size_t size;
    struct listen *listen; /* the current section: one of these, or neither */
    struct backend *backend;
    char *words[MAX_WORDS];
    unsigned count;
};

/* Records an error in a line. Returns false. */
__attribute__((format(printf, 3, 4))) bool reading_fail(struct reading *reading, unsigned line,
                                                        const char *format, ...);

/* Splits `text` into reading->words, in place. */
bool reading_split(struct reading *reading, char *text);

bool reading_number(struct reading *reading, const char *word, uint64_t min, uint64_t max,
                    uint64_t *number);

/* Parses "5s", "200ms", "1m", "2h", or seconds, into nanoseconds. */
bool reading_time(struct reading *reading, const char *word, uint64_t *time);

/* "on", "off" */
bool reading_switch(struct reading *reading, const char *word, bool *is_on);

bool reading_network(struct reading *reading, const char *word, struct network *network);

/* A copy of a word. Exits the program if memory is exhausted. */
char *reading_copy(const char *word);
void *reading_allocate(size_t size);

#endif
