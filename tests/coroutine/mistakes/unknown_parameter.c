/*
 * A parameter that the child does not have.
 * told: error
 * says: no member named .text.
 */
#include "mistakes.h"

struct x {
    bide_task task;
    int n;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    self->n++;
    bide_end();
}

int main(void)
{
    struct x x;
    return bide_sync_wait(bide_call(&x, &body, n = 1, text = "x")); // HERE
}
