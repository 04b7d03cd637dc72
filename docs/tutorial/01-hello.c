#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int main(void)
{
    puts("hello");
    return 0;
}
