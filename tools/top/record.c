/*
 * A parser for the JSON of monitors, which rewrites the texts in place: a text never grows.
 */
#include "record.h"

#include <string.h>

/* The rest of the line. It ends with a zero, which is not part of a record. */
typedef struct record_reader {
    char *at;
} record_reader;

static void skip_space(record_reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t')
        reader->at++;
}

static bool accept_character(record_reader *reader, char expected)
{
    skip_space(reader);
    if (*reader->at != expected)
        return false;
    reader->at++;
    return true;
}

/* Returns the value of four hexadecimal digits, or -1. */
static int code_of(const char *digits)
{
    int code = 0;
    for (int i = 0; i < 4; i++) {
        char c = digits[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        code = 16 * code + digit;
    }
    return code;
}

/* Writes a character of the basic plane as UTF-8, which is shorter than its escape sequence. */
static char *write_code(char *to, int code)
{
    if (code < 0x80) {
        *to++ = (char)(code < ' ' || code == 0x7f ? '.' : code);
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* Writes the character after a backslash. NULL: the escape sequence is invalid. */
static char *write_escaped(record_reader *reader, char *to)
{
    char c = *reader->at++;
    if (c == '"' || c == '\\' || c == '/') {
        *to++ = c;
    } else if (c != '\0' && strchr("bfnrt", c) != NULL) {
        *to++ = '.';
    } else if (c == 'u') {
        int code = code_of(reader->at);
        if (code < 0)
            return NULL;
        bool is_half = code >= 0xd800 && code < 0xe000; /* a surrogate, which no monitor sends */
        to = write_code(to, is_half ? '.' : code);
        reader->at += 4;
    } else {
        return NULL;
    }
    return to;
}

size_t record_character(const char *text, size_t length, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = (unsigned char)*text;
    size_t size = lead < 0x80   ? 1
                  : lead < 0xc0 ? 0
                  : lead < 0xe0 ? 2
                  : lead < 0xf0 ? 3
                  : lead < 0xf8 ? 4
                                : 0;
    *code = RECORD_INVALID;
    if (size == 0 || size > length)
        return 1;
    uint32_t value = size == 1 ? lead : lead & (0x7fU >> size);
    for (size_t i = 1; i < size; i++) {
        unsigned char next = (unsigned char)text[i];
        if ((next & 0xc0) != 0x80)
            return 1;
        value = value << 6 | (next & 0x3f);
    }
    if (value < smallest[size] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 1;
    *code = value;
    return size;
}

bool record_is_control(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    }
    return false;
}

/* Replaces what a terminal may act upon by dots, in place. */
static void replace_controls(char *text, size_t length)
{
    char *to = text;
    for (size_t at = 0, size; at < length; at += size) {
        uint32_t code;
        size = record_character(text + at, length - at, &code);
        if (code == RECORD_INVALID || record_is_control(code)) {
            *to++ = '.';
        } else {
            memmove(to, text + at, size);
            to += size;
        }
    }
    *to = '\0';
}

/* Returns a text, decoded in place; NULL: it is invalid. */
static const char *parse_text(record_reader *reader)
{
    if (!accept_character(reader, '"'))
        return NULL;
    char *text = reader->at;
    char *to = text;
    while (*reader->at != '"') {
        unsigned char c = (unsigned char)*reader->at++;
        if (c < ' ') /* also the end */
            return NULL;
        if (c == '\\')
            to = write_escaped(reader, to);
        else
            *to++ = (char)c;
        if (to == NULL)
            return NULL;
    }
    reader->at++;
    replace_controls(text, (size_t)(to - text));
    return text;
}

static bool parse_number(record_reader *reader, uint64_t *number)
{
    skip_space(reader);
    if (*reader->at < '0' || *reader->at > '9')
        return false;
    for (*number = 0; *reader->at >= '0' && *reader->at <= '9'; reader->at++) {
        unsigned digit = (unsigned)(*reader->at - '0');
        if (*number > (UINT64_MAX - digit) / 10)
            return false;
        *number = 10 * *number + digit;
    }
    return true;
}

static bool parse_field(record_reader *reader, record_field *field)
{
    field->name = parse_text(reader);
    if (field->name == NULL || !accept_character(reader, ':'))
        return false;
    skip_space(reader);
    field->text = NULL;
    if (*reader->at != '"')
        return parse_number(reader, &field->number);
    field->text = parse_text(reader);
    return field->text != NULL;
}

bool record_read(record *record, char *line, size_t length)
{
    record_reader reader = {line};
    record->count = 0;
    line[length] = '\0';
    if (memchr(line, '\0', length) != NULL || !accept_character(&reader, '{'))
        return false;
    do {
        if (record->count == MAX_RECORD_FIELDS ||
            !parse_field(&reader, &record->fields[record->count]))
            return false;
        record->count++;
    } while (accept_character(&reader, ','));
    if (!accept_character(&reader, '}'))
        return false;
    skip_space(&reader);
    return *reader.at == '\0' || (*reader.at == '\r' && reader.at[1] == '\0');
}

static const record_field *find_field(const record *record, const char *name)
{
    for (size_t i = 0; i < record->count; i++) {
        if (strcmp(record->fields[i].name, name) == 0)
            return &record->fields[i];
    }
    return NULL;
}

const char *record_text(const record *record, const char *name)
{
    const record_field *field = find_field(record, name);
    return field != NULL && field->text != NULL ? field->text : "";
}

uint64_t record_number(const record *record, const char *name)
{
    const record_field *field = find_field(record, name);
    return field != NULL && field->text == NULL ? field->number : 0;
}

bool record_has(const record *record, const char *name)
{
    return find_field(record, name) != NULL;
}

bool record_is(const record *record, const char *what)
{
    return strcmp(record_text(record, "is"), what) == 0;
}
