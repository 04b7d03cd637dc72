#include "picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 65536 };

static void forget(rows *rows)
{
    free(rows->all);
    *rows = (struct rows){NULL, 0, 0};
}

void picture_clear(picture *picture)
{
    picture->runners.count = 0;
    picture->threads.count = 0;
    picture->groups.count = 0;
    picture->shown.count = 0;
    picture->frames.count = 0;
    picture->left_out = false;
}

void picture_free(picture *picture)
{
    forget(&picture->runners);
    forget(&picture->threads);
    forget(&picture->groups);
    forget(&picture->shown);
    forget(&picture->frames);
}

/* A new row, all zero; NULL: there is no room. */
static void *add_row(picture *picture, rows *rows, size_t size)
{
    if (rows->count == rows->room) {
        size_t room = rows->room != 0 ? 2 * rows->room : 16;
        void *larger = room <= MAX_ROWS ? realloc(rows->all, room * size) : NULL;
        if (larger == NULL) {
            picture->left_out = true;
            return NULL;
        }
        rows->all = larger;
        rows->room = room;
    }
    return memset((char *)rows->all + size * rows->count++, 0, size);
}

#define COPY(to, record, name) (void)snprintf((to), sizeof(to), "%s", record_text((record), (name)))

static uint64_t address_of(const record *record, const char *name)
{
    return strtoull(record_text(record, name), NULL, 16);
}

static void add_runner(picture *picture, const record *record, runner_kind kind)
{
    picture_runner *runner = add_row(picture, &picture->runners, sizeof *runner);
    if (runner == NULL)
        return;
    runner->kind = kind;
    runner->number = record_number(record, kind == RUNNER_LOOP ? "loop" : "pool");
    runner->worker = record_number(record, "worker");
    runner->thread = record_number(record, "thread");
    runner->workers = record_number(record, "workers");
    runner->asleep = record_number(record, "asleep");
    runner->busy_ms = record_number(record, "busy_ms");
    runner->in_flight = record_number(record, "in_flight");
    runner->longest_ns = record_number(record, "longest_turn_ns");
    runner->runs = record_number(record, "runs_new");
    runner->sleeps = record_number(record, "sleeps_new");
    runner->steals = record_number(record, "steals_new");
    runner->completions = record_number(record, "completions_new");
    COPY(runner->name, record, "name");
    COPY(runner->back_end, record, "back_end");
    COPY(runner->thread_name, record, "thread_name");
    COPY(runner->state, record, "state");
}

static void add_thread(picture *picture, const record *record)
{
    picture_thread *thread = add_row(picture, &picture->threads, sizeof *thread);
    if (thread == NULL)
        return;
    thread->thread = record_number(record, "thread");
    COPY(thread->runs, record, "runs");
    COPY(thread->runs_file, record, "runs_file");
    thread->runs_line = record_number(record, "runs_line");
    thread->runs_ns = record_number(record, "runs_ns");
    COPY(thread->longest, record, "longest");
    COPY(thread->longest_file, record, "longest_file");
    thread->longest_line = record_number(record, "longest_line");
    thread->longest_ns = record_number(record, "longest_ns");
}

static void add_group(picture *picture, const record *record)
{
    picture_group *group = add_row(picture, &picture->groups, sizeof *group);
    if (group == NULL)
        return;
    group->id = address_of(record, "group");
    group->tasks = record_number(record, "tasks");
    group->line = record_number(record, "line");
    group->longest_ms = record_number(record, "longest_ms");
    COPY(group->name, record, "name");
    COPY(group->at, record, "at");
    COPY(group->context, record, "context");
    COPY(group->waiting_for, record, "waiting_for");
    COPY(group->file, record, "file");
    COPY(group->state, record, "state");
}

static void say_on(picture_task *task, const record *record)
{
    static const char *const relations[][2] = {{"peer", "peer "}, {"at", "at "}, {"file", ""}};
    if (!record_has(record, "descriptor"))
        return;
    int length = snprintf(task->on, sizeof task->on, "descriptor %llu",
                          (unsigned long long)record_number(record, "descriptor"));
    for (int i = 0; i < 3; i++) {
        if (record_has(record, relations[i][0]))
            (void)snprintf(task->on + length, sizeof task->on - (size_t)length, ", %s%s",
                           relations[i][1], record_text(record, relations[i][0]));
    }
}

static void add_task(picture *picture, const record *record)
{
    picture_task *task = add_row(picture, &picture->shown, sizeof *task);
    if (task == NULL)
        return;
    task->address = address_of(record, "task");
    task->group = address_of(record, "group");
    task->stands_ms = record_number(record, "stands_ms");
    task->depth = record_number(record, "depth");
    task->first = picture->frames.count;
    COPY(task->context, record, "context");
    say_on(task, record);
}

/* Of the task before it. */
static void add_frame(picture *picture, const record *record)
{
    if (picture->shown.count == 0)
        return;
    picture_task *task = &((picture_task *)picture->shown.all)[picture->shown.count - 1];
    picture_frame *frame = task->address == address_of(record, "task")
                               ? add_row(picture, &picture->frames, sizeof *frame)
                               : NULL;
    if (frame == NULL)
        return;
    COPY(frame->name, record, "name");
    COPY(frame->file, record, "file");
    frame->line = record_number(record, "line");
    task->frames++;
}

static void set_look(picture *picture, const record *record)
{
    picture->since_ms = record_number(record, "since_ms");
    picture->took_us = record_number(record, "took_us");
    picture->tasks = record_number(record, "tasks");
    picture->waiting = record_number(record, "waiting");
    picture->running = record_number(record, "running");
    picture->not_started = record_number(record, "not_started");
    picture->group_count = record_number(record, "groups");
    picture->ungrouped = record_number(record, "ungrouped");
}

void picture_add(picture *picture, const record *record)
{
    if (record_is(record, "look")) {
        set_look(picture, record);
    } else if (record_is(record, "loop")) {
        add_runner(picture, record, RUNNER_LOOP);
    } else if (record_is(record, "pool")) {
        add_runner(picture, record, RUNNER_POOL);
    } else if (record_is(record, "worker")) {
        add_runner(picture, record, RUNNER_WORKER);
    } else if (record_is(record, "thread")) {
        add_thread(picture, record);
    } else if (record_is(record, "group")) {
        add_group(picture, record);
    } else if (record_is(record, "task")) {
        add_task(picture, record);
    } else if (record_is(record, "frame")) {
        add_frame(picture, record);
    } else if (record_is(record, "end")) {
        picture->left_out |= record_number(record, "left_out") != 0;
    } else if (record_is(record, "hello")) {
        picture->pid = record_number(record, "pid");
        COPY(picture->program, record, "program");
        COPY(picture->library, record, "library");
    } /* others are of a newer monitor */
}

const picture_thread *picture_find_thread(const picture *picture, uint64_t thread)
{
    for (size_t i = 0; i < picture->threads.count; i++) {
        if (picture_thread_of(picture, i)->thread == thread)
            return picture_thread_of(picture, i);
    }
    return NULL;
}
