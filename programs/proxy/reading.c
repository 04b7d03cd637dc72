/*
 * Parses words, numbers, times and networks of a configuration file. Used at startup and by
 * reloads, on the loop's thread.
 */
#define _GNU_SOURCE
#include "reading.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool reading_fail(struct reading *reading, unsigned line, const char *format, ...)
{
    va_list arguments;
    int length = snprintf(reading->error_text, reading->size, "%s:%u: ", reading->file, line);
    if (length >= 0 && (size_t)length < reading->size) {
        va_start(arguments, format);
        vsnprintf(reading->error_text + length, reading->size - (size_t)length, format, arguments);
        va_end(arguments);
    }
    return false;
}

void *reading_allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL) {
        fputs("proxy: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

char *reading_copy(const char *word)
{
    size_t size = strlen(word) + 1;
    return memcpy(reading_allocate(size), word, size);
}

/* Words are separated by blanks; a word that contains blanks or '#' is quoted with '"'. */
bool reading_split(struct reading *reading, char *text)
{
    reading->count = 0;
    for (;;) {
        text += strspn(text, " \t\r\n");
        if (*text == '\0' || *text == '#')
            return true;
        if (reading->count == MAX_WORDS)
            return reading_fail(reading, reading->line, "more than %d words", MAX_WORDS);
        bool is_quoted = *text == '"';
        char *word = text + is_quoted;
        char *end = word + strcspn(word, is_quoted ? "\"\n" : " \t\r\n");
        if (is_quoted && *end != '"')
            return reading_fail(reading, reading->line, "missing closing '\"'");
        bool is_last = *end == '\0';
        *end = '\0';
        reading->words[reading->count++] = word;
        text = is_last ? end : end + 1;
    }
}

bool reading_number(struct reading *reading, const char *word, uint64_t min, uint64_t max,
                    uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(word, &end, 10);
    if (*word < '0' || *word > '9' || *end != '\0' || errno != 0 || value < min || value > max)
        return reading_fail(reading, reading->line, "'%s' is not a number from %llu to %llu", word,
                            (unsigned long long)min, (unsigned long long)max);
    *number = value;
    return true;
}

bool reading_time(struct reading *reading, const char *word, uint64_t *time)
{
    static const struct {
        const char *name;
        uint64_t nanoseconds;
    } units[] = {{"ms", 1000000},
                 {"s", 1000000000},
                 {"", 1000000000},
                 {"m", UINT64_C(60000000000)},
                 {"h", UINT64_C(3600000000000)}};
    char *end;
    errno = 0;
    unsigned long long value = strtoull(word, &end, 10);
    if (*word >= '0' && *word <= '9' && errno == 0 && value > 0 && value < 1000000000) {
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
            if (strcmp(end, units[i].name) == 0 && value <= UINT64_MAX / 4 / units[i].nanoseconds) {
                *time = value * units[i].nanoseconds;
                return true;
            }
        }
    }
    return reading_fail(reading, reading->line, "'%s' is not a time such as 200ms, 5s, 1m or 2h",
                        word);
}

bool reading_switch(struct reading *reading, const char *word, bool *is_on)
{
    *is_on = strcmp(word, "on") == 0;
    return *is_on || strcmp(word, "off") == 0 ||
           reading_fail(reading, reading->line, "'%s' is neither on nor off", word);
}

bool reading_network(struct reading *reading, const char *word, struct network *network)
{
    char text[64];
    const char *slash = strchr(word, '/');
    size_t length = slash != NULL ? (size_t)(slash - word) : strlen(word);
    uint64_t bits = 0;
    if (length < sizeof text) {
        memcpy(text, word, length);
        text[length] = '\0';
        if (bide_address_ip(&network->address, text, 0) == 0) {
            bits = network->address.any.generic.sa_family == AF_INET ? 32 : 128;
            if (slash != NULL && !reading_number(reading, slash + 1, 0, bits, &bits))
                return false;
            network->bits = (unsigned)bits;
            return true;
        }
    }
    return reading_fail(reading, reading->line, "'%s' is not a network such as 10.0.0.0/8", word);
}
