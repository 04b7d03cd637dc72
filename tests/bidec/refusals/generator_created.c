/*
 * says: the frame of a generator is not created
 */
#include <bide/async.h>

async_created async_generator(int) void f(void); /* HERE */
