/*
 * A channel between one and one whose memory is smaller than its capacity.
 * told: error
 * says: negative
 */
#include "mistakes.h"

#include "bide/spsc_channel.h"

int main(void)
{
    int memory[3];
    bide_spsc_channel(int) many;
    bide_spsc_channel_init(&many, memory, 4); // HERE
    return 0;
}
