/*
 * told: error
 * says: a select cannot give back what this operation has taken
 * with: -O1
 *
 * A coroutine of the user's is a case of a select: what it had done would be lost if another case wins.
 */
#include "bide/event.h"
#include "bide/select.h"

struct chooser {
    bide_task task;
    bide_task child;
    bide_event *event;
    bide_event_waiter wait;
    bide_select_of(2) select;
};

bide_coroutine(child_body)
{
    bide_begin(child_body, bide_task * self);
    (void)self;
    bide_end();
}

bide_coroutine(chooser_body)
{
    bide_begin(chooser_body, struct chooser * self);
    bide_try(bide_select_any_of(&self->select, bide_event_wait(&self->wait, self->event),
                                bide_task_init(&self->child, &child_body)));
    bide_end();
}

extern const bide_point *const body;
const bide_point *const body = &chooser_body;
