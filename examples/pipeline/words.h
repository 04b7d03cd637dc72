/*
 * The word counter. A word is a sequence of bytes that are not white space in the C locale. A word
 * that the end of a run cuts is kept until its end arrives.
 */
#ifndef PIPELINE_WORDS_H
#define PIPELINE_WORDS_H

#include "stream.h"
#include "word_table.h"

#include <bide/task.h>

struct words {
    bide_task task;
    struct stream *stream;
    size_t next; /* the next record */
    bide_sequence_waiter wait;

    char *cut; /* the beginning of a cut word */
    size_t cut_length;
    size_t cut_capacity;

    /* the result */
    struct word_table table;
};

/*
 * Counts the words of published records until the barrier is closed; then closes `counted`.
 * Finishes with 0, or early with -ENOMEM. The caller initializes and frees the table.
 */
bide_awaiter *words_run(struct words *words, struct stream *stream);

#endif
