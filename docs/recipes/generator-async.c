#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async_generator(long) int fibonacci(void)
{
    for (long a = 0, b = 1;;) {
        long value = a;
        a = b;
        b += value;
        yield value; /* goes on when the next is asked for */
    }
    return 0;
}

async void print_some(void)
{
    async_for (long number, fibonacci()) {
        if (number > 20)
            break;
        printf("%ld\n", number);
    }
}

int main(void)
{
    async_frame(print_some) frame;
    return bide_sync_wait(async_print_some(&frame)) != 0;
}
