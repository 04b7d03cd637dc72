/*
 * The tokens of preprocessed C: their boundaries, and their lines as given by line markers.
 */
#include "../../tools/bidec/bidec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void lex_text(const char *text)
{
    token_count = 0;
    lex(text, strlen(text));
}

static void line_markers_say_where_a_token_stands(void **state)
{
    (void)state;
    lex_text("# 10 \"a.c\"\nint x;\n\n  y\n# 3 \"/usr/b.h\" 1 3 4\nz\n#line 7 \"c.c\"\nw");
    assert_string_equal(tokens[0].file, "a.c");
    assert_int_equal(tokens[0].line, 10);
    assert_int_equal(tokens[1].column, 5);
    assert_int_equal(tokens[3].line, 12);
    assert_int_equal(tokens[3].column, 3);
    assert_false(tokens[3].system);
    assert_string_equal(tokens[4].file, "/usr/b.h");
    assert_int_equal(tokens[4].line, 3);
    assert_true(tokens[4].system);
    assert_string_equal(tokens[5].file, "c.c");
    assert_int_equal(tokens[5].line, 7);
    assert_false(tokens[5].system);
}

static void the_longest_punctuator_is_one_token(void **state)
{
    static const char *expected[] = {"a", "<<=", "b", "->", "c"};
    (void)state;
    lex_text("a<<=b->c...");
    for (int i = 0; i < 5; i++)
        assert_true(token_is(i, expected[i]));
    assert_true(token_is(5, "..."));
    lex_text("a+++b");
    assert_true(token_is(1, "++"));
    assert_true(token_is(2, "+"));
}

static void words_in_strings_are_no_names(void **state)
{
    (void)state;
    lex_text("u8\"await \\\" async\" L'a' \"async\" await 1e+5 .5f 0x1p-3");
    assert_int_equal(tokens[0].kind, STRING);
    assert_string_equal(spelling_of(0), "u8\"await \\\" async\"");
    assert_int_equal(tokens[1].kind, NUMBER);
    assert_int_equal(tokens[2].kind, STRING);
    assert_false(token_is(2, "\"async\""));
    assert_int_equal(tokens[3].kind, NAME);
    assert_string_equal(spelling_of(4), "1e+5");
    assert_string_equal(spelling_of(5), ".5f");
    assert_string_equal(spelling_of(6), "0x1p-3");
    assert_int_equal(tokens[7].kind, END);
}

static void pragmas_and_comments_keep_the_lines(void **state)
{
    (void)state;
    lex_text("# 1 \"a.c\"\n#pragma GCC poison x\n/* 1\n2 */ a // b\nc\\\nd");
    assert_int_equal(tokens[0].kind, PRAGMA);
    assert_int_equal(tokens[0].line, 1);
    assert_true(token_is(1, "a"));
    assert_int_equal(tokens[1].line, 3);
    assert_true(token_is(2, "c"));
    assert_int_equal(tokens[2].line, 4);
    assert_int_equal(tokens[3].line, 5);
}

static void a_bracket_is_closed_by_its_own(void **state)
{
    (void)state;
    lex_text("f(a[1], (b), {c}) ;");
    assert_int_equal(closing_bracket(1), token_count - 3);
    assert_int_equal(closing_bracket(3), 5);
}

/* Lexes every prefix of a text, so that every token is truncated at every place. */
static void what_is_cut_off_is_read_to_its_end(void **state)
{
    static const char whole[] =
        "# 1 \"a.c\" 3\nint f(void) { return u8\"a\\\"\" [0] + 'b' + 1e+; /* c */ }";
    (void)state;
    for (size_t length = 0; length < sizeof whole; length++) {
        char *copy = allocate(length + 1);
        memcpy(copy, whole, length);
        token_count = 0;
        lex(copy, length);
        const char *last = copy;
        for (int i = 0; i + 1 < token_count; i++) {
            assert_true(tokens[i].at >= last);
            assert_true(tokens[i].length > 0);
            last = tokens[i].at + tokens[i].length;
            assert_true(last <= copy + length);
        }
        assert_int_equal(tokens[token_count - 1].kind, END);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_markers_say_where_a_token_stands),
        cmocka_unit_test(the_longest_punctuator_is_one_token),
        cmocka_unit_test(words_in_strings_are_no_names),
        cmocka_unit_test(pragmas_and_comments_keep_the_lines),
        cmocka_unit_test(a_bracket_is_closed_by_its_own),
        cmocka_unit_test(what_is_cut_off_is_read_to_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
