/*
 * A member leaves a sequence group that it has not joined.
 * told: run
 * says: a member leaves a sequence group that it has not joined: &member, body, 
 */
#include "mistakes.h"

#include "bide/async.h"
#include "bide/sequence_group.h"

static bide_sequence_group group;
static bide_sequence_group_member member;
static bide_sequence_group_leaver leaver;

async void body(void)
{
    await bide_sequence_group_leave(&leaver, &group, &member); // HERE
}

int main(void)
{
    static struct async_body x;
    bide_sequence_group_init(&group, NULL, 0);
    bide_sync_wait(async_body(&x));
    return 0;
}
