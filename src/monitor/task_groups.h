/*
 * The tasks of one look, counted in groups, and some of one group each by itself. Bounded: so many
 * groups, and so many tasks whose age is known.
 */
#ifndef BIDE_IO_MONITOR_CROWD_H
#define BIDE_IO_MONITOR_CROWD_H

#include "report.h"

#include "../inspect/walk.h"

enum { MAX_CROWD_GROUPS = 1024 };

/* Tasks of the same name that stand at the same place and wait for the same. */
typedef struct crowd_group {
    uint64_t id; /* of all that it is known by */
    uint64_t count;
    uint64_t branches; /* of those, that belong to a scope */
    uint64_t longest;  /* nanoseconds for which looks have found one of them there */
    walk_doing doing;
    walk_text name;
    walk_text at; /* the innermost coroutine; empty: none */
    walk_text file;
    unsigned line;
    walk_text waiting_for;
    walk_text context;
    bool contexts_differ;
} crowd_group;

typedef struct crowd_age crowd_age;

/* Of all looks; of the monitor's thread. All zero is a new one. */
typedef struct crowd {
    crowd_group *groups;
    size_t group_count;
    size_t group_room;
    uint16_t places[4 * MAX_CROWD_GROUPS]; /* a group's number, and 1 */

    uint64_t tasks;
    uint64_t doing[WALK_RUNNING + 1];
    uint64_t ungrouped; /* there was no room for a group of theirs */

    /* since when looks have found each where it is: of the last look, and of this one */
    crowd_age *ages[2];
    size_t age_room[2];
    size_t age_count[2];
    uint64_t now;

    /* what is shown one by one */
    uint64_t shown_group; /* 0: of all; and all ones: none */
    size_t shown_tasks;   /* at most */
    size_t shown_levels;  /* of each */
    report *details;
    size_t shown;
} crowd;

/* Looks at all of them. The records of the tasks that are shown go to `details`. As bide_walk_tasks_. */
int bide_task_groups_collect_(crowd *crowd, uint64_t group, size_t tasks, size_t levels, report *details);

/* The records of the groups, those with most tasks first, `max` of them. */
void bide_task_groups_report_(crowd *crowd, size_t max, report *report);

const char *bide_task_groups_activity_(walk_doing doing);

void bide_task_groups_free_(crowd *crowd);

#endif
