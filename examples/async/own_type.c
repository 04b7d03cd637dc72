/* A custom awaitable: a turnstile that admits its waiters in the order of their numbers. */
#include <bide/async.h>
#include <bide/loop.h>
#include <bide/sleep.h>
#include <stdio.h>

struct turnstile {
    struct turn *waiting; /* one thread */
    int next;
};

struct turn {
    bide_awaiter awaiter; /* must be first */
    struct turn *behind;
    struct turnstile *turnstile;
    int number;
};

static struct turn *of(bide_awaiter *awaiter)
{
    return (struct turn *)(void *)awaiter;
}

static bool turn_ready(bide_awaiter *awaiter)
{
    return of(awaiter)->number == of(awaiter)->turnstile->next;
}

static bide_frame *turn_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    struct turn *turn = of(awaiter);
    (void)frame; /* the awaiter has it */
    turn->behind = turn->turnstile->waiting;
    turn->turnstile->waiting = turn;
    return NULL;
}

static int turn_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

/* Removes a turn from the waiters. */
static bool turn_withdraw(bide_awaiter *awaiter)
{
    struct turn **link = &of(awaiter)->turnstile->waiting;
    while (*link != NULL && *link != of(awaiter))
        link = &(*link)->behind;
    if (*link == NULL)
        return false;
    *link = (*link)->behind;
    return true;
}

static bide_awaiter *turnstile_wait(struct turn *turn, struct turnstile *turnstile, int number)
{
    static const bide_awaiter_ops ops = {.ready = turn_ready,
                                         .suspend = turn_suspend,
                                         .resume = turn_resume,
                                         .withdraw = turn_withdraw,
                                         .name = "turnstile_wait"};
    turn->awaiter.ops = &ops;
    turn->turnstile = turnstile;
    turn->number = number;
    return &turn->awaiter;
}

static void turnstile_pass(struct turnstile *turnstile)
{
    turnstile->next++;
    for (struct turn *turn = turnstile->waiting; turn != NULL; turn = turn->behind) {
        if (turn->number == turnstile->next) {
            turn_withdraw(&turn->awaiter);
            bide_wake_one(&turn->awaiter);
            return;
        }
    }
}

async int visitor(struct turnstile *turnstile, int number)
{
    try await bide_sleep_for((uint64_t)(number * 7 % 5) * 100000);
    try await turnstile_wait(turnstile, number);
    printf("%d ", number);
    turnstile_pass(turnstile);
    return 0;
}

async int main(void)
{
    struct turnstile turnstile = {NULL, 0};
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    for (int i = 9; i >= 0; i--)
        if (spawn(&scope, visitor(&turnstile, i)) < 0)
            return -ENOMEM;
    try await bide_scope_join(&scope);
    printf("closed\n");
    return 0;
}
