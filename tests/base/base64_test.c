/* Base64. */
#include "testing.h"

#include "../../src/base/base64.h"

static void each_size_is_written_as_the_standard_says(void **state)
{
    /* RFC 4648, section 10 */
    static const struct {
        const char *data, *text;
    } rows[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xfb\xff\xbf", "+/+/"},
        {"\xff\xff\xff\xff", "/////w=="},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[16];
        memset(text, '#', sizeof text);
        size_t size = strlen(rows[i].text);
        bide_base64_write_(text, (const uint8_t *)rows[i].data, strlen(rows[i].data));
        assert_string_equal(text, rows[i].text);
        assert_int_equal(text[size + 1], '#');
    }
}

static void each_digit_stands_at_its_value(void **state)
{
    const char *digits = bide_base64_digits_();
    (void)state;
    assert_int_equal(strlen(digits), 64);
    for (unsigned value = 0; value < 64; value++) {
        char text[5];
        bide_base64_write_(text, &(const uint8_t){(uint8_t)(value << 2)}, 1);
        assert_int_equal(text[0], digits[value]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_size_is_written_as_the_standard_says),
        cmocka_unit_test(each_digit_stands_at_its_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
