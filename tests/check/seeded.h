/*
 * Scenarios with a seeded bug that must be found, each with a repaired twin, in which nothing must
 * be found. A bug's name ends with the mistake; its twin's name begins like the bug's.
 */
#ifndef BIDE_TESTS_CHECK_SEEDED_H
#define BIDE_TESTS_CHECK_SEEDED_H

#include "bide/check.h"

/* Each list ends with NULL. */
extern const bide_check_scenario *const seeded_locks[];
extern const bide_check_scenario *const seeded_structures[];
extern const bide_check_scenario *const seeded_reclaims[];
extern const bide_check_scenario *const seeded_queues[];
extern const bide_check_scenario *const seeded_rules[];
extern const bide_check_scenario *const seeded_barrier[];

enum { MAX_SEEDED = 200 };

/* All lists, followed by NULL. */
static inline void seeded_all(const bide_check_scenario *all[MAX_SEEDED])
{
    const bide_check_scenario *const *const lists[] = {seeded_locks,    seeded_structures,
                                                       seeded_reclaims, seeded_queues,
                                                       seeded_rules,    seeded_barrier};
    size_t count = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (size_t j = 0; lists[i][j] != NULL && count + 1 < MAX_SEEDED; j++)
            all[count++] = lists[i][j];
    }
    all[count] = NULL;
}

#endif
