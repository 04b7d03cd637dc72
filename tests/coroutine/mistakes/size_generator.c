/*
 * The frame of a generator is a variable of another body's struct, which is smaller.
 * told: run
 * says: a frame is smaller than the struct of its body numbers, main, 
 */
#include "mistakes.h"

#include "bide/generator.h"

struct numbers {
    bide_generator generator;
    int values[100];
};

bide_generator_coroutine(numbers)
{
    bide_begin(numbers, struct numbers * self);
    self->values[99] = 1;
    bide_yield(&self->values[99]);
    bide_end();
}

struct small {
    bide_generator generator;
};

int main(void)
{
    static struct small small;
    return bide_generator_next(bide_generator_init(&small.generator, &numbers)) == NULL; // HERE
}
