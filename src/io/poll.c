/*
 * The poll() back end of a loop: operations by readiness (readiness.c), for systems without io_uring and
 * epoll. It needs nothing beyond POSIX.
 *
 *     an entry of the array
 *         added when an operation has to wait --> polled as long as one waits --> dropped before a poll,
 *         when there is no operation
 *
 * An entry whose operations wait for something else, a buffer or a thread, stays, and poll passes it over:
 * they wait for the descriptor when they have been tried again, and nothing adds the entry then.
 *
 * The array is dense: the entry of a descriptor that leaves is replaced by the last one. The first entry
 * is the descriptor by which other threads wake the loop. A table by number finds an entry.
 *
 * Threads: all of it runs on the loop's thread.
 *
 * 1. poll() reports states, and each poll asks for what operations wait for at that moment
 *    (poll_update). So a report that is not taken is made again by the next poll, and a direction that
 *    WAITS needs no report while nothing waits in it.
 * 2. Coroutines run between the turns in which the reports of a poll are taken (loop.h). They may
 *    remove entries. The last entry, which then moves, may lose its report: 1.
 * 3. A descriptor may be ready for ever in a way that no operation takes, such as a socket whose error
 *    queue has an entry. Polling it would never sleep. So a descriptor whose reports were of no use
 *    POLL_FRUITLESS_MAX times in a row rests: it is not polled for POLL_REST. A descriptor that
 *    waits for a connection does not rest: its report was of use to another process, or loop, which
 *    was faster to accept.
 * 4. poll() fails if the array is longer than RLIMIT_NOFILE, which may be lowered at any time. Then it is
 *    polled in parts, and the loop looks every millisecond.
 * 5. If the system cannot poll, for lack of memory say, then after a millisecond all that is asked
 *    for counts as ready: the calls do not wait, so that each finds out for itself.
 * 6. A system may have ppoll() and refuse it. A loop finds that out when it is created, and its
 *    limits say so. A filter of system calls may begin to refuse it later: then the loop does the
 *    same, and its limits do not say so.
 */
#define _GNU_SOURCE
#include "readiness.h"

#include "../coroutine/observe.h"
#include "../system/descriptors.h"
#include "buffer_pool.h"
#include "offload.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Whether there is ppoll, which POSIX has since 2024. */
#ifndef BIDE_HAS_PPOLL
#if defined __linux__ || defined __FreeBSD__ || defined __OpenBSD__ || defined __NetBSD__
#define BIDE_HAS_PPOLL 1
#else
#define BIDE_HAS_PPOLL 0
#endif
#endif

enum {
    POLL_FIRST_SIZE = 16,
    POLL_FRUITLESS_MAX = 8,
    POLL_REST = 4000000,          /* nanoseconds */
    POLL_LONGEST_SECONDS = 86400, /* of one sleep */
};

typedef struct poll_entry {
    bide_descriptor *descriptor; /* NULL: of the first, which wakes the loop */
    uint64_t rests_until;        /* 0: it does not rest */
    unsigned fruitless;          /* reports of no use, in a row */
} poll_entry;

struct loop_poll {
    struct pollfd *fds;
    poll_entry *entries; /* one for each of fds */
    unsigned count, size;
    unsigned next;  /* of the reports of a poll: the first entry that was not looked at */
    unsigned ready; /* entries with a report, from there on */
    /* The entry of a descriptor, by its number; 0: none. If two structs have one number, of one of them. */
    unsigned *index_of;
    unsigned numbers; /* the length of index_of */
    bool has_ppoll;   /* 6 */
};

/* ---- The array ---- */

static int poll_grow_array(struct loop_poll *state)
{
    unsigned size = state->size != 0 ? 2 * state->size : POLL_FIRST_SIZE;
    struct pollfd *fds = realloc(state->fds, size * sizeof *fds);
    if (fds == NULL)
        return -ENOMEM;
    state->fds = fds;
    poll_entry *entries = realloc(state->entries, size * sizeof *entries);
    if (entries == NULL)
        return -ENOMEM;
    state->entries = entries;
    state->size = size;
    return 0;
}

static int poll_grow_index(struct loop_poll *state, unsigned number)
{
    unsigned size = state->numbers != 0 ? state->numbers : 64;
    while (size <= number)
        size *= 2;
    unsigned *index_of = realloc(state->index_of, size * sizeof *index_of);
    if (index_of == NULL)
        return -ENOMEM;
    memset(index_of + state->numbers, 0, (size - state->numbers) * sizeof *index_of);
    state->index_of = index_of;
    state->numbers = size;
    return 0;
}

static void poll_append(struct loop_poll *state, int fd, bide_descriptor *descriptor)
{
    bide_assert(state->count < state->size);
    state->fds[state->count] = (struct pollfd){.fd = fd, .events = POLLIN};
    state->entries[state->count] = (poll_entry){.descriptor = descriptor};
    state->count++;
}

static int poll_add(bide_loop *loop, bide_descriptor *descriptor)
{
    struct loop_poll *state = loop->poll;
    int fd = bide_descriptor_fd(descriptor), error = 0;
    if (state->count == state->size)
        error = poll_grow_array(state);
    if (error == 0 && (unsigned)fd >= state->numbers)
        error = poll_grow_index(state, (unsigned)fd);
    if (error != 0)
        return error;
    state->index_of[fd] = state->count;
    poll_append(state, fd, descriptor);
    return 0;
}

static unsigned poll_find(const struct loop_poll *state, const bide_descriptor *descriptor)
{
    unsigned found = state->index_of[bide_descriptor_fd(descriptor)];
    if (found == 0 || state->entries[found].descriptor != descriptor) {
        /* two structs have its number */
        for (found = 1; state->entries[found].descriptor != descriptor;)
            found++;
    }
    bide_assert(found < state->count);
    return found;
}

static void poll_remove_entry(struct loop_poll *state, unsigned index)
{
    unsigned last = --state->count;
    int fd = bide_descriptor_fd(state->entries[index].descriptor);
    if (state->index_of[fd] == index)
        state->index_of[fd] = 0;
    if (index >= state->next && state->fds[index].revents != 0 && state->ready != 0)
        state->ready--;
    if (index == last)
        return;
    fd = bide_descriptor_fd(state->entries[last].descriptor);
    if (state->index_of[fd] == last)
        state->index_of[fd] = index;
    state->fds[index] = state->fds[last];
    state->entries[index] = state->entries[last];
    if (index < state->next && last >= state->next && state->fds[index].revents != 0) { /* 2 */
        state->fds[index].revents = 0;
        if (state->ready != 0)
            state->ready--;
    }
}

static void poll_remove(bide_loop *loop, bide_descriptor *descriptor)
{
    poll_remove_entry(loop->poll, poll_find(loop->poll, descriptor));
}

/* ---- What is asked for ---- */

/* The events that an operation waits for, beside errors and hang-ups, which poll always reports. */
static short poll_events_of(const bide_io_operation *operation)
{
    if (operation->code == BIDE_IO_POLL)
        return (short)operation->arguments.poll.wanted;
    if (operation->code == BIDE_IO_RECV || operation->code == BIDE_IO_RECVMSG) {
        /* (these take no other bytes, which may be there) */
        if ((operation->flags & MSG_OOB) != 0)
            return POLLPRI;
#ifdef MSG_ERRQUEUE
        if ((operation->flags & MSG_ERRQUEUE) != 0)
            return 0;
#endif
    }
    return bide_io_row_of_(operation)->direction == BIDE_IO_OUTPUT ? POLLOUT : POLLIN;
}

static bool poll_has_to_ask_for(const bide_io_operation *operation)
{
    return !bide_loop_is_offloaded_(operation) && !io_waits_for_buffer(operation);
}

typedef enum poll_use {
    POLL_UNUSED,    /* there is no operation */
    POLL_ELSEWHERE, /* its operations wait for something else */
    POLL_IS_WAITED_FOR
} poll_use;

/* The use of a descriptor by its operations, and in *events the events that they wait for. */
static poll_use poll_use_of(const bide_descriptor *descriptor, short *events)
{
    poll_use use = POLL_UNUSED;
    *events = 0;
    for (int direction = 0; direction < BIDE_IO_LINES; direction++) {
        for (const bide_io_operation *at = descriptor->lines[direction].first; at != NULL;
             at = direction == BIDE_IO_FREE ? at->next : NULL) {
            if (poll_has_to_ask_for(at)) {
                *events = (short)(*events | poll_events_of(at));
                use = POLL_IS_WAITED_FOR;
            } else if (use == POLL_UNUSED) {
                use = POLL_ELSEWHERE;
            }
        }
    }
    return use;
}

/* Makes the array what the next poll has to ask for. Returns when the first descriptor has rested: 3. */
static uint64_t poll_update(struct loop_poll *state)
{
    uint64_t now = 0, first = BIDE_FOREVER;
    state->next = state->ready = 0;
    for (unsigned i = 1; i < state->count;) {
        poll_entry *entry = &state->entries[i];
        bide_descriptor *descriptor = entry->descriptor;
        struct pollfd *polled = &state->fds[i];
        poll_use use = poll_use_of(descriptor, &polled->events);
        if (use == POLL_UNUSED) {
            poll_remove_entry(state, i);
            descriptor->bits &= ~(uint32_t)IO_REGISTERED;
            continue;
        }
        i++;
        if (use == POLL_ELSEWHERE) {
            polled->fd = -1;
            entry->rests_until = 0;
            entry->fruitless = 0;
            continue;
        }
        polled->fd = bide_descriptor_fd(descriptor);
        if (entry->rests_until == 0)
            continue;
        if (now == 0)
            now = bide_platform.now();
        if (now >= entry->rests_until) {
            entry->rests_until = 0;
            continue;
        }
        polled->fd = -1;
        if (entry->rests_until < first)
            first = entry->rests_until;
    }
    return first;
}

/* ---- Polling ---- */

/* Where nothing can be polled: after a millisecond all count as ready, and their calls do not wait. */
static int poll_take_all_for_ready(struct loop_poll *state, uint64_t deadline)
{
    static const struct timespec millisecond = {0, 1000000};
    int ready = 0;
    if (deadline != 0)
        nanosleep(&millisecond, NULL);
    for (unsigned i = 0; i < state->count; i++) {
        state->fds[i].revents = state->fds[i].fd >= 0 ? state->fds[i].events : 0;
        ready += state->fds[i].revents != 0;
    }
    return ready;
}

/* As poll_until, if the array is longer than the system lets it be: 4. */
static int poll_in_parts(struct loop_poll *state, uint64_t deadline)
{
    for (;;) {
        struct rlimit limit;
        unsigned part = state->count;
        int ready = 0;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < part)
            part = (unsigned)limit.rlim_cur;
        for (unsigned at = 0; part != 0 && at < state->count; at += part) {
            unsigned rest = state->count - at;
            int found = poll(state->fds + at, rest < part ? rest : part, 0);
            if (found < 0)
                return ready != 0 ? ready : -1;
            ready += found;
        }
        if (part == 0)
            return poll_take_all_for_ready(state, deadline);
        if (ready != 0 || deadline == 0 ||
            (deadline != BIDE_FOREVER && bide_platform.now() >= deadline))
            return ready;
        if (poll(NULL, 0, 1) < 0)
            return -1;
    }
}

/* One poll, until `deadline`; 0: does not wait. Returns as poll. */
static int poll_once(struct loop_poll *state, uint64_t deadline)
{
    if (deadline == 0)
        return poll(state->fds, state->count, 0);
    if (deadline == BIDE_FOREVER)
        return poll(state->fds, state->count, -1);
    uint64_t now = bide_platform.now();
    uint64_t span = deadline > now ? deadline - now : 0;
    const uint64_t longest = (uint64_t)POLL_LONGEST_SECONDS * 1000000000;
    if (span > longest)
        span = longest;
#if BIDE_HAS_PPOLL
    if (state->has_ppoll) {
        const struct timespec left = {.tv_sec = (time_t)(span / 1000000000),
                                      .tv_nsec = (long)(span % 1000000000)};
        int ready = ppoll(state->fds, state->count, &left, NULL);
        if (ready >= 0 || (errno != ENOSYS && errno != EPERM))
            return ready;
        state->has_ppoll = false;
    }
#endif
    return poll(state->fds, state->count, (int)((span + 999999) / 1000000));
}

/* Asks for what is ready, until `deadline`. */
static void poll_until(bide_loop *loop, uint64_t deadline, uint64_t first_has_rested)
{
    struct loop_poll *state = loop->poll;
    if (first_has_rested < deadline)
        deadline = first_has_rested;
    int ready = poll_once(state, deadline);
    if (ready < 0 && errno == EINVAL)
        ready = poll_in_parts(state, deadline);
    if (BIDE_UNLIKELY(ready < 0 && errno != EINTR))
        ready = poll_take_all_for_ready(state, deadline); /* 5 */
    state->ready = ready > 0 ? (unsigned)ready : 0;
}

/* ---- Taking reports ---- */

/* A number that changes when an operation on the descriptor ends, or one in its lines moves bytes. */
static uint64_t poll_progress(const bide_loop *loop, const bide_descriptor *descriptor)
{
    uint64_t progress = loop->counts.completions;
    for (int direction = BIDE_IO_INPUT; direction <= BIDE_IO_OUTPUT; direction++) {
        const bide_io_operation *first = descriptor->lines[direction].first;
        if (first != NULL)
            progress += first->count;
    }
    return progress;
}

static bool poll_waits_for_connection(const bide_descriptor *descriptor)
{
    const bide_io_operation *first = descriptor->lines[BIDE_IO_INPUT].first;
    return first != NULL && first->code == BIDE_IO_ACCEPT;
}

static void poll_take_report(bide_loop *loop, unsigned index)
{
    struct loop_poll *state = loop->poll;
    bide_descriptor *descriptor = state->entries[index].descriptor;
    short events = state->fds[index].revents;
    state->fds[index].revents = 0;
    if (descriptor == NULL) {
        loop->counts.wakes++;
        bide_descriptor_lower_(loop->run.fd);
        return;
    }
    bide_assert((descriptor->bits & IO_REGISTERED) != 0);
    uint64_t before = poll_progress(loop, descriptor);
    if ((events & ~POLLOUT) != 0)
        readiness_direction_is_ready(loop, descriptor, BIDE_IO_INPUT);
    if ((events & (POLLOUT | POLLHUP | POLLERR | POLLNVAL)) != 0)
        readiness_direction_is_ready(loop, descriptor, BIDE_IO_OUTPUT);
    readiness_direction_is_ready(loop, descriptor, BIDE_IO_FREE);
    poll_entry *entry = &state->entries[index];
    if (index >= state->count || entry->descriptor != descriptor)
        return; /* (the end of a connect has closed it) */
    if (poll_progress(loop, descriptor) != before || poll_waits_for_connection(descriptor))
        entry->fruitless = 0;
    else if (entry->fruitless < POLL_FRUITLESS_MAX)
        entry->fruitless++;
    if (entry->fruitless == POLL_FRUITLESS_MAX)
        entry->rests_until = bide_platform.now() + POLL_REST; /* 3 */
}

/* Takes as many reports as a turn may. */
static void poll_take_reports(bide_loop *loop)
{
    struct loop_poll *state = loop->poll;
    for (int taken = 0; taken < LOOP_TURN && state->ready != 0 && state->next < state->count;) {
        unsigned index = state->next++;
        if (state->fds[index].revents == 0)
            continue;
        state->ready--;
        poll_take_report(loop, index);
        taken++;
    }
    if (state->next >= state->count)
        state->ready = 0;
}

/* ---- For the run loop ---- */

static void poll_take(bide_run_loop *run)
{
    poll_take_reports(bide_container_of(run, bide_loop, run));
}

static void poll_look(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    if (loop->poll->ready == 0) {
        if (loop->io.in_flight == 0)
            return;
        loop->counts.polls++;
        uint64_t first_has_rested = poll_update(loop->poll);
        poll_until(loop, 0, first_has_rested);
    }
    poll_take_reports(loop);
}

static bool poll_sleep(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    if (loop->poll->ready != 0 || !bide_run_loop_park_(run))
        return false;
    loop->counts.sleeps++;
    loop->counts.polls++;
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_SLEEP));
    uint64_t first_has_rested = poll_update(loop->poll);
    loop->is_asleep = true;
    poll_until(loop, bide_loop_wake_time_(run->deadline), first_has_rested);
    loop->is_asleep = false;
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_WAKE));
    bide_run_loop_unpark_(run);
    return true;
}

/* ---- The back end ---- */

static void poll_free_state(struct loop_poll *state)
{
    free(state->index_of);
    free(state->entries);
    free(state->fds);
    free(state);
}

/* Whether there is ppoll, and the system lets the program call it: 6. */
static bool poll_can_ppoll(void)
{
#if BIDE_HAS_PPOLL
    static const struct timespec none = {0, 0};
    return ppoll(NULL, 0, &none, NULL) == 0 || errno == EINTR;
#else
    return false;
#endif
}

static int poll_create_state(bide_loop *loop, unsigned entries)
{
    struct loop_poll *state = calloc(1, sizeof *state);
    (void)entries;
    if (state == NULL)
        return -ENOMEM;
    int error = poll_grow_array(state);
    int fd = error == 0 ? bide_run_loop_fd(&loop->run) : error;
    if (fd < 0) {
        poll_free_state(state);
        return fd;
    }
    poll_append(state, fd, NULL);
    loop->poll = state;
    state->has_ppoll = poll_can_ppoll();
    loop->back_end.limits = BIDE_LOOP_LINEAR | (state->has_ppoll ? 0 : BIDE_LOOP_MILLISECONDS);
    return 0;
}

static void poll_destroy_state(bide_loop *loop, bool is_own)
{
    if (is_own)
        bide_run_loop_close_fd(&loop->run);
    else
        bide_descriptor_close_(loop->run.fd);
    poll_free_state(loop->poll);
}

static const bide_io_table poll_operations = {
    .name = "poll",
    .start = bide_readiness_start_,
    .cancel = bide_readiness_cancel_,
    .discard = bide_readiness_discard_,
    .release = bide_readiness_release_,
};

static const struct bide_poller_ poll_poller = {
    .add = poll_add,
    .remove = poll_remove,
};

static const struct bide_run_loop_events_ poll_events = {
    .look = poll_look,
    .sleep = poll_sleep,
    .take = poll_take,
};

const bide_back_end_ bide_poll_back_end_ = {
    .name = "poll",
    .kind = BIDE_LOOP_POLL,
    .operations = &poll_operations,
    .events = &poll_events,
    .create = poll_create_state,
    .destroy = poll_destroy_state,
    .continue_line = bide_readiness_continue_line_,
    .poller = &poll_poller,
};
