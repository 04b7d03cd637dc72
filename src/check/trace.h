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

#endif
