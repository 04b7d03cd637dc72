/*
 * Macros with any number of arguments, from 1 to 9: how many, and the same for each. Floor: base.
 */
#ifndef BIDE_DETAIL_ARGUMENTS_H
#define BIDE_DETAIL_ARGUMENTS_H

/* How many there are. */
#define BIDE_COUNT_(...) BIDE_COUNT_PICK_(__VA_ARGS__, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

#define BIDE_COUNT_PICK_(a, b, c, d, e, f, g, h, i, count, ...) count

/* The macro of a name that ends with the count and an underscore. */
#define BIDE_COUNTED_(name, count)       BIDE_COUNTED_PASTE_(name, count)
#define BIDE_COUNTED_PASTE_(name, count) name##count##_

/* macro(x, 0, a), macro(x, 1, b), ... for each after x, from its index on. */
#define BIDE_EACH_(macro, x, ...) \
    BIDE_COUNTED_(BIDE_EACH_, BIDE_COUNT_(__VA_ARGS__))(macro, x, __VA_ARGS__)
#define BIDE_EACH_1_(macro, x, a)             macro(x, 0, a)
#define BIDE_EACH_2_(macro, x, a, b)          BIDE_EACH_1_(macro, x, a), macro(x, 1, b)
#define BIDE_EACH_3_(macro, x, a, b, c)       BIDE_EACH_2_(macro, x, a, b), macro(x, 2, c)
#define BIDE_EACH_4_(macro, x, a, b, c, d)    BIDE_EACH_3_(macro, x, a, b, c), macro(x, 3, d)
#define BIDE_EACH_5_(macro, x, a, b, c, d, e) BIDE_EACH_4_(macro, x, a, b, c, d), macro(x, 4, e)
#define BIDE_EACH_6_(macro, x, a, b, c, d, e, f) \
    BIDE_EACH_5_(macro, x, a, b, c, d, e), macro(x, 5, f)
#define BIDE_EACH_7_(macro, x, a, b, c, d, e, f, g) \
    BIDE_EACH_6_(macro, x, a, b, c, d, e, f), macro(x, 6, g)
#define BIDE_EACH_8_(macro, x, a, b, c, d, e, f, g, h) \
    BIDE_EACH_7_(macro, x, a, b, c, d, e, f, g), macro(x, 7, h)
#define BIDE_EACH_9_(macro, x, a, b, c, d, e, f, g, h, i) \
    BIDE_EACH_8_(macro, x, a, b, c, d, e, f, g, h), macro(x, 8, i)

/* An expression without a value, which does not compile if the array `array` has fewer than
 * `count` members. */
#define BIDE_CHECK_ROOM_(array, count) \
    ((void)sizeof(char[sizeof(array) / sizeof(array)[0] >= (count) ? 1 : -1]))

#endif
