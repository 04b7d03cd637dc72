/*
 * What the table of queues is made of besides headers, once more: after stepped_atomic.h and queues.c. A source whose
 * functions are all here is not taken from the library.
 */
#ifndef BIDE_TESTS_STEPPED_SOURCES_H
#define BIDE_TESTS_STEPPED_SOURCES_H

#include "../src/queue/hazard.c"        /* NOLINT(bugprone-suspicious-include) */
#include "../src/queue/node_pool.c"     /* NOLINT(bugprone-suspicious-include) */
#include "../src/queue/counted_queue.c" /* NOLINT(bugprone-suspicious-include) */
#include "../src/queue/segment_queue.c" /* NOLINT(bugprone-suspicious-include) */

#endif
