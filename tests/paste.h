/*
 * Names that are composed of others, for cases that are compiled once for each type.
 */
#ifndef TESTS_PASTE_H
#define TESTS_PASTE_H

#define PASTE2_(a, b)    a##b
#define PASTE2(a, b)     PASTE2_(a, b)
#define PASTE3_(a, b, c) a##b##c
#define PASTE3(a, b, c)  PASTE3_(a, b, c)

#endif
