/* Commands on the bits of strings. Each runs to completion on the loop's thread. */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>

static bool find_string(struct client *client, struct bytes key, struct bytes *value)
{
    struct entry *entry;
    if (!find_to_read(client, key, VALUE_STRING, &entry))
        return false;
    *value = entry != NULL ? entry_value(entry) : (struct bytes){"", 0};
    return true;
}

/* Parses the offset of a bit. Returns false after an error reply. */
static bool read_bit_offset(struct client *client, size_t i, uint64_t *offset)
{
    int64_t number;
    if (number_read(client_argument(client, i), &number) && number >= 0 &&
        (uint64_t)number >> 3 < client->kv->limits.bulk) {
        *offset = (uint64_t)number;
        return true;
    }
    REPLY(client, "-ERR bit offset is not an integer or out of range");
    return false;
}

/* The bit at an offset; 0 behind the end. */
static unsigned bit_at(struct bytes value, uint64_t offset)
{
    return offset >> 3 < value.size
               ? (unsigned char)value.data[offset >> 3] >> (7 - (offset & 7)) & 1U
               : 0;
}

/* SETBIT key offset bit */
void command_setbit(struct client *client)
{
    struct kv *kv = client->kv;
    struct bytes key = client_argument(client, 1);
    struct entry *entry;
    uint64_t offset;
    int64_t bit;
    if (!read_bit_offset(client, 2, &offset))
        return;
    if (!number_read(client_argument(client, 3), &bit) || (bit != 0 && bit != 1)) {
        REPLY(client, "-ERR bit is not an integer or out of range");
        return;
    }
    if (!find_value(client, key, VALUE_STRING, &entry))
        return;
    struct bytes value = entry != NULL ? entry_value(entry) : (struct bytes){"", 0};
    size_t at = (size_t)(offset >> 3);
    unsigned old = bit_at(value, offset), mask = 0x80U >> (offset & 7);
    if (at < value.size && old == (unsigned)bit) {
        reply_number(client, old);
        return;
    }
    unsigned byte = at < value.size ? (unsigned char)value.data[at] : 0;
    const char changed = (char)(bit != 0 ? byte | mask : byte & ~mask);
    if (keyspace_set_range(&kv->keys, key, at, (struct bytes){&changed, 1}) == NULL) {
        reply_no_memory(client);
        return;
    }
    kv_log_set_range(kv, key, at, (struct bytes){&changed, 1});
    kv_notify(kv, NOTIFY_STRING, "setbit", key);
    reply_number(client, old);
}

void command_getbit(struct client *client)
{
    struct bytes value;
    uint64_t offset;
    if (read_bit_offset(client, 2, &offset) &&
        find_string(client, client_argument(client, 1), &value))
        reply_number(client, bit_at(value, offset));
}

/* ---- Ranges ---- */

/* Bits from `begin` to the one before `end`. */
struct bit_range {
    uint64_t begin, end;
    bool has_end;     /* given by the request */
    bool is_reversed; /* it counts from the end, from a later bit to an earlier one */
};

/*
 * Parses [start [end [BYTE|BIT]]] from argument `i` on; negative numbers count from the end. Returns
 * false after an error reply.
 */
static bool read_bit_range(struct client *client, size_t i, size_t size, struct bit_range *range)
{
    size_t count = client->request.count - i;
    int64_t first = 0, last = -1, unit = 8;
    *range = (struct bit_range){.has_end = count >= 2};
    if (count > 3) {
        reply_syntax_error(client);
        return false;
    }
    if (count > 0 && !argument_number(client, i, &first))
        return false;
    if (count == 3 && bytes_are(client_argument(client, i + 2), "BIT")) {
        unit = 1;
    } else if (count == 3 && !bytes_are(client_argument(client, i + 2), "BYTE")) {
        reply_syntax_error(client);
        return false;
    }
    if (count > 1 && !argument_number(client, i + 1, &last))
        return false;
    int64_t all = (int64_t)size * 8 / unit;
    range->is_reversed = first < 0 && last < 0 && first > last;
    if (first < 0)
        first = first + all > 0 ? first + all : 0;
    if (last < 0)
        last = last + all > 0 ? last + all : 0;
    if (last >= all)
        last = all - 1;
    if (first <= last) {
        range->begin = (uint64_t)(first * unit);
        range->end = (uint64_t)((last + 1) * unit);
    }
    return true;
}

/* A byte of the value, in which bits out of the range are `outside`. */
static unsigned byte_in_range(struct bytes value, size_t at, const struct bit_range *range,
                              bool outside)
{
    unsigned byte = (unsigned char)value.data[at], mask = 0xff;
    uint64_t first = (uint64_t)at * 8;
    if (first < range->begin)
        mask &= 0xffU >> (range->begin - first);
    if (first + 8 > range->end)
        mask &= 0xffU << (first + 8 - range->end);
    return outside ? byte | (~mask & 0xff) : byte & mask;
}

/* BITCOUNT key [start end [BYTE|BIT]] */
void command_bitcount(struct client *client)
{
    struct bytes value;
    struct bit_range range;
    int64_t count = 0;
    if (!find_string(client, client_argument(client, 1), &value))
        return;
    if (client->request.count == 3) {
        reply_syntax_error(client);
        return;
    }
    if (!read_bit_range(client, 2, value.size, &range))
        return;
    if (range.is_reversed)
        range.begin = range.end = 0;
    size_t at = (size_t)(range.begin / 8), end = (size_t)((range.end + 7) / 8);
    client->kv->work += (end - at) / 64;
    while (at < end) {
        uint64_t word;
        bool is_inside = at > range.begin / 8 && end - at > sizeof word;
        if (is_inside) {
            memcpy(&word, value.data + at, sizeof word);
            count += __builtin_popcountll(word);
            at += sizeof word;
        } else {
            count += __builtin_popcount(byte_in_range(value, at++, &range, false));
        }
    }
    reply_number(client, count);
}

/* The first bit of the range that is `bit`, or -1. */
static int64_t find_bit(struct bytes value, const struct bit_range *range, bool bit)
{
    const unsigned none = bit ? 0 : 0xff; /* a byte without such a bit */
    size_t at = (size_t)(range->begin / 8), end = (size_t)((range->end + 7) / 8);
    for (; at < end; at++) {
        uint64_t word, all = bit ? 0 : UINT64_MAX;
        while (at > range->begin / 8 && end - at > sizeof word) {
            memcpy(&word, value.data + at, sizeof word);
            if (word != all)
                break;
            at += sizeof word;
        }
        unsigned byte = byte_in_range(value, at, range, !bit);
        if (byte != none)
            return (int64_t)at * 8 + __builtin_clz(byte ^ none) - (int)(sizeof byte * 8 - 8);
    }
    return -1;
}

/*
 * BITPOS key bit [start [end [BYTE|BIT]]]. Behind the value there are zeros, unless the end is given.
 */
void command_bitpos(struct client *client)
{
    struct entry *entry;
    struct bit_range range;
    int64_t bit;
    if (!argument_number(client, 2, &bit))
        return;
    if (bit != 0 && bit != 1) {
        REPLY(client, "-ERR The bit argument must be 1 or 0.");
        return;
    }
    if (!find_to_read(client, client_argument(client, 1), VALUE_STRING, &entry))
        return;
    if (entry == NULL) {
        reply_number(client, bit != 0 ? -1 : 0);
        return;
    }
    struct bytes value = entry_value(entry);
    if (!read_bit_range(client, 3, value.size, &range))
        return;
    client->kv->work += (size_t)((range.end - range.begin) / 512);
    int64_t found = find_bit(value, &range, bit != 0);
    if (found < 0 && bit == 0 && range.end > range.begin && !range.has_end)
        found = (int64_t)value.size * 8;
    reply_number(client, found);
}

/* ---- BITOP ---- */

enum bit_operation { BITS_AND, BITS_OR, BITS_XOR, BITS_NOT };

static bool read_bit_operation(struct client *client, enum bit_operation *operation)
{
    static const char *const names[] = {"AND", "OR", "XOR", "NOT"};
    for (int i = 0; i < 4; i++) {
        if (bytes_are(client_argument(client, 1), names[i])) {
            *operation = (enum bit_operation)i;
            if (*operation != BITS_NOT || client->request.count == 4)
                return true;
            REPLY(client, "-ERR BITOP NOT must be called with a single source key.");
            return false;
        }
    }
    reply_syntax_error(client);
    return false;
}

/* Combines a value, behind which there are zeros, with the result. */
static void combine_bits(char *result, size_t size, struct bytes value,
                         enum bit_operation operation)
{
    for (size_t i = 0; i < value.size; i++) {
        if (operation == BITS_AND)
            result[i] = (char)(result[i] & value.data[i]);
        else if (operation == BITS_OR)
            result[i] = (char)(result[i] | value.data[i]);
        else
            result[i] = (char)(result[i] ^ value.data[i]);
    }
    if (operation == BITS_AND)
        memset(result + value.size, 0, size - value.size);
}

/*
 * The sizes of the sources: the largest, and their sum, which a short request could make very large by
 * naming a key many times. Returns false after an error reply.
 */
static bool measure_sources(struct client *client, size_t *largest)
{
    struct bytes value;
    uint64_t sum = 0, limit = client->kv->limits.total;
    *largest = 0;
    for (size_t i = 3; i < client->request.count; i++) {
        if (!find_string(client, client_argument(client, i), &value))
            return false;
        sum += value.size;
        *largest = value.size > *largest ? value.size : *largest;
    }
    client->kv->work += (size_t)(sum / 64);
    if (sum <= limit)
        return true;
    reply_error(client, "-ERR the values have more than %llu bytes", (unsigned long long)limit);
    return false;
}

/* Makes the result. Returns NULL if memory is exhausted. */
static char *combine_sources(struct client *client, enum bit_operation operation, size_t size)
{
    struct bytes value = {NULL, 0};
    char *result = calloc(size, 1);
    for (size_t i = 3; result != NULL && i < client->request.count; i++) {
        struct entry **link = keyspace_find(&client->kv->keys, client_argument(client, i));
        value = link != NULL ? entry_value(*link) : (struct bytes){"", 0};
        if (i > 3)
            combine_bits(result, size, value, operation);
        else
            memcpy(result, value.data, value.size);
    }
    for (size_t i = 0; result != NULL && operation == BITS_NOT && i < size; i++)
        result[i] = (char)~result[i];
    return result;
}

/* BITOP AND|OR|XOR|NOT target source [source ...] */
void command_bitop(struct client *client)
{
    struct kv *kv = client->kv;
    struct bytes to = client_argument(client, 2);
    enum bit_operation operation;
    size_t size;
    if (!read_bit_operation(client, &operation) || !measure_sources(client, &size))
        return;
    if (size == 0) {
        struct entry **link = keyspace_find(&kv->keys, to);
        if (link != NULL)
            kv_delete(kv, link, to);
        reply_number(client, 0);
        return;
    }
    char *result = combine_sources(client, operation, size);
    if (result == NULL)
        reply_no_memory(client);
    else if (assign_value(client, to, (struct bytes){result, size}, 0, "set"))
        reply_number(client, (int64_t)size);
    free(result);
}
