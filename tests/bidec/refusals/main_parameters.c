/*
 * says: an async main takes no parameters, or int argc and char
 */
#include <bide/async.h>
#include <bide/loop.h>

async int main(int argc) /* HERE */
{
    return argc;
}
