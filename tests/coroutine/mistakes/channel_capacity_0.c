/*
 * A channel that has room for no element.
 * told: error
 * says: negative
 */
#include "mistakes.h"

#include "bide/channel.h"

int main(void)
{
    bide_channel_slot(int) memory[3];
    bide_channel(int) many;
    bide_channel_init(&many, memory, 0); // HERE
    return 0;
}
