/*
 * The sources of the table of queues again, after stepped_atomic.h and queues.c. The linker does not take a source from
 * the library if all its functions are here.
 */
#ifndef BIDE_TESTS_STEPPED_SOURCES_H
#define BIDE_TESTS_STEPPED_SOURCES_H

#include "../src/queue/hazard.c"        /* NOLINT(bugprone-suspicious-include) */
#include "../src/queue/node_pool.c"     /* NOLINT(bugprone-suspicious-include) */
#include "../src/queue/counted_queue.c" /* NOLINT(bugprone-suspicious-include) */
#include "../src/queue/segment_queue.c" /* NOLINT(bugprone-suspicious-include) */

#endif
