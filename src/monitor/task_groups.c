/*
 * Groups of tasks, and their ages.
 *
 * An age is the time for which each look has found a task at the same place: the same innermost
 * coroutine, at the same line, with the same operation. The task may have run and come back in
 * between, so an age only says that no look has seen it move. Ages are stored by a hash of the place.
 * Two tasks with the same hash, with a probability of 2^-64, share one age.
 */
#include "task_groups.h"

#include "bide/extend/branch.h"
#include "bide/extend/root.h"

#include <stdlib.h>
#include <string.h>

enum { TASK_AGES_MIN = 1024, TASK_AGES_MAX = 1 << 18 };

struct task_age {
    uint64_t key; /* 0: free */
    uint64_t since;
};

/* ---- Keys: FNV-1a ---- */

static uint64_t task_key_mix(uint64_t key, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        key = (key ^ at[i]) * UINT64_C(0x100000001b3);
    return key;
}

static uint64_t task_key_mix_text(uint64_t key, const walk_text *text)
{
    return task_key_mix(key, text->bytes, strlen(text->bytes) + 1);
}

#define TASK_KEY_EMPTY UINT64_C(0xcbf29ce484222325)

static uint64_t task_key_of_group(const walk_task *task)
{
    uint64_t key = task_key_mix_text(TASK_KEY_EMPTY, &task->name);
    key = task_key_mix(key, &task->doing, sizeof task->doing);
    if (task->depth != 0) {
        const walk_level *level = bide_walk_level_of_(task, 0);
        key = task_key_mix_text(key, &level->name);
        key = task_key_mix_text(key, &level->file);
        key = task_key_mix(key, &level->line, sizeof level->line);
    }
    if (task->doing == WALK_WAITING)
        key = task_key_mix_text(key, &task->waiting_for);
    return key != 0 && key != UINT64_MAX ? key : 1;
}

/* The same for a word at once, because every task of a look needs it. */
static uint64_t task_key_mix_word(uint64_t key, uint64_t word)
{
    key = (key ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 29;
}

static uint64_t task_key_of_place(const walk_task *task, uint64_t group)
{
    uint64_t key = task_key_mix_word(group, (uintptr_t)task->address);
    key = task_key_mix_word(key, (uintptr_t)task->innermost);
    key = task_key_mix_word(key, task->doing == WALK_WAITING ? (uintptr_t)task->operation : 0);
    return key != 0 ? key : 1;
}

/* ---- Ages ---- */

static task_age *task_age_at(task_age *ages, size_t room, uint64_t key)
{
    size_t at = (size_t)(key >> 7) & (room - 1);
    while (ages[at].key != 0 && ages[at].key != key)
        at = (at + 1) & (room - 1);
    return &ages[at];
}

/* Makes room for as many ages as the last look had tasks. Without memory, ages are unknown. */
static void task_ages_prepare(task_groups *set)
{
    task_age *last = set->ages[0];
    size_t room = TASK_AGES_MIN;
    set->ages[0] = set->ages[1];
    set->age_room[0] = set->age_room[1];
    set->age_count[0] = set->age_count[1];
    while (room < 2 * set->tasks && room < TASK_AGES_MAX)
        room *= 2;
    free(last);
    set->ages[1] = calloc(room, sizeof *last);
    set->age_room[1] = set->ages[1] != NULL ? room : 0;
    set->age_count[1] = 0;
}

/* The age of a task, in nanoseconds; and stores it for the next look. */
static uint64_t task_age_note(task_groups *set, uint64_t key)
{
    uint64_t since = set->now;
    if (set->age_room[0] != 0) {
        const task_age *before = task_age_at(set->ages[0], set->age_room[0], key);
        if (before->key != 0)
            since = before->since;
    }
    if (set->age_count[1] < set->age_room[1] / 4 * 3) {
        task_age *age = task_age_at(set->ages[1], set->age_room[1], key);
        set->age_count[1] += age->key == 0;
        *age = (task_age){key, since};
    }
    return set->now - since;
}

/* ---- Groups ---- */

static task_group *task_groups_add(task_groups *set, uint64_t key, const walk_task *task)
{
    if (set->group_count == set->group_room) {
        size_t room = set->group_room != 0 ? 2 * set->group_room : 16;
        task_group *larger =
            room <= TASK_GROUPS_MAX ? realloc(set->groups, room * sizeof *larger) : NULL;
        if (larger == NULL)
            return NULL;
        set->groups = larger;
        set->group_room = room;
    }
    task_group *group = &set->groups[set->group_count++];
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

/* The group with this key, which is created if necessary. NULL: there is no room. */
static task_group *task_groups_find(task_groups *set, uint64_t key, const walk_task *task)
{
    enum { TASK_GROUP_SLOTS = sizeof set->places / sizeof set->places[0] };
    size_t at = (size_t)(key >> 11) % TASK_GROUP_SLOTS;
    for (; set->places[at] != 0; at = (at + 1) % TASK_GROUP_SLOTS) {
        bide_assert(set->places[at] <= set->group_count);
        task_group *group = &set->groups[set->places[at] - 1];
        if (group->id == key)
            return group;
    }
    task_group *group = task_groups_add(set, key, task);
    if (group != NULL)
        set->places[at] = (uint16_t)set->group_count;
    return group;
}

/* ---- Turns ---- */

static turn_count task_turns_of(const task_groups *set, const walk_task *task)
{
    static const turn_count none;
    const void *frame = task->is_branch ? (const void *)&((const bide_branch *)task->address)->frame
                                        : (const void *)&((const bide_root *)task->address)->frame;
    const turn_count *count = bide_turn_counts_of_(&set->turns, frame);
    return count != NULL ? *count : none;
}

static void task_report_turns(const task_groups *set, const turn_count *turns,
                              monitor_report *report)
{
    if (set->turns.period == 0)
        return;
    bide_report_number_(report, "runs", turns->runs);
    bide_report_number_(report, "wakes", turns->wakes);
    bide_report_number_(report, "busy_ns", turns->busy);
}

/* ---- Records of tasks ---- */

const char *bide_task_groups_activity_(walk_doing doing)
{
    static const char *const names[] = {"not started", "waiting", "running"};
    return names[doing];
}

static void task_report_level(const walk_task *task, size_t number, monitor_report *report)
{
    const walk_level *level = bide_walk_level_of_(task, number);
    bide_report_start_(report, "frame");
    bide_report_address_(report, "task", (uintptr_t)task->address);
    bide_report_number_(report, "number", number);
    bide_report_text_(report, "name", level->name.bytes);
    bide_report_text_(report, "file", level->file.bytes);
    bide_report_number_(report, "line", level->line);
    bide_report_end_(report);
}

static void task_report_wait(const walk_task *task, monitor_report *report)
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

static void task_report(task_groups *set, const walk_task *task, uint64_t group, uint64_t age,
                        const turn_count *turns)
{
    monitor_report *report = set->details;
    size_t levels = bide_walk_levels_(task);
    bide_report_start_(report, "task");
    bide_report_address_(report, "task", (uintptr_t)task->address);
    bide_report_address_(report, "group", group);
    bide_report_text_(report, "kind", task->is_branch ? "branch" : "root");
    bide_report_text_(report, "name", task->name.bytes);
    bide_report_text_(report, "context", task->context.bytes);
    bide_report_text_(report, "state", bide_task_groups_activity_(task->doing));
    if (task->doing == WALK_WAITING)
        task_report_wait(task, report);
    bide_report_number_(report, "stands_ms", age / 1000000);
    task_report_turns(set, turns, report);
    bide_report_number_(report, "depth", task->depth);
    if (!bide_report_end_(report))
        return;
    set->shown++;
    for (size_t i = 0; i < levels && i < set->shown_levels; i++)
        task_report_level(task, i, report);
}

/* ---- A look ---- */

static bool task_groups_note(void *argument, const walk_task *task)
{
    task_groups *set = argument;
    uint64_t key = task_key_of_group(task);
    task_group *group = task_groups_find(set, key, task);
    uint64_t age = task_age_note(set, task_key_of_place(task, key));
    turn_count turns = task_turns_of(set, task);
    set->runs += turns.runs;
    set->tasks++;
    set->doing[task->doing]++;
    if (group == NULL) {
        set->ungrouped++;
    } else {
        group->count++;
        group->branches += task->is_branch;
        group->contexts_differ |= strcmp(group->context.bytes, task->context.bytes) != 0;
        if (age > group->longest)
            group->longest = age;
        bide_turn_counts_add_(&group->turns, &turns);
    }
    if (set->shown < set->shown_tasks && (set->shown_group == 0 || set->shown_group == key))
        task_report(set, task, key, age, &turns);
    return true;
}

int bide_task_groups_collect_(task_groups *set, uint64_t group, size_t tasks, size_t levels,
                              monitor_report *details)
{
    task_ages_prepare(set);
    set->group_count = 0;
    memset(set->places, 0, sizeof set->places);
    set->tasks = 0;
    memset(set->doing, 0, sizeof set->doing);
    set->ungrouped = 0;
    set->runs = 0;
    set->now = bide_platform.now();
    set->shown_group = group;
    set->shown_tasks = tasks;
    set->shown_levels = levels;
    set->details = details;
    set->shown = 0;
    return bide_walk_tasks_(task_groups_note, set);
}

static int task_group_compare(const void *one, const void *other)
{
    const task_group *a = one;
    const task_group *b = other;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static void task_group_report(const task_groups *set, const task_group *group,
                              monitor_report *report)
{
    bide_report_start_(report, "group");
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
    task_report_turns(set, &group->turns, report);
    bide_report_end_(report);
}

void bide_task_groups_report_(task_groups *set, size_t max, monitor_report *report)
{
    if (set->group_count != 0) /* the hash table is not used any more */
        qsort(set->groups, set->group_count, sizeof *set->groups, task_group_compare);
    for (size_t i = 0; i < set->group_count && i < max; i++)
        task_group_report(set, &set->groups[i], report);
}

void bide_task_groups_free_(task_groups *set)
{
    free(set->groups);
    free(set->ages[0]);
    free(set->ages[1]);
    bide_turn_counts_free_(&set->turns);
    memset(set, 0, sizeof *set);
}
