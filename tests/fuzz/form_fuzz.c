/*
 * Pairs of a form: decoded with room for all and with the room of the input's first byte, found by their names, and
 * encoded again. Compared with a second decoder and encoder, byte by byte, written from the URL Standard.
 */
#include <bide/http_form.h>

#include "uri.h"

#include <errno.h>

const unsigned fuzz_executions = 20000;
const char *const fuzz_words[] = {"a=1&b=2", "&", "=", "+", "%41", "%00", "%", "%4", "%zz", "%2b", "%26", "%3D", "&&", "name", "a", "\xff", NULL};

/* ---- The second implementation ---- */

struct decoded {
    char *name, *value;
    size_t name_size, value_size;
    bool has_value;
    int name_status, value_status; /* 0 or -EINVAL */
};

/* Decodes from `at` up to `end`; `out` has room for all. Returns 0 or -EINVAL. */
static int second_decode(const char *at, const char *end, char *out, size_t *size)
{
    *size = 0;
    while (at != end) {
        int c = (unsigned char)*at++;
        if (c == '%') {
            if (end - at < 2 || uri_hex(at[0]) < 0 || uri_hex(at[1]) < 0)
                return -EINVAL;
            c = uri_hex(at[0]) * 16 + uri_hex(at[1]);
            at += 2;
        }
        out[(*size)++] = at[-1] == '+' && c == '+' ? ' ' : (char)c;
    }
    return 0;
}

/* The pairs of a text, in `memory`, which has twice its size. Returns how many. */
static size_t second_pairs(const char *text, size_t size, char *memory, struct decoded *pairs)
{
    size_t count = 0;
    for (size_t begin = 0; begin < size;) {
        size_t end = begin, equals;
        while (end < size && text[end] != '&')
            end++;
        for (equals = begin; equals < end && text[equals] != '=';)
            equals++;
        if (end != begin) {
            struct decoded *pair = &pairs[count++];
            pair->name = memory;
            pair->name_status = second_decode(text + begin, text + equals, pair->name, &pair->name_size);
            memory += equals - begin;
            pair->has_value = equals != end;
            pair->value = memory;
            pair->value_size = 0;
            pair->value_status = pair->has_value ? second_decode(text + equals + 1, text + end, pair->value, &pair->value_size) : 0;
            memory += end - equals;
        }
        begin = end + 1;
    }
    return count;
}

static size_t second_encode(char *out, const char *text, size_t size)
{
    char *at = out;
    for (size_t i = 0; i < size; i++) {
        int c = (unsigned char)text[i];
        if (c == ' ')
            *at++ = '+';
        else if (c < 128 && (uri_is_letter(c) || uri_is_digit(c) || c == '*' || c == '-' || c == '.' || c == '_'))
            *at++ = (char)c;
        else
            at += sprintf(at, "%%%02X", c);
    }
    return (size_t)(at - out);
}

/* ---- The comparison ---- */

static bool is_same(bide_slice found, const char *data, size_t size)
{
    return found.size == size && (size == 0 || memcmp(found.data, data, size) == 0);
}

static void compare_pairs(const char *text, size_t size, const struct decoded *wanted, size_t count, size_t room)
{
    bide_http_pairs pairs = {{text, size}};
    char *memory = malloc(room != 0 ? room : 1);
    FUZZ_REQUIRE(memory != NULL);
    fuzz_parses++;
    for (size_t i = 0; i < count; i++) {
        bide_http_pair pair;
        const struct decoded *one = &wanted[i];
        int status = bide_http_next_pair(&pairs, memory, room, &pair);
        bool is_valid = one->name_status == 0 && one->value_status == 0;
        bool fits = one->name_size + one->value_size <= room;
        if (!is_valid && status == -EMSGSIZE) /* (what was decoded before the error may not fit) */
            FUZZ_REQUIRE(room < size);
        else if (!is_valid)
            FUZZ_REQUIRE(status == -EINVAL);
        else if (!fits)
            FUZZ_REQUIRE(status == -EMSGSIZE);
        else
            FUZZ_REQUIRE(status == 1 && is_same(pair.name, one->name, one->name_size) &&
                         is_same(pair.value, one->value, one->value_size) && (pair.value.data != NULL) == one->has_value);
    }
    bide_http_pair none;
    FUZZ_REQUIRE(bide_http_next_pair(&pairs, memory, room, &none) == 0);
    FUZZ_REQUIRE(bide_http_next_pair(&pairs, memory, room, &none) == 0);
    free(memory);
}

/* Looks for the name of each pair, which may be that of an earlier one. */
static void find(const char *text, size_t size, const struct decoded *pairs, size_t count)
{
    char *name = malloc(size + 2), *out = malloc(size + 1);
    FUZZ_REQUIRE(name != NULL && out != NULL);
    for (size_t i = 0; i <= count && i < 20; i++) {
        size_t length = i < count && pairs[i].name_status == 0 ? pairs[i].name_size : 0;
        memcpy(name, i < count ? pairs[i].name : "", length);
        name[length] = '\0';
        length = strlen(name);
        const struct decoded *first = NULL;
        for (size_t k = 0; k < count && first == NULL; k++)
            if (pairs[k].name_status == 0 && pairs[k].name_size == length && memcmp(pairs[k].name, name, length) == 0)
                first = &pairs[k];
        ptrdiff_t found = bide_http_find_pair((bide_slice){text, size}, name, out, size + 1);
        if (first == NULL)
            FUZZ_REQUIRE(found == -ENOENT);
        else if (first->value_status != 0)
            FUZZ_REQUIRE(found == -EINVAL);
        else
            FUZZ_REQUIRE(found >= 0 && is_same((bide_slice){out, (size_t)found}, first->value, first->value_size));
    }
    free(name);
    free(out);
}

/* Encodes the valid pairs into `room` bytes, as many as fit, and with room for all decodes them again. */
static void encode(const struct decoded *pairs, size_t count, size_t text_size, size_t room)
{
    char *out = malloc(room != 0 ? room : 1), *wanted = malloc(3 * text_size + 3);
    FUZZ_REQUIRE(out != NULL && wanted != NULL);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const struct decoded *pair = &pairs[i];
        size_t size = 0;
        if (pair->name_status != 0 || pair->value_status != 0)
            continue;
        if (used != 0)
            wanted[size++] = '&';
        size += second_encode(wanted + size, pair->name, pair->name_size);
        if (pair->has_value)
            wanted[size++] = '=';
        size += second_encode(wanted + size, pair->value, pair->value_size);
        ptrdiff_t now = bide_http_append_pair(out, room, used, (bide_slice){pair->name, pair->name_size},
                                              (bide_slice){pair->has_value ? pair->value : NULL, pair->value_size});
        if (size > room - used) {
            FUZZ_REQUIRE(now == -EMSGSIZE);
            continue;
        }
        FUZZ_REQUIRE(now == (ptrdiff_t)(used + size) && memcmp(out + used, wanted, size) == 0);
        used += size;
    }
    free(out);
    free(wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 4096)
        return 0;
    char *text = fuzz_copy(data + 1, size - 1);
    char *memory = malloc(2 * size);
    struct decoded *pairs = calloc(size, sizeof *pairs);
    FUZZ_REQUIRE(memory != NULL && pairs != NULL);
    size_t count = second_pairs(text, size - 1, memory, pairs);
    compare_pairs(text, size - 1, pairs, count, size);
    compare_pairs(text, size - 1, pairs, count, data[0]);
    find(text, size - 1, pairs, count);
    encode(pairs, count, size, 3 * size + 1);
    encode(pairs, count, size, data[0]);
    free(text);
    free(memory);
    free(pairs);
    return 0;
}
