/*
 * The queue behind everything that is handed from one to the next: mutex, semaphore, reader-writer lock, auto-reset
 * event and their like. A number, what it means being the primitive's affair, and the operations that wait for it to
 * be such that they may end: first come, first served. (What is told to all who wait at once has a waiter_list.)
 * Floor: sync.
 *
 *     state     value | CLOSED | CANCEL | WAITING | NEW | SERVING
 *     arrivals  those who have come since somebody served, newest first; pushed onto by anybody, taken whole
 *     line      those who were there before, oldest first, linked in both directions; of whoever serves
 *     leaving   the names of those in line that are to be removed; as arrivals. SWEEP beside them: the server is to look
 *               through the whole line
 *
 *     SERVING   somebody serves: he alone has the line, and he alone takes from the value
 *     NEW       somebody has arrived whom no server has seen yet
 *     WAITING   (beside SERVING it says nothing) somebody is in the line or has arrived
 *     CANCEL    something is in `leaving`: one in line was asked to stop, or is due out of turn
 *     CLOSED    nobody may wait any more; for good
 *
 *     take      no flag -> no flag, another value. The fast way: only while nobody waits and nobody serves
 *     put       no flag, SERVING -> the same, another value.       WAITING -> SERVING, another value, and serves
 *     enlist    pushes onto arrivals, then: no flag -> NEW, WAITING   WAITING, SERVING -> the same, NEW
 *                                           no flag, and the value is such by now -> SERVING, and serves
 *                                           due by now: -> SERVING, and serves;
 *                                           SERVING: SWEEP into leaving, and -> the same, NEW, CANCEL
 *     cancel    WAITING -> SERVING, removes it, and serves
 *               SERVING: its name into leaving, and -> the same, CANCEL; or, if it is not the same any more, as above
 *     close     any -> the same, CLOSED                            WAITING -> SERVING, CLOSED, and serves
 *     serve     takes the arrivals into the line, and from its front all whose time has come;
 *               SERVING -> no flag, or WAITING. If the state has changed meanwhile: once more
 *
 * Threads: all of it from any thread. All are lock-free: who finds another serving leaves his wish in the state, and
 * goes. (withdraw waits for its turn.)
 *
 * 1. No wish is missed. All of them are modifications of `state`, and so are a server's coming and leaving. A wish
 *    that comes before the server's coming is acquired by it; one that comes between makes the leaving fail, and
 *    is acquired as it is taken out; one that comes after finds nobody serving.
 * 2. Who arrives pushes first and says NEW after, so by 1 the server that sees NEW (acquire; partner: enlist's release)
 *    finds him in `arrivals`. A server may find him earlier: 6. Then NEW and WAITING say too much, until the next put,
 *    which serves: as he did not find the value such that he could go, nobody can before that put.
 * 3. The line is handed from server to server: leaving releases, coming acquires.
 * 4. What was written before a put is seen by whoever ends because of it: put releases; take, coming and leaving
 *    acquire. Read-modify-writes in between continue the release sequence. (A put that serves shows its value at
 *    once, so it releases at once.)
 * 5. What a server takes from the value for those it ends it takes when it leaves, together. It may judge by a
 *    value that is out of date: meanwhile only puts have changed it, and a put never makes impossible what was
 *    possible before it (each primitive's rules keep to that); the difference that the server makes stays right.
 *    Who leaves the line, leaves it as the server leaves: if he is due by the value of that moment, he does not.
 * 6. A waiter may be taken, and its time have come, before its own suspend has done with the queue: so between the two
 *    there is a handshake (handshake.h).
 * 7. The memory of a queue may go when every wait on it has ended and its users are done with it, however they know of
 *    each other: a put is one read-modify-write, after which nothing is touched, or it serves, and then those whose
 *    time has come are resumed, and the others may take anything, only after the server has left.
 * 8. ABA: arrivals and names are pushed onto or taken whole (waiter_list.h, 1 and 2). The state is compared and exchanged by
 *    those who conclude nothing from its not having changed, but for the leaving of the server, from that no wish is
 *    in it: NEW, CANCEL and CLOSED are taken out by servers only, and a value that went up and down again was
 *    nobody's wish, for nobody but the server takes while it serves.
 * 9. Some wait for a number to pass (phase, in the value), and no place in line matters to them. A line is in the order
 *    of those numbers but for who has pushed late: he sees that he is due as he says that he is there (his saying it
 *    is a modification of the state, so it sees the last), and has the whole line looked through. One who has said it
 *    before he was due stands before all who wait for later ones: they have read the state after that.
 * 10. A canceler that finds another serving names the waiter (release; partner: the server's acquire), and then says
 *    CANCEL, so by 1 a server finds the name. A server may find it earlier, because it came for another's. So it takes
 *    the arrivals after the names: the waiter has been pushed before it was named. And then the waiter may end before its
 *    canceler has said CANCEL, but its gate stays shut until cancel has returned (stop.h, 5a), so the queue stays too.
 *    Once a name is there its canceler does not return before it has said CANCEL to a server, or served: no name is left
 *    to refer to a waiter that has gone. Whether a named waiter is in line the server reads in the waiter, in `before`,
 *    which only servers write.
 * 11. SWEEP too may be found earlier than the CANCEL that follows it, by a server that judges by a value of before. It
 *    has taken the arrivals after it (as 10), and looks through the line each time until it leaves, and by the value of
 *    that moment the last time. So nobody is left in line who was due, or had been asked, when SWEEP was put there.
 */
#ifndef BIDE_EXTEND_WAITER_QUEUE_H
#define BIDE_EXTEND_WAITER_QUEUE_H

#include "bide/extend/waiter_list.h"

BIDE_EXTERN_C_BEGIN

enum {
    BIDE_QUEUE_SERVING_ = 1,
    BIDE_QUEUE_NEW_ = 2,
    BIDE_QUEUE_WAITING_ = 4,
    BIDE_QUEUE_CANCEL_ = 8,
    BIDE_QUEUE_CLOSED_ = 16,
    BIDE_QUEUE_ONE = 32 /* what a value of 1 is in the state */
};

/* A state without its flags: a multiple of BIDE_QUEUE_ONE. */
#define BIDE_QUEUE_VALUE(state) ((uintptr_t)(state) & ~(uintptr_t)(BIDE_QUEUE_ONE - 1))

/* The greatest value, in ones. */
#define BIDE_QUEUE_MOST (UINTPTR_MAX / BIDE_QUEUE_ONE)

/*
 * For values that have a number, and above it a phase, which counts how often something has happened that ends all
 * waits; it wraps around. A wait is for the phase that it found to be past.
 */
enum {
    BIDE_QUEUE_NUMBER_BITS = (sizeof(uintptr_t) * CHAR_BIT - 5) / 2,
    BIDE_QUEUE_PHASE_BITS_BELOW = 5 + BIDE_QUEUE_NUMBER_BITS
};
#define BIDE_QUEUE_NUMBER_MOST (((uintptr_t)1 << BIDE_QUEUE_NUMBER_BITS) - 1)
#define BIDE_QUEUE_PHASE_ONE   ((uintptr_t)1 << BIDE_QUEUE_PHASE_BITS_BELOW)

BIDE_INLINE uintptr_t bide_queue_number(uintptr_t state)
{
    return state / BIDE_QUEUE_ONE & BIDE_QUEUE_NUMBER_MOST;
}

BIDE_INLINE uint32_t bide_queue_phase(uintptr_t state)
{
    return (uint32_t)(state >> BIDE_QUEUE_PHASE_BITS_BELOW);
}

/* Is `phase` past in a state whose phase stands above so many bits? By no more than half of all phases. */
BIDE_INLINE bool bide_queue_is_past(uintptr_t state, unsigned bits_below, uint32_t phase)
{
    uintptr_t distance = (state - ((uintptr_t)phase << bits_below)) >> bits_below;
    return distance != 0 && distance <= UINTPTR_MAX >> bits_below >> 1;
}

typedef struct bide_waiter_queue {
    bide_atomic(uintptr_t) state;
    bide_atomic(uintptr_t) arrivals; /* the newest, or 0 */
    bide_atomic(uintptr_t) leaving;  /* the name that came last, or 0, by next_leaving; and SWEEP */
    bide_awaiter *line;              /* of the server: the oldest, or NULL */
} bide_waiter_queue;

/* One wait, at the head of a primitive's waiter. */
typedef struct bide_queue_waiter {
    bide_awaiter awaiter;
    bide_waiter_queue *queue;
    bide_awaiter *
        before; /* of the server: the next older one, or, in the oldest, the newest; NULL: not in line */
    uint32_t wants;           /* what the rules judge it by; constant while it waits */
    bide_handshake handshake; /* 6 */
} bide_queue_waiter;

/* What a primitive is. Constant. */
typedef struct bide_queue_rules bide_queue_rules;
struct bide_queue_rules {
    /*
     * Is the value such that `waiter`, first in line, may end? Then takes from *value what it needs. A function of
     * these two alone.
     */
    bool (*admit)(const bide_queue_waiter *waiter, uintptr_t *value);

    /*
     * `waiter` was admitted, which left `value`, and has left the line: for a primitive that must know afterwards how it
     * ended. Of the server, before the waiter can go on. NULL: nothing.
     */
    void (*admitted)(bide_queue_waiter *waiter, uintptr_t value);

    /* `waiter` leaves the line without having been admitted: takes back what its coming has done to *value. NULL:
     * nothing. */
    void (*leave)(const bide_queue_waiter *waiter, uintptr_t *value);

    /*
     * Has what `waiter` waits for come, wherever in the line it stands? It takes nothing, and once true this stays so.
     * Who waits so is admitted too when he is first, and does not leave. A function of these two alone. NULL: never.
     */
    bool (*is_due)(const bide_queue_waiter *waiter, uintptr_t value);

    /* The server leaves, and nobody is in line: what becomes of the value? It admits nobody whom the other one did not.
     * NULL: it stays. */
    uintptr_t (*settle)(uintptr_t value);

    /* Does `waiter`, which has come, stand in front of all who wait? A function of it alone. NULL: nobody does. */
    bool (*goes_first)(const bide_queue_waiter *waiter);

    /*
     * What is put is for those who wait at that moment, whoever of them is asked to stop, and for nobody who comes
     * later. So whose time has come ends so although he was asked to stop by the time that it is seen; and who leaves
     * does so when the server does: if something was put meanwhile, he is there again, where he stood. (When it is
     * closed nothing may be put.)
     */
    bool admits_canceled;

    /* Is given those that have ended, in that order, instead of their being woken. The server has left by then. NULL:
     * they are woken. */
    void (*hand)(const bide_queue_rules *rules, const bide_awaiter_chain *ended);
};

/* Makes a queue. Before it is shared. */
BIDE_INLINE void bide_waiter_queue_init(bide_waiter_queue *queue, uintptr_t value)
{
    bide_atomic_init(&queue->state, value);
    bide_atomic_init(&queue->arrivals, (uintptr_t)0);
    bide_atomic_init(&queue->leaving, (uintptr_t)0);
    queue->line = NULL;
}

/*
 * One attempt to change the state from *state, whatever its flags, to `value`, which does not make impossible what was
 * possible. Serves if somebody waits. False: the state is another, now in *state. Lock-free.
 */
bool bide_waiter_queue_put(bide_waiter_queue *queue, const bide_queue_rules *rules,
                           uintptr_t *state, uintptr_t value);

/*
 * The suspend of an operation that was not ready: enlists it, unless the queue is closed; then what came before that is
 * had, by `ready`, and otherwise it ends with -EPIPE. Returns who runs next.
 */
bide_frame *bide_waiter_queue_suspend(bide_queue_waiter *waiter, const bide_queue_rules *rules,
                                      bide_frame *frame);

/* Before a wait is enlisted for the first time: it is not in line. */
BIDE_INLINE void bide_queue_waiter_begin(bide_queue_waiter *waiter)
{
    waiter->before = NULL;
}

/*
 * Its halves, for who has something to do in between, when the wait has begun but cannot have ended for the
 * coroutine. After the second the waiter is not touched, unless it returns true: it has ended, and its frame is to go
 * on at once.
 */
void bide_waiter_queue_enlist(bide_queue_waiter *waiter, const bide_queue_rules *rules);
bool bide_waiter_queue_arm(bide_queue_waiter *waiter);

/* For the operations' `cancel` and `withdraw`: a constant number of steps for each call and each waiter that has come
 * since the last one. When the latter says false, and what the operation has taken is not to be lost, the primitive
 * gives it back. */
void bide_waiter_queue_cancel(bide_queue_waiter *waiter, const bide_queue_rules *rules);
bool bide_waiter_queue_withdraw(bide_awaiter *awaiter, const bide_queue_rules *rules);

/* Removes and ends all in line that were asked to stop: for who holds a waiter that may have been asked while it was
 * nowhere, and has enlisted it. Not where the rules admit who is canceled. Linear in the waiters. */
void bide_waiter_queue_sweep(bide_waiter_queue *queue, const bide_queue_rules *rules);

/* Closes it: who waits, now and later, ends with -EPIPE. Lock-free. */
void bide_waiter_queue_close(bide_waiter_queue *queue, const bide_queue_rules *rules);

/*
 * Does nobody wait? For debug builds' checks, by who knows that nobody uses it. (WAITING may be left over from one who
 * was served before he had said that he had come.)
 */
BIDE_INLINE bool bide_waiter_queue_is_idle(bide_waiter_queue *queue)
{
    /* relaxed: the caller has seen what was done with it. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    if ((state & BIDE_QUEUE_SERVING_) != 0)
        return false;
    return (state & BIDE_QUEUE_WAITING_) == 0 ||
           (bide_atomic_load(&queue->arrivals, relaxed) == 0 && queue->line == NULL);
}

BIDE_EXTERN_C_END

#endif
