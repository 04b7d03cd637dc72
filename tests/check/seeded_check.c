/*
 * Known bugs from the literature and from practice: the checker finds each of them, and nothing in
 * their repaired twins.
 */
#include "seeded.h"

int main(int argc, char **argv)
{
    const bide_check_scenario *all[MAX_SEEDED];
    seeded_all(all);
    return bide_check_main(argc, argv, &(bide_check_suite){.scenarios = all});
}
