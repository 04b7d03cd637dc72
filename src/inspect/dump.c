/* The live tasks as text. The argument is in walk.c. */
#define _GNU_SOURCE
#include "bide/dump.h"

#include "walk.h"

#include <errno.h>

/*
 * Locks that tasks wait for. Their holders are looked for in a second walk: a holder is the coroutine in whose
 * struct the waiter lies that has locked it; the smallest such struct, if one is a member of another.
 */
typedef struct dump_lock {
    walk_lock lock;
    size_t waiters;
    const void *task; /* of its holder; NULL: it was not found */
    walk_level holder;
} dump_lock;

enum { LOCKS_MAX = 16 };

typedef struct dump {
    FILE *file;
    const bide_scheduler *scheduler; /* only its tasks are written; NULL: all */
    size_t tasks;
    size_t locks_count;
    size_t locks_left_out; /* tasks that wait for others than these */
    dump_lock locks[LOCKS_MAX];
} dump;

static void dump_note_lock(dump *dump, const walk_lock *lock)
{
    size_t i = 0;
    while (i < dump->locks_count && dump->locks[i].lock.lock != lock->lock)
        i++;
    if (i == LOCKS_MAX) {
        dump->locks_left_out++;
        return;
    }
    if (i == dump->locks_count)
        dump->locks[dump->locks_count++] = (dump_lock){.task = NULL};
    dump->locks[i].lock = *lock; /* the latest holder */
    dump->locks[i].waiters++;
}

static bool dump_find_holders(void *argument, const walk_task *task)
{
    dump *dump = argument;
    for (size_t i = 0; i < dump->locks_count; i++) {
        dump_lock *lock = &dump->locks[i];
        for (size_t j = 0; j < bide_walk_levels_(task); j++) {
            const walk_level *level = bide_walk_level_of_(task, j);
            if (!bide_frame_has_(level->frame, level->size, lock->lock.holder) ||
                (lock->task != NULL && lock->holder.size <= level->size))
                continue;
            lock->task = task->address;
            lock->holder = *level;
        }
    }
    return true;
}

static void dump_print_locks(const dump *dump)
{
    for (size_t i = 0; i < dump->locks_count; i++) {
        const dump_lock *lock = &dump->locks[i];
        fprintf(dump->file, "lock %p, for which %zu wait%s: ", lock->lock.lock, lock->waiters,
                lock->waiters == 1 ? "s" : "");
        if (lock->lock.holder == NULL)
            fputs("free\n", dump->file);
        else if (lock->task == NULL)
            fputs("held\n", dump->file);
        else
            fprintf(dump->file, "held by task %p, %s at %s:%u\n", lock->task,
                    lock->holder.name.bytes, lock->holder.file.bytes, lock->holder.line);
    }
    if (dump->locks_left_out != 0)
        fprintf(dump->file, "%zu wait for other locks\n", dump->locks_left_out);
}

static void dump_print_wait(FILE *file, const walk_task *task, const bide_described_ *described,
                            const walk_lock *lock)
{
    fprintf(file, "waiting for %s", task->waiting_for.bytes);
    if (described->descriptor >= 0)
        fprintf(file, " on descriptor %d%s", described->descriptor,
                described->is_in_memory ? " in memory" : "");
    if (described->descriptor >= 0 && described->other[0] != '\0')
        fprintf(file, ", %s%s%s", described->relation, described->relation[0] != '\0' ? " " : "",
                described->other);
    if (lock->lock != NULL)
        fprintf(file, " of lock %p", lock->lock);
    fputc('\n', file);
}

static void dump_print_state(FILE *file, const walk_task *task, const bide_described_ *described,
                             const walk_lock *lock, const char *running)
{
    if (task->doing == WALK_WAITING)
        dump_print_wait(file, task, described, lock);
    else
        fprintf(file, "%s\n", task->doing == WALK_RUNNING ? running : "not started");
}

static void dump_print_level(FILE *file, const walk_task *task, size_t number,
                             const bide_described_ *described, const walk_lock *lock)
{
    const walk_level *level = bide_walk_level_of_(task, number);
    fprintf(file, "  #%zu %s at %s:%u", number, level->name.bytes, level->file.bytes, level->line);
    if (number == 0) {
        fputc(' ', file);
        dump_print_state(file, task, described, lock, "(running)");
    } else {
        fputc('\n', file);
    }
}

static bool dump_print_task(void *argument, const walk_task *task)
{
    dump *dump = argument;
    FILE *file = dump->file;
    bide_described_ described;
    bool named = task->context.bytes[0] != '\0';
    size_t shown = bide_walk_levels_(task);
    walk_lock lock = {NULL, NULL};
    if (dump->scheduler != NULL && task->scheduler != dump->scheduler)
        return true;
    bide_walk_describe_(task, &described);
    if (bide_walk_lock_of_(task, &lock))
        dump_note_lock(dump, &lock);
    else
        lock.lock = NULL;
    fprintf(file, "task %p %s%s%s: ", task->address, task->name.bytes, named ? " in " : "",
            named ? task->context.bytes : "");
    dump_print_state(file, task, &described, &lock, "running");
    for (size_t i = 0; i < shown; i++)
        dump_print_level(file, task, i, &described, &lock);
    if (task->depth > shown)
        fprintf(file, "  ... and %zu more\n", task->depth - shown);
    dump->tasks++;
    return true;
}

int bide_dump_scheduler(FILE *file, const bide_scheduler *scheduler)
{
    dump dump = {.file = file, .scheduler = scheduler};
    int error = bide_walk_tasks_(dump_print_task, &dump);
    if (error != 0)
        return error;
    if (dump.locks_count != 0 && bide_walk_tasks_(dump_find_holders, &dump) == 0)
        dump_print_locks(&dump);
    fprintf(file, "%zu task%s\n", dump.tasks, dump.tasks == 1 ? "" : "s");
    return fflush(file) != 0 || ferror(file) ? -EIO : 0;
}

int bide_dump(FILE *file)
{
    return bide_dump_scheduler(file, NULL);
}
