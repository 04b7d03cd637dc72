/*
 * The part of cmocka that the tests of the core use, without a libc. It prints TAP. The first failing
 * assertion ends the program: its test cannot be undone, and would disturb later cases.
 */
#ifndef BIDE_TESTS_CMOCKA_H
#define BIDE_TESTS_CMOCKA_H

#include "../board.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*test_func)(void **state);
};

#define cmocka_unit_test(function) \
    {                              \
#function, function        \
    }

#define CMOCKA_NUMBER_(number)  #number
#define CMOCKA_STRING_(number)  CMOCKA_NUMBER_(number)
#define CMOCKA_LINE_            __FILE__ ":" CMOCKA_STRING_(__LINE__) ": "
#define CMOCKA_INTEGER_(number) ((uint64_t)(number))

static struct {
    unsigned number;
    const char *name;
} cmocka_case_;

static inline void cmocka_print_case_(const char *verdict)
{
    board_print(verdict);
    board_print_number(cmocka_case_.number);
    board_print(" - ");
    board_print(cmocka_case_.name);
    board_print("\n");
}

static inline void cmocka_assert_(bool holds, const char *what)
{
    if (holds)
        return;
    cmocka_print_case_("not ok ");
    board_print("# ");
    board_print(what);
    board_print("\nBail out!\n");
    board_exit(1);
}

static inline void cmocka_assert_equal_(uint64_t a, uint64_t b, const char *what)
{
    if (a == b)
        return;
    board_print("# ");
    board_print_hexadecimal(a);
    board_print(" != ");
    board_print_hexadecimal(b);
    board_print("\n");
    cmocka_assert_(false, what);
}

#define assert_true(condition)   cmocka_assert_(condition, CMOCKA_LINE_ #condition)
#define assert_false(condition)  cmocka_assert_(!(condition), CMOCKA_LINE_ "not " #condition)
#define assert_null(pointer)     cmocka_assert_((pointer) == NULL, CMOCKA_LINE_ #pointer " is NULL")
#define assert_non_null(pointer) cmocka_assert_((pointer) != NULL, CMOCKA_LINE_ #pointer)
#define assert_int_equal(a, b) \
    cmocka_assert_equal_(CMOCKA_INTEGER_(a), CMOCKA_INTEGER_(b), CMOCKA_LINE_ #a " is " #b)
#define assert_ptr_equal(a, b) \
    cmocka_assert_equal_((uintptr_t)(a), (uintptr_t)(b), CMOCKA_LINE_ #a " is " #b)
#define assert_string_equal(a, b) cmocka_assert_(strcmp(a, b) == 0, CMOCKA_LINE_ #a " is " #b)
#define assert_memory_equal(a, b, size) \
    cmocka_assert_(memcmp(a, b, size) == 0, CMOCKA_LINE_ #a " is " #b)

#define cmocka_run_group_tests_name(name, tests, setup, teardown) \
    cmocka_run_group_tests(tests, setup, teardown)
#define cmocka_run_group_tests(tests, setup, teardown) \
    ((void)(setup), (void)(teardown), cmocka_run_(tests, sizeof(tests) / sizeof(tests)[0]))

static inline int cmocka_run_(const struct CMUnitTest *tests, unsigned count)
{
    board_print("1..");
    board_print_number(count);
    board_print("\n");
    for (cmocka_case_.number = 1; cmocka_case_.number <= count; cmocka_case_.number++) {
        void *state = NULL;
        cmocka_case_.name = tests[cmocka_case_.number - 1].name;
        tests[cmocka_case_.number - 1].test_func(&state);
        cmocka_print_case_("ok ");
    }
    return 0;
}

#endif
