/*
 * The objects of the engine "shm": files in /dev/shm, as of shm_open(3). An object is made without a
 * name, allocated and completed, and then gets its name. So no process sees one that is not whole, and
 * one that is found is the log's or something else, which stays as it is.
 */
#define _GNU_SOURCE
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHM_DIRECTORY "/dev/shm"

static const char shm_magic[8] = {'b', 'i', 'd', 'e', 's', 'h', 'm', '\n'};

/* How the header is laid out here. A process with another one cannot use it. */
static uint32_t shm_header_layout(void)
{
    uint32_t library = 0;
#if defined __GLIBC__
    library = 1;
#endif
    return (uint32_t)sizeof(struct shm_header) | library << 24 | (uint32_t)sizeof(void *) << 25;
}

int bide_log_shm_allocate_(int descriptor, uint64_t offset, uint64_t size)
{
    sigset_t all, before;
    int error;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the system begins anew after each signal */
    do
        error = posix_fallocate(descriptor, (off_t)offset, (off_t)size);
    while (error == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

/* ---- Making one ---- */

static int shm_mutexes_init(struct shm_header *header)
{
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);
    if (error != 0)
        return -error;
    error = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (error == 0)
        error = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (error == 0)
        error = pthread_mutex_init(&header->lock, &attributes);
    for (int i = 0; error == 0 && i < SHM_PROCESSES; i++)
        error = pthread_mutex_init(&header->processes[i].alive, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return -error;
}

static int shm_object_complete(int descriptor, const bide_log *log, const struct shm_layout *layout)
{
    if (fchmod(descriptor, 0600) < 0 || ftruncate(descriptor, (off_t)layout->total) < 0)
        return -errno;
    int status = bide_log_shm_allocate_(descriptor, 0, layout->entries);
    if (status < 0)
        return status;
    struct shm_header *header =
        mmap(NULL, sizeof *header, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (header == MAP_FAILED)
        return -errno;
    status = shm_mutexes_init(header);
    memcpy(header->magic, shm_magic, sizeof shm_magic);
    header->version = SHM_VERSION;
    header->layout = shm_header_layout();
    header->window = log->window;
    header->size = log->size;
    header->bytes = layout->total;
    header->images[0].oldest = 1; /* the rest is zero */
    munmap(header, sizeof *header);
    return status;
}

/* Makes an object of that name. -EEXIST: there is one. */
static int shm_object_make(const bide_log *log, const char *path)
{
    struct shm_layout layout;
    char link[32];
    if (!bide_log_shm_layout_(&layout, log->window, log->size))
        return -ENOMEM;
    int descriptor = open(SHM_DIRECTORY, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return -errno;
    int status = shm_object_complete(descriptor, log, &layout);
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    if (status == 0 && linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0)
        status = -errno;
    close(descriptor);
    return status;
}

/* ---- Opening one ---- */

/* The options that the URL names are those of the log. */
static int shm_options_check(const bide_log *log, const struct shm_header *header, char *problem)
{
    if ((!log->has_window || log->window == header->window) &&
        (!log->has_size || log->size == header->size))
        return 0;
    snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "shm: the log has window=%u and size=%u",
             (unsigned)header->window, (unsigned)header->size);
    return -EEXIST;
}

/* It is a log, and this user's alone. *header has what is before the lock. */
static int shm_object_check(const struct stat *about, int descriptor, struct shm_header *header,
                            struct shm_layout *layout, char *problem)
{
    const char *reason = NULL;
    size_t size = offsetof(struct shm_header, lock);
    int status = -EEXIST;
    if (!S_ISREG(about->st_mode))
        reason = "it is not a file";
    else if (about->st_uid != geteuid() || (about->st_mode & 077) != 0)
        reason = "it is another user's, or other users may open it", status = -EPERM;
    else if (pread(descriptor, header, size, 0) != (ssize_t)size ||
             memcmp(header->magic, shm_magic, sizeof shm_magic) != 0)
        reason = "it is something else";
    else if (header->version != SHM_VERSION || header->layout != shm_header_layout())
        reason = "it is a log of another version, machine or C library";
    else if (header->window < 2 || header->window > BIDE_LOG_WINDOW_MAX ||
             (header->window & (header->window - 1)) != 0 || header->size == 0 ||
             header->size > BIDE_LOG_SIZE_MAX ||
             !bide_log_shm_layout_(layout, header->window, header->size) ||
             layout->total != header->bytes || (uint64_t)about->st_size != layout->total)
        reason = "its sizes are wrong", status = -EBADMSG;
    if (reason == NULL)
        return 0;
    snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "shm: %s", reason);
    return status;
}

/* A descriptor of the object, which is made if it is not there and may be. */
static int shm_object_open(const bide_log *log, const char *path)
{
    for (;;) {
        int descriptor = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (descriptor >= 0 || errno != ENOENT || log->must_exist)
            return descriptor >= 0 ? descriptor : -errno;
        int status = shm_object_make(log, path);
        if (status < 0 && status != -EEXIST)
            return status;
    }
}

static int shm_memory_map(struct log_shm *shm)
{
    void *all = mmap(NULL, (size_t)shm->layout.total, PROT_READ | PROT_WRITE, MAP_SHARED,
                     shm->descriptor, 0);
    if (all == MAP_FAILED)
        return -errno;
    shm->header = all;
    void *messages = mmap(NULL, (size_t)shm->layout.messages_size, PROT_READ, MAP_SHARED,
                          shm->descriptor, (off_t)shm->layout.messages);
    if (messages == MAP_FAILED)
        return -errno;
    shm->messages = messages;
    return 0;
}

int bide_log_shm_map_(struct log_shm *shm, const bide_log *log, const char *name, char *problem)
{
    char path[sizeof SHM_DIRECTORY + SHM_NAME + 1];
    struct shm_header header;
    struct stat about;
    snprintf(path, sizeof path, SHM_DIRECTORY "/%s", name);
    shm->descriptor = shm_object_open(log, path);
    if (shm->descriptor < 0)
        return shm->descriptor;
    if (fstat(shm->descriptor, &about) < 0)
        return -errno;
    shm->device = about.st_dev;
    shm->inode = about.st_ino;
    int status = shm_object_check(&about, shm->descriptor, &header, &shm->layout, problem);
    if (status == 0)
        status = shm_options_check(log, &header, problem);
    if (status == 0)
        status = shm_memory_map(shm);
    if (status < 0)
        return status;
    shm->state.window = header.window;
    shm->size = header.size;
    for (unsigned i = 0; i < SHM_GROUPS; i++) {
        uint8_t *entries =
            (uint8_t *)shm->header + shm->layout.entries + i * shm->layout.entries_size;
        shm->groups[i].entries = (struct log_entry *)(void *)entries;
        shm->groups[i].window = header.window;
        shm->groups[i].mask = header.window - 1;
    }
    return 0;
}

void bide_log_shm_unmap_(struct log_shm *shm)
{
    if (shm->messages != NULL)
        munmap((void *)(uintptr_t)shm->messages, (size_t)shm->layout.messages_size);
    if (shm->header != NULL)
        munmap(shm->header, (size_t)shm->layout.total);
    if (shm->descriptor >= 0)
        close(shm->descriptor);
}
