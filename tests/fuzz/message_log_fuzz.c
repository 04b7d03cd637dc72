/*
 * Message logs: URLs, positions as text, and headers as bytes. The first byte of the input chooses: 'u', 'p' or 'h'.
 * Positions and headers are compared with second parsers. Of a URL that is accepted, a URL is written and parsed again.
 */
#include "fuzz.h"

#include "bide/message_log.h"
#include "src/log/state.h"

#include <inttypes.h>

const unsigned fuzz_executions = 20000;
const char *const fuzz_words[] = {"uring:", "ring:", "ufile:///", "segment=4096", "?", "&", "=", "level=sent", "level=synced", "window=16", "window=16777216",
                                  "retain=4611686018427387904", "keep_for=4294967296", "keep_for=4294967297",
                                  "window=16777217", "size=4096", "size=1073741824", "%41", "%00", "%", "p0-1",
                                  "18446744073709551615", "18446744073709551616", "-", "h\1", "h\3", NULL};

static void fuzz_log_url(const char *text)
{
    static struct log_url url, again;
    char problem[BIDE_LOG_PROBLEM_TEXT] = "";
    int status = bide_log_url_parse_(&url, text, problem);
    if (status < 0) {
        FUZZ_REQUIRE(problem[0] != '\0' && strlen(problem) < sizeof problem);
        return;
    }
    FUZZ_REQUIRE(problem[0] == '\0' && url.window >= 1 && url.window <= BIDE_LOG_WINDOW_MAX && url.size >= 1 &&
                 url.size <= BIDE_LOG_SIZE_MAX && (url.engine->levels & 1u << url.level) != 0);
    char *written = malloc(3 * strlen(url.name) + 200);
    FUZZ_REQUIRE(written != NULL);
    int at = sprintf(written, "%s:", url.engine->scheme);
    for (const char *c = url.name; *c != '\0'; c++)
        at += sprintf(written + at, "%%%02x", (unsigned char)*c);
    sprintf(written + at, "?size=%" PRIu32 "&window=%" PRIu32, url.size, url.window);
    FUZZ_REQUIRE(bide_log_url_parse_(&again, written, problem) == 0 && strcmp(url.name, again.name) == 0);
    FUZZ_REQUIRE(url.size == again.size && url.window == again.window && url.engine == again.engine);
    free(written);
}

/* The length of a canonical number at `text`, or 0. */
static size_t fuzz_log_number(const char *text)
{
    static const char most[] = "18446744073709551615";
    size_t length = strspn(text, "0123456789");
    if (length > sizeof most - 1 || (length > 1 && text[0] == '0'))
        return 0;
    return length == sizeof most - 1 && memcmp(text, most, length) > 0 ? 0 : length;
}

static void fuzz_log_position(const char *text)
{
    bide_log_position position;
    size_t high = fuzz_log_number(text);
    size_t low = high != 0 && text[high] == '-' ? fuzz_log_number(text + high + 1) : 0;
    bool is_one = low != 0 && text[high + 1 + low] == '\0';
    FUZZ_REQUIRE((bide_log_position_parse(&position, text) == 0) == is_one);
    if (is_one) {
        char printed[BIDE_LOG_POSITION_TEXT];
        FUZZ_REQUIRE(bide_log_position_print(position, printed, sizeof printed) == 0);
        FUZZ_REQUIRE(strcmp(printed, text) == 0);
    }
}

static void fuzz_log_headers(const uint8_t *bytes, size_t size)
{
    bide_log_message message = {.encoded = bytes, .encoded_size = size};
    bide_log_header header;
    size_t at = 0, mine = 0;
    while (bide_log_next_header(&message, &at, &header)) {
        FUZZ_REQUIRE(size - mine >= 5 && bytes[mine] != 0 && header.name_size == bytes[mine]);
        uint64_t value = (uint64_t)bytes[mine + 1] + bytes[mine + 2] * UINT64_C(0x100) +
                         bytes[mine + 3] * UINT64_C(0x10000) + bytes[mine + 4] * UINT64_C(0x1000000);
        FUZZ_REQUIRE(header.value_size == value && header.name == (const char *)bytes + mine + 5);
        FUZZ_REQUIRE((const char *)header.value == header.name + header.name_size);
        mine += 5 + header.name_size + header.value_size;
        FUZZ_REQUIRE(mine == at && mine <= size);
    }
    FUZZ_REQUIRE(bide_log_headers_are_whole_(bytes, size) == (at == size));

    /* the last header, encoded by itself, is the bytes that it was parsed from */
    if (at != 0) {
        bide_log_message again = {.headers = &header, .header_count = 1};
        size_t length = bide_log_headers_size_(&again);
        FUZZ_REQUIRE(length == 5 + header.name_size + header.value_size);
        uint8_t *written = malloc(length);
        FUZZ_REQUIRE(written != NULL);
        bide_log_headers_write_(&again, written);
        FUZZ_REQUIRE(memcmp(written, bytes + at - length, length) == 0);
        free(written);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *copy = fuzz_copy(data + 1, size - 1);
    if (data[0] == 'h') {
        fuzz_log_headers((const uint8_t *)copy, size - 1);
    } else {
        char *text = malloc(size);
        FUZZ_REQUIRE(text != NULL);
        memcpy(text, copy, size - 1);
        text[size - 1] = '\0';
        if (data[0] == 'p')
            fuzz_log_position(text);
        else
            fuzz_log_url(text);
        free(text);
    }
    free(copy);
    return 0;
}
