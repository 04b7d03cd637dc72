/* Rows of what is taken from a scope, a token bucket, a recursive generator, and input in memory. */
#ifndef BIDE_TESTS_COMPOSITION_TAKING_H
#define BIDE_TESTS_COMPOSITION_TAKING_H

#include "sync/primitives.h"

extern const primitive scope_next_row, bucket_turn_row, bucket_time_row, recursive_generator_row;
extern const primitive memory_read_row, memory_poll_row, memory_open_row;

#endif
