/*
 * NULL stands where a function is needed.
 * told: run
 * says: NULL is given for a function: bide_hazard_retire, main, 
 */
#include "mistakes.h"

#include "bide/hazard.h"

int main(void)
{
    static bide_hazard_domain domain;
    static bide_hazard_seat seats[1];
    static bide_hazard_retired retired;
    bide_hazard_init(&domain, seats, 1);
    bide_hazard_seat *seat = bide_hazard_join(&domain);
    bide_hazard_retire(&domain, seat, &retired, &retired, NULL); // HERE
    return 0;
}
