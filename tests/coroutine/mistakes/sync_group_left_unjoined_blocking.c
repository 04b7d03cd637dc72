/*
 * A member leaves a sequence group that it has not joined, and blocks for that.
 * told: run
 * says: a member leaves a sequence group that it has not joined: &member, main, 
 */
#include "mistakes.h"

#include "bide/sequence_group.h"

int main(void)
{
    static bide_sequence_group group;
    static bide_sequence_group_member member;
    bide_sequence_group_init(&group, NULL, 0);
    bide_sequence_group_leave_blocking(&group, &member); // HERE
    return 0;
}
