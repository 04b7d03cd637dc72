#include <bide/bide.h>
#include <stdio.h>

struct asker {
    bide_task task;
    bide_event *answer; /* never set */
    bide_event_waiter wait;
    bide_with_deadline_operation limited;
    int status;
};

bide_coroutine(asker_body)
{
    bide_begin(asker_body, struct asker * self);
    bide_await_status(self->status, bide_with_timeout(&self->limited, BIDE_MILLISECONDS(2),
                                                      bide_event_wait(&self->wait, self->answer)));
    puts(self->status == -ETIMEDOUT ? "no answer" : "an answer");
    bide_end();
}

int main(void)
{
    bide_event answer;
    struct asker asker;
    bide_event_init(&answer, false);
    return bide_sync_wait(bide_call(&asker, &asker_body, answer = &answer)) != 0;
}
