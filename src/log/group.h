/*
 * The groups of a log whose messages are numbered from 1 without gaps: which messages of it are
 * delivered, to which consumer, and which are done. A group has an entry for each of up to
 * `window` messages after `acknowledged`. All of this is under the lock of the log (state.h).
 *
 *     ... done | WITH a consumer, REJECTED or DONE | not delivered yet ...
 *          acknowledged                          next
 *
 *     entry    WITH     delivered to `owner`, not acknowledged
 *              REJECTED to be delivered again at `due` or later
 *              DONE     acknowledged, behind one that is not
 *
 * `acknowledged` moves over entries that are DONE. So acknowledged <= next - 1 <= tail, and next
 * - 1 - acknowledged is at most `window`: an entry has one message at a time.
 */
#ifndef BIDE_SRC_LOG_GROUP_H
#define BIDE_SRC_LOG_GROUP_H

#include "bide/message_log.h"

#define LOG_GROUP_NAME 64

enum log_entry_state { LOG_ENTRY_WITH, LOG_ENTRY_REJECTED, LOG_ENTRY_DONE };

/* An entry is changed in place: `state` last, so that a process that is killed leaves it whole. */
struct log_entry {
    uint64_t owner; /* a consumer's */
    uint64_t due;
    uint32_t deliveries;
    bide_atomic(uint32_t) state; /* an enum log_entry_state */
};

struct bide_log_group_ {
    struct bide_log_group_ *following; /* in the log's list */
    char name[LOG_GROUP_NAME];         /* empty: a consumer's own */
    uint64_t acknowledged;             /* all messages up to this one are done */
    uint64_t next;                     /* the first that was never delivered */
    uint32_t members;
    uint32_t rejected; /* entries that are REJECTED */
    uint32_t mask;     /* of the entries, whose count is a power of two */
    uint32_t window;
    bool is_changed;           /* since it was last stored */
    struct log_entry *entries; /* behind the group, or in memory that processes share */
    void **memory; /* for each entry that is WITH a consumer what that reads, or NULL; or NULL */
};

/*
 * A group that begins after the message `acknowledged`, for up to `window` messages, with entries
 * for `entries` if these are more; NULL: no memory.
 */
struct bide_log_group_ *bide_log_group_create_(const char *name, uint32_t window, uint32_t entries,
                                               uint64_t acknowledged);
void bide_log_group_destroy_(struct bide_log_group_ *group);

/*
 * Delivers up to `max` messages to `owner`, of the numbers up to `tail`. Their numbers and
 * deliveries go to `messages`, rejected ones first. Returns how many; *due is when
 * the next rejected message is due, or BIDE_FOREVER.
 */
uint32_t bide_log_group_take_(struct bide_log_group_ *group, uint64_t owner, uint64_t tail,
                              uint64_t now, bide_log_message *messages, uint32_t max,
                              uint64_t *due);

/* True: it was with `owner`, and is done. */
bool bide_log_group_acknowledge_(struct bide_log_group_ *group, uint64_t owner, uint64_t number);

/* Acknowledges what is with `owner`, up to that number; returns how many. */
uint32_t bide_log_group_acknowledge_up_to_(struct bide_log_group_ *group, uint64_t owner,
                                           uint64_t number);

/* True: it was with `owner`, and is REJECTED until `due`. */
bool bide_log_group_reject_(struct bide_log_group_ *group, uint64_t owner, uint64_t number,
                            uint64_t due);

/*
 * Withdraws a delivery that the consumer never saw: it does not count in `deliveries`.
 */
void bide_log_group_release_(struct bide_log_group_ *group, uint64_t owner, uint64_t number);

/* Gives the delivery its memory. False: it is not with `owner` any more. */
bool bide_log_group_keep_(struct bide_log_group_ *group, uint64_t owner, uint64_t number,
                          void *memory);

/* Messages before `oldest` are no longer kept. Each of them that no consumer has is done. */
void bide_log_group_skip_(struct bide_log_group_ *group, uint64_t oldest);

/* For groups that are stored: of a delivered message, and the next messages of a group that was. */
bool bide_log_group_is_done_(const struct bide_log_group_ *group, uint64_t number);
void bide_log_group_restore_(struct bide_log_group_ *group, uint32_t rejected, uint32_t done);

/* Forgets what is after `tail`, of a group without consumers. True: there was something. */
bool bide_log_group_cut_(struct bide_log_group_ *group, uint64_t tail);

/*
 * Rejects, until now, everything that is with an owner of which the bits of `mask` are those of
 * `owner`.
 */
void bide_log_group_withdraw_(struct bide_log_group_ *group, uint64_t mask, uint64_t owner);

/* Counts anew what follows from the entries, after a process was killed while it changed them. */
void bide_log_group_recount_(struct bide_log_group_ *group);

/* Rejects everything that is with `owner`, until now. */
void bide_log_group_leave_(struct bide_log_group_ *group, uint64_t owner);

#endif
