#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

struct question {
    long number, answer;
};

/* Runs on a thread of its own, and may block it. */
static void solve(void *argument)
{
    struct question *question = argument;
    question->answer = question->number * 2;
}

async int ask(bide_blocking *threads, long number)
{
    struct question question = {.number = number};
    try await bide_blocking_run(threads, solve, &question);
    printf("%ld\n", question.answer);
    return 0;
}

int main(void)
{
    bide_blocking *threads;
    async_frame(ask) frame;
    if (bide_blocking_create_with(&threads, &(bide_blocking_options){.max_threads = 2}) != 0)
        return 1;
    int status = bide_sync_wait(async_ask(&frame, threads, 21));
    bide_blocking_destroy(threads);
    return status != 0;
}
