/*
 * says: async_for is used in main, which is a plain function
 */
#include <bide/async.h>

async_sized(512) async_generator(int) void numbers(int count);

int main(void)
{
    async_for (int one, numbers(3)) /* HERE */
        return one;
    return 0;
}
