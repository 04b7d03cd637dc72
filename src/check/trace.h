/*
 * What is told of executions: what was found, the steps that led there, and what the scenario noted.
 */
#ifndef BIDE_CHECK_TRACE_H
#define BIDE_CHECK_TRACE_H

#include "explore.h"

#include <stdarg.h>

/* Fills the result with a finding in the running execution. */
void trace_found(bide_check_finding finding, const char *format, va_list arguments);

/* Nobody can go on, and this thread, for one, waits. */
void trace_blocked(unsigned thread, bool spins);

/* An execution begins: it has noted nothing. */
void trace_execution_began(void);

/* The execution is complete: what it noted is an outcome. */
void trace_execution_ended(void);

/* Where something stands in the source, as text. */
void trace_site(const bide_check_site_ *site, char *text, size_t size);
void trace_code(const void *code, char *text, size_t size);

/* A site that is known by its place in the code alone (c11.c), always the same for one place. What it is called is found
 * when it is asked for. */
bide_check_site_ *trace_code_site(const void *code);
const void *trace_code_of(const bide_check_site_ *site);

/* Such a site's file, until it is resolved. */
extern const char trace_unresolved[];
void trace_resolve(const bide_check_site_ *site);

#endif
