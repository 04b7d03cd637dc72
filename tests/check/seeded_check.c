/*
 * Bugs that are known from the literature, or from somebody's weekend: the checker finds each of them, and
 * nothing in what mends it.
 */
#include "seeded.h"

int main(int argc, char **argv)
{
    const bide_check_scenario *all[MAX_SEEDED];
    seeded_all(all);
    return bide_check_main(argc, argv, &(bide_check_suite){.scenarios = all});
}
