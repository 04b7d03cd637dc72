/*
 * says: a generator cannot be async_created
 */
#include <bide/async.h>

async_created async_generator(int) void f(void); /* HERE */
