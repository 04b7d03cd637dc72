/*
 * The period of an interval is a negative number.
 * told: run
 * says: a duration is negative: &every, main, 
 */
#include "mistakes.h"

#include "bide/interval.h"

int main()
{
    bide_interval every;
    int milliseconds = -20;
    bide_interval_init(&every, 0, BIDE_MILLISECONDS(milliseconds), BIDE_MISSED_SKIP); // HERE
    return 0;
}
