/*
 * A yield directly inside a switch of the body's own.
 * told: error
 * says: NOT_IN_A_SWITCH_AND_ONE_A_LINE_
 */
#include "mistakes.h"

#include "bide/generator.h"

struct x {
    bide_generator generator;
    int i;
};

bide_generator_coroutine(body)
{
    bide_begin(body, struct x * self);
    switch (self->i) {
    case 1:
        bide_yield(&self->i); // HERE
        break;
    default:
        break;
    }
    bide_end();
}

int main(void)
{
    struct x x = {0};
    return bide_generator_next(bide_generator_init(&x.generator, &body)) != NULL;
}
