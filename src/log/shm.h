/*
 * The engine "shm": a log in memory that processes of one machine share, as an object in /dev/shm.
 * Floor: log.
 *
 *     header:  what it is, lock, image 0, image 1, processes, names of groups
 *     slots:   one for each message of the window (state.h)
 *     bytes:   `size` for each slot
 *     entries: of each group, one for each message of the window (group.h)
 *
 * Each process has a struct log_shm for the log. Its log_state and groups are a copy of the image in
 * use, taken with the lock and stored before it is released. The memory has no pointers, except
 * inside a mutex that is held.
 *
 * 1. The lock is a robust mutex. All fields of the header are under it, but for bells and `alive`.
 * 2. A section that changes the image writes the other one, and then stores `which`. So a process that
 *    is killed has made the change of the image or has not, and nothing between.
 * 3. Entries are changed in place, and `state` is stored last. A section either delivers messages or
 *    finishes and rejects them, of its own consumers. If it is killed before it stores the image, each
 *    entry has its old state or its new one, and both are allowed: deliveries to a consumer that is
 *    gone, messages that it has rejected or acknowledged. Deliveries beyond `next` do not count. What
 *    the image counts of the entries is counted anew (bide_log_group_recount_).
 * 4. A publish writes the slots after `tail`, in which there may be messages that all groups have
 *    done. It stores `written` first. If it is killed before it stores the image, nothing of it was
 *    published, and the messages that it may have overwritten are no longer kept: `oldest`.
 * 5. `claimed` and `members` of a process are its own, one word each. They are given up with it.
 * 6. A process is alive while its thread holds `alive`, a robust mutex. A process that takes it from a dead
 *    one, under the lock, rejects that process's deliveries and removes its consumers' own groups,
 *    stores the image, and then frees its place. If it is killed meanwhile, the next does so again.
 * 7. Slots that a consumer reads are not overwritten, as in ring.c: its message is delivered and not
 *    done, and a publish takes no slot of such a message.
 * 8. A section is not long: a publish copies its messages, and the others touch up to `window` entries.
 *    One that begins a group also has the system allocate the entries, unless an earlier group has had
 *    them; signals are blocked meanwhile. A process that is stopped in a section stops the others.
 */
#ifndef BIDE_SRC_LOG_SHM_H
#define BIDE_SRC_LOG_SHM_H

#include "bell.h"
#include "state.h"

#include <pthread.h>
#include <sys/types.h>

enum {
    SHM_GROUPS = 16,
    SHM_PROCESSES = 32,
    SHM_VERSION = 1,
    SHM_NAME = 128,         /* the most bytes of a name */
    SHM_ALIGNMENT = 1 << 16 /* of the parts: no machine has larger pages */
};

/* No process is in this place. */
#define SHM_NO_PLACE UINT32_MAX

enum { SHM_GROUP_FREE, SHM_GROUP_NAMED, SHM_GROUP_OWN /* and the place of its process */ };

struct shm_group {
    uint64_t acknowledged;
    uint64_t next;
    uint32_t rejected;
    uint32_t kind;
};

struct shm_image {
    uint64_t tail;
    uint64_t oldest;
    uint64_t last_time;
    struct shm_group groups[SHM_GROUPS];
};

struct shm_process {
    pthread_mutex_t alive;
    bide_atomic(uint32_t) bell;
    bide_atomic(uint32_t) is_used;
    uint32_t joined; /* another number for each process in this place */
    uint32_t pid;
    bide_atomic(uint32_t) claimed;
    bide_atomic(uint32_t) members[SHM_GROUPS];
};

struct shm_header {
    char magic[8];
    uint32_t version;
    uint32_t layout; /* of this machine and C library */
    uint32_t window;
    uint32_t size;
    uint64_t bytes; /* of all */
    pthread_mutex_t lock;
    bide_atomic(uint32_t) which;   /* of the images is in use: its lowest bit */
    bide_atomic(uint32_t) written; /* slots were, up to this number: its lower half; 4 */
    struct shm_image images[2];
    struct shm_process processes[SHM_PROCESSES];
    char names[SHM_GROUPS][LOG_GROUP_NAME];
};

/* Where the parts are. */
struct shm_layout {
    uint64_t messages; /* slots, and then bytes */
    uint64_t messages_size;
    uint64_t entries;
    uint64_t entries_size; /* of one group, and what is between two */
    uint64_t total;
};

/* Of one log, by all handles of this process. */
struct log_shm {
    struct log_state state; /* under the header's lock, but for what is notified */
    struct log_shm *following;
    dev_t device;
    ino_t inode;
    uint32_t handles;
    uint32_t size;
    int descriptor;
    struct shm_layout layout;
    struct shm_header *header;
    const uint8_t *messages; /* the same memory, which cannot be written here */
    uint32_t place;          /* of this process */

    /* under the header's lock */
    struct shm_image image; /* as it was loaded */
    struct bide_log_group_ groups[SHM_GROUPS];
    uint32_t others_claimed;
    uint32_t others_members[SHM_GROUPS];
    uint32_t rings; /* the bits that all bells are rung with, after the lock */

    /* shm_threads.c */
    pthread_t bell_thread, watch_thread;
    int watch_event;
    bide_atomic(uint32_t) has_joined;
    bide_atomic(uint32_t) ends;
    int join_status;
};

struct log_shm_handle {
    bide_log log;
    struct log_shm *shm;
};

/* ---- shm.c ---- */

extern const struct log_sharing bide_log_shm_sharing_;

/* False: so many bytes are not possible here. */
bool bide_log_shm_layout_(struct shm_layout *layout, uint32_t window, uint32_t size);

/* Takes and releases the lock. */
void bide_log_shm_lock_(struct log_shm *shm);
void bide_log_shm_unlock_(struct log_shm *shm);

/* Gives up what dead processes had; under the lock. */
void bide_log_shm_sweep_(struct log_shm *shm);

/* ---- shm_open.c ---- */

/* Allocates a part of the object, so that using it does not fail later. Blocks signals meanwhile. */
int bide_log_shm_allocate_(int descriptor, uint64_t offset, uint64_t size);

/* Maps the object of that name, which is made if it is not there. */
int bide_log_shm_map_(struct log_shm *shm, const bide_log *log, const char *name, char *problem);
void bide_log_shm_unmap_(struct log_shm *shm);

/* ---- shm_threads.c ---- */

/* Takes a place for the process, and starts its threads; or gives them up. */
int bide_log_shm_join_(struct log_shm *shm);
void bide_log_shm_leave_(struct log_shm *shm);

/* Wakes the thread that sleeps on the bell. */
void bide_log_shm_wake_(bide_atomic(uint32_t) * bell);

#endif
