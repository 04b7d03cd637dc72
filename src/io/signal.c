/*
 * Signals, from a handler to listeners.
 *
 *     handler, on any thread          dispatcher, a thread of the library's     listeners
 *     delivered++, post `news`  --->  received = delivered  --->  first waiter is woken, or is_set
 *
 *     the dispatcher   NONE --first listen--> RUNNING --last end--> STOPPING --> NONE, or STOPPED
 *                      STOPPED --joined--> NONE;  STOPPING --listen--> RUNNING
 *
 * Listeners, waiters and the dispatcher's state are under one lock. Any thread may listen, wait and
 * end, but not in a signal handler.
 *
 * Why a handler and not a signalfd: signals for a signalfd must be blocked in all threads, even those
 * that the library has not created and cannot reach. If one thread does not block the signal, the
 * signal ends the process. Children inherit the mask, even through exec, and then run with signals
 * blocked unknowingly. A handler needs nothing of other threads, and exec resets it.
 *
 * Why a semaphore where there is one, and not a pipe: a handler may post either, and an overflow of
 * either does not matter (`delivered` counts the signals). A semaphore needs no descriptor, and a
 * child does not share it. Other systems than Linux have a pipe (signal_handler.c).
 *
 * 1. No signal is missed. The handler counts before it posts. The dispatcher consumes the post before
 *    it reads the counts. The handler is installed before bide_signal_listen returns.
 * 2. A listener never receives a signal from before it listened. bide_signal_listen first gives
 *    earlier signals to the other listeners (signal_receive). For the first listener, earlier
 *    signals count as received. A listener receives signals from the moment at which the handler is
 *    installed, even if bide_signal_listen has not returned yet.
 * 3. Waiters are in lists under the lock. A waiter is posted to its scheduler under that lock too. So
 *    the holder of the lock finds a waiter in a list or posted, and a coroutine may be destroyed
 *    while its signal arrives. A coroutine that is woken inline must not run under the lock. So each
 *    function that wakes is called by bide_run_after_, which runs such coroutines afterwards.
 * 4. The dispatcher's mask admits the signals that have listeners and blocks all others. So a signal
 *    is received even if all other threads block it. When the last listener for a signal ends, the
 *    dispatcher blocks the signal first and then restores the previous action. Otherwise a signal
 *    that arrives in between could take its previous action on the dispatcher, though all other
 *    threads block it. bide_signal_destroy waits for the dispatcher to do this.
 * 5. The dispatcher leaves STOPPING under the lock, as its last act before it returns. The thread
 *    that waits for this joins it. If the last listener ended on the dispatcher itself, nobody joins,
 *    and it is detached. A dispatcher in STOPPED delivers nothing any more, so it cannot conflict
 *    with a new one.
 * 6. A child of fork starts without a dispatcher and without listeners. The forking thread holds the
 *    lock, so the child finds the lists consistent. A signal may reach the child before its actions
 *    are restored, or a child that shares the memory (vfork). The handler detects this by the process
 *    id. It restores the previous action and raises the signal again, which is delivered when the
 *    handler has returned.
 */
#define _GNU_SOURCE
#include "bide/signal.h"

#include "../coroutine/internal.h"
#include "../system/fork.h"
#include "../system/threads.h"
#include "signal_handler.h"

#include <errno.h>
#include <pthread.h>

enum dispatcher_state {
    DISPATCHER_NONE,
    DISPATCHER_RUNNING,
    DISPATCHER_STOPPING,
    DISPATCHER_STOPPED,
    DISPATCHER_JOINING
};

enum signal_wait_state { SIGNAL_WAIT_IDLE, SIGNAL_WAIT_QUEUED, SIGNAL_WAIT_GRANTED };

/* The state of one signal. */
struct signal_entry {
    uint32_t received;  /* calls of the handler that were passed on to the listeners */
    bide_signal *first; /* listener */
    bool is_leaving;    /* the last listener has ended, and the handler is still installed */
    bool is_lost;       /* another handler was installed at that time */
};

static struct {
    pthread_mutex_t lock; /* protects all members */
    pthread_cond_t changed;
    unsigned listeners;
    enum dispatcher_state state;
    unsigned joiners; /* threads that wait for STOPPING to end */
    pthread_t dispatcher;
    bool survives_forks;
    struct signal_entry entries[SIGNAL_COUNT];
} signal_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static BIDE_THREAD_LOCAL bool signal_is_dispatcher;

/* The signal has no listener any more. */
static void signal_restore_action(int number)
{
    struct signal_entry *entry = &signal_state.entries[number];
    entry->is_lost = !bide_signal_handler_restore_(number);
    entry->is_leaving = false;
}

/* ---- The dispatcher's mask ---- */

/* On the dispatcher: sets its mask, and restores the actions of signals without a listener: 4. */
static void dispatcher_update_mask(void)
{
    bide_assert(signal_is_dispatcher);
    sigset_t mask;
    sigfillset(&mask);
    for (int number = 1; number < SIGNAL_COUNT; number++) {
        if (signal_state.entries[number].first != NULL || bide_signal_handler_is_raised_(number))
            sigdelset(&mask, number);
    }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    for (int number = 1; number < SIGNAL_COUNT; number++) {
        bide_assert(!signal_state.entries[number].is_leaving ||
                    signal_state.entries[number].first == NULL);
        if (signal_state.entries[number].is_leaving)
            signal_restore_action(number);
    }
    pthread_cond_broadcast(&signal_state.changed);
}

/* ---- Lists of waiters, under the lock ---- */

static void signal_waiter_enqueue(bide_signal_waiter *waiter)
{
    bide_signal *signal = waiter->signal;
    bide_assert(waiter->state == SIGNAL_WAIT_IDLE && !signal->has_ended && !signal->is_set);
    waiter->state = SIGNAL_WAIT_QUEUED;
    waiter->next = NULL;
    waiter->previous = signal->last;
    if (signal->first == NULL)
        signal->first = waiter;
    else
        signal->last->next = waiter;
    signal->last = waiter;
}

static void signal_waiter_remove(bide_signal_waiter *waiter)
{
    bide_signal *signal = waiter->signal;
    bide_assert(waiter->state == SIGNAL_WAIT_QUEUED);
    bide_assert((waiter->previous != NULL ? waiter->previous->next : signal->first) == waiter);
    bide_assert((waiter->next != NULL ? waiter->next->previous : signal->last) == waiter);
    waiter->state = SIGNAL_WAIT_IDLE;
    if (waiter->previous != NULL)
        waiter->previous->next = waiter->next;
    else
        signal->first = waiter->next;
    if (waiter->next != NULL)
        waiter->next->previous = waiter->previous;
    else
        signal->last = waiter->previous;
}

/* Gives the signal to the first waiter, or stores it. Called by bide_run_after_: 3. */
static void signal_grant(bide_signal *signal)
{
    bide_signal_waiter *first = signal->first;
    if (first == NULL) {
        signal->is_set = true;
        return;
    }
    signal_waiter_remove(first);
    first->state = SIGNAL_WAIT_GRANTED;
    bide_wake_one(&first->awaiter);
}

/* Gives a signal that was delivered to each of its listeners. */
static void signal_receive(int number)
{
    struct signal_entry *entry = &signal_state.entries[number];
    uint32_t delivered = bide_signal_handler_count_(number);
    if (delivered == entry->received)
        return;
    entry->received = delivered;
    for (bide_signal *at = entry->first; at != NULL; at = at->next)
        signal_grant(at);
}

/* ---- The dispatcher ---- */

/* One round of the dispatcher. */
static void dispatcher_run_round(bide_frame *unused)
{
    (void)unused;
    pthread_mutex_lock(&signal_state.lock);
    dispatcher_update_mask();
    for (int number = 1; number < SIGNAL_COUNT; number++)
        signal_receive(number);
    pthread_mutex_unlock(&signal_state.lock);
}

/* Completes STOPPING: 5. False: there are listeners. */
static bool dispatcher_has_stopped(void)
{
    pthread_mutex_lock(&signal_state.lock);
    bool is_stopping = signal_state.state == DISPATCHER_STOPPING;
    if (is_stopping) {
        bide_assert(signal_state.listeners == 0);
        dispatcher_update_mask();
        if (signal_state.joiners == 0)
            pthread_detach(pthread_self());
        signal_state.state = signal_state.joiners == 0 ? DISPATCHER_NONE : DISPATCHER_STOPPED;
        pthread_cond_broadcast(&signal_state.changed);
    }
    pthread_mutex_unlock(&signal_state.lock);
    return is_stopping;
}

static void *dispatcher_main(void *unused)
{
    (void)unused;
    signal_is_dispatcher = true;
    bide_threads_name_this_("bide-signal", 0);
    while (!dispatcher_has_stopped()) {
        bide_signal_handler_wait_();
        bide_run_after_(dispatcher_run_round, NULL);
    }
    return NULL;
}

static void dispatcher_give_up(void *unused)
{
    (void)unused;
}

/* Starts the dispatcher unless it is running, and has it update its mask. */
static int dispatcher_start(void)
{
    bide_assert(signal_state.listeners != 0);
    while (signal_state.state == DISPATCHER_STOPPED || signal_state.state == DISPATCHER_JOINING)
        pthread_cond_wait(&signal_state.changed, &signal_state.lock);
    if (signal_state.state == DISPATCHER_NONE) {
        int error = bide_threads_start_(&signal_state.dispatcher, 1, dispatcher_main, NULL,
                                        dispatcher_give_up);
        if (error != 0)
            return error;
    }
    signal_state.state = DISPATCHER_RUNNING;
    bide_signal_handler_post_();
    return 0;
}

/* Stops the dispatcher: 5. There are no listeners. */
static void dispatcher_stop(void)
{
    bide_assert(signal_state.listeners == 0 && signal_state.state == DISPATCHER_RUNNING);
    signal_state.state = DISPATCHER_STOPPING;
    bide_signal_handler_post_();
    if (signal_is_dispatcher)
        return;
    signal_state.joiners++;
    while (signal_state.state == DISPATCHER_STOPPING)
        pthread_cond_wait(&signal_state.changed, &signal_state.lock);
    signal_state.joiners--;
    if (signal_state.state != DISPATCHER_STOPPED)
        return;
    signal_state.state = DISPATCHER_JOINING;
    pthread_mutex_unlock(&signal_state.lock);
    pthread_join(signal_state.dispatcher, NULL);
    pthread_mutex_lock(&signal_state.lock);
    signal_state.state = DISPATCHER_NONE;
    pthread_cond_broadcast(&signal_state.changed);
}

/* ---- Forks: 6 ---- */

static void signal_before_fork(void)
{
    pthread_mutex_lock(&signal_state.lock);
}

static void signal_after_fork(void)
{
    pthread_mutex_unlock(&signal_state.lock);
}

static void signal_after_fork_in_child(void)
{
    for (int number = 1; number < SIGNAL_COUNT; number++) {
        struct signal_entry *entry = &signal_state.entries[number];
        if (entry->first != NULL || entry->is_leaving)
            signal_restore_action(number);
        entry->first = NULL;
        entry->received = 0;
    }
    bide_signal_handler_reset_();
    signal_state.listeners = 0;
    signal_state.state = DISPATCHER_NONE;
    signal_state.joiners = 0;
    signal_is_dispatcher = false;
    pthread_mutex_init(&signal_state.lock, NULL);
    pthread_cond_init(&signal_state.changed, NULL);
}

/* Initializes what a process needs once. Under the lock. */
static int signal_init_process(void)
{
    if (!signal_state.survives_forks) {
        if (pthread_atfork(signal_before_fork, signal_after_fork, signal_after_fork_in_child) != 0)
            return -ENOMEM;
        signal_state.survives_forks = true;
    }
    return bide_signal_handler_init_();
}

/* ---- Listeners ---- */

/* A call by bide_run_after_: 3. It is passed in place of a frame. */
struct signal_call {
    bide_signal *signal;
    bide_awaiter *awaiter;
    int result;
};

static void signal_run_after(void (*function)(bide_frame *call), struct signal_call *call)
{
    bide_run_after_(function, (bide_frame *)(void *)call);
}

static void signal_add_listener(bide_signal *signal)
{
    struct signal_entry *entry = &signal_state.entries[signal->number];
    signal->next = entry->first;
    signal->place = &entry->first;
    if (signal->next != NULL)
        signal->next->place = &signal->next;
    entry->first = signal;
    signal_state.listeners++;
}

static void signal_remove_listener(bide_signal *signal)
{
    bide_assert(*signal->place == signal && signal_state.listeners != 0);
    *signal->place = signal->next;
    if (signal->next != NULL)
        signal->next->place = signal->place;
    signal_state.listeners--;
}

/* Under the lock. */
static int signal_start_listening(bide_signal *signal)
{
    int number = signal->number;
    struct signal_entry *entry = &signal_state.entries[number];
    int error = signal_init_process();
    if (error != 0)
        return error;
    if (signal_is_dispatcher) /* no other thread restores the pending actions */
        dispatcher_update_mask();
    while (entry->is_leaving)
        pthread_cond_wait(&signal_state.changed, &signal_state.lock);
    bool is_first = entry->first == NULL;
    if (is_first) {
        entry->received = bide_signal_handler_count_(number); /* 2 */
        error = bide_signal_handler_install_(number);
    } else if (!bide_signal_handler_is_installed_(number)) {
        error = -EBUSY;
    } else {
        signal_receive(number); /* 2 */
    }
    if (error != 0)
        return error;
    signal->was_ignored = bide_signal_handler_was_ignored_(number);
    signal_add_listener(signal);
    error = dispatcher_start();
    if (error != 0) {
        signal_remove_listener(signal);
        if (entry->first == NULL)
            signal_restore_action(number);
    }
    return error;
}

static void signal_listen_inside(bide_frame *call)
{
    struct signal_call *self = (struct signal_call *)(void *)call;
    pthread_mutex_lock(&signal_state.lock);
    self->result = signal_start_listening(self->signal);
    pthread_mutex_unlock(&signal_state.lock);
}

int bide_signal_listen(bide_signal *signal, int number)
{
    sigset_t mask;
    struct signal_call call = {.signal = signal};
    if (number < 1 || number >= SIGNAL_COUNT || bide_signal_handler_is_raised_(number))
        return -EINVAL;
    signal->number = number;
    signal->is_set = false;
    signal->has_ended = false;
    signal->first = NULL;
    signal->last = NULL;
    signal->generation = bide_generation_;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    signal->was_blocked = sigismember(&mask, number) == 1;
    signal_run_after(signal_listen_inside, &call);
    return call.result;
}

/* Under the lock. */
static int signal_stop_listening(bide_signal *signal)
{
    struct signal_entry *entry = &signal_state.entries[signal->number];
    signal_remove_listener(signal);
    if (entry->first != NULL)
        return bide_signal_handler_is_installed_(signal->number) ? 0 : -EBUSY;
    entry->is_leaving = true; /* 4 */
    if (signal_is_dispatcher)
        dispatcher_update_mask();
    else
        bide_signal_handler_post_();
    while (entry->is_leaving)
        pthread_cond_wait(&signal_state.changed, &signal_state.lock);
    bool is_lost = entry->is_lost;
    if (signal_state.listeners == 0 && signal_state.state == DISPATCHER_RUNNING)
        dispatcher_stop();
    return is_lost ? -EBUSY : 0;
}

static void signal_end_inside(bide_frame *call)
{
    struct signal_call *self = (struct signal_call *)(void *)call;
    bide_signal *signal = self->signal;
    bide_signal_waiter *waiter;
    pthread_mutex_lock(&signal_state.lock);
    signal->has_ended = true;
    while ((waiter = signal->first) != NULL) {
        signal_waiter_remove(waiter);
        bide_awaiter_finish_closed(&waiter->awaiter);
        bide_wake_one(&waiter->awaiter);
    }
    self->result = bide_is_inherited_(signal->generation) ? 0 : signal_stop_listening(signal);
    pthread_mutex_unlock(&signal_state.lock);
}

int bide_signal_destroy(bide_signal *signal)
{
    struct signal_call call = {.signal = signal};
    signal_run_after(signal_end_inside, &call);
    return call.result;
}

/* ---- Waits ---- */

static bide_signal_waiter *signal_waiter_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_signal_waiter, awaiter);
}

/* Under the lock. */
static bool signal_consume(bide_signal *signal)
{
    bool is_set = signal->is_set;
    signal->is_set = false;
    return is_set;
}

/* True if the wait ends at once: the listener has ended, or a signal is stored. Under the lock. */
static bool signal_wait_is_over(bide_signal_waiter *waiter)
{
    if (waiter->signal->has_ended)
        return true;
    if (!signal_consume(waiter->signal))
        return false;
    waiter->state = SIGNAL_WAIT_GRANTED;
    return true;
}

static bool signal_wait_ready(bide_awaiter *awaiter)
{
    pthread_mutex_lock(&signal_state.lock);
    bool ready = signal_wait_is_over(signal_waiter_of(awaiter));
    pthread_mutex_unlock(&signal_state.lock);
    return ready;
}

static bide_frame *signal_wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    pthread_mutex_lock(&signal_state.lock);
    bide_frame *next = signal_wait_is_over(signal_waiter_of(awaiter)) ? frame : NULL;
    if (next == NULL)
        signal_waiter_enqueue(signal_waiter_of(awaiter));
    pthread_mutex_unlock(&signal_state.lock);
    return next;
}

static int signal_wait_resume(bide_awaiter *awaiter)
{
    return signal_waiter_of(awaiter)->state == SIGNAL_WAIT_GRANTED ? 0 : -EPIPE;
}

static void signal_cancel_inside(bide_frame *call)
{
    bide_awaiter *awaiter = ((struct signal_call *)(void *)call)->awaiter;
    pthread_mutex_lock(&signal_state.lock);
    if (signal_waiter_of(awaiter)->state == SIGNAL_WAIT_QUEUED) {
        signal_waiter_remove(signal_waiter_of(awaiter));
        bide_awaiter_finish_cancelled(awaiter);
        bide_wake_one(awaiter);
    }
    pthread_mutex_unlock(&signal_state.lock);
}

static void signal_wait_cancel(bide_awaiter *awaiter)
{
    struct signal_call call = {.awaiter = awaiter};
    signal_run_after(signal_cancel_inside, &call);
}

static void signal_withdraw_inside(bide_frame *call)
{
    struct signal_call *self = (struct signal_call *)(void *)call;
    bide_signal_waiter *waiter = signal_waiter_of(self->awaiter);
    pthread_mutex_lock(&signal_state.lock);
    self->result = waiter->state == SIGNAL_WAIT_QUEUED;
    if (waiter->state == SIGNAL_WAIT_QUEUED)
        signal_waiter_remove(waiter);
    else if (waiter->state == SIGNAL_WAIT_GRANTED && !waiter->signal->has_ended)
        signal_grant(waiter->signal);
    pthread_mutex_unlock(&signal_state.lock);
}

static bool signal_wait_withdraw(bide_awaiter *awaiter)
{
    struct signal_call call = {.awaiter = awaiter};
    signal_run_after(signal_withdraw_inside, &call);
    return call.result != 0;
}

bide_awaiter *bide_signal_wait(bide_signal_waiter *waiter, bide_signal *signal)
{
    static const bide_awaiter_ops ops = {
        .ready = signal_wait_ready,
        .suspend = signal_wait_suspend,
        .resume = signal_wait_resume,
        .cancel = signal_wait_cancel,
        .withdraw = signal_wait_withdraw,
        .name = "bide_signal_wait",
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->awaiter.ops = &ops;
    waiter->signal = signal;
    waiter->state = SIGNAL_WAIT_IDLE;
    return &waiter->awaiter;
}

bool bide_signal_try_wait(bide_signal *signal)
{
    pthread_mutex_lock(&signal_state.lock);
    bool is_set = signal_consume(signal);
    pthread_mutex_unlock(&signal_state.lock);
    return is_set;
}
