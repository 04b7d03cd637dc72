/* The directives of a configuration file. */
#ifndef PROXY_DIRECTIVES_H
#define PROXY_DIRECTIVES_H

#include "reading.h"

enum section { GLOBAL = 1, LISTEN = 2, BACKEND = 4 };

struct directive {
    const char *name;
    unsigned sections;
    unsigned min_words, max_words; /* words after the name */
    bool (*read)(struct reading *reading);
    const char *form;
};

/* Those of a backend. The last one has no name. */
extern const struct directive backend_directives[];

/*
 * Parses the line whose words are reading->words, at least one. Returns false after an error, which
 * is recorded.
 */
bool directives_read(struct reading *reading);

#endif
