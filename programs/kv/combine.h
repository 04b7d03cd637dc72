/*
 * Combinations of sets, for SUNION and the like, and of sorted sets, for ZUNION and the like.
 *
 *     struct combination combination = {.client = client, .operation = UNION, .limit = SIZE_MAX};
 *     if (combination_resume(&combination) ||
 *         (combination_find(&combination, 1, keys) && combination_create_result(&combination))) {
 *         if (!combination_run(&combination))
 *             return; // the request runs again in the client's next turn
 *         combination_store(&combination);
 *     }
 *     combination_end(&combination);
 *
 * Members of large sets are visited in slices, between which others have their turn. The result is of one moment: if one of
 * the sets changes between slices, the combination is made anew in one step. In a transaction it is one step.
 *
 * A set that is named again does not count again, unless it has a score there. Then the members that are visited again
 * are COMBINE_MAX_REPEATED at most. So a short request cannot visit a large set many times.
 */
#ifndef KV_COMBINE_H
#define KV_COMBINE_H

#include "collection.h"

struct client;
struct slice;

enum operation { INTERSECTION, UNION, DIFFERENCE };

/* The score of a member that several sets have. */
enum aggregate { AGGREGATE_SUM, AGGREGATE_MIN, AGGREGATE_MAX };

enum {
    COMBINE_MAX_REPEATED = 1 << 20,
    COMBINE_MAX_KEPT =
        1
        << 20, /* elements of the results that clients have between slices, if these are several */
    COMBINE_MAX_SLICED_KEYS =
        64 /* with more keys it is one step: they are all found again for each slice */
};

/* A command of this kind. */
struct combination_kind {
    const char *name; /* behind its first letter */
    enum operation operation;
    bool stores;
    const char *events[2]; /* of storing a set, and a sorted set */
};

/* The kind of the client's command: one of SUNION, SINTER, SDIFF, ZUNION, ZINTER, ZDIFF, or one of these with STORE. */
const struct combination_kind *combination_kind_of(const struct client *client);

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
    bool replies;
    struct collection *to; /* NULL: they are not collected */
    size_t found, limit;   /* members; at the limit, the visit ends */
    int status;

    /* the visit */
    bool has_begun;
    size_t from_at,
        ends_at; /* indexes of the set whose members are visited, and behind the last one */
    struct collection *from; /* that set */
    size_t cursor;
    bool subtracts;    /* members of the sets behind the first are removed from the result */
    bool gives_scores; /* WITHSCORES: of the reply */
    size_t replied;    /* members of the complete result */

    /* slices */
    bool is_one_step, is_sliced; /* there must be no other slice; there may be others */
    bool is_repeated;            /* it begins anew */
    size_t begin;                /* of the slice's replies in client->out */
    uint64_t work_limit;         /* of the slice */
    size_t kept;                 /* of kv->combined */
    size_t first_key, keys;
    uint64_t versions[COMBINE_MAX_SLICED_KEYS]; /* of the keys' collections; 0: no such key */
};

/* Continues the combination of the client's request. Returns false if it begins, or begins anew since a set has changed. */
bool combination_resume(struct combination *combination);

/* Finds the sets of keys, which are arguments of the request. Returns false after an error reply. */
bool combination_find(struct combination *combination, size_t first_key, size_t count);

/* True if members must be collected even for a reply: of a union, and of a difference if that takes fewer steps. */
bool combination_must_collect(const struct combination *combination);

/* A collection for the members. Returns false after an error reply. */
bool combination_create_result(struct combination *combination);

/*
 * Visits the members. Returns true when all have been visited; combination->status is then 0, or -ENOMEM, for which the caller
 * replies. Returns false if others have their turn now: the request runs again, and the combination has been moved to the
 * client. Then the caller must do nothing more.
 */
bool combination_run(struct combination *combination);

/*
 * Ends a slice, if it is long enough and there may be others. Returns true then: the request runs again, and the combination
 * has been moved to the client. Then the caller must do nothing more.
 */
bool combination_pause(struct combination *combination);

/*
 * Completes a reply of the client from combination->begin on, which was made in slices or in one. Returns false if it is too
 * large, and an error.
 */
bool combination_finish_reply(struct combination *combination);

/*
 * The result replaces the value of argument 1; an empty one removes it. Notifies of the event, and replies with the number of
 * members.
 */
void combination_store(struct combination *combination, const char *event);

/* Frees the memory; also if combination_find has failed. */
void combination_end(struct combination *combination);

/* Ends the combination of a request that ends between slices. */
void combination_drop(struct client *client);

#endif
