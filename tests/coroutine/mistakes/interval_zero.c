/*
 * The period of an interval is 0.
 * told: run
 * says: the period of an interval is 0: &every, main, 
 */
#include "mistakes.h"

#include "bide/interval.h"

int main(void)
{
    bide_interval every;
    bide_interval_init(&every, 0, 0, BIDE_MISSED_SKIP); // HERE
    return 0;
}
