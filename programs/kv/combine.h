/*
 * Combinations of sets, for SUNION and the like, and of sorted sets, for ZUNION and the like. Each takes one step of
 * the loop.
 *
 *     struct combination combination = {.client = client, .operation = UNION, .limit = SIZE_MAX};
 *     if (combination_find(&combination, 1, keys) && combination_create_result(&combination)) {
 *         combination_run(&combination);
 *         combination_store(&combination);
 *     }
 *     combination_end(&combination);
 *
 * A set that is named again does not count again, unless it has a score there. Then the members that are visited again
 * are COMBINE_MAX_REPEATED at most. So a short request cannot visit a large set many times.
 */
#ifndef KV_COMBINE_H
#define KV_COMBINE_H

#include "collection.h"

struct client;

enum operation { INTERSECTION, UNION, DIFFERENCE };

/* The score of a member that several sets have. */
enum aggregate { AGGREGATE_SUM, AGGREGATE_MIN, AGGREGATE_MAX };

enum { COMBINE_MAX_REPEATED = 1 << 20 };

/* The members of a combination, which are counted, replied or collected. */
struct combination {
    struct client *client;
    enum operation operation;
    bool takes_sorted;        /* keys may have sorted sets too */
    bool has_scores;          /* the result is a sorted set; the members of sets have the score 1 */
    enum aggregate aggregate; /* of scores */
    double *weights;          /* by which the scores of each set are multiplied; NULL: 1 */
    struct collection **sets; /* of the arguments; NULL: no such key */
    size_t count;
    struct collection *from; /* the one whose members are visited */
    size_t from_at;          /* its index */
    bool replies;
    struct collection *to; /* NULL: they are not collected */
    size_t found, limit;   /* members; at the limit, the visit ends */
    int status;
};

/* Finds the sets of keys, which are arguments of the request. Returns false after an error reply. */
bool combination_find(struct combination *combination, size_t first_key, size_t count);

/* True if the members of a difference are to be collected, since that takes fewer steps. */
bool combination_prefers_subtraction(const struct combination *combination);

/* A collection for the members. Returns false after an error reply. */
bool combination_create_result(struct combination *combination);

/* Visits the members. Then combination->status is 0, or -ENOMEM, for which the caller replies. */
void combination_run(struct combination *combination);

/* The result replaces the value of argument 1; an empty one removes it. Replies with the number of members. */
void combination_store(struct combination *combination);

/* Frees the memory; also if combination_find has failed. */
void combination_end(struct combination *combination);

#endif
