/*
 * The tasks of one look: counted in groups, and some of them listed. The number of groups, and of
 * tasks whose age is known, is bounded.
 */
#ifndef BIDE_IO_MONITOR_CROWD_H
#define BIDE_IO_MONITOR_CROWD_H

#include "report.h"
#include "turn_counts.h"

#include "../inspect/walk.h"

enum { TASK_GROUPS_MAX = 1024 };

/* Tasks with the same name that are suspended at the same place and wait for the same operation. */
typedef struct task_group {
    uint64_t id; /* a hash of what the tasks have in common */
    uint64_t count;
    uint64_t branches; /* how many of them belong to a scope */
    uint64_t longest;  /* the greatest age of one of them, in nanoseconds */
    turn_count turns;  /* of all of them */
    walk_doing doing;
    walk_text name;
    walk_text at; /* the innermost coroutine, or empty */
    walk_text file;
    unsigned line;
    walk_text waiting_for;
    walk_text context;
    bool contexts_differ;
} task_group;

typedef struct task_age task_age;

/* The state of all looks, used by the monitor's thread only. All zero: new. */
typedef struct task_groups {
    task_group *groups;
    size_t group_count;
    size_t group_room;
    uint16_t places[4 * TASK_GROUPS_MAX]; /* a hash table: a group's index plus 1, or 0 */

    uint64_t tasks;
    uint64_t doing[WALK_RUNNING + 1];
    uint64_t ungrouped; /* tasks without a group, for want of room */

    /* hash tables of ages: of the last look, and of this one */
    task_age *ages[2];
    size_t age_room[2];
    size_t age_count[2];
    uint64_t now;

    turn_sums turns; /* of this look; filled by the caller, or all zero */
    uint64_t runs;   /* of these, those of tasks that are still there */

    /* the tasks that are listed */
    uint64_t shown_group; /* 0: of all groups; all ones: none */
    size_t shown_tasks;   /* the maximum */
    size_t shown_levels;  /* of each */
    monitor_report *details;
    size_t shown;
} task_groups;

/* Reads all tasks, and adds the records of listed tasks to `details`. Returns as bide_walk_tasks_. */
int bide_task_groups_collect_(task_groups *set, uint64_t group, size_t tasks, size_t levels,
                              monitor_report *details);

/* Adds the records of up to `max` groups, the largest first. */
void bide_task_groups_report_(task_groups *set, size_t max, monitor_report *report);

const char *bide_task_groups_activity_(walk_doing doing);

void bide_task_groups_free_(task_groups *set);

#endif
