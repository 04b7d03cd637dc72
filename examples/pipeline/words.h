/*
 * The word counter: finds the words in the text and counts each in a table. A word is a run of bytes that
 * are not white space as the C locale has it. One that is cut by the end of a run of records is kept
 * until its end has come.
 */
#ifndef PIPELINE_WORDS_H
#define PIPELINE_WORDS_H

#include "stream.h"
#include "word_table.h"

#include <bide/task.h>

struct words {
    bide_task task;
    struct stream *stream;
    size_t next; /* the record to go on with */
    bide_sequence_waiter wait;

    char *cut; /* the beginning of a word whose end has not come */
    size_t cut_length;
    size_t cut_capacity;

    /* the result */
    struct word_table table;
};

/*
 * Counts the words in what is published, until that is closed; then closes `counted`. Ends with 0, or
 * with -ENOMEM, early. The table must be initialised, and is the caller's to free.
 */
bide_awaiter *words_run(struct words *words, struct stream *stream);

#endif
