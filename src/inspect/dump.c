/* The live tasks as text. The argument is in walk.c. */
#define _GNU_SOURCE
#include "bide/dump.h"

#include "walk.h"

#include <errno.h>

typedef struct dump {
    FILE *file;
    size_t tasks;
} dump;

static void dump_print_wait(FILE *file, const walk_task *task, const bide_described_ *described)
{
    fprintf(file, "waiting for %s", task->waiting_for.bytes);
    if (described->descriptor >= 0)
        fprintf(file, " on descriptor %d%s", described->descriptor,
                described->is_in_memory ? " in memory" : "");
    if (described->descriptor >= 0 && described->other[0] != '\0')
        fprintf(file, ", %s%s%s", described->relation, described->relation[0] != '\0' ? " " : "",
                described->other);
    fputc('\n', file);
}

static void dump_print_state(FILE *file, const walk_task *task, const bide_described_ *described,
                             const char *running)
{
    if (task->doing == WALK_WAITING)
        dump_print_wait(file, task, described);
    else
        fprintf(file, "%s\n", task->doing == WALK_RUNNING ? running : "not started");
}

static void dump_print_level(FILE *file, const walk_task *task, size_t number,
                             const bide_described_ *described)
{
    const walk_level *level = bide_walk_level_of_(task, number);
    fprintf(file, "  #%zu %s at %s:%u", number, level->name.bytes, level->file.bytes, level->line);
    if (number == 0) {
        fputc(' ', file);
        dump_print_state(file, task, described, "(running)");
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
    bide_walk_describe_(task, &described);
    fprintf(file, "task %p %s%s%s: ", task->address, task->name.bytes, named ? " in " : "",
            named ? task->context.bytes : "");
    dump_print_state(file, task, &described, "running");
    for (size_t i = 0; i < shown; i++)
        dump_print_level(file, task, i, &described);
    if (task->depth > shown)
        fprintf(file, "  ... and %zu more\n", task->depth - shown);
    dump->tasks++;
    return true;
}

int bide_dump(FILE *file)
{
    dump dump = {file, 0};
    int error = bide_walk_tasks_(dump_print_task, &dump);
    if (error != 0)
        return error;
    fprintf(file, "%zu task%s\n", dump.tasks, dump.tasks == 1 ? "" : "s");
    return fflush(file) != 0 || ferror(file) ? -EIO : 0;
}
