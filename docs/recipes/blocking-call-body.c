#include <bide/bide.h>
#include <stdio.h>

struct question {
    long number, answer;
};

/* Runs on a thread of its own, and may block it. */
static void solve(void *argument)
{
    struct question *question = (struct question *)argument;
    question->answer = question->number * 2;
}

struct asker {
    bide_task task;
    bide_blocking *threads;
    bide_blocking_call call;
    struct question question;
};

bide_coroutine(asker_body)
{
    bide_begin(asker_body, struct asker * self);
    bide_try(bide_blocking_run(&self->call, self->threads, solve, &self->question));
    printf("%ld\n", self->question.answer);
    bide_end();
}

int main(void)
{
    struct asker asker = {.question = {.number = 21}};
    if (bide_blocking_create_with(&asker.threads, &(bide_blocking_options){.max_threads = 2}) != 0)
        return 1;
    int status = bide_sync_wait(bide_task_init(&asker.task, &asker_body));
    bide_blocking_destroy(asker.threads);
    return status != 0;
}
