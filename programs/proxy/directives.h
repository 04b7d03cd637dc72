/* The directives of a configuration file. */
#ifndef PROXY_DIRECTIVES_H
#define PROXY_DIRECTIVES_H

#include "reading.h"

/*
 * Parses the line whose words are reading->words, at least one. Returns false after an error, which
 * is recorded.
 */
bool directives_read(struct reading *reading);

#endif
