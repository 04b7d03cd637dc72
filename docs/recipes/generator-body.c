#include <bide/bide.h>
#include <stdio.h>

struct fibonacci {
    bide_generator generator;
    long a, b, value;
};

bide_generator_coroutine(fibonacci_body)
{
    bide_begin(fibonacci_body, struct fibonacci * self);
    for (self->a = 0, self->b = 1;;) {
        self->value = self->a;
        self->a = self->b;
        self->b += self->value;
        bide_yield(&self->value); /* goes on when the next is asked for */
    }
    bide_end();
}

int main(void)
{
    struct fibonacci fibonacci;
    bide_for (long *, number, bide_generator_init(&fibonacci.generator, &fibonacci_body)) {
        if (*number > 20)
            break;
        printf("%ld\n", *number);
    }
    bide_generator_destroy(&fibonacci.generator);
}
