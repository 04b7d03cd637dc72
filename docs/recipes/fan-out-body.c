#include <bide/bide.h>
#include <stdio.h>

struct square {
    bide_task task;
    int number, result;
    bide_sleep sleep;
};

bide_coroutine(square_body)
{
    bide_begin(square_body, struct square * self);
    bide_try(bide_sleep_for(&self->sleep, BIDE_MILLISECONDS(1)));
    self->result = self->number * self->number;
    bide_end();
}

int main(void)
{
    struct square squares[10];
    bide_branch branches[10];
    bide_when all;
    int sum = 0;
    for (int i = 0; i < 10; i++)
        bide_branch_init(&branches[i], bide_call(&squares[i], &square_body, number = i));
    int status =
        bide_sync_wait(bide_when_all(&all, branches, 10)); /* an error asks the others to stop */
    for (int i = 0; i < 10; i++)
        sum += squares[i].result;
    printf("%d: %d\n", status, sum);
}
