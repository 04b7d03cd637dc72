/* BITFIELD and BITFIELD_RO: numbers of 1 to 64 bits in strings. Each runs to completion on the loop's thread. */
#include "commands.h"

/* Each change may log the key, so this bounds the records beyond the size of the request. */
enum { MAX_LOGGED_KEYS = 1 << 20 }; /* bytes */

enum field_operation { FIELD_GET, FIELD_SET, FIELD_ADD };
enum overflow { OVERFLOW_WRAPS, OVERFLOW_SATURATES, OVERFLOW_FAILS };

/* An operation of the request: on `bits` bits from `offset` on. */
struct field {
    enum field_operation operation;
    enum overflow overflow;
    bool is_signed;
    unsigned bits;
    uint64_t offset;
    int64_t number; /* FIELD_SET, FIELD_ADD */
};

/* ---- Arguments ---- */

/* Parses u1 to u63, or i1 to i64. Returns false after an error reply. */
static bool read_field_type(struct client *client, size_t i, struct field *field)
{
    struct bytes text = client_argument(client, i);
    int64_t bits = 0;
    field->is_signed = text.size > 0 && (text.data[0] | 0x20) == 'i';
    if (text.size > 1 && (field->is_signed || (text.data[0] | 0x20) == 'u') &&
        number_read((struct bytes){text.data + 1, text.size - 1}, &bits) && bits >= 1 &&
        bits <= (field->is_signed ? 64 : 63)) {
        field->bits = (unsigned)bits;
        return true;
    }
    REPLY(client, "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not "
                  "supported but i64 is.");
    return false;
}

/* Parses the offset of a field: N, or #N for N fields of this size. Returns false after an error reply. */
static bool read_field_offset(struct client *client, size_t i, struct field *field)
{
    struct bytes text = client_argument(client, i);
    bool counts_fields = text.size > 0 && text.data[0] == '#';
    int64_t number;
    if (number_read((struct bytes){text.data + counts_fields, text.size - counts_fields},
                    &number) &&
        number >= 0 &&
        !__builtin_mul_overflow((uint64_t)number, counts_fields ? field->bits : 1U,
                                &field->offset) &&
        field->offset >> 3 < client->kv->limits.bulk &&
        (field->offset + field->bits - 1) >> 3 < client->kv->limits.bulk)
        return true;
    REPLY(client, "-ERR bit offset is not an integer or out of range");
    return false;
}

static bool read_overflow(struct client *client, size_t i, enum overflow *overflow)
{
    static const char *const names[] = {"WRAP", "SAT", "FAIL"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
        if (bytes_are(client_argument(client, i), names[at])) {
            *overflow = (enum overflow)at;
            return true;
        }
    }
    REPLY(client, "-ERR Invalid OVERFLOW type specified");
    return false;
}

/*
 * Parses the next operation from argument *i on, and moves *i behind it. Returns 1, 0 if there is none, or -1 after an
 * error reply. OVERFLOW holds for the following operations.
 */
static int next_field(struct client *client, size_t *i, struct field *field)
{
    size_t count = client->request.count;
    while (*i + 1 < count && bytes_are(client_argument(client, *i), "OVERFLOW")) {
        if (!read_overflow(client, *i + 1, &field->overflow))
            return -1;
        *i += 2;
    }
    if (*i == count)
        return 0;
    struct bytes word = client_argument(client, *i);
    size_t arguments = bytes_are(word, "GET") ? 3 : 4;
    field->operation = arguments == 3 ? FIELD_GET : bytes_are(word, "SET") ? FIELD_SET : FIELD_ADD;
    if (count - *i < arguments || (field->operation == FIELD_ADD && !bytes_are(word, "INCRBY"))) {
        reply_syntax_error(client);
        return -1;
    }
    if (!read_field_type(client, *i + 1, field) || !read_field_offset(client, *i + 2, field) ||
        (arguments == 4 && !argument_number(client, *i + 3, &field->number)))
        return -1;
    *i += arguments;
    return 1;
}

/*
 * Returns false after an error reply if so many numbers may be too large a reply: then nothing may change. In a transaction the
 * changes are made, and reply_field limits the reply.
 */
static bool check_reply(struct client *client, size_t numbers)
{
    if (client->transaction.is_running || !client_refuses_more(client, (numbers + 1) * LINE_SIZE))
        return true;
    reply_too_large(client);
    return false;
}

/*
 * Checks all operations. *size is what the string must have for them, or 0 if none changes it. Returns false after an error
 * reply.
 */
static bool check_fields(struct client *client, bool only_reads, size_t *size)
{
    struct field field = {.overflow = OVERFLOW_WRAPS};
    size_t i = 2, writes = 0, numbers = 0;
    int more;
    *size = 0;
    for (; (more = next_field(client, &i, &field)) > 0; numbers++) {
        size_t end = (size_t)((field.offset + field.bits + 7) / 8);
        if (field.operation == FIELD_GET)
            continue;
        writes++;
        *size = end > *size ? end : *size;
    }
    if (more < 0)
        return false;
    if (only_reads && writes > 0)
        REPLY(client, "-ERR BITFIELD_RO only supports the GET subcommand");
    else if (writes > 1 && client_argument(client, 1).size > MAX_LOGGED_KEYS / writes)
        reply_error(client, "-ERR the changes times the size of the key are more than %d bytes",
                    MAX_LOGGED_KEYS);
    else
        return check_reply(client, numbers);
    return false;
}

/* ---- Numbers ---- */

/* The number of a field; bits behind the end of the value are zeros. */
static int64_t get_field(struct bytes value, const struct field *field)
{
    uint64_t number = 0;
    for (uint64_t at = field->offset; at < field->offset + field->bits; at++) {
        unsigned byte = at >> 3 < value.size ? (unsigned char)value.data[at >> 3] : 0;
        number = number << 1 | (byte >> (7 - (at & 7)) & 1U);
    }
    if (field->is_signed && field->bits < 64 && number >> (field->bits - 1) != 0)
        number |= UINT64_MAX << field->bits;
    return (int64_t)number;
}

/* The number as so many bits have it. */
static int64_t wrap(uint64_t number, const struct field *field)
{
    unsigned unused = 64 - field->bits;
    number <<= unused;
    return field->is_signed ? (int64_t)number >> unused : (int64_t)(number >> unused);
}

/* The new number of a field with an old one. Returns false if it is too large or too small, and OVERFLOW is FAIL. */
static bool change_number(const struct field *field, int64_t old, int64_t *number)
{
    const unsigned unused = 64 - field->bits;
    const int64_t max = field->is_signed ? INT64_MAX >> unused : (int64_t)(UINT64_MAX >> unused);
    const int64_t min = field->is_signed ? -max - 1 : 0;
    bool is_above = false, is_below = false;
    int64_t sum = field->number;
    if (field->operation == FIELD_ADD && __builtin_add_overflow(old, field->number, &sum)) {
        is_above = field->number > 0;
        is_below = !is_above;
    } else if (!field->is_signed && field->operation == FIELD_SET && sum < 0) {
        is_above = true; /* (as redis has it: it is read as a number without a sign) */
    } else {
        is_above = sum > max;
        is_below = sum < min;
    }
    *number = sum;
    if (!is_above && !is_below)
        return true;
    if (field->overflow == OVERFLOW_SATURATES)
        *number = is_above ? max : min;
    else
        *number = wrap((uint64_t)sum, field);
    return field->overflow != OVERFLOW_FAILS;
}

/* ---- The string ---- */

/* The string of the request's key. Its entry stays where it is, since it has the space for all operations. */
struct fields {
    struct client *client;
    struct entry *entry;               /* or NULL: there is no such key, and nothing changes it */
    size_t changed_begin, changed_end; /* bytes that are still to be logged; end 0: none */
    bool has_changed;
};

static void log_changed(struct fields *fields)
{
    struct client *client = fields->client;
    size_t begin = fields->changed_begin, end = fields->changed_end;
    if (end == 0)
        return;
    kv_log_set_range(client->kv, client_argument(client, 1), begin,
                     (struct bytes){entry_value(fields->entry).data + begin, end - begin});
    fields->changed_begin = fields->changed_end = 0;
}

/* Notes that bytes have changed. Changes close to each other are one record. */
static void note_changed(struct fields *fields, size_t begin, size_t end)
{
    enum { CLOSE = 32 };
    fields->has_changed = true;
    if (begin > fields->changed_end + CLOSE || fields->changed_begin > end + CLOSE)
        log_changed(fields);
    if (fields->changed_end == 0)
        fields->changed_begin = begin;
    if (begin < fields->changed_begin)
        fields->changed_begin = begin;
    if (end > fields->changed_end)
        fields->changed_end = end;
}

/*
 * Finds the string, and makes it as long as `size`, which is 0 without changes, with zeros: then no operation needs memory. Returns false after an error
 * reply.
 */
static bool find_fields(struct fields *fields, size_t size)
{
    static const struct bytes zero = {"", 1};
    struct client *client = fields->client;
    struct bytes key = client_argument(client, 1);
    if (!(size > 0 ? find_value : find_to_read)(client, key, VALUE_STRING, &fields->entry))
        return false;
    if (size <= (fields->entry != NULL ? fields->entry->value_size : 0))
        return true;
    fields->entry = keyspace_set_range(&client->kv->keys, key, size - 1, zero);
    if (fields->entry == NULL) {
        reply_no_memory(client);
        return false;
    }
    note_changed(fields, size - 1, size);
    return true;
}

/* Writes a number to a field of the string, which has its bytes. */
static void put_field(struct fields *fields, const struct field *field, int64_t number)
{
    struct entry *entry = fields->entry;
    char bytes[9]; /* a field of 64 bits may begin within a byte */
    size_t first = (size_t)(field->offset >> 3);
    size_t size = (size_t)((field->offset + field->bits - 1) >> 3) - first + 1;
    bide_assert(first + size <= entry->value_size && size <= sizeof bytes);
    char *at_first = entry->bytes + entry->key_size + first;
    memcpy(bytes, at_first, size);
    for (unsigned i = 0; i < field->bits; i++) {
        uint64_t at = field->offset + i - (uint64_t)first * 8;
        unsigned mask = 0x80U >> (at & 7), byte = (unsigned char)bytes[at >> 3];
        bool bit = (uint64_t)number >> (field->bits - 1 - i) & 1;
        bytes[at >> 3] = (char)(bit ? byte | mask : byte & ~mask);
    }
    if (memcmp(bytes, at_first, size) == 0)
        return;
    keyspace_before_change(&fields->client->kv->keys, entry);
    memcpy(at_first, bytes, size);
    note_changed(fields, first, first + size);
}

/* ---- The commands ---- */

/* Replies with a number, or with nothing; no more if the reply is too large. */
static void reply_field(struct client *client, bool has_number, int64_t number)
{
    if (client_refuses_reply(client))
        return;
    if (has_number)
        reply_number(client, number);
    else
        reply_nothing(client);
}

static void run_field(struct fields *fields, const struct field *field)
{
    struct client *client = fields->client;
    struct bytes value = fields->entry != NULL ? entry_value(fields->entry) : (struct bytes){"", 0};
    int64_t old = get_field(value, field), number = old;
    client->kv->work++;
    bool has_number = field->operation == FIELD_GET || change_number(field, old, &number);
    if (has_number && field->operation != FIELD_GET)
        put_field(fields, field, number);
    reply_field(client, has_number, field->operation == FIELD_ADD ? number : old);
}

static void run_fields(struct client *client, bool only_reads)
{
    struct field field = {.overflow = OVERFLOW_WRAPS};
    struct fields fields = {.client = client};
    size_t size, i = 2, count = 0, begin;
    if (!check_fields(client, only_reads, &size) || !find_fields(&fields, size))
        return;
    begin = reply_start_array(client);
    for (; next_field(client, &i, &field) > 0; count++)
        run_field(&fields, &field);
    log_changed(&fields);
    if (fields.has_changed)
        kv_notify(client->kv, NOTIFY_STRING, "setbit", client_argument(client, 1));
    finish_listing(client, begin, count);
}

/* BITFIELD key [GET type offset | [OVERFLOW WRAP|SAT|FAIL] SET type offset number | INCRBY type offset number] ... */
void command_bitfield(struct client *client)
{
    run_fields(client, false);
}

/* BITFIELD_RO key [GET type offset] ... */
void command_bitfield_ro(struct client *client)
{
    run_fields(client, true);
}
