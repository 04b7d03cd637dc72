/* The engine "shm": what is done under the lock, and messages. shm.h says why it is correct. */
#define _GNU_SOURCE
#include "shm.h"

#include "../coroutine/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The owners of a process's consumers have its place, and 1, above these bits. */
enum { SHM_OWNER_BITS = 48 };

static struct log_shm *log_shm_of_state(struct log_state *state)
{
    return bide_container_of(state, struct log_shm, state);
}

static struct log_shm *log_shm_of(const bide_log *log)
{
    return bide_container_of(log, struct log_shm_handle, log)->shm;
}

static uint64_t log_shm_align(uint64_t size)
{
    return (size + SHM_ALIGNMENT - 1) / SHM_ALIGNMENT * SHM_ALIGNMENT;
}

bool bide_log_shm_layout_(struct shm_layout *layout, uint32_t window, uint32_t size)
{
    layout->messages = log_shm_align(sizeof(struct shm_header));
    layout->messages_size = log_shm_align(window * (sizeof(struct log_slot) + (uint64_t)size));
    layout->entries = layout->messages + layout->messages_size;
    layout->entries_size = log_shm_align(window * (uint64_t)sizeof(struct log_entry));
    layout->total = layout->entries + SHM_GROUPS * layout->entries_size;
    return layout->total <= SIZE_MAX / 4; /* the messages are mapped twice */
}

/* ---- The image ---- */

static void log_shm_load_group(struct log_shm *shm, unsigned i)
{
    const struct shm_group *from = &shm->image.groups[i];
    struct bide_log_group_ *group = &shm->groups[i];
    memcpy(group->name, shm->header->names[i], LOG_GROUP_NAME - 1);
    if (from->kind != SHM_GROUP_NAMED)
        group->name[0] = '\0';
    group->acknowledged = from->acknowledged;
    group->next = from->next;
    group->rejected = from->rejected;
    group->members = 0;
    for (unsigned p = 0; p < SHM_PROCESSES; p++)
        group->members += bide_atomic_load(&shm->header->processes[p].members[i], relaxed);
    shm->others_members[i] =
        group->members -
        (shm->place == SHM_NO_PLACE
             ? 0
             : bide_atomic_load(&shm->header->processes[shm->place].members[i], relaxed));
    group->following = shm->state.groups;
    shm->state.groups = group;
}

static void log_shm_load(struct log_shm *shm)
{
    struct log_state *state = &shm->state;
    shm->image = shm->header->images[bide_atomic_load(&shm->header->which, relaxed) & 1];
    state->tail = shm->image.tail;
    state->oldest = shm->image.oldest;
    state->last_time = shm->image.last_time;
    shm->others_claimed = 0;
    state->claimed = 0;
    for (unsigned p = 0; p < SHM_PROCESSES; p++) {
        uint32_t claimed = bide_atomic_load(&shm->header->processes[p].claimed, relaxed);
        state->claimed += claimed;
        shm->others_claimed += p == shm->place ? 0 : claimed;
    }
    state->groups = NULL;
    for (unsigned i = SHM_GROUPS; i-- != 0;) {
        if (shm->image.groups[i].kind != SHM_GROUP_FREE)
            log_shm_load_group(shm, i);
    }
}

static void log_shm_store(struct log_shm *shm)
{
    struct shm_header *header = shm->header;
    const struct log_state *state = &shm->state;
    struct shm_image image = shm->image;
    uint32_t which = bide_atomic_load(&header->which, relaxed);
    image.tail = state->tail;
    image.oldest = state->oldest;
    image.last_time = state->last_time;
    for (unsigned i = 0; i < SHM_GROUPS; i++) {
        image.groups[i].acknowledged = shm->groups[i].acknowledged;
        image.groups[i].next = shm->groups[i].next;
        image.groups[i].rejected = shm->groups[i].rejected;
    }
    if (memcmp(&image, &header->images[which & 1], sizeof image) != 0) {
        header->images[~which & 1] = image;
        /* release: the image is whole before, also if this thread is killed: 2. */
        bide_atomic_store(&header->which, which + 1, release);
    }
    if (shm->place == SHM_NO_PLACE)
        return;
    struct shm_process *self = &header->processes[shm->place];
    /* release, here and below: each is stored after the image, 5. */
    bide_atomic_store(&self->claimed, state->claimed - shm->others_claimed, release);
    for (const struct bide_log_group_ *group = state->groups; group != NULL;
         group = group->following) {
        size_t i = (size_t)(group - shm->groups);
        bide_atomic_store(&self->members[i], group->members - shm->others_members[i], release);
    }
}

/* ---- Dead processes ---- */

/* The holder of the lock was killed: 3 and 4. */
static void log_shm_recover(struct log_shm *shm)
{
    struct log_state *state = &shm->state;
    for (struct bide_log_group_ *group = state->groups; group != NULL; group = group->following)
        bide_log_group_recount_(group);
    uint32_t ahead = bide_atomic_load(&shm->header->written, relaxed) - (uint32_t)state->tail;
    uint64_t end = state->tail + ahead;
    if (ahead != 0 && ahead <= state->window && end >= state->window &&
        state->oldest < end - state->window + 1)
        state->oldest = end - state->window + 1;
    log_shm_store(shm);
    shm->rings |= BELL_ANY_RUNG;
}

/* The process in that place is dead: 6. */
static void log_shm_bury(struct log_shm *shm, unsigned place)
{
    struct shm_process *dead = &shm->header->processes[place];
    struct bide_log_group_ **at = &shm->state.groups;
    while (*at != NULL) {
        struct bide_log_group_ *group = *at;
        size_t i = (size_t)(group - shm->groups);
        if (shm->image.groups[i].kind == SHM_GROUP_NAMED)
            bide_log_group_withdraw_(group, ~UINT64_C(0) << SHM_OWNER_BITS,
                                     (uint64_t)(place + 1) << SHM_OWNER_BITS);
        if (shm->image.groups[i].kind == SHM_GROUP_OWN + place) {
            shm->image.groups[i].kind = SHM_GROUP_FREE;
            *at = group->following;
        } else {
            at = &group->following;
        }
    }
    log_shm_store(shm);
    bide_atomic_store(&dead->claimed, 0, release);
    for (unsigned i = 0; i < SHM_GROUPS; i++)
        bide_atomic_store(&dead->members[i], 0, release);
    bide_atomic_store(&dead->is_used, 0, release); /* release: after the rest, 6 */
    log_shm_load(shm);
    shm->rings |= BELL_ANY_RUNG;
}

void bide_log_shm_sweep_(struct log_shm *shm)
{
    for (unsigned p = 0; p < SHM_PROCESSES; p++) {
        struct shm_process *process = &shm->header->processes[p];
        if (p == shm->place || bide_atomic_load(&process->is_used, relaxed) == 0)
            continue;
        int error = pthread_mutex_trylock(&process->alive);
        if (error != 0 && error != EOWNERDEAD)
            continue;
        log_shm_bury(shm, p);
        if (error == EOWNERDEAD)
            (void)pthread_mutex_consistent(&process->alive);
        pthread_mutex_unlock(&process->alive);
    }
}

/* ---- The lock ---- */

void bide_log_shm_lock_(struct log_shm *shm)
{
    int error = pthread_mutex_lock(&shm->header->lock);
    if (error != 0 && error != EOWNERDEAD)
        abort(); /* the memory is no log any more: what follows would run without the lock */
    log_shm_load(shm);
    if (error == EOWNERDEAD) {
        log_shm_recover(shm);
        (void)pthread_mutex_consistent(&shm->header->lock);
    }
}

static void log_shm_notify(struct log_shm *shm, unsigned kinds)
{
    for (unsigned p = 0; p < SHM_PROCESSES; p++) {
        bide_atomic(uint32_t) *bell = &shm->header->processes[p].bell;
        if (p != shm->place && bell_ring(bell, kinds))
            bide_log_shm_wake_(bell);
    }
}

/* Rings the bells of all processes, of this one too, also if nobody has asked. */
static void log_shm_ring_all(struct log_shm *shm, uint32_t bits)
{
    for (unsigned p = 0; p < SHM_PROCESSES; p++) {
        struct shm_process *process = &shm->header->processes[p];
        if (bide_atomic_load(&process->is_used, relaxed) == 0)
            continue;
        bell_ring_always(&process->bell, bits);
        bide_log_shm_wake_(&process->bell);
    }
}

void bide_log_shm_unlock_(struct log_shm *shm)
{
    uint32_t rings = shm->rings;
    shm->rings = 0;
    log_shm_store(shm);
    pthread_mutex_unlock(&shm->header->lock);
    if (rings != 0)
        log_shm_ring_all(shm, rings);
}

static void log_shm_state_lock(struct log_state *state)
{
    bide_log_shm_lock_(log_shm_of_state(state));
}

static void log_shm_state_unlock(struct log_state *state)
{
    bide_log_shm_unlock_(log_shm_of_state(state));
}

static void log_shm_state_await(struct log_state *state, unsigned kinds)
{
    struct log_shm *shm = log_shm_of_state(state);
    bell_ask(&shm->header->processes[shm->place].bell, kinds);
}

static void log_shm_state_notify(struct log_state *state, unsigned kinds)
{
    log_shm_notify(log_shm_of_state(state), kinds);
}

/* ---- Groups ---- */

static int log_shm_add_group(struct log_state *state, const char *name,
                             struct bide_log_group_ **added)
{
    struct log_shm *shm = log_shm_of_state(state);
    unsigned i = 0;
    while (i < SHM_GROUPS && shm->image.groups[i].kind != SHM_GROUP_FREE)
        i++;
    if (i == SHM_GROUPS)
        return -ENOSPC;
    struct bide_log_group_ *group = &shm->groups[i];
    int status =
        bide_log_shm_allocate_(shm->descriptor, shm->layout.entries + i * shm->layout.entries_size,
                               shm->layout.entries_size);
    if (status < 0)
        return status;
    memset(shm->header->names[i], 0, LOG_GROUP_NAME);
    memcpy(shm->header->names[i], name, strlen(name));
    memcpy(group->name, shm->header->names[i], LOG_GROUP_NAME);
    shm->image.groups[i].kind = *name != '\0' ? SHM_GROUP_NAMED : SHM_GROUP_OWN + shm->place;
    shm->others_members[i] = 0;
    group->members = 0;
    group->rejected = 0;
    *added = group;
    return 0;
}

static void log_shm_remove_group(struct log_state *state, struct bide_log_group_ *group)
{
    struct log_shm *shm = log_shm_of_state(state);
    size_t i = (size_t)(group - shm->groups);
    shm->image.groups[i].kind = SHM_GROUP_FREE;
    bide_atomic_store(&shm->header->processes[shm->place].members[i], 0, relaxed);
}

const struct log_sharing bide_log_shm_sharing_ = {
    .lock = log_shm_state_lock,
    .unlock = log_shm_state_unlock,
    .await = log_shm_state_await,
    .notify = log_shm_state_notify,
    .add_group = log_shm_add_group,
    .remove_group = log_shm_remove_group,
};

/* ---- Messages ---- */

static size_t log_shm_bytes_at(const struct log_shm *shm, uint64_t number)
{
    return shm->state.window * sizeof(struct log_slot) +
           (size_t)(number & (shm->state.window - 1)) * shm->size;
}

static const struct log_slot *log_shm_slot(const struct log_shm *shm, uint64_t number)
{
    return (const struct log_slot *)(const void *)shm->messages +
           (number & (shm->state.window - 1));
}

static void log_shm_append(bide_log *log, bide_log_message *messages, uint32_t count)
{
    struct log_shm *shm = log_shm_of(log);
    struct log_state *state = &shm->state;
    uint8_t *writable = (uint8_t *)shm->header + shm->layout.messages;
    uint64_t now = bide_log_time_(&state->last_time);
    bide_atomic_store(&shm->header->written, (uint32_t)state->tail + count, relaxed);
    bide_atomic_compiler_fence(); /* it is stored before the slots are changed: 4 */
    for (uint32_t i = 0; i < count; i++) {
        uint64_t number = state->tail + 1 + i;
        struct log_slot *slot =
            (struct log_slot *)(void *)writable + (number & (state->window - 1));
        bide_log_slot_fill_(slot, writable + log_shm_bytes_at(shm, number), &messages[i], now);
        messages[i].published = (bide_log_position){.low_ = number};
    }
    state->tail += count;
}

static int log_shm_message(bide_log *log, bide_log_message *message, char *problem)
{
    (void)problem;
    struct log_shm *shm = log_shm_of(log);
    uint64_t number = message->position.low_;
    bide_log_slot_read_(log_shm_slot(shm, number), shm->messages + log_shm_bytes_at(shm, number),
                        shm->size, message);
    return 0;
}

static uint64_t log_shm_time_of(bide_log *log, uint64_t number)
{
    return log_shm_slot(log_shm_of(log), number)->time;
}

/* ---- Open and detach ---- */

static bide_atomic(uint32_t) log_shms_lock; /* held while one is opened or closed */
static struct log_shm *log_shms;

/*
 * Across a fork this thread has the lock, so the child finds it free. The child has no threads that
 * hold the parent's places: it opens logs anew, and leaves the parent's handles alone.
 */
static void log_shms_take(void)
{
    lock_take(&log_shms_lock);
}

static void log_shms_release(void)
{
    lock_free(&log_shms_lock);
}

static void log_shms_forget(void)
{
    log_shms = NULL;
    log_shms_release();
}

__attribute__((constructor)) static void log_shms_at_fork(void)
{
    (void)pthread_atfork(log_shms_take, log_shms_release, log_shms_forget);
}

static void log_shm_free(struct log_shm *shm)
{
    bide_log_shm_unmap_(shm);
    shm->state.groups = NULL; /* they are this struct's */
    bide_log_state_destroy_(&shm->state);
    free(shm);
}

/* The log of that object, which is open already, or `shm`, which joins it. Under the list's lock. */
static int log_shm_enter(struct log_shm *shm, struct log_shm **found)
{
    struct log_shm *open = log_shms;
    while (open != NULL && (open->device != shm->device || open->inode != shm->inode))
        open = open->following;
    if (open != NULL) {
        log_shm_free(shm);
        *found = open;
        return 0;
    }
    int status = bide_log_shm_join_(shm);
    if (status < 0) {
        log_shm_free(shm);
        return status;
    }
    shm->following = log_shms;
    log_shms = shm;
    *found = shm;
    return 0;
}

static int log_shm_find(const bide_log *log, const char *name, char *problem,
                        struct log_shm **found)
{
    struct log_shm *shm = calloc(1, sizeof *shm);
    if (shm == NULL)
        return -ENOMEM;
    bide_log_state_init_(&shm->state, log->window, true);
    shm->state.sharing = &bide_log_shm_sharing_;
    shm->place = SHM_NO_PLACE;
    shm->descriptor = shm->watch_event = -1;
    int status = bide_log_shm_map_(shm, log, name, problem);
    if (status < 0) {
        log_shm_free(shm);
        return status;
    }
    return log_shm_enter(shm, found);
}

static int log_shm_open(bide_log *log, const char *name, char *problem)
{
    struct log_shm *shm = NULL;
    size_t length = strncmp(name, "///", 3) == 0 ? strlen(name + 3) : 0;
    if (length - 1 >= SHM_NAME || strchr(name + 3, '/') != NULL || name[3] == '.' ||
        log->window < 2 || (log->window & (log->window - 1)) != 0) {
        snprintf(problem, BIDE_LOG_PROBLEM_TEXT,
                 "shm:%.60s: not shm:///NAME, or the window is not a power of two", name);
        return -EINVAL;
    }
    log_shms_take();
    int status = log_shm_find(log, name + 3, problem, &shm);
    if (status == 0)
        shm->handles++;
    log_shms_release();
    if (status < 0) {
        if (problem[0] == '\0')
            snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "shm:%.80s: %s", name,
                     status == -ENOENT && log->must_exist ? "there is no log" : strerror(-status));
        return status;
    }
    bide_container_of(log, struct log_shm_handle, log)->shm = shm;
    log->state = &shm->state;
    log->window = shm->state.window;
    log->size = shm->size;
    return 0;
}

static void log_shm_detach(bide_log *log)
{
    struct log_shm *shm = log_shm_of(log), **at = &log_shms;
    log_shms_take();
    if (--shm->handles == 0) {
        while (*at != shm)
            at = &(*at)->following;
        *at = shm->following;
        bide_log_shm_leave_(shm);
        log_shm_free(shm);
    }
    log_shms_release();
}

const struct log_engine bide_log_shm_engine_ = {
    .scheme = "shm",
    .levels = 1u << BIDE_LOG_SENT | 1u << BIDE_LOG_STORED,
    .best = BIDE_LOG_STORED,
    .handle_size = sizeof(struct log_shm_handle),
    .has_create = true,
    .open_blocks = true,
    .open = log_shm_open,
    .detach = log_shm_detach,
    .append = log_shm_append,
    .load = log_shm_message,
    .time_of = log_shm_time_of,
};
