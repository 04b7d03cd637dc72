/* For one type of sequence: the coroutine inside a group's waiter. */

#define WAITER_  BIDE_CONCAT2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS)
#define BODY_    BIDE_CONCAT2(group_body, BIDE_SEQUENCE_BITS)
#define F_(name) BIDE_CONCAT3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define WAIT_    BIDE_CONCAT3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, _wait_until_published)

static bide_frame *BIDE_CONCAT2(BODY_, _step_)(bide_frame *frame, unsigned depth);

static const bide_coroutine_type *const BIDE_CONCAT2(BODY_, _type_) = &bide_task_type;
const bide_coroutine_code F_(_code_) = {BIDE_CONCAT2(BODY_, _step_), "bide_sequence_group_wait",
                                        __FILE__, &BIDE_CONCAT2(BODY_, _type_), NULL};

bide_body(BODY_)
{
    bide_begin(BODY_, WAITER_ * self);
    for (self->index = 0; self->index < self->group->count; self->index++) {
        int status;
        bide_await_status(status,
                          WAIT_(&self->wait, self->group->members[self->index], self->target));
        if (status < 0) {
            self->published = self->wait.published;
            bide_return(status);
        }
    }
    /* By now it is true of all (unless the rule of sequence_barrier.h is broken that no publisher gets half
     * the range past the target of a wait): which is the slowest? */
    if (!F_(_is_published)(self->group, self->target, &self->published))
        self->published = self->target;
    bide_end();
}

#undef WAITER_
#undef BODY_
#undef F_
#undef WAIT_
