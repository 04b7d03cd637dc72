/*
 * A ring between one and one whose memory is smaller than its capacity.
 * told: error
 * says: negative
 */
#include "mistakes.h"

#include "bide/spsc_ring.h"

int main(void)
{
    int memory[3];
    bide_spsc_ring(int) many;
    bide_spsc_ring_init(&many, memory, 4); // HERE
    return 0;
}
