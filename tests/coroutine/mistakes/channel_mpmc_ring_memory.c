/*
 * A ring whose memory is smaller than its capacity.
 * told: error
 * says: negative
 */
#include "mistakes.h"

#include "bide/mpmc_ring.h"

int main(void)
{
    bide_mpmc_ring_slot(int) memory[3];
    bide_mpmc_ring(int) many;
    bide_mpmc_ring_init(&many, memory, 4); // HERE
    return 0;
}
