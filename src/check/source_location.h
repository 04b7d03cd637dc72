/* Locations in the source: of an operation's record, and of an address in the code. */
#ifndef BIDE_CHECK_SITES_H
#define BIDE_CHECK_SITES_H

#include "bide/check.h"

/* Write "FILE:LINE". */
void source_location_describe(const bide_check_site_ *site, char *text, size_t size);
void source_location_describe_code(const void *code, char *text, size_t size);

/*
 * Returns the record of an operation that is known by its code address alone (c11.c); always the same
 * one for one address. Its file, function and line are resolved when they are needed.
 */
bide_check_site_ *source_location_of_code(const void *code);
const void *source_location_code(const bide_check_site_ *site);

/* The file of such a record until it is resolved. */
extern const char source_location_unresolved[];
void source_location_resolve(const bide_check_site_ *site);

#endif
