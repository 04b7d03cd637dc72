/*
 * A watcher: an inotify descriptor, a buffer of its events, and the watches by the kernel's number.
 *
 *     buffer |......|=====|=====|=====|.......|      first event --> first watch of its number
 *                 begin              end     size                     |same
 *                                                    `told`, `at` --> the others
 *
 *     tree   the number's bits, the lowest first, say left or right; a watch may stand anywhere on its
 *            way. So any watch below may take the place of one that leaves.
 *
 * 1. The buffer is filled only when all of it was told. What a read has brought is noted as soon as
 *    the read has ended, or was withdrawn (`finally`): so what has left the kernel is in the buffer.
 * 2. An event stays the first until the next is asked for. So a coroutine that is destroyed before it
 *    was told has it told again (give_back), from the watch that it was for, or the next one if that
 *    is removed. The name stays where it is as long.
 * 3. A number is not used again by the kernel before all others were. So an event whose number has no
 *    watch is of one that is removed, and is passed over. A watch whose file is gone keeps its place.
 * 4. The kernel's watch wants what any of its watches has wanted (IN_MASK_ADD). Each is told of what
 *    it wants itself. It is removed with the last of them.
 */
#define _GNU_SOURCE
#include "bide/file_watch.h"

#include "bide/coroutine.h"

#include "operation.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

enum { SMALLEST = sizeof(struct inotify_event) + NAME_MAX + 1 };

static const struct {
    uint32_t kernel;
    uint32_t ours;
} changes[] = {
    {IN_CREATE, BIDE_FILE_CREATED},        {IN_DELETE, BIDE_FILE_REMOVED},
    {IN_MOVED_FROM, BIDE_FILE_MOVED_FROM}, {IN_MOVED_TO, BIDE_FILE_MOVED_TO},
    {IN_MODIFY, BIDE_FILE_MODIFIED},       {IN_CLOSE_WRITE, BIDE_FILE_WRITTEN},
    {IN_ATTRIB, BIDE_FILE_ATTRIBUTES},     {IN_MOVE_SELF, BIDE_FILE_MOVED},
};

static uint32_t to_kernel(uint32_t ours)
{
    uint32_t kernel = IN_MASK_ADD;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if ((ours & changes[i].ours) != 0)
            kernel |= changes[i].kernel;
    }
    if ((ours & BIDE_FILE_IF_DIRECTORY) != 0)
        kernel |= IN_ONLYDIR;
    if ((ours & BIDE_FILE_NO_FOLLOW) != 0)
        kernel |= IN_DONT_FOLLOW;
    return kernel;
}

static uint32_t from_kernel(uint32_t kernel)
{
    uint32_t ours = 0;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if ((kernel & changes[i].kernel) != 0)
            ours |= changes[i].ours;
    }
    return ours;
}

/* ---- The tree ---- */

/* Where the first watch of that number is, or would be. */
static bide_file_watch **place_of(bide_file_watcher *watcher, int number)
{
    bide_file_watch **place = &watcher->tree;
    for (unsigned bits = (unsigned)number; *place != NULL && (*place)->number != number; bits >>= 1)
        place = &(*place)->children[bits & 1];
    return place;
}

static void enter(bide_file_watcher *watcher, bide_file_watch *watch)
{
    bide_file_watch **place = place_of(watcher, watch->number);
    while (*place != NULL)
        place = &(*place)->same;
    *place = watch;
    watch->watcher = watcher;
    watch->same = NULL;
    watch->children[0] = watch->children[1] = NULL;
}

/* What takes the place of a watch in the tree: another of its file, or a leaf below it, or nothing. */
static bide_file_watch *heir_of(bide_file_watch *watch)
{
    bide_file_watch *heir = watch->same;
    if (heir == NULL) {
        bide_file_watch **place = NULL;
        for (bide_file_watch *at = watch;
             (at->children[0] != NULL ? at->children[0] : at->children[1]) != NULL; at = *place)
            place = &at->children[at->children[0] != NULL ? 0 : 1];
        if (place == NULL)
            return NULL;
        heir = *place;
        *place = NULL;
    }
    heir->children[0] = watch->children[0];
    heir->children[1] = watch->children[1];
    return heir;
}

/* True: it was the last of its file. */
static bool leave(bide_file_watch *watch)
{
    bide_file_watch **first = place_of(watch->watcher, watch->number);
    bide_file_watch **place = first;
    bool was_alone = *first == watch && watch->same == NULL;
    while (*place != watch)
        place = &(*place)->same;
    *place = place == first ? heir_of(watch) : watch->same;
    watch->watcher = NULL;
    return was_alone;
}

/* ---- Watchers and watches ---- */

int bide_file_watcher_init(bide_file_watcher *watcher, void *buffer, size_t size)
{
    memset(watcher, 0, sizeof *watcher);
    bide_descriptor_init_closed(&watcher->inotify);
    if (size < SMALLEST)
        return -EINVAL;
    watcher->buffer = buffer;
    watcher->size = size;
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0)
        return -errno;
    bide_descriptor_init(&watcher->inotify, fd);
    watcher->inotify.bits = IO_ASKED;
    return 0;
}

void bide_file_watcher_destroy(bide_file_watcher *watcher)
{
    bide_close(&watcher->inotify);
    while (watcher->tree != NULL)
        leave(watcher->tree);
    watcher->begin = watcher->end;
    watcher->told = watcher->at = NULL;
}

int bide_file_watch_add(bide_file_watcher *watcher, bide_file_watch *watch, const char *path,
                        uint32_t wanted)
{
    watch->watcher = NULL;
    if (!bide_descriptor_is_open(&watcher->inotify))
        return -EBADF;
    if ((wanted & BIDE_FILE_CHANGES) == 0)
        return -EINVAL;
    watch->number = inotify_add_watch(watcher->inotify.fd, path, to_kernel(wanted));
    if (watch->number < 0)
        return -errno;
    watch->wanted = wanted & BIDE_FILE_CHANGES;
    enter(watcher, watch);
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
    snprintf(path, sizeof path, "/proc/self/fd/%d", opened->fd);
    return bide_file_watch_add(watcher, watch, path, wanted & ~(uint32_t)BIDE_FILE_NO_FOLLOW);
}

void bide_file_watch_remove(bide_file_watch *watch)
{
    bide_file_watcher *watcher = watch->watcher;
    if (watcher == NULL)
        return;
    if (watcher->told == watch)
        watcher->told = watch->same;
    if (watcher->at == watch)
        watcher->at = watch->same;
    if (leave(watch))
        inotify_rm_watch(watcher->inotify.fd, watch->number); /* (or it is gone already) */
}

/* ---- Events ---- */

/* Tells the event to the next watch that wants it. False: there is none. */
static bool tell(bide_file_event_operation *next, const struct inotify_event *event)
{
    bide_file_watcher *watcher = next->watcher;
    uint32_t ours = from_kernel(event->mask);
    next->name = event->len != 0 ? watcher->buffer + watcher->begin + sizeof *event : "";
    next->cookie = event->cookie;
    next->is_directory = (event->mask & IN_ISDIR) != 0;
    while (watcher->at != NULL) {
        bide_file_watch *watch = watcher->at;
        watcher->at = watch->same;
        next->changes = (event->mask & IN_IGNORED) != 0 ? BIDE_FILE_GONE : ours & watch->wanted;
        if (next->changes != 0) {
            watcher->told = next->watch = watch;
            return true;
        }
    }
    return false;
}

/* Takes the next of those in the buffer. False: there is none. */
static bool take(bide_file_event_operation *next)
{
    bide_file_watcher *watcher = next->watcher;
    while (watcher->begin < watcher->end) {
        struct inotify_event event;
        memcpy(&event, watcher->buffer + watcher->begin, sizeof event);
        bool is_new = !watcher->is_inside;
        if (is_new) {
            watcher->is_inside = true;
            watcher->told = NULL;
            watcher->at = event.wd >= 0 ? *place_of(watcher, event.wd) : NULL;
        }
        if (is_new && (event.mask & IN_Q_OVERFLOW) != 0) {
            next->watch = NULL;
            next->name = "";
            next->changes = BIDE_FILE_OVERFLOWED;
            next->cookie = 0;
            next->is_directory = false;
            return true;
        }
        if (tell(next, &event))
            return true;
        watcher->begin += sizeof event + event.len;
        watcher->is_inside = false;
    }
    return false;
}

/* Nobody was told: 2. */
static void give_back(bide_frame *frame)
{
    bide_file_event_operation *next =
        bide_container_of(frame, bide_file_event_operation, task.frame);
    bide_file_watcher *watcher = next->watcher;
    if (next->task.frame.error != 0 || !watcher->is_inside)
        return;
    if (next->changes == BIDE_FILE_OVERFLOWED)
        watcher->is_inside = false;
    else
        watcher->at = watcher->told;
}

static bide_awaiter *begin_reading(bide_file_event_operation *next)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_file_watch_next");
    bide_file_watcher *watcher = next->watcher;
    bide_io_operation *read = &next->read;
    bide_io_operation_init(read, &ops, BIDE_IO_READ, &watcher->inotify);
    read->arguments.bytes.data = watcher->buffer;
    read->arguments.bytes.size = watcher->size;
    read->arguments.bytes.offset = -1;
    next->is_reading = true;
    return &read->awaiter;
}

/* The read has ended, or was withdrawn: 1. */
static void end_reading(bide_file_event_operation *next)
{
    next->is_reading = false;
    next->watcher->begin = 0;
    next->watcher->end = next->read.count;
}

static const bide_coroutine_type event_type = {.name = "task", .release = give_back};

bide_coroutine_of(event_type, next_event_body)
{
    bide_begin(next_event_body, bide_file_event_operation * self);
    if (io_calls(io_of_context(bide_this_context())) != NULL)
        bide_return(-EOPNOTSUPP);
    while (!take(self)) {
        bide_await_status(self->status, begin_reading(self));
        end_reading(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    bide_finally();
    if (self->is_reading)
        end_reading(self);
    bide_end();
}

bide_awaiter *bide_file_watch_next(bide_file_event_operation *next, bide_file_watcher *watcher)
{
    next->watcher = watcher;
    next->is_reading = false;
    next->watch = NULL;
    next->name = "";
    next->changes = 0;
    return bide_frame_init(&next->task.frame, &next_event_body);
}
