/* The verdict on a scenario, in words. */
#ifndef BIDE_CHECK_VERDICT_H
#define BIDE_CHECK_VERDICT_H

#include "bide/check.h"

#include <stdio.h>

/*
 * The result of one scenario, or the worst of several. A scenario that found what it expects is
 * complete, if that is a finding or if each of its executions was explored; bounded, if those with
 * more preemptions were left out; sampled, if some executions were drawn.
 */
typedef enum verdict { COMPLETE, BOUNDED, SAMPLED, UNFINISHED, BAD } verdict;
enum { VERDICTS = BAD + 1 };

verdict verdict_of(const bide_check_scenario *s, const bide_check_result *r);

/* "complete", "bounded", "sampled", "unfinished", "wrong" */
const char *verdict_name(verdict v);

/* Prints what was found, without an end of the line. */
void verdict_print(FILE *out, const bide_check_scenario *s, const bide_check_result *r, verdict v);

/* "complete 3, bounded 1": how many scenarios have each verdict. */
void verdict_print_counts(FILE *out, const unsigned counts[VERDICTS]);

#endif
