/*
 * A channel that has room for no element, as is seen when it runs.
 * told: run
 * says: there is room for no element: &many, main, 
 */
#include "mistakes.h"

#include "bide/channel.h"

static size_t capacity(void)
{
    return (size_t)getenv("BIDE_NO_SUCH_VARIABLE");
}

int main(void)
{
    bide_channel_slot(int) memory[3];
    bide_channel(int) many;
    bide_channel_init(&many, memory, capacity()); // HERE
    return 0;
}
