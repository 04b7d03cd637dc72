/*
 * The lines of a configuration file, and what they mean.
 */
#ifndef PROXY_DIRECTIVES_H
#define PROXY_DIRECTIVES_H

#include "reading.h"

/* Reads the line whose words are reading->words, one or more; false: there is an error, which is noted. */
bool directives_read(struct reading *reading);

#endif
