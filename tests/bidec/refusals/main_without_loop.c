/*
 * says: an async main runs on a loop: include bide/loop.h, or write a plain main, which runs
 */
#include <bide/async.h>

async int main(void) /* HERE */
{
    return 0;
}
