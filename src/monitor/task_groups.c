/*
 * An age says since when each look has found a task at the same place: with the same coroutine
 * innermost, at the same line, and the same operation. It may have gone on and come back in between,
 * so it is how long nothing was seen of its moving, and no more. It is kept under a number that is
 * mixed of all that, and two tasks with the same number, which are one in 2^64, have one age.
 */
#include "task_groups.h"

#include <stdlib.h>
#include <string.h>

enum { MIN_AGES = 1024, MAX_AGES = 1 << 18 };

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
        const walk_level *level = bide_walk_level_of_(task, 0);
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
    size_t room = MIN_AGES;
    crowd->ages[0] = crowd->ages[1];
    crowd->age_room[0] = crowd->age_room[1];
    crowd->age_count[0] = crowd->age_count[1];
    while (room < 2 * crowd->tasks && room < MAX_AGES)
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
            room <= MAX_CROWD_GROUPS ? realloc(crowd->groups, room * sizeof *larger) : NULL;
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
        const walk_level *level = bide_walk_level_of_(task, 0);
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

const char *bide_task_groups_activity_(walk_doing doing)
{
    static const char *const names[] = {"not started", "waiting", "running"};
    return names[doing];
}

static void report_level(const walk_task *task, size_t number, report *report)
{
    const walk_level *level = bide_walk_level_of_(task, number);
    bide_report_begin_(report, "frame");
    bide_report_address_(report, "task", (uintptr_t)task->address);
    bide_report_number_(report, "number", number);
    bide_report_text_(report, "name", level->name.bytes);
    bide_report_text_(report, "file", level->file.bytes);
    bide_report_number_(report, "line", level->line);
    bide_report_end_(report);
}

static void report_wait(const walk_task *task, report *report)
{
    bide_described_ described;
    bide_report_text_(report, "waiting_for", task->waiting_for.bytes);
    bide_walk_describe_(task, &described);
    if (described.descriptor < 0)
        return;
    bide_report_number_(report, "descriptor", (uint64_t)described.descriptor);
    bide_report_text_(report, "descriptor_of", described.is_in_memory ? "memory" : "system");
    if (described.other[0] != '\0')
        bide_report_text_(report, described.relation[0] != '\0' ? described.relation : "file",
                    described.other);
}

static void report_task(crowd *crowd, const walk_task *task, uint64_t group, uint64_t age)
{
    report *report = crowd->details;
    size_t levels = bide_walk_levels_(task);
    bide_report_begin_(report, "task");
    bide_report_address_(report, "task", (uintptr_t)task->address);
    bide_report_address_(report, "group", group);
    bide_report_text_(report, "kind", task->is_branch ? "branch" : "root");
    bide_report_text_(report, "name", task->name.bytes);
    bide_report_text_(report, "context", task->context.bytes);
    bide_report_text_(report, "state", bide_task_groups_activity_(task->doing));
    if (task->doing == WALK_WAITING)
        report_wait(task, report);
    bide_report_number_(report, "stands_ms", age / 1000000);
    bide_report_number_(report, "depth", task->depth);
    if (!bide_report_end_(report))
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

int bide_task_groups_collect_(crowd *crowd, uint64_t group, size_t tasks, size_t levels, report *details)
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
    return bide_walk_tasks_(note_task, crowd);
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
    bide_report_begin_(report, "group");
    bide_report_address_(report, "group", group->id);
    bide_report_number_(report, "tasks", group->count);
    bide_report_number_(report, "branches", group->branches);
    bide_report_text_(report, "name", group->name.bytes);
    bide_report_text_(report, "context", group->contexts_differ ? "" : group->context.bytes);
    bide_report_text_(report, "state", bide_task_groups_activity_(group->doing));
    if (group->at.bytes[0] != '\0') {
        bide_report_text_(report, "at", group->at.bytes);
        bide_report_text_(report, "file", group->file.bytes);
        bide_report_number_(report, "line", group->line);
    }
    if (group->doing == WALK_WAITING)
        bide_report_text_(report, "waiting_for", group->waiting_for.bytes);
    bide_report_number_(report, "longest_ms", group->longest / 1000000);
    bide_report_end_(report);
}

void bide_task_groups_report_(crowd *crowd, size_t max, report *report)
{
    if (crowd->group_count != 0) /* (the places are used no more) */
        qsort(crowd->groups, crowd->group_count, sizeof *crowd->groups, by_count);
    for (size_t i = 0; i < crowd->group_count && i < max; i++)
        report_group(&crowd->groups[i], report);
}

void bide_task_groups_free_(crowd *crowd)
{
    free(crowd->groups);
    free(crowd->ages[0]);
    free(crowd->ages[1]);
    memset(crowd, 0, sizeof *crowd);
}
