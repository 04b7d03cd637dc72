/*
 * says: setjmp saves a stack
 */
#include <bide/async.h>

#include <setjmp.h>

async int f(void)
{
    jmp_buf buffer;
    return setjmp(buffer); /* HERE */
}
