/*
 * A hazard domain is destroyed while a seat, which protects an object, is taken.
 * told: run
 * says: a hazard domain is destroyed while a seat is taken: &domain, main, 
 */
#include "mistakes.h"

#include "bide/hazard.h"

int main(void)
{
    static bide_hazard_domain domain;
    static bide_hazard_seat seats[2];
    static int object;
    bide_hazard_init(&domain, seats, 2);
    bide_hazard_seat *seat = bide_hazard_join(&domain);
    bide_hazard_set(seat, 0, &object);
    bide_hazard_destroy(&domain); // HERE
    return 0;
}
