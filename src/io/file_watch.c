/*
 * Watchers of files: an inotify descriptor, a buffer of its events, and the watches.
 *
 *     buffer |......|=====|=====|=====|.......|      first event --> first watch of its number
 *                 begin              end     size                     |same
 *                                                    `reported`, `at` --> the other watches of the number
 *
 *     tree   of watches by the kernel's number. The bits of the number, lowest first, select left or
 *            right. A watch may be anywhere on the path of its number. So any watch below may replace
 *            one that is removed.
 *
 * A watcher and its watches belong to one loop's thread, and one bide_file_watch_next is in progress at
 * a time.
 *
 * 1. The buffer is filled only after all its events were delivered. The count of a read is stored as
 *    soon as the read has ended or was withdrawn (`finally`). So events that left the kernel are in
 *    the buffer.
 * 2. An event stays the first until the next one is requested. If a coroutine is destroyed before it
 *    resumes with the event, the event is delivered again (file_watch_release), beginning with the
 *    watch that it was for. If that watch is removed, it begins with the next one. The name stays in
 *    place for the same time.
 * 3. The kernel reuses a number only after all others were used. So an event whose number has no
 *    watch belongs to a removed watch and is ignored. A watch keeps its number when its file is gone.
 * 4. The kernel's watch reports all changes that any watch of the number wants (IN_MASK_ADD). Each
 *    watch gets only the changes that it wants. The kernel's watch is removed with the last of them.
 */
#define _GNU_SOURCE
#include "file_watch.h"

#include "bide/coroutine.h"

#include "operation.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { FILE_WATCH_BUFFER_MIN = sizeof(struct inotify_event) + NAME_MAX + 1 };

static const struct {
    uint32_t kernel;
    uint32_t ours;
} file_watch_changes[] = {
    {IN_CREATE, BIDE_FILE_CREATED},        {IN_DELETE, BIDE_FILE_REMOVED},
    {IN_MOVED_FROM, BIDE_FILE_MOVED_FROM}, {IN_MOVED_TO, BIDE_FILE_MOVED_TO},
    {IN_MODIFY, BIDE_FILE_MODIFIED},       {IN_CLOSE_WRITE, BIDE_FILE_WRITTEN},
    {IN_ATTRIB, BIDE_FILE_ATTRIBUTES},     {IN_MOVE_SELF, BIDE_FILE_MOVED},
};

static uint32_t file_watch_to_kernel(uint32_t ours)
{
    uint32_t kernel = IN_MASK_ADD;
    for (size_t i = 0; i < sizeof file_watch_changes / sizeof *file_watch_changes; i++) {
        if ((ours & file_watch_changes[i].ours) != 0)
            kernel |= file_watch_changes[i].kernel;
    }
    if ((ours & BIDE_FILE_IF_DIRECTORY) != 0)
        kernel |= IN_ONLYDIR;
    if ((ours & BIDE_FILE_NO_FOLLOW) != 0)
        kernel |= IN_DONT_FOLLOW;
    return kernel;
}

static uint32_t file_watch_from_kernel(uint32_t kernel)
{
    uint32_t ours = 0;
    for (size_t i = 0; i < sizeof file_watch_changes / sizeof *file_watch_changes; i++) {
        if ((kernel & file_watch_changes[i].kernel) != 0)
            ours |= file_watch_changes[i].ours;
    }
    return ours;
}

/* ---- The tree ---- */

/* The link to the first watch of that number, or the empty link where it belongs. */
static bide_file_watch **file_watch_place_of(bide_file_watcher *watcher, int number)
{
    bide_file_watch **place = &watcher->tree;
    for (unsigned bits = (unsigned)number; *place != NULL && (*place)->number != number; bits >>= 1)
        place = &(*place)->children[bits & 1];
    return place;
}

static void file_watch_insert(bide_file_watcher *watcher, bide_file_watch *watch)
{
    bide_file_watch **place = file_watch_place_of(watcher, watch->number);
    while (*place != NULL)
        place = &(*place)->same;
    bide_assert(watch->watcher == NULL);
    *place = watch;
    watch->watcher = watcher;
    watch->same = NULL;
    watch->children[0] = watch->children[1] = NULL;
}

/* The successor of a watch in the tree: the next of its number, else a leaf below it, else NULL. */
static bide_file_watch *file_watch_successor_of(bide_file_watch *watch)
{
    bide_file_watch *successor = watch->same;
    if (successor == NULL) {
        bide_file_watch **place = NULL;
        for (bide_file_watch *at = watch;
             (at->children[0] != NULL ? at->children[0] : at->children[1]) != NULL; at = *place)
            place = &at->children[at->children[0] != NULL ? 0 : 1];
        if (place == NULL)
            return NULL;
        successor = *place;
        *place = NULL;
    }
    bide_assert(successor != watch && successor->children[0] == NULL &&
                successor->children[1] == NULL);
    successor->children[0] = watch->children[0];
    successor->children[1] = watch->children[1];
    return successor;
}

/* Removes a watch. True: it was the last of its number. */
static bool file_watch_unlink(bide_file_watch *watch)
{
    bide_file_watch **first = file_watch_place_of(watch->watcher, watch->number);
    bide_file_watch **place = first;
    bool was_alone = *first == watch && watch->same == NULL;
    while (*place != watch) {
        bide_assert(*place != NULL);
        place = &(*place)->same;
    }
    *place = place == first ? file_watch_successor_of(watch) : watch->same;
    watch->watcher = NULL;
    return was_alone;
}

/* ---- Watchers and watches ---- */

int bide_file_watcher_init(bide_file_watcher *watcher, void *buffer, size_t size)
{
    memset(watcher, 0, sizeof *watcher);
    bide_descriptor_init_closed(&watcher->inotify);
    if (size < FILE_WATCH_BUFFER_MIN)
        return -EINVAL;
    watcher->buffer = buffer;
    watcher->size = size;
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0)
        return -errno;
    bide_descriptor_init(&watcher->inotify, fd);
    watcher->inotify.bits = IO_PROBED;
    return 0;
}

void bide_file_watcher_destroy(bide_file_watcher *watcher)
{
    bide_close(&watcher->inotify);
    while (watcher->tree != NULL)
        file_watch_unlink(watcher->tree);
    watcher->begin = watcher->end;
    watcher->reported = watcher->at = NULL;
}

int bide_file_watch_add(bide_file_watcher *watcher, bide_file_watch *watch, const char *path,
                        uint32_t wanted)
{
    watch->watcher = NULL;
    if (!bide_descriptor_is_open(&watcher->inotify))
        return -EBADF;
    if ((wanted & BIDE_FILE_CHANGES) == 0)
        return -EINVAL;
    watch->number = inotify_add_watch(bide_descriptor_fd(&watcher->inotify), path,
                                      file_watch_to_kernel(wanted));
    if (watch->number < 0)
        return -errno;
    watch->wanted = wanted & BIDE_FILE_CHANGES;
    file_watch_insert(watcher, watch);
    return 0;
}

int bide_file_watch_add_opened(bide_file_watcher *watcher, bide_file_watch *watch,
                               const bide_descriptor *opened, uint32_t wanted)
{
    char path[40];
    watch->watcher = NULL;
    if (!bide_descriptor_is_open(opened))
        return -EBADF;
    if (io_calls(io_of(opened)) != NULL)
        return -EOPNOTSUPP;
    snprintf(path, sizeof path, "/proc/self/fd/%d", bide_descriptor_fd(opened));
    return bide_file_watch_add(watcher, watch, path, wanted & ~(uint32_t)BIDE_FILE_NO_FOLLOW);
}

void bide_file_watch_remove(bide_file_watch *watch)
{
    bide_file_watcher *watcher = watch->watcher;
    if (watcher == NULL)
        return;
    if (watcher->reported == watch)
        watcher->reported = watch->same;
    if (watcher->at == watch)
        watcher->at = watch->same;
    if (file_watch_unlink(watch))
        inotify_rm_watch(bide_descriptor_fd(&watcher->inotify),
                         watch->number); /* fails if the file is gone */
}

/* ---- Events ---- */

/* Delivers the first event to the next watch that wants it. False: there is none. */
static bool file_watch_deliver(bide_file_event_operation *next, const struct inotify_event *event)
{
    bide_file_watcher *watcher = next->watcher;
    uint32_t ours = file_watch_from_kernel(event->mask);
    next->name = event->len != 0 ? watcher->buffer + watcher->begin + sizeof *event : "";
    next->cookie = event->cookie;
    next->is_directory = (event->mask & IN_ISDIR) != 0;
    while (watcher->at != NULL) {
        bide_file_watch *watch = watcher->at;
        bide_assert(watch->watcher == watcher && watch->number == event->wd);
        watcher->at = watch->same;
        next->changes = (event->mask & IN_IGNORED) != 0 ? BIDE_FILE_GONE : ours & watch->wanted;
        if (next->changes != 0) {
            watcher->reported = next->watch = watch;
            return true;
        }
    }
    return false;
}

/* Delivers the next event of the buffer. False: there is none. */
static bool file_watch_next_event(bide_file_event_operation *next)
{
    bide_file_watcher *watcher = next->watcher;
    while (watcher->begin < watcher->end) {
        struct inotify_event event;
        memcpy(&event, watcher->buffer + watcher->begin, sizeof event);
        bide_assert(sizeof event + event.len <= watcher->end - watcher->begin);
        bool is_new = !watcher->is_inside;
        if (is_new) {
            watcher->is_inside = true;
            watcher->reported = NULL;
            watcher->at = event.wd >= 0 ? *file_watch_place_of(watcher, event.wd) : NULL;
        }
        if (is_new && (event.mask & IN_Q_OVERFLOW) != 0) {
            next->watch = NULL;
            next->name = "";
            next->changes = BIDE_FILE_OVERFLOWED;
            next->cookie = 0;
            next->is_directory = false;
            return true;
        }
        if (file_watch_deliver(next, &event))
            return true;
        watcher->begin += sizeof event + event.len;
        watcher->is_inside = false;
    }
    return false;
}

/* True if one of these watches of a number gets the event. */
static bool file_watch_is_wanted(const bide_file_watch *watch, const struct inotify_event *event)
{
    uint32_t ours = file_watch_from_kernel(event->mask);
    while (watch != NULL && (event->mask & IN_IGNORED) == 0 && (ours & watch->wanted) == 0)
        watch = watch->same;
    return watch != NULL;
}

/* True if an event of the buffer is still to be delivered. */
static bool file_watch_has_buffered(bide_file_watcher *watcher)
{
    bool is_inside = watcher->is_inside;
    struct inotify_event event;
    for (size_t at = watcher->begin; at < watcher->end; at += sizeof event + event.len) {
        memcpy(&event, watcher->buffer + at, sizeof event);
        if (!is_inside && (event.mask & IN_Q_OVERFLOW) != 0)
            return true;
        if (file_watch_is_wanted(is_inside      ? watcher->at
                                 : event.wd < 0 ? NULL
                                                : *file_watch_place_of(watcher, event.wd),
                                 &event))
            return true;
        is_inside = false;
    }
    return false;
}

bool bide_file_watch_is_pending_(bide_file_watcher *watcher)
{
    while (!file_watch_has_buffered(watcher)) {
        ssize_t count = read(bide_descriptor_fd(&watcher->inotify), watcher->buffer, watcher->size);
        watcher->is_inside = false;
        watcher->reported = watcher->at = NULL;
        watcher->begin = 0;
        watcher->end = count > 0 ? (size_t)count : 0;
        if (count <= 0)
            return false;
    }
    return true;
}

/* The coroutine is destroyed before it resumes with the event: 2. */
static void file_watch_release(bide_frame *frame)
{
    bide_file_event_operation *next =
        bide_container_of(frame, bide_file_event_operation, task.frame);
    bide_file_watcher *watcher = next->watcher;
    bide_assert(!next->is_reading);
    if (next->task.frame.error != 0 || !watcher->is_inside)
        return;
    if (next->changes == BIDE_FILE_OVERFLOWED)
        watcher->is_inside = false;
    else
        watcher->at = watcher->reported;
}

static bide_awaiter *file_watch_start_read(bide_file_event_operation *next)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_file_watch_next");
    bide_file_watcher *watcher = next->watcher;
    bide_io_operation *read = &next->read;
    bide_assert(watcher->begin == watcher->end && !watcher->is_inside); /* 1 */
    bide_io_operation_init(read, &ops, BIDE_IO_READ, &watcher->inotify);
    read->arguments.bytes.data = watcher->buffer;
    read->arguments.bytes.size = watcher->size;
    read->arguments.bytes.offset = -1;
    next->is_reading = true;
    return &read->awaiter;
}

/* The read has ended, or was withdrawn: 1. */
static void file_watch_finish_read(bide_file_event_operation *next)
{
    bide_assert(next->is_reading && next->read.count <= next->watcher->size);
    next->is_reading = false;
    next->watcher->begin = 0;
    next->watcher->end = next->read.count;
}

static const bide_coroutine_type file_watch_event_type = {.name = "task",
                                                          .release = file_watch_release};

bide_coroutine_of(file_watch_event_type, file_watch_next_body)
{
    bide_begin(file_watch_next_body, bide_file_event_operation * self);
    if (io_calls(io_of_context(bide_this_context())) != NULL)
        bide_return(-EOPNOTSUPP);
    while (!file_watch_next_event(self)) {
        bide_await_status(self->status, file_watch_start_read(self));
        file_watch_finish_read(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    bide_finally();
    if (self->is_reading)
        file_watch_finish_read(self);
    bide_end();
}

bide_awaiter *bide_file_watch_next(bide_file_event_operation *next, bide_file_watcher *watcher)
{
    next->watcher = watcher;
    next->is_reading = false;
    next->watch = NULL;
    next->name = "";
    next->changes = 0;
    return bide_frame_init(&next->task.frame, &file_watch_next_body);
}
