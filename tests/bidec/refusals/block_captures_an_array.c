/*
 * says: a capture is a number, a pointer or a struct: an array is captured in a struct
 */
#include <bide/async.h>

async int g(char *name)
{
    return await async_block({
        async_capture char text[3] = name; /* HERE */
        return text[0];
    });
}
