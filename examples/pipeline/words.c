/* The word counter. One coroutine; it runs on one of the pool's threads at a time. */
#include "words.h"

#include "word_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Keeps a part of a word whose end has not arrived. */
static int keep_part(struct words *self, const char *text, size_t length)
{
    size_t needed = self->cut_length + length;
    if (needed > self->cut_capacity) {
        char *grown = realloc(self->cut, 2 * needed);
        if (grown == NULL)
            return -ENOMEM;
        self->cut = grown;
        self->cut_capacity = 2 * needed;
    }
    memcpy(self->cut + self->cut_length, text, length);
    self->cut_length = needed;
    return 0;
}

/* Counts the kept word, if there is one. */
static int count_kept(struct words *self)
{
    size_t length = self->cut_length;
    if (length == 0)
        return 0;
    uint64_t hash;
    scan_word(self->cut, self->cut + length, &hash);
    self->cut_length = 0;
    return word_table_count(&self->table, self->cut, length, hash);
}

/* Continues the word that the previous run cut; *at is then behind that word. */
static int continue_cut(struct words *self, const char **at, const char *end)
{
    uint64_t hash;
    const char *part = *at;
    *at = scan_word(part, end, &hash);
    int error = keep_part(self, part, (size_t)(*at - part));
    return error == 0 && *at != end ? count_kept(self) : error;
}

/* Counts the words of a run. The last word is kept if no white space follows it. */
static int count_run(struct words *self, const struct run *run)
{
    const char *at = run->text;
    const char *end = run->text + run->size;
    int error = self->cut_length != 0 ? continue_cut(self, &at, end) : 0;
    while (error == 0 && (at = skip_white_space(at, end)) != end) {
        uint64_t hash;
        const char *word = at;
        at = scan_word(word, end, &hash);
        size_t length = (size_t)(at - word);
        error = at != end ? word_table_count(&self->table, word, length, hash)
                          : keep_part(self, word, length);
    }
    return error;
}

static int count_batch(struct words *self, size_t last)
{
    int error = 0;
    while (error == 0 && self->next != last + 1) {
        struct run run;
        self->next = stream_next_run(self->stream, self->next, last, &run);
        error = count_run(self, &run);
    }
    return error;
}

bide_coroutine(words_body)
{
    bide_begin(words_body, struct words * self);
    for (;;) {
        /* (closed and fully consumed: leaves the loop) */
        bide_try_or_break(bide_sequence_barrier_wait_until_published(
            &self->wait, &self->stream->published, self->next));
        size_t last = stream_batch_end(self->stream, self->next, self->wait.published);
        int status = count_batch(self, last);
        if (status < 0)
            bide_return(status);
        bide_sequence_barrier_publish(&self->stream->counted, last);
    }
    bide_return(count_kept(self));

    bide_finally();
    bide_sequence_barrier_close(&self->stream->counted);
    free(self->cut);
    bide_end();
}

bide_awaiter *words_run(struct words *self, struct stream *stream)
{
    self->stream = stream;
    self->next = 0;
    self->cut = NULL;
    self->cut_length = 0;
    self->cut_capacity = 0;
    return bide_task_init(&self->task, &words_body);
}
