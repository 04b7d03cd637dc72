/* Where something stands in the source. */
#ifndef BIDE_CHECK_SITES_H
#define BIDE_CHECK_SITES_H

#include "bide/check.h"

/* As text. */
void site_describe(const bide_check_site_ *site, char *text, size_t size);
void site_describe_code(const void *code, char *text, size_t size);

/*
 * A site that is known by its place in the code alone (c11.c), always the same one for one place.
 * What it is called is found when it is asked for.
 */
bide_check_site_ *site_of_code(const void *code);
const void *site_code(const bide_check_site_ *site);

/* Such a site's file, until it is resolved. */
extern const char site_unresolved[];
void site_resolve(const bide_check_site_ *site);

#endif
