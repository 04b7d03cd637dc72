/*
 * Signals, from a handler to listeners.
 *
 *     handler, on any thread        teller, a thread of the library's        listeners
 *     come++, post `news`    --->   seen = come   --->   the first in line is woken, or is_set
 *
 *     the teller   NONE --the first listens--> RUNS --the last ends--> QUITS --> NONE, or GONE
 *                  --joined--> NONE;  QUITS --somebody listens--> RUNS
 *
 * A handler and not a signalfd. What a signalfd is to bring has to be blocked in all threads, those
 * included that the library has not made and cannot reach; where one is forgotten, the signal ends
 * the process. Children inherit that mask, over exec too, and then run with signals blocked of which
 * they know nothing. A handler asks nothing of other threads, and exec undoes it.
 *
 * A semaphore and not a pipe to oneself: to post it is allowed in a handler, it needs no descriptor,
 * is never full in a way that matters (the count says what has come), and a child shares none.
 *
 * 1. No signal is missed. The handler counts before it posts; the teller takes the post before it
 *    reads the counts. The handler stands before `listen` returns.
 * 2. A listener hears of nothing that came before it listened: `listen` has told the others of what
 *    has come (gather) before it joins them, and what came before the first of them counts as seen.
 *    What comes after the handler stands is heard, though `listen` has not returned.
 * 3. Waits stand in line under one lock, of all listeners. A waiter is posted to its scheduler under
 *    that lock too, so whoever has it finds the waiter in line, or posted: a coroutine may be
 *    destroyed while its signal comes. What is woken inline must not run under the lock. So all that
 *    wakes is called by bide_run_after_, which has it run afterwards.
 * 4. The teller's mask lets in what is listened for, and blocks all else. So a signal that all
 *    others block is caught. When the last listener for a signal ends, the teller blocks it again
 *    and then puts back what was done before: otherwise one that comes in between could do on the
 *    teller what all other threads have blocked. To end waits for that.
 * 5. The teller ends under the lock, in QUITS, as its last act but to return. Whoever waits for that
 *    joins it; if nobody does, because the last listener ended on the teller, it is detached. A
 *    teller that is GONE tells no more, so a new one does not meet it.
 * 6. A child of fork begins anew: it has no teller, and no listener. The thread that forks holds the
 *    lock, so the child finds the lists whole. A signal that comes to the child before its handlers
 *    are put back, or to a child that shares the memory (vfork), is known by the number of the
 *    process. There the old way is put back, and the signal raised again; it comes when the handler
 *    has returned.
 */
#define _GNU_SOURCE
#include "bide/signal.h"

#include "../coroutine/internal.h"
#include "../system/fork.h"
#include "../system/threads.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

enum { SIGNALS = 65 }; /* Linux: 1 to 64 */

enum { NONE, RUNS, QUITS, GONE, JOINING };

/* The states of a wait. */
enum { OUT, IN_LINE, HAS_IT };

/* What is known of a signal. Of the lock, but for `come`. */
struct heard {
    bide_atomic(uint32_t) come; /* times that the handler ran */
    uint32_t seen;              /* of those, that listeners were told of */
    bide_signal *first;
    bool is_leaving; /* nobody listens any more, and the handler still stands */
    bool is_lost;    /* somebody else's handler stood there at the end */
    struct sigaction before;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    sem_t news;
    unsigned listeners;
    int state;         /* of the teller */
    unsigned joiners;  /* that wait for its end */
    pthread_t teller;
    bide_atomic(int) process; /* whose handlers they are; 0: none yet */
    bool survives_forks;
    struct heard signals[SIGNALS];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static BIDE_THREAD_LOCAL bool is_teller;

/* What an instruction, or a call, of the thread itself raises. */
static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

/* ---- The handler ---- */

static void on_signal(int number)
{
    int saved = errno;
    struct heard *heard = &all.signals[number];
    /* relaxed: it was written before the handler was set */
    if (getpid() == bide_atomic_load(&all.process, relaxed)) {
        /* release: 1, partner is the load of gather. */
        bide_atomic_fetch_add(&heard->come, 1, release);
        sem_post(&all.news);
    } else { /* 6 */
        sigaction(number, &heard->before, NULL);
        raise(number);
    }
    errno = saved;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == on_signal;
}

static bool is_free(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) == 0 &&
           (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN);
}

/* Sets the handler; what was done before is kept. */
static int set_handler(int number)
{
    struct sigaction *before = &all.signals[number].before;
    struct sigaction after = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&after.sa_mask);
    if (sigaction(number, NULL, before) != 0)
        return -errno;
    if (!is_free(before))
        return -EBUSY;
    struct sigaction replaced;
    if (sigaction(number, &after, &replaced) != 0)
        return -errno;
    if (!is_free(&replaced)) { /* somebody else was faster */
        sigaction(number, &replaced, NULL);
        return -EBUSY;
    }
    *before = replaced;
    return 0;
}

/* Does the handler stand, among those for whom somebody listens? */
static bool has_handler(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && is_ours(&now);
}

static void put_back(int number)
{
    struct heard *heard = &all.signals[number];
    heard->is_lost = !has_handler(number);
    if (!heard->is_lost)
        sigaction(number, &heard->before, NULL);
    heard->is_leaving = false;
}

/* ---- The teller ---- */

/* What it takes: signals for which somebody listens; and what an instruction of its own raises. 4 */
static void settle(void)
{
    sigset_t mask;
    sigfillset(&mask);
    for (size_t i = 0; i < sizeof raised / sizeof raised[0]; i++)
        sigdelset(&mask, raised[i]);
    for (int number = 1; number < SIGNALS; number++) {
        if (all.signals[number].first != NULL)
            sigdelset(&mask, number);
    }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    for (int number = 1; number < SIGNALS; number++) {
        if (all.signals[number].is_leaving)
            put_back(number);
    }
    pthread_cond_broadcast(&all.changed);
}

/* ---- Waits in line, under the lock ---- */

static void enter_line(bide_signal_waiter *waiter)
{
    bide_signal *signal = waiter->signal;
    waiter->state = IN_LINE;
    waiter->next = NULL;
    waiter->previous = signal->last;
    if (signal->first == NULL)
        signal->first = waiter;
    else
        signal->last->next = waiter;
    signal->last = waiter;
}

static void leave_line(bide_signal_waiter *waiter)
{
    bide_signal *signal = waiter->signal;
    waiter->state = OUT;
    if (waiter->previous != NULL)
        waiter->previous->next = waiter->next;
    else
        signal->first = waiter->next;
    if (waiter->next != NULL)
        waiter->next->previous = waiter->previous;
    else
        signal->last = waiter->previous;
}

/* The signal is the first waiter's, or is remembered. Inside bide_run_after_: 3 */
static void give(bide_signal *signal)
{
    bide_signal_waiter *first = signal->first;
    if (first == NULL) {
        signal->is_set = true;
        return;
    }
    leave_line(first);
    first->state = HAS_IT;
    bide_wake_one(&first->awaiter);
}

/* The same for all listeners, if it has come. */
static void gather(int number)
{
    struct heard *heard = &all.signals[number];
    /* acquire: partner is the handler's release, whose thread's writes are told of */
    uint32_t come = bide_atomic_load(&heard->come, acquire);
    if (come == heard->seen)
        return;
    heard->seen = come;
    for (bide_signal *at = heard->first; at != NULL; at = at->next)
        give(at);
}

/* ---- The teller ---- */

/* A turn of the teller. */
static void take_turn(bide_frame *unused)
{
    (void)unused;
    pthread_mutex_lock(&all.lock);
    settle();
    for (int number = 1; number < SIGNALS; number++)
        gather(number);
    pthread_mutex_unlock(&all.lock);
}

/* Nobody listens any more: 5. False: somebody does. */
static bool has_quit(void)
{
    pthread_mutex_lock(&all.lock);
    bool quits = all.state == QUITS;
    if (quits) {
        settle();
        if (all.joiners == 0)
            pthread_detach(pthread_self());
        all.state = all.joiners == 0 ? NONE : GONE;
        pthread_cond_broadcast(&all.changed);
    }
    pthread_mutex_unlock(&all.lock);
    return quits;
}

static void *teller_main(void *unused)
{
    (void)unused;
    is_teller = true;
    bide_threads_name_this_("bide-signal", 0);
    while (!has_quit()) {
        while (sem_wait(&all.news) != 0) { /* interrupted */
        }
        bide_run_after_(take_turn, NULL);
    }
    return NULL;
}

static void do_nothing(void *unused)
{
    (void)unused;
}

/* There is one from now on, and it looks at what is listened for. 0 or a negative errno. */
static int have_teller(void)
{
    while (all.state == GONE || all.state == JOINING)
        pthread_cond_wait(&all.changed, &all.lock);
    if (all.state == NONE) {
        int error = bide_threads_start_(&all.teller, 1, teller_main, NULL, do_nothing);
        if (error != 0)
            return error;
    }
    all.state = RUNS;
    sem_post(&all.news);
    return 0;
}

/* Nobody listens any more. 5 */
static void quit(void)
{
    all.state = QUITS;
    sem_post(&all.news);
    if (is_teller)
        return;
    all.joiners++;
    while (all.state == QUITS)
        pthread_cond_wait(&all.changed, &all.lock);
    all.joiners--;
    if (all.state != GONE)
        return;
    all.state = JOINING;
    pthread_mutex_unlock(&all.lock);
    pthread_join(all.teller, NULL);
    pthread_mutex_lock(&all.lock);
    all.state = NONE;
    pthread_cond_broadcast(&all.changed);
}

/* ---- Forks: 6 ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&all.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&all.lock);
}

static void after_fork_in_child(void)
{
    for (int number = 1; number < SIGNALS; number++) {
        struct heard *heard = &all.signals[number];
        if (heard->first != NULL || heard->is_leaving)
            put_back(number);
        heard->first = NULL;
        bide_atomic_init(&heard->come, 0);
        heard->seen = 0;
    }
    all.listeners = 0;
    all.state = NONE;
    all.joiners = 0;
    bide_atomic_init(&all.process, 0);
    is_teller = false;
    pthread_mutex_init(&all.lock, NULL);
    pthread_cond_init(&all.changed, NULL);
}

/* What there is once in a process. */
static int prepare(void)
{
    if (!all.survives_forks) {
        if (pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0)
            return -ENOMEM;
        all.survives_forks = true;
    }
    if (bide_atomic_load(&all.process, relaxed) == 0) { /* relaxed: of the lock */
        if (sem_init(&all.news, 0, 0) != 0)
            return -errno;
        bide_atomic_store(&all.process, getpid(), relaxed); /* relaxed: on_signal */
    }
    return 0;
}

/* ---- Listeners ---- */

/* A call that may wake: 3. Its frame is none, but stands for it. */
struct call {
    bide_signal *signal;
    bide_awaiter *awaiter;
    int result;
};

static void run_after(void (*function)(bide_frame *call), struct call *call)
{
    bide_run_after_(function, (bide_frame *)(void *)call);
}

static bool is_raised(int number)
{
    for (size_t i = 0; i < sizeof raised / sizeof raised[0]; i++) {
        if (raised[i] == number)
            return true;
    }
    return false;
}

static void enlist(bide_signal *signal)
{
    struct heard *heard = &all.signals[signal->number];
    signal->next = heard->first;
    signal->place = &heard->first;
    if (signal->next != NULL)
        signal->next->place = &signal->next;
    heard->first = signal;
    all.listeners++;
}

static void delist(bide_signal *signal)
{
    *signal->place = signal->next;
    if (signal->next != NULL)
        signal->next->place = signal->place;
    all.listeners--;
}

/* Under the lock. */
static int listen_for(bide_signal *signal)
{
    int number = signal->number;
    struct heard *heard = &all.signals[number];
    int error = prepare();
    if (error != 0)
        return error;
    if (is_teller) /* (what is leaving waits for this thread) */
        settle();
    while (heard->is_leaving)
        pthread_cond_wait(&all.changed, &all.lock);
    bool is_first = heard->first == NULL;
    if (is_first) {
        heard->seen = bide_atomic_load(&heard->come, relaxed); /* relaxed: 2, it is a number */
        error = set_handler(number);
    } else if (!has_handler(number)) {
        error = -EBUSY;
    } else {
        gather(number); /* 2 */
    }
    if (error != 0)
        return error;
    signal->was_ignored =
        (heard->before.sa_flags & SA_SIGINFO) == 0 && heard->before.sa_handler == SIG_IGN;
    enlist(signal);
    error = have_teller();
    if (error != 0) {
        delist(signal);
        if (heard->first == NULL)
            put_back(number);
    }
    return error;
}

static void listen_inside(bide_frame *call)
{
    struct call *self = (struct call *)(void *)call;
    pthread_mutex_lock(&all.lock);
    self->result = listen_for(self->signal);
    pthread_mutex_unlock(&all.lock);
}

int bide_signal_listen(bide_signal *signal, int number)
{
    sigset_t mask;
    struct call call = {.signal = signal};
    if (number < 1 || number >= SIGNALS || is_raised(number))
        return -EINVAL;
    signal->number = number;
    signal->is_set = false;
    signal->has_ended = false;
    signal->first = NULL;
    signal->last = NULL;
    signal->generation = bide_generation_;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    signal->was_blocked = sigismember(&mask, number) == 1;
    run_after(listen_inside, &call);
    return call.result;
}

/* Under the lock. */
static int stop_listening(bide_signal *signal)
{
    struct heard *heard = &all.signals[signal->number];
    delist(signal);
    if (heard->first != NULL)
        return has_handler(signal->number) ? 0 : -EBUSY;
    heard->is_leaving = true; /* 4 */
    if (is_teller)
        settle();
    else
        sem_post(&all.news);
    while (heard->is_leaving)
        pthread_cond_wait(&all.changed, &all.lock);
    bool is_lost = heard->is_lost;
    if (all.listeners == 0 && all.state == RUNS)
        quit();
    return is_lost ? -EBUSY : 0;
}

static void end_inside(bide_frame *call)
{
    struct call *self = (struct call *)(void *)call;
    bide_signal *signal = self->signal;
    bide_signal_waiter *waiter;
    pthread_mutex_lock(&all.lock);
    signal->has_ended = true;
    while ((waiter = signal->first) != NULL) {
        leave_line(waiter);
        bide_awaiter_finish_closed(&waiter->awaiter);
        bide_wake_one(&waiter->awaiter);
    }
    self->result = signal->generation == bide_generation_ ? stop_listening(signal) : 0;
    pthread_mutex_unlock(&all.lock);
}

int bide_signal_destroy(bide_signal *signal)
{
    struct call call = {.signal = signal};
    run_after(end_inside, &call);
    return call.result;
}

/* ---- Waits ---- */

static bide_signal_waiter *waiter_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_signal_waiter, awaiter);
}

/* Under the lock. */
static bool take(bide_signal *signal)
{
    bool is_set = signal->is_set;
    signal->is_set = false;
    return is_set;
}

/* Is there nothing to wait for? Under the lock. */
static bool is_over(bide_signal_waiter *waiter)
{
    if (waiter->signal->has_ended)
        return true;
    if (!take(waiter->signal))
        return false;
    waiter->state = HAS_IT;
    return true;
}

static bool wait_ready(bide_awaiter *awaiter)
{
    pthread_mutex_lock(&all.lock);
    bool ready = is_over(waiter_of(awaiter));
    pthread_mutex_unlock(&all.lock);
    return ready;
}

static bide_frame *wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    pthread_mutex_lock(&all.lock);
    bide_frame *next = is_over(waiter_of(awaiter)) ? frame : NULL;
    if (next == NULL)
        enter_line(waiter_of(awaiter));
    pthread_mutex_unlock(&all.lock);
    return next;
}

static int wait_resume(bide_awaiter *awaiter)
{
    return waiter_of(awaiter)->state == HAS_IT ? 0 : -EPIPE;
}

static void cancel_inside(bide_frame *call)
{
    bide_awaiter *awaiter = ((struct call *)(void *)call)->awaiter;
    pthread_mutex_lock(&all.lock);
    if (waiter_of(awaiter)->state == IN_LINE) {
        leave_line(waiter_of(awaiter));
        bide_awaiter_finish_cancelled(awaiter);
        bide_wake_one(awaiter);
    }
    pthread_mutex_unlock(&all.lock);
}

static void wait_cancel(bide_awaiter *awaiter)
{
    struct call call = {.awaiter = awaiter};
    run_after(cancel_inside, &call);
}

static void withdraw_inside(bide_frame *call)
{
    struct call *self = (struct call *)(void *)call;
    bide_signal_waiter *waiter = waiter_of(self->awaiter);
    pthread_mutex_lock(&all.lock);
    self->result = waiter->state == IN_LINE;
    if (waiter->state == IN_LINE)
        leave_line(waiter);
    else if (waiter->state == HAS_IT && !waiter->signal->has_ended)
        give(waiter->signal);
    pthread_mutex_unlock(&all.lock);
}

static bool wait_withdraw(bide_awaiter *awaiter)
{
    struct call call = {.awaiter = awaiter};
    run_after(withdraw_inside, &call);
    return call.result != 0;
}

bide_awaiter *bide_signal_wait(bide_signal_waiter *waiter, bide_signal *signal)
{
    static const bide_awaiter_ops ops = {
        .ready = wait_ready,
        .suspend = wait_suspend,
        .resume = wait_resume,
        .cancel = wait_cancel,
        .withdraw = wait_withdraw,
        .name = "bide_signal_wait",
    };
    waiter->awaiter.ops = &ops;
    waiter->signal = signal;
    waiter->state = OUT;
    return &waiter->awaiter;
}

bool bide_signal_try_wait(bide_signal *signal)
{
    pthread_mutex_lock(&all.lock);
    bool is_set = take(signal);
    pthread_mutex_unlock(&all.lock);
    return is_set;
}
