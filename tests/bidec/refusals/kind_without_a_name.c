/*
 * says: async_kind takes the name of a kind, and then members of its promise
 */
#include <bide/async.h>

async_kind(7) int f(void); /* HERE */
