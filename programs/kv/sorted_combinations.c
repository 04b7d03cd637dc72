/* Commands on several sorted sets, and sets: ZUNION and the like. Each runs to completion on the loop's thread. */
#include "combine.h"
#include "sorted.h"

#include <stdlib.h>

/* Parses the weights of all sets from argument i on. Returns false after an error reply. */
static bool read_weights(struct client *client, size_t i, size_t keys,
                         struct combination *combination)
{
    if (combination->weights == NULL)
        combination->weights = malloc(keys * sizeof *combination->weights);
    if (combination->weights == NULL) {
        reply_no_memory(client);
        return false;
    }
    for (size_t key = 0; key < keys; key++) {
        if (!score_read(client_argument(client, i + key), &combination->weights[key])) {
            REPLY(client, "-ERR weight value is not a float");
            return false;
        }
    }
    return true;
}

static bool read_aggregate(struct client *client, size_t i, enum aggregate *aggregate)
{
    static const char *const names[] = {
        [AGGREGATE_SUM] = "SUM", [AGGREGATE_MIN] = "MIN", [AGGREGATE_MAX] = "MAX"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
        if (bytes_are(client_argument(client, i), names[at])) {
            *aggregate = (enum aggregate)at;
            return true;
        }
    }
    reply_syntax_error(client);
    return false;
}

static bool read_limit(struct client *client, size_t i, size_t *limit)
{
    int64_t number;
    if (!number_read(client_argument(client, i), &number) || number < 0) {
        REPLY(client, "-ERR LIMIT can't be negative");
        return false;
    }
    *limit = number > 0 && (uint64_t)number < SIZE_MAX ? (size_t)number : SIZE_MAX;
    return true;
}

/* Parses the options from argument i on. Returns false after an error reply. */
static bool read_combination_options(struct client *client, size_t i, size_t keys,
                                     struct combination *combination, bool stores)
{
    bool counts = !combination->has_scores; /* ZINTERCARD */
    bool takes_scores = combination->operation != DIFFERENCE && !counts;
    for (size_t left; (left = client->request.count - i) > 0;) {
        struct bytes word = client_argument(client, i);
        bool done = true;
        if (takes_scores && left > keys && bytes_are(word, "WEIGHTS")) {
            done = read_weights(client, i + 1, keys, combination);
            i += keys + 1;
        } else if (takes_scores && left >= 2 && bytes_are(word, "AGGREGATE")) {
            done = read_aggregate(client, i + 1, &combination->aggregate);
            i += 2;
        } else if (counts && left >= 2 && bytes_are(word, "LIMIT")) {
            done = read_limit(client, i + 1, &combination->limit);
            i += 2;
        } else if (!counts && !stores && bytes_are(word, "WITHSCORES")) {
            combination->gives_scores = true;
            i++;
        } else {
            reply_syntax_error(client);
            return false;
        }
        if (!done)
            return false;
    }
    return true;
}

/* Finds the sets of the keys, whose number is argument i. Returns false after an error reply. */
static bool find_sources(struct client *client, size_t i, const char *name,
                         struct combination *combination, bool stores)
{
    int64_t keys;
    if (!argument_number(client, i, &keys))
        return false;
    if (keys < 1) {
        reply_error(client, "-ERR at least 1 input key is needed for 'z%s' command", name);
        return false;
    }
    if ((uint64_t)keys > client->request.count - i - 1) {
        reply_syntax_error(client);
        return false;
    }
    return combination_find(combination, i + 1, (size_t)keys) &&
           read_combination_options(client, i + 1 + (size_t)keys, (size_t)keys, combination,
                                    stores);
}

/*
 * Replies with all members of the result in their order. Returns false if that is to be continued, and the combination has been
 * moved.
 */
static bool reply_result(struct client *client, struct combination *combination)
{
    size_t count = combination->found;
    if (combination->status < 0) {
        reply_no_memory(client);
        return true;
    }
    if (combination->replied == 0)
        reply_members(client, count, combination->gives_scores);
    const struct sorted_node *node =
        count > 0 ? sorted_set_at(combination->to, combination->replied) : NULL;
    while (node != NULL && !client_refuses_reply(client)) {
        reply_ranked_member(client, node, combination->gives_scores);
        client->kv->work++;
        node = sorted_set_next(node, false);
        combination->replied++;
        if (node != NULL && combination_pause(combination))
            return false;
    }
    combination_finish_reply(combination);
    return true;
}

static struct combination combination_of(struct client *client, enum operation operation)
{
    return (struct combination){.client = client,
                                .operation = operation,
                                .takes_sorted = true,
                                .has_scores = true,
                                .limit = SIZE_MAX};
}

/* ZUNION count key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM|MIN|MAX] [WITHSCORES], ZUNIONSTORE target count ... */
void command_combine_sorted(struct client *client)
{
    const struct combination_kind *kind = combination_kind_of(client);
    struct combination combination = combination_of(client, kind->operation);
    if (combination_resume(&combination) ||
        (find_sources(client, kind->stores ? 2 : 1, kind->name, &combination, kind->stores) &&
         combination_create_result(&combination))) {
        if (!combination_run(&combination))
            return;
        if (kind->stores)
            combination_store(&combination, kind->events[1]);
        else if (!reply_result(client, &combination))
            return;
    }
    combination_end(&combination);
}

/* ZINTERCARD count key [key ...] [LIMIT limit] */
void command_zintercard(struct client *client)
{
    struct combination combination = combination_of(client, INTERSECTION);
    combination.has_scores = false;
    if (combination_resume(&combination) ||
        find_sources(client, 1, "intercard", &combination, false)) {
        if (!combination_run(&combination))
            return;
        reply_number(client, (int64_t)combination.found);
    }
    combination_end(&combination);
}
