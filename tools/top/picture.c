/*
 * Fills a picture from the records of a monitor. Records of unknown kinds are ignored.
 */
#include "picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 65536 };

static void rows_free(rows *rows)
{
    free(rows->all);
    *rows = (struct rows){NULL, 0, 0};
}

void picture_clear(picture *picture)
{
    picture->executors.count = 0;
    picture->threads.count = 0;
    picture->groups.count = 0;
    picture->shown.count = 0;
    picture->frames.count = 0;
    picture->left_out = false;
}

void picture_free(picture *picture)
{
    rows_free(&picture->executors);
    rows_free(&picture->threads);
    rows_free(&picture->groups);
    rows_free(&picture->shown);
    rows_free(&picture->frames);
}

/* Returns a new row, zeroed; NULL: the limit is reached. */
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

static void add_executor(picture *picture, const record *record, executor_kind kind)
{
    picture_executor *executor = add_row(picture, &picture->executors, sizeof *executor);
    if (executor == NULL)
        return;
    executor->kind = kind;
    executor->number = record_number(record, kind == EXECUTOR_LOOP ? "loop" : "pool");
    executor->worker = record_number(record, "worker");
    executor->thread = record_number(record, "thread");
    executor->workers = record_number(record, "workers");
    executor->asleep = record_number(record, "asleep");
    executor->busy_ms = record_number(record, "busy_ms");
    executor->in_flight = record_number(record, "in_flight");
    executor->longest_ns = record_number(record, "longest_turn_ns");
    executor->runs = record_number(record, "runs_new");
    executor->sleeps = record_number(record, "sleeps_new");
    executor->steals = record_number(record, "steals_new");
    executor->completions = record_number(record, "completions_new");
    COPY(executor->name, record, "name");
    COPY(executor->back_end, record, "back_end");
    COPY(executor->thread_name, record, "thread_name");
    COPY(executor->state, record, "state");
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

static picture_turns turns_of(const record *record)
{
    return (picture_turns){record_number(record, "runs"), record_number(record, "wakes"),
                           record_number(record, "busy_ns")};
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
    group->turns = turns_of(record);
    COPY(group->name, record, "name");
    COPY(group->at, record, "at");
    COPY(group->context, record, "context");
    COPY(group->waiting_for, record, "waiting_for");
    COPY(group->file, record, "file");
    COPY(group->state, record, "state");
}

static void describe_descriptor(picture_task *task, const record *record)
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
    task->turns = turns_of(record);
    task->depth = record_number(record, "depth");
    task->first = picture->frames.count;
    COPY(task->context, record, "context");
    describe_descriptor(task, record);
}

/* A frame record belongs to the task record before it. */
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
    /* (of the first look, it would be the time since turns are watched: some microseconds) */
    picture->turns_us = picture->since_ms != 0 ? record_number(record, "turns_us") : 0;
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
        add_executor(picture, record, EXECUTOR_LOOP);
    } else if (record_is(record, "pool")) {
        add_executor(picture, record, EXECUTOR_POOL);
    } else if (record_is(record, "worker")) {
        add_executor(picture, record, EXECUTOR_WORKER);
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
    } /* other records come from a newer monitor */
}

const picture_thread *picture_find_thread(const picture *picture, uint64_t thread)
{
    for (size_t i = 0; i < picture->threads.count; i++) {
        if (picture_thread_of(picture, i)->thread == thread)
            return picture_thread_of(picture, i);
    }
    return NULL;
}
