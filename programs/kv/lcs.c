/* LCS: the longest common subsequence of two strings. It runs to completion on the loop's thread. */
#include "commands.h"

#include <stdlib.h>

enum {
    LCS_CELLS = 64,                             /* that are a step of work */
    LCS_MAX_CELLS = CLIENT_MAX_WORK * LCS_CELLS /* of the table: a request is at most one turn */
};

/*
 * A request, and its table: row i has the lengths for the first i bytes of `a` and, at j, the first j bytes of `b`. Rows are in
 * the place of the earlier ones if the length of all is asked alone.
 */
struct lcs {
    struct client *client;
    struct bytes a, b;
    bool gets_length, gets_matches, has_match_lengths;
    int64_t min_match;
    size_t kept_rows;
    uint32_t *lengths; /* of these rows; NULL if a string is empty */
    uint32_t length;
};

/* Bytes that are equal one after the other, in both strings. */
struct lcs_match {
    size_t a, b, size;
};

static bool read_lcs_options(struct lcs *lcs)
{
    struct client *client = lcs->client;
    for (size_t i = 3; i < client->request.count; i++) {
        struct bytes word = client_argument(client, i);
        if (bytes_are(word, "IDX")) {
            lcs->gets_matches = true;
        } else if (bytes_are(word, "LEN")) {
            lcs->gets_length = true;
        } else if (bytes_are(word, "WITHMATCHLEN")) {
            lcs->has_match_lengths = true;
        } else if (bytes_are(word, "MINMATCHLEN") && i + 1 < client->request.count) {
            if (!argument_number(client, ++i, &lcs->min_match))
                return false;
        } else {
            reply_syntax_error(client);
            return false;
        }
    }
    if (!lcs->gets_matches || !lcs->gets_length)
        return true;
    REPLY(client, "-ERR If you want both the length and indexes, please just use IDX.");
    return false;
}

/* No key is an empty string. Returns false after an error reply. */
static bool find_strings(struct lcs *lcs)
{
    struct bytes *const strings[] = {&lcs->a, &lcs->b};
    for (size_t i = 0; i < 2; i++) {
        struct kv *kv = lcs->client->kv;
        struct bytes key = client_argument(lcs->client, i + 1);
        struct entry **link = keyspace_find(&kv->keys, key);
        if (link == NULL)
            kv_note_miss(kv, key);
        if (link != NULL && (*link)->type != VALUE_STRING) {
            REPLY(lcs->client, "-ERR The specified keys must contain string values");
            return false;
        }
        *strings[i] = link != NULL ? entry_value(*link) : (struct bytes){"", 0};
    }
    return true;
}

static uint32_t *row_of(const struct lcs *lcs, size_t i)
{
    return &lcs->lengths[i % lcs->kept_rows * (lcs->b.size + 1)];
}

/* Returns false after an error reply. */
static bool fill_table(struct lcs *lcs)
{
    size_t rows = lcs->a.size + 1, columns = lcs->b.size + 1;
    if (lcs->a.size == 0 || lcs->b.size == 0)
        return true;
    if (rows > LCS_MAX_CELLS / columns) {
        reply_error(lcs->client, "-ERR the product of the sizes is more than %d", LCS_MAX_CELLS);
        return false;
    }
    lcs->client->kv->work += rows * columns / LCS_CELLS;
    lcs->kept_rows = lcs->gets_length ? 2 : rows;
    lcs->lengths = calloc(lcs->kept_rows * columns, sizeof *lcs->lengths);
    if (lcs->lengths == NULL) {
        reply_no_memory(lcs->client);
        return false;
    }
    for (size_t i = 1; i < rows; i++) {
        const uint32_t *above = row_of(lcs, i - 1);
        uint32_t *row = row_of(lcs, i); /* (whose first length stays 0) */
        for (size_t j = 1; j < columns; j++) {
            if (lcs->a.data[i - 1] == lcs->b.data[j - 1])
                row[j] = above[j - 1] + 1;
            else
                row[j] = above[j] > row[j - 1] ? above[j] : row[j - 1];
        }
    }
    lcs->length = row_of(lcs, rows - 1)[columns - 1];
    return true;
}

/*
 * Finds the match before the bytes *i and *j, and moves them to its begin. It ends at the first difference. Returns false if there
 * is none.
 */
static bool previous_match(const struct lcs *lcs, size_t *i, size_t *j, struct lcs_match *match)
{
    match->size = 0;
    while (*i > 0 && *j > 0) {
        if (lcs->a.data[*i - 1] == lcs->b.data[*j - 1]) {
            *match = (struct lcs_match){--*i, --*j, match->size + 1};
        } else if (match->size > 0) {
            break;
        } else if (row_of(lcs, *i - 1)[*j] > row_of(lcs, *i)[*j - 1]) {
            --*i;
        } else {
            --*j;
        }
    }
    return match->size > 0;
}

static void reply_range(struct client *client, size_t begin, size_t size)
{
    reply_array(client, 2);
    reply_number(client, (int64_t)begin);
    reply_number(client, (int64_t)(begin + size - 1));
}

static void reply_matches(const struct lcs *lcs)
{
    struct client *client = lcs->client;
    size_t i = lcs->a.size, j = lcs->b.size, count = 0, all = buffer_used(&client->out);
    struct lcs_match match;
    reply_map(client, 2);
    reply_bulk(client, bytes_of("matches"));
    size_t begin = reply_start_array(client);
    while (!client_refuses_reply(client) && previous_match(lcs, &i, &j, &match)) {
        if ((int64_t)match.size < lcs->min_match)
            continue;
        reply_array(client, 2 + lcs->has_match_lengths);
        reply_range(client, match.a, match.size);
        reply_range(client, match.b, match.size);
        if (lcs->has_match_lengths)
            reply_number(client, (int64_t)match.size);
        count++;
    }
    reply_finish_array(client, begin, count);
    reply_bulk(client, bytes_of("len"));
    reply_number(client, lcs->length);
    finish_counted(client, all);
}

static void reply_subsequence(const struct lcs *lcs)
{
    size_t i = lcs->a.size, j = lcs->b.size, left = lcs->length, size = left;
    char *text = malloc(size + 1);
    struct lcs_match match;
    if (text == NULL) {
        reply_no_memory(lcs->client);
        return;
    }
    while (previous_match(lcs, &i, &j, &match)) {
        left -= match.size;
        memcpy(text + left, lcs->a.data + match.a, match.size);
    }
    bide_assert(left == 0);
    reply_bulk(lcs->client, (struct bytes){text, size});
    free(text);
}

/* LCS key key [LEN] [IDX] [MINMATCHLEN size] [WITHMATCHLEN] */
void command_lcs(struct client *client)
{
    struct lcs lcs = {.client = client};
    if (!find_strings(&lcs) || !read_lcs_options(&lcs) || !fill_table(&lcs))
        return;
    if (lcs.gets_matches)
        reply_matches(&lcs);
    else if (lcs.gets_length)
        reply_number(client, lcs.length);
    else
        reply_subsequence(&lcs);
    free(lcs.lengths);
}
