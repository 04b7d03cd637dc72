/*
 * An age says since when each look has found a task at the same place: with the same coroutine
 * innermost, at the same line, and the same operation. It may have gone on and come back in between,
 * so it is how long nothing was seen of its moving, and no more. It is kept under a number that is
 * mixed of all that, and two tasks with the same number, which are one in 2^64, have one age.
 */
#include "crowd.h"

#include <stdlib.h>
#include <string.h>

enum { AGES_LEAST = 1024, AGES_MOST = 1 << 18 };

struct crowd_age {
    uint64_t key; /* 0: free */
    uint64_t since;
};

/* ---- Keys: FNV-1a ---- */

static uint64_t mix(uint64_t key, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        key = (key ^ at[i]) * UINT64_C(0x100000001b3);
    return key;
}

static uint64_t mix_text(uint64_t key, const walk_text *text)
{
    return mix(key, text->bytes, strlen(text->bytes) + 1);
}

#define NOTHING UINT64_C(0xcbf29ce484222325)

static uint64_t key_of_group(const walk_task *task)
{
    uint64_t key = mix_text(NOTHING, &task->name);
    key = mix(key, &task->doing, sizeof task->doing);
    if (task->depth != 0) {
        const walk_level *level = walk_level_of(task, 0);
        key = mix_text(key, &level->name);
        key = mix_text(key, &level->file);
        key = mix(key, &level->line, sizeof level->line);
    }
    if (task->doing == WALK_WAITING)
        key = mix_text(key, &task->waiting_for);
    return key != 0 && key != UINT64_MAX ? key : 1;
}

/* Words at a time: of each of a crowd. */
static uint64_t mix_word(uint64_t key, uint64_t word)
{
    key = (key ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 29;
}

static uint64_t key_of_place(const walk_task *task, uint64_t group)
{
    uint64_t key = mix_word(group, (uintptr_t)task->address);
    key = mix_word(key, (uintptr_t)task->innermost);
    key = mix_word(key, task->doing == WALK_WAITING ? (uintptr_t)task->operation : 0);
    return key != 0 ? key : 1;
}

/* ---- Ages ---- */

static crowd_age *age_at(crowd_age *ages, size_t room, uint64_t key)
{
    size_t at = (size_t)(key >> 7) & (room - 1);
    while (ages[at].key != 0 && ages[at].key != key)
        at = (at + 1) & (room - 1);
    return &ages[at];
}

/* Room for as many as there were, and some more; without it none is known. */
static void prepare_ages(crowd *crowd)
{
    crowd_age *last = crowd->ages[0];
    size_t room = AGES_LEAST;
    crowd->ages[0] = crowd->ages[1];
    crowd->age_room[0] = crowd->age_room[1];
    crowd->age_count[0] = crowd->age_count[1];
    while (room < 2 * crowd->tasks && room < AGES_MOST)
        room *= 2;
    free(last);
    crowd->ages[1] = calloc(room, sizeof *last);
    crowd->age_room[1] = crowd->ages[1] != NULL ? room : 0;
    crowd->age_count[1] = 0;
}

/* Nanoseconds. */
static uint64_t note_age(crowd *crowd, uint64_t key)
{
    uint64_t since = crowd->now;
    if (crowd->age_room[0] != 0) {
        const crowd_age *before = age_at(crowd->ages[0], crowd->age_room[0], key);
        if (before->key != 0)
            since = before->since;
    }
    if (crowd->age_count[1] < crowd->age_room[1] / 4 * 3) {
        crowd_age *age = age_at(crowd->ages[1], crowd->age_room[1], key);
        crowd->age_count[1] += age->key == 0;
        *age = (crowd_age){key, since};
    }
    return crowd->now - since;
}

/* ---- Groups ---- */

static crowd_group *add_group(crowd *crowd, uint64_t key, const walk_task *task)
{
    if (crowd->group_count == crowd->group_room) {
        size_t room = crowd->group_room != 0 ? 2 * crowd->group_room : 16;
        crowd_group *larger =
            room <= CROWD_GROUPS_MOST ? realloc(crowd->groups, room * sizeof *larger) : NULL;
        if (larger == NULL)
            return NULL;
        crowd->groups = larger;
        crowd->group_room = room;
    }
    crowd_group *group = &crowd->groups[crowd->group_count++];
    memset(group, 0, sizeof *group);
    group->id = key;
    group->doing = task->doing;
    group->name = task->name;
    group->context = task->context;
    if (task->doing == WALK_WAITING)
        group->waiting_for = task->waiting_for;
    if (task->depth != 0) {
        const walk_level *level = walk_level_of(task, 0);
        group->at = level->name;
        group->file = level->file;
        group->line = level->line;
    }
    return group;
}

/* NULL: there is no room for it. */
static crowd_group *group_of(crowd *crowd, uint64_t key, const walk_task *task)
{
    enum { PLACES = sizeof crowd->places / sizeof crowd->places[0] };
    size_t at = (size_t)(key >> 11) % PLACES;
    for (; crowd->places[at] != 0; at = (at + 1) % PLACES) {
        crowd_group *group = &crowd->groups[crowd->places[at] - 1];
        if (group->id == key)
            return group;
    }
    crowd_group *group = add_group(crowd, key, task);
    if (group != NULL)
        crowd->places[at] = (uint16_t)crowd->group_count;
    return group;
}

/* ---- One by one ---- */

const char *crowd_doing(walk_doing doing)
{
    static const char *const names[] = {"not started", "waiting", "running"};
    return names[doing];
}

static void report_level(const walk_task *task, size_t number, report *report)
{
    const walk_level *level = walk_level_of(task, number);
    report_begin(report, "frame");
    report_address(report, "task", (uintptr_t)task->address);
    report_number(report, "number", number);
    report_text(report, "name", level->name.bytes);
    report_text(report, "file", level->file.bytes);
    report_number(report, "line", level->line);
    report_end(report);
}

static void report_wait(const walk_task *task, report *report)
{
    bide_described_ described;
    report_text(report, "waiting_for", task->waiting_for.bytes);
    walk_describe(task, &described);
    if (described.descriptor < 0)
        return;
    report_number(report, "descriptor", (uint64_t)described.descriptor);
    report_text(report, "descriptor_of", described.is_in_memory ? "memory" : "system");
    if (described.other[0] != '\0')
        report_text(report, described.relation[0] != '\0' ? described.relation : "file",
                    described.other);
}

static void report_task(crowd *crowd, const walk_task *task, uint64_t group, uint64_t age)
{
    report *report = crowd->details;
    size_t levels = walk_levels(task);
    report_begin(report, "task");
    report_address(report, "task", (uintptr_t)task->address);
    report_address(report, "group", group);
    report_text(report, "kind", task->is_branch ? "branch" : "root");
    report_text(report, "name", task->name.bytes);
    report_text(report, "context", task->context.bytes);
    report_text(report, "state", crowd_doing(task->doing));
    if (task->doing == WALK_WAITING)
        report_wait(task, report);
    report_number(report, "stands_ms", age / 1000000);
    report_number(report, "depth", task->depth);
    if (!report_end(report))
        return;
    crowd->shown++;
    for (size_t i = 0; i < levels && i < crowd->shown_levels; i++)
        report_level(task, i, report);
}

/* ---- A look ---- */

static bool note_task(void *argument, const walk_task *task)
{
    crowd *crowd = argument;
    uint64_t key = key_of_group(task);
    crowd_group *group = group_of(crowd, key, task);
    uint64_t age = note_age(crowd, key_of_place(task, key));
    crowd->tasks++;
    crowd->doing[task->doing]++;
    if (group == NULL) {
        crowd->ungrouped++;
    } else {
        group->count++;
        group->branches += task->is_branch;
        group->contexts_differ |= strcmp(group->context.bytes, task->context.bytes) != 0;
        if (age > group->longest)
            group->longest = age;
    }
    if (crowd->shown < crowd->shown_tasks &&
        (crowd->shown_group == 0 || crowd->shown_group == key))
        report_task(crowd, task, key, age);
    return true;
}

int crowd_look(crowd *crowd, uint64_t group, size_t tasks, size_t levels, report *details)
{
    prepare_ages(crowd);
    crowd->group_count = 0;
    memset(crowd->places, 0, sizeof crowd->places);
    crowd->tasks = 0;
    memset(crowd->doing, 0, sizeof crowd->doing);
    crowd->ungrouped = 0;
    crowd->now = bide_platform.now();
    crowd->shown_group = group;
    crowd->shown_tasks = tasks;
    crowd->shown_levels = levels;
    crowd->details = details;
    crowd->shown = 0;
    return walk_tasks(note_task, crowd);
}

static int by_count(const void *one, const void *other)
{
    const crowd_group *a = one;
    const crowd_group *b = other;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static void report_group(const crowd_group *group, report *report)
{
    report_begin(report, "group");
    report_address(report, "group", group->id);
    report_number(report, "tasks", group->count);
    report_number(report, "branches", group->branches);
    report_text(report, "name", group->name.bytes);
    report_text(report, "context", group->contexts_differ ? "" : group->context.bytes);
    report_text(report, "state", crowd_doing(group->doing));
    if (group->at.bytes[0] != '\0') {
        report_text(report, "at", group->at.bytes);
        report_text(report, "file", group->file.bytes);
        report_number(report, "line", group->line);
    }
    if (group->doing == WALK_WAITING)
        report_text(report, "waiting_for", group->waiting_for.bytes);
    report_number(report, "longest_ms", group->longest / 1000000);
    report_end(report);
}

void crowd_report(crowd *crowd, size_t most, report *report)
{
    if (crowd->group_count != 0) /* (the places are used no more) */
        qsort(crowd->groups, crowd->group_count, sizeof *crowd->groups, by_count);
    for (size_t i = 0; i < crowd->group_count && i < most; i++)
        report_group(&crowd->groups[i], report);
}

void crowd_free(crowd *crowd)
{
    free(crowd->groups);
    free(crowd->ages[0]);
    free(crowd->ages[1]);
    memset(crowd, 0, sizeof *crowd);
}
