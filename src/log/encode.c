/*
 * Headers as bytes, the same on each machine: for each, the size of its name (1 byte, not 0), the
 * size of its value (4 bytes, the lowest first), the name, the value. Messages in slots, and positions
 * as text.
 */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOG_HEADER_FIXED = 5 };

size_t bide_log_headers_size_(const bide_log_message *message)
{
    size_t size = message->encoded_size;
    if (size > BIDE_LOG_SIZE_MAX || !bide_log_headers_are_whole_(message->encoded, size))
        return SIZE_MAX;
    for (size_t i = 0; i < message->header_count; i++) {
        const bide_log_header *header = &message->headers[i];
        if (header->name_size - 1 >= UINT8_MAX || header->value_size > BIDE_LOG_SIZE_MAX)
            return SIZE_MAX;
        size += LOG_HEADER_FIXED + header->name_size + header->value_size;
        if (size > BIDE_LOG_SIZE_MAX)
            return SIZE_MAX;
    }
    return size;
}

static void *log_copy(void *to, const void *from, size_t size)
{
    if (size != 0) /* NULL is allowed then */
        memcpy(to, from, size);
    return (uint8_t *)to + size;
}

void bide_log_headers_write_(const bide_log_message *message, uint8_t *out)
{
    for (size_t i = 0; i < message->header_count; i++) {
        const bide_log_header *header = &message->headers[i];
        *out++ = (uint8_t)header->name_size;
        for (unsigned shift = 0; shift < 32; shift += 8)
            *out++ = (uint8_t)((uint32_t)header->value_size >> shift);
        out = log_copy(out, header->name, header->name_size);
        out = log_copy(out, header->value, header->value_size);
    }
    log_copy(out, message->encoded, message->encoded_size);
}

/* The header at *at, which moves behind it; false: there is none, or its bytes are not whole. */
static bool log_header_read(const uint8_t *bytes, size_t size, size_t *at, bide_log_header *header)
{
    if (*at > size || size - *at < LOG_HEADER_FIXED)
        return false;
    const uint8_t *from = bytes + *at;
    size_t left = size - *at - LOG_HEADER_FIXED;
    uint32_t value = 0;
    for (unsigned i = 0; i < 4; i++)
        value |= (uint32_t)from[1 + i] << (8 * i);
    if (from[0] == 0 || left < from[0] || left - from[0] < value)
        return false;
    header->name = (const char *)from + LOG_HEADER_FIXED;
    header->name_size = from[0];
    header->value = from + LOG_HEADER_FIXED + from[0];
    header->value_size = value;
    *at += LOG_HEADER_FIXED + header->name_size + value;
    return true;
}

bool bide_log_headers_are_whole_(const void *encoded, size_t size)
{
    size_t at = 0;
    bide_log_header header;
    while (at < size && log_header_read(encoded, size, &at, &header))
        ;
    return at == size;
}

bool bide_log_next_header(const bide_log_message *message, size_t *at, bide_log_header *header)
{
    return log_header_read(message->encoded, message->encoded_size, at, header);
}

uint64_t bide_log_time_(uint64_t *last_time)
{
    struct timespec clock = {0};
    clock_gettime(CLOCK_REALTIME, &clock);
    uint64_t now = (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
    if (now > *last_time) /* times do not decrease: replay from a time depends on it */
        *last_time = now;
    return *last_time;
}

void bide_log_slot_fill_(struct log_slot *slot, uint8_t *bytes, const bide_log_message *message,
                         uint64_t time)
{
    slot->time = time;
    slot->key_size = message->key != NULL ? (uint32_t)message->key_size : 0;
    slot->encoded_size = (uint32_t)bide_log_headers_size_(message);
    slot->size = (uint32_t)message->size;
    bytes = log_copy(bytes, message->key, slot->key_size);
    bide_log_headers_write_(message, bytes);
    log_copy(bytes + slot->encoded_size, message->data, slot->size);
}

void bide_log_slot_read_(const struct log_slot *slot, const uint8_t *bytes, uint32_t size,
                         bide_log_message *message)
{
    const struct log_slot found = *slot; /* checked and used as one value */
    message->time = found.time;
    if (found.key_size > size || found.encoded_size > size - found.key_size ||
        found.size > size - found.key_size - found.encoded_size)
        return;
    message->key = found.key_size != 0 ? bytes : NULL;
    message->key_size = found.key_size;
    message->encoded = bytes + found.key_size;
    message->encoded_size = found.encoded_size;
    message->data = bytes + found.key_size + found.encoded_size;
    message->size = found.size;
}

int bide_log_position_print(bide_log_position position, char *text, size_t size)
{
    int length = snprintf(text, size, "%" PRIu64 "-%" PRIu64, position.high_, position.low_);
    return length < 0 || (size_t)length >= size ? -EMSGSIZE : 0;
}

/* Reads a number, without a sign or leading zeros, and moves *text behind it. */
static int log_number_read(const char **text, uint64_t *number)
{
    const char *at = *text;
    uint64_t value = 0;
    if (*at < '0' || *at > '9' || (*at == '0' && at[1] >= '0' && at[1] <= '9'))
        return -EINVAL;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return -ERANGE;
        value = value * 10 + digit;
    }
    *text = at;
    *number = value;
    return 0;
}

int bide_log_position_parse(bide_log_position *position, const char *text)
{
    bide_log_position read;
    int status = log_number_read(&text, &read.high_);
    if (status < 0)
        return status;
    if (*text++ != '-')
        return -EINVAL;
    status = log_number_read(&text, &read.low_);
    if (status < 0)
        return status;
    if (*text != '\0')
        return -EINVAL;
    *position = read;
    return 0;
}
