/*
 * The threads of the engine "shm". Each process has two for each of its logs: one sleeps on the
 * process's bell (bell.h), and holds `alive`; the other waits for the ends of the other processes, by
 * a descriptor of each (pidfd_open(2)).
 *
 * 1. A process takes its place under the lock: its thread takes `alive`, and then the place is used.
 *    So a place that is used without a holder of `alive` is that of a dead process (shm.h, 6). It frees
 *    the place and releases `alive` under the lock too: a place that is not used can be taken.
 * 2. The system marks `alive` before the descriptor of a dead process becomes ready. So whoever wakes
 *    for it finds the mark.
 * 3. A process identifier may belong to another process when its descriptor is opened. The dead are
 *    looked for after all descriptors were opened: a process that has died before is found then, and
 *    one that was alive then had its own identifier.
 * 4. A descriptor that cannot be opened is tried again after a second. So is a wait that fails.
 * 5. A place that is taken or freed rings all bells, and the bell's thread makes the other look again.
 *    Coroutines are notified for other processes only: what one process does itself wakes its own on
 *    the thread that does it, as a test loop demands.
 */
#define _GNU_SOURCE
#include "shm.h"

#include "bide/platform.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* (the same number on all machines; old headers do not have it) */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* The word of the sleep has no timeout, so either call does. It is shared: not of this process alone. */
#if defined SYS_futex
#define SHM_FUTEX SYS_futex
#else
#define SHM_FUTEX SYS_futex_time64
#endif

enum { SHM_RETRY = 1000 /* milliseconds: 4 */ };

/* The process in each place of the log, which this one watches. */
struct shm_watched {
    int descriptors[SHM_PROCESSES];
    uint32_t joined[SHM_PROCESSES];
};

void bide_log_shm_wake_(bide_atomic(uint32_t) * bell)
{
    (void)syscall(SHM_FUTEX, bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void shm_bell_sleep(bide_atomic(uint32_t) * bell)
{
    uint32_t found = bide_atomic_load(bell, relaxed);
    if (bell_is_silent(found))
        (void)syscall(SHM_FUTEX, bell, FUTEX_WAIT, found, NULL, NULL, 0);
}

static void shm_watch_again(const struct log_shm *shm)
{
    const uint64_t one = 1;
    (void)!write(shm->watch_event, &one, sizeof one);
}

/* ---- Places ---- */

/* Takes a place: 0, or -EUSERS. On the thread that stays while the process has the log open. */
static int shm_place_take(struct log_shm *shm)
{
    int status = -EUSERS;
    bide_log_shm_lock_(shm);
    bide_log_shm_sweep_(shm);
    for (unsigned p = 0; status < 0 && p < SHM_PROCESSES; p++) {
        struct shm_process *process = &shm->header->processes[p];
        if (bide_atomic_load(&process->is_used, relaxed) != 0)
            continue;
        int error = pthread_mutex_trylock(&process->alive);
        if (error != 0 && error != EOWNERDEAD)
            continue;
        if (error == EOWNERDEAD) /* it died before it used the place, or after it had freed it */
            (void)pthread_mutex_consistent(&process->alive);
        bide_atomic_store(&process->bell, 0, relaxed);
        process->pid = (uint32_t)getpid();
        process->joined++;
        /* release: the place is whole before, also if this process is killed. */
        bide_atomic_store(&process->is_used, 1, release);
        shm->place = p;
        shm->state.owners = (uint64_t)(p + 1) << 48;
        shm->rings |= BELL_JOINED; /* 5 */
        status = 0;
    }
    bide_log_shm_unlock_(shm);
    return status;
}

static void shm_place_free(struct log_shm *shm)
{
    struct shm_process *process = &shm->header->processes[shm->place];
    bide_log_shm_lock_(shm);
    bide_atomic_store(&process->is_used, 0, relaxed);
    shm->place = SHM_NO_PLACE;
    shm->rings |= BELL_JOINED; /* 5 */
    pthread_mutex_unlock(&process->alive);
    bide_log_shm_unlock_(shm);
}

/* ---- The bell ---- */

static void *shm_bell_run(void *argument)
{
    struct log_shm *shm = argument;
    shm->join_status = shm_place_take(shm);
    /* release: partner is the acquire of bide_log_shm_join_, which reads the status. */
    bide_atomic_store(&shm->has_joined, 1, release);
    bide_platform.wake(&shm->has_joined, 1);
    if (shm->join_status < 0)
        return NULL;
    bide_atomic(uint32_t) *bell = &shm->header->processes[shm->place].bell;
    /* acquire: partner is the release of bide_log_shm_leave_. */
    while (bide_atomic_load(&shm->ends, acquire) == 0) {
        uint32_t rung = bell_take(bell);
        if ((rung & BELL_JOINED) != 0)
            shm_watch_again(shm);
        if ((rung & LOG_ROOM) != 0)
            bide_notify_all(&shm->state.room);
        if ((rung & LOG_NEWS) != 0)
            bide_notify_all(&shm->state.news);
        if (rung == 0)
            shm_bell_sleep(bell);
    }
    shm_place_free(shm);
    return NULL;
}

/* ---- The watch ---- */

static void shm_watched_close(struct shm_watched *watched, unsigned place)
{
    if (watched->descriptors[place] >= 0)
        close(watched->descriptors[place]);
    watched->descriptors[place] = -1;
}

/* Opens the descriptors of the processes that have the log open. False: one could not be opened. */
static bool shm_watched_update(struct log_shm *shm, struct shm_watched *watched)
{
    uint32_t pids[SHM_PROCESSES], joined[SHM_PROCESSES];
    bool is_whole = true;
    bide_log_shm_lock_(shm);
    for (unsigned p = 0; p < SHM_PROCESSES; p++) {
        const struct shm_process *process = &shm->header->processes[p];
        bool is_other = p != shm->place && bide_atomic_load(&process->is_used, relaxed) != 0;
        pids[p] = is_other ? process->pid : 0;
        joined[p] = process->joined;
    }
    bide_log_shm_unlock_(shm);
    for (unsigned p = 0; p < SHM_PROCESSES; p++) {
        if (pids[p] == 0 || watched->joined[p] != joined[p])
            shm_watched_close(watched, p);
        if (pids[p] != 0 && watched->descriptors[p] < 0) {
            watched->descriptors[p] = (int)syscall(SYS_pidfd_open, pids[p], 0);
            watched->joined[p] = joined[p];
            is_whole = is_whole && watched->descriptors[p] >= 0;
        }
    }
    return is_whole;
}

/* Gives up what dead processes had; false: there were none. */
static bool shm_bury_the_dead(struct log_shm *shm)
{
    bide_log_shm_lock_(shm);
    bide_log_shm_sweep_(shm);
    bool any = (shm->rings & ~(uint32_t)BELL_JOINED) != 0;
    bide_log_shm_unlock_(shm);
    return any;
}

/* Waits for the end of one of them, or to look again. */
static void shm_watched_wait(const struct log_shm *shm, struct shm_watched *watched, int timeout)
{
    struct pollfd waits[SHM_PROCESSES + 1] = {{.fd = shm->watch_event, .events = POLLIN}};
    unsigned places[SHM_PROCESSES + 1], count = 1;
    for (unsigned p = 0; p < SHM_PROCESSES; p++) { /* the system allows no more than there may be */
        if (watched->descriptors[p] < 0)
            continue;
        waits[count] = (struct pollfd){.fd = watched->descriptors[p], .events = POLLIN};
        places[count++] = p;
    }
    int ready = poll(waits, count, timeout);
    if (ready < 0 && errno != EINTR)
        (void)poll(NULL, 0, SHM_RETRY); /* 4 */
    if (ready <= 0)
        return;
    for (unsigned i = 1; i < count; i++) {
        if (waits[i].revents != 0)
            shm_watched_close(watched, places[i]);
    }
    uint64_t number;
    if (waits[0].revents != 0)
        (void)!read(shm->watch_event, &number, sizeof number);
}

static void *shm_watch_run(void *argument)
{
    struct log_shm *shm = argument;
    struct shm_watched watched = {0};
    for (unsigned p = 0; p < SHM_PROCESSES; p++)
        watched.descriptors[p] = -1;
    /* acquire: likewise. */
    while (bide_atomic_load(&shm->ends, acquire) == 0) {
        bool is_whole = shm_watched_update(shm, &watched);
        if (!shm_bury_the_dead(shm)) /* 3 */
            shm_watched_wait(shm, &watched, is_whole ? -1 : SHM_RETRY);
    }
    for (unsigned p = 0; p < SHM_PROCESSES; p++)
        shm_watched_close(&watched, p);
    return NULL;
}

/* ---- Both ---- */

/* They block signals, which are handled on the user's threads. */
static int shm_thread_start(pthread_t *thread, void *(*function)(void *), struct log_shm *shm,
                            const char *name)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, function, shm);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        (void)pthread_setname_np(*thread, name);
    return -error;
}

/* `bell` is this process's: its thread forgets the place when it sees `ends`. */
static void shm_bell_end(struct log_shm *shm, bide_atomic(uint32_t) * bell)
{
    /* release: partner is the acquire of the threads. */
    bide_atomic_store(&shm->ends, 1, release);
    bell_ring_always(bell, BELL_JOINED);
    bide_log_shm_wake_(bell);
    pthread_join(shm->bell_thread, NULL);
}

/* True: the system has what the watch needs. */
static int shm_watch_check(void)
{
    int descriptor = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (descriptor < 0)
        return -errno;
    close(descriptor);
    return 0;
}

int bide_log_shm_join_(struct log_shm *shm)
{
    int status = shm_watch_check();
    if (status < 0)
        return status;
    shm->watch_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (shm->watch_event < 0)
        return -errno;
    bide_atomic_init(&shm->has_joined, 0);
    bide_atomic_init(&shm->ends, 0);
    status = shm_thread_start(&shm->bell_thread, shm_bell_run, shm, "bide-log-bell");
    if (status == 0) {
        /* acquire: partner is the release of shm_bell_run. */
        while (bide_atomic_load(&shm->has_joined, acquire) == 0)
            bide_platform.wait(&shm->has_joined, 0, BIDE_FOREVER);
        status = shm->join_status;
        if (status < 0)
            pthread_join(shm->bell_thread, NULL);
    }
    if (status == 0) {
        status = shm_thread_start(&shm->watch_thread, shm_watch_run, shm, "bide-log-watch");
        if (status < 0)
            shm_bell_end(shm, &shm->header->processes[shm->place].bell);
    }
    if (status < 0) {
        close(shm->watch_event);
        shm->watch_event = -1;
    }
    return status;
}

void bide_log_shm_leave_(struct log_shm *shm)
{
    bide_atomic(uint32_t) *bell = &shm->header->processes[shm->place].bell;
    /* release: likewise. */
    bide_atomic_store(&shm->ends, 1, release);
    shm_watch_again(shm);
    pthread_join(shm->watch_thread, NULL);
    shm_bell_end(shm, bell);
    close(shm->watch_event);
    shm->watch_event = -1;
}
