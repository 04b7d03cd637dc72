/*
 * A channel whose memory is smaller than its capacity.
 * told: error
 * says: negative
 */
#include "mistakes.h"

#include "bide/channel.h"

int main(void)
{
    bide_channel_slot(int) memory[3];
    bide_channel(int) many;
    bide_channel_init(&many, memory, 4); // HERE
    return 0;
}
