/* The types of elements that the tests of queues use, and the conversion of a number to each. */
#ifndef BIDE_TESTS_ELEMENTS_H
#define BIDE_TESTS_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Three words, each of which says whether the others belong to it. */
typedef struct triple {
    uint64_t number, inverse, thrice;
} triple;

static inline triple triple_from(uint64_t number)
{
    return (triple){number, ~number, 3 * number};
}

/* The number; one that no test uses if it is torn. */
static inline uint64_t triple_number(triple element)
{
    bool whole = element.inverse == ~element.number && element.thrice == 3 * element.number;
    return whole ? element.number : UINT64_MAX;
}

/* Pointers into it represent numbers. */
typedef char *address;
static char pointed_at[251];

#define BYTE_FROM(n)      ((uint8_t)((n) % 251))
#define BYTE_NUMBER(e)    (e)
#define WORD_FROM(n)      ((uint64_t)(n)*0x9e3779b97f4a7c15u)
#define WORD_NUMBER(e)    (e)
#define POINTER_FROM(n)   (&pointed_at[(n) % 251])
#define POINTER_NUMBER(e) ((uintptr_t)(e))
#define TRIPLE_FROM(n)    triple_from(n)
#define TRIPLE_NUMBER(e)  triple_number(e)

#endif
