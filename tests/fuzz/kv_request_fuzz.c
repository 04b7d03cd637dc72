/*
 * Requests of the redis protocol: a second parser, of the whole input at once, finds the same requests, errors and rests
 * as the server's does when the input arrives in whole, byte by byte, and in two pieces.
 */
#include "../../programs/kv/request.h"
#include "uri.h"

const unsigned fuzz_executions = 10000;
const char *const fuzz_words[] = {"*1\r\n", "*2\r\n", "*-1\r\n", "*0\r\n", "$0\r\n\r\n", "$3\r\nabc\r\n", "$-1\r\n", "$65\r\n",
                                  "*1000\r\n", "\r\n", "PING\r\n", "\"a\\x41\"", "'it\\'s'", "\\", "\\n", " ", "\t", "\"", "'",
                                  "9999999999", NULL};

static const struct request_limits limits = {64, 8, 400};

enum { MAX_REQUESTS = 600, MAX_TEXT = 20000 };

/* A log of what was found: for each request, its size and its words. */
struct log {
    char text[MAX_TEXT];
    size_t size;
};

static void put_bytes(struct log *log, const void *data, size_t size)
{
    FUZZ_REQUIRE(log->size + size <= MAX_TEXT);
    if (size != 0)
        memcpy(log->text + log->size, data, size);
    log->size += size;
}

static void put_number(struct log *log, char mark, size_t number)
{
    char text[32];
    put_bytes(log, text, (size_t)snprintf(text, sizeof text, "%c%zu:", mark, number));
}

static void put_word(struct log *log, const void *data, size_t size)
{
    put_number(log, 'w', size);
    put_bytes(log, data, size);
}

/* ---- The second parser ---- */

enum outcome { COMPLETE, MORE, WRONG };

/* A number on a line behind a mark at data[*at]. */
static enum outcome second_number(const char *data, size_t size, size_t *at, long long *number)
{
    size_t i = *at + 1, digits = 0;
    bool is_negative = i < size && data[i] == '-';
    *number = 0;
    for (i += is_negative; i < size && uri_is_digit(data[i]); i++, digits++)
        *number = digits > 10 ? *number : *number * 10 + (data[i] - '0');
    if (digits > 10)
        return WRONG;
    if (i == size)
        return MORE;
    if (digits == 0 || data[i] != '\r')
        return WRONG;
    if (i + 1 == size)
        return MORE;
    if (data[i + 1] != '\n')
        return WRONG;
    *at = i + 2;
    *number = is_negative ? -*number : *number;
    return COMPLETE;
}

/* Splits a line into words, as redis' sdssplitargs does. */
static enum outcome second_words(const char *line, size_t size, struct log *words, size_t *count)
{
    size_t i = 0;
    for (;;) {
        char word[MAX_TEXT];
        size_t length = 0;
        char quote = 0;
        while (i < size && (line[i] == ' ' || line[i] == '\t'))
            i++;
        if (i == size)
            return COMPLETE;
        for (;;) {
            if (i == size) {
                if (quote != 0)
                    return WRONG;
                break;
            }
            char c = line[i++];
            if (quote == '"' && c == '\\' && size - i >= 3 && line[i] == 'x' && uri_hex(line[i + 1]) >= 0 &&
                uri_hex(line[i + 2]) >= 0) {
                word[length++] = (char)(uri_hex(line[i + 1]) << 4 | uri_hex(line[i + 2]));
                i += 3;
            } else if (quote == '"' && c == '\\' && i < size) {
                static const char from[] = "nrtba", to[] = "\n\r\t\b\a";
                const char *escape = line[i] != 0 ? strchr(from, line[i]) : NULL;
                word[length++] = escape != NULL ? to[escape - from] : line[i];
                i++;
            } else if (quote == '\'' && c == '\\' && i < size && line[i] == '\'') {
                word[length++] = line[i++];
            } else if (quote != 0 && c == quote) {
                if (i < size && line[i] != ' ' && line[i] != '\t')
                    return WRONG;
                quote = 0;
                break;
            } else if (quote == 0 && (c == ' ' || c == '\t')) {
                break;
            } else if (quote == 0 && (c == '"' || c == '\'')) {
                quote = c;
            } else {
                word[length++] = c;
            }
        }
        put_word(words, word, length);
        ++*count;
    }
}

/* One request at data, of `size` bytes. */
static enum outcome second_request(const char *data, size_t size, struct log *log, size_t *used)
{
    static struct log words;
    size_t at = 0, count = 0;
    long long wanted;
    words.size = 0;
    for (;;) {
        if (at == size)
            return MORE;
        if (data[at] != '*') {
            const char *end = memchr(data + at, '\n', size - at);
            if (end == NULL)
                return MORE;
            size_t line = (size_t)(end - data) - at;
            bool has_cr = line != 0 && end[-1] == '\r';
            if (second_words(data + at, line - has_cr, &words, &count) == WRONG)
                return WRONG;
            at += line + 1;
            if (count != 0)
                break;
            continue;
        }
        enum outcome outcome = second_number(data, size, &at, &wanted);
        if (outcome != COMPLETE)
            return outcome;
        if (wanted > (long long)limits.arguments)
            return WRONG;
        if (wanted <= 0)
            continue;
        for (; count < (size_t)wanted; count++) {
            long long length;
            if (at == size)
                return MORE;
            if (data[at] != '$')
                return WRONG;
            outcome = second_number(data, size, &at, &length);
            if (outcome != COMPLETE)
                return outcome;
            if (length < 0 || length > (long long)limits.bulk || at + (size_t)length > limits.total)
                return WRONG;
            if (size - at < (size_t)length + 2)
                return MORE;
            if (data[at + (size_t)length] != '\r' || data[at + (size_t)length + 1] != '\n')
                return WRONG;
            put_word(&words, data + at, (size_t)length);
            at += (size_t)length + 2;
        }
        break;
    }
    put_number(log, 'r', at);
    put_number(log, 'n', count);
    put_bytes(log, words.text, words.size);
    *used = at;
    return COMPLETE;
}

static void second_parse(struct log *log, const char *data, size_t size)
{
    size_t at = 0, used = 0;
    enum outcome outcome;
    log->size = 0;
    while ((outcome = second_request(data + at, size - at, log, &used)) == COMPLETE)
        at += used;
    put_bytes(log, outcome == WRONG ? "wrong" : "more", 4);
}

/* ---- The server's parser ---- */

static void first_parse(struct log *log, const char *data, size_t size, size_t cut, size_t step)
{
    struct request request = {0};
    char *text = fuzz_copy(data, size);
    size_t begin = 0, came = cut < size ? cut : size;
    enum request_state state = REQUEST_INCOMPLETE;
    log->size = 0;
    for (;;) {
        state = request_read(&request, text + begin, came - begin, &limits);
        FUZZ_REQUIRE(request.size <= came - begin);
        if (state == REQUEST_COMPLETE) {
            const struct argument *arguments = request_arguments(&request);
            put_number(log, 'r', request.size);
            put_number(log, 'n', request.count);
            for (size_t i = 0; i < request.count; i++) {
                FUZZ_REQUIRE(arguments[i].size <= request.size && arguments[i].offset <= request.size - arguments[i].size);
                put_word(log, text + begin + arguments[i].offset, arguments[i].size);
            }
            begin += request.size;
            request_clear(&request);
            continue;
        }
        if (state == REQUEST_WRONG || came == size)
            break;
        FUZZ_REQUIRE(!request.has_bulk || request_needs(&request) > came - begin);
        came = size - came < step ? size : came + step;
    }
    FUZZ_REQUIRE((state == REQUEST_WRONG) == (request.error != NULL));
    put_bytes(log, state == REQUEST_WRONG ? "wrong" : "more", 4);
    free(request.more);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct log second, first;
    const char *data = (const char *)input;
    if (size > 1000)
        return 0;
    second_parse(&second, data, size);
    for (size_t way = 0; way < 8; way++) {
        if (way == 0)
            first_parse(&first, data, size, size, 1);
        else if (way == 1)
            first_parse(&first, data, size, 0, 1);
        else
            first_parse(&first, data, size, size * (way - 1) / 7, size);
        FUZZ_REQUIRE(first.size == second.size && memcmp(first.text, second.text, first.size) == 0);
    }
    return 0;
}
