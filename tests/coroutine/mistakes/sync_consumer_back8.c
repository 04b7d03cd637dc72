/*
 * The same with sequences of 8 bits, past the end of their range.
 * told: run
 * says: a sequence is published that lies before the last published one: &consumed, main, 
 */
#include "mistakes.h"

#include "bide/sequence8.h"

int main(void)
{
    static bide_sequence_barrier8 consumed;
    bide_sequence_barrier8_init(&consumed, 250);
    bide_sequence_barrier8_publish(&consumed, 122); /* half the range ahead: all of a ring */
    bide_sequence_barrier8_publish(&consumed, 249);
    bide_sequence_barrier8_publish(&consumed, 4);
    bide_sequence_barrier8_publish(&consumed, 253); // HERE
    return 0;
}
