/* Entries of a Redis stream as messages: redis.h has their fields. */
#include "redis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { REDIS_FIELD_NAME = 300 /* "h:" and a header's name, and some more */ };

/* Fields of an entry: for each, the sizes of name and value, the name, the value. */
struct redis_fields {
    uint8_t *bytes;
    size_t size, capacity;
    size_t limit; /* bytes of a message */
    bool is_large;
};

struct redis_field {
    uint32_t name_size, value_size;
};

/* Room behind the fields that are there, or NULL: they are too large, or there is no memory. */
static uint8_t *redis_fields_grow(struct redis_fields *fields, size_t more)
{
    if (fields->size + more > 2 * fields->limit + 65536)
        fields->is_large = true;
    if (fields->is_large)
        return NULL;
    if (more > fields->capacity - fields->size) {
        size_t capacity = (fields->size + more) * 2;
        uint8_t *grown = realloc(fields->bytes, capacity);
        if (grown == NULL)
            return NULL;
        fields->bytes = grown;
        fields->capacity = capacity;
    }
    uint8_t *at = fields->bytes + fields->size;
    fields->size += more;
    return at;
}

static int redis_read_bulk_size(struct redis_link *link, size_t *size)
{
    struct redis_token token;
    int status = bide_redis_read_(link, &token);
    if (status < 0)
        return status;
    if (token.type != '$' || token.value < 0) {
        bide_redis_link_close_(link);
        return -EPROTO;
    }
    *size = (size_t)token.value;
    return 0;
}

/* Reads one field and its value. */
static int redis_read_field(struct redis_link *link, struct redis_fields *fields)
{
    char name[REDIS_FIELD_NAME];
    size_t name_size = 0, value_size = 0;
    int status = redis_read_bulk_size(link, &name_size);
    if (status == 0 && name_size > sizeof name)
        fields->is_large = true;
    if (status == 0)
        status = bide_redis_read_bytes_(link, name_size > sizeof name ? NULL : name, name_size);
    if (status == 0)
        status = redis_read_bulk_size(link, &value_size);
    if (status < 0)
        return status;
    const struct redis_field head = {(uint32_t)name_size, (uint32_t)value_size};
    uint8_t *at = redis_fields_grow(fields, sizeof head + name_size + value_size);
    if (at == NULL && !fields->is_large) {
        bide_redis_link_close_(link);
        return -ENOMEM;
    }
    if (at == NULL)
        return bide_redis_read_bytes_(link, NULL, value_size);
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, name, name_size);
    return bide_redis_read_bytes_(link, at + sizeof head + name_size, value_size);
}

/* The next field, as a header of the whole name. */
static bool redis_next_field(const struct redis_fields *fields, size_t *at, bide_log_header *field)
{
    struct redis_field head;
    if (*at == fields->size)
        return false;
    memcpy(&head, fields->bytes + *at, sizeof head);
    field->name = (const char *)fields->bytes + *at + sizeof head;
    field->name_size = head.name_size;
    field->value = field->name + head.name_size;
    field->value_size = head.value_size;
    *at += sizeof head + head.name_size + head.value_size;
    return true;
}

static bool redis_field_is(const bide_log_header *field, const char *name)
{
    return field->name_size == strlen(name) && memcmp(field->name, name, field->name_size) == 0;
}

/* True: the field is a header, which it becomes. Headers of this library begin with "h:". */
static bool redis_field_to_header(bide_log_header *field)
{
    if (field->name_size > 2 && memcmp(field->name, "h:", 2) == 0) {
        field->name += 2;
        field->name_size -= 2;
    }
    return field->name_size - 1 < UINT8_MAX;
}

/* Makes the message of the fields: 0, -ENOMEM, or -EMSGSIZE: it is larger than messages may be. */
static int redis_message_make(const struct redis_fields *fields, bide_log_message *message)
{
    bide_log_header *headers = NULL, field, data = {0}, key = {0};
    size_t at = 0, count = 0;
    while (redis_next_field(fields, &at, &field))
        count++;
    if (count != 0)
        headers = calloc(count, sizeof *headers);
    if (count != 0 && headers == NULL)
        return -ENOMEM;
    bool is_large = false;
    count = at = 0;
    while (redis_next_field(fields, &at, &field)) {
        if (data.name == NULL && redis_field_is(&field, "data"))
            data = field;
        else if (key.name == NULL && redis_field_is(&field, "key"))
            key = field;
        else if (redis_field_to_header(&field))
            headers[count++] = field;
        else
            is_large = true;
    }
    const bide_log_message written = {.headers = headers, .header_count = count};
    size_t encoded = bide_log_headers_size_(&written);
    uint8_t *memory = NULL;
    if (!is_large && encoded <= fields->limit &&
        key.value_size + data.value_size <= fields->limit - encoded)
        memory = malloc(key.value_size + encoded + data.value_size + 1);
    else
        is_large = true;
    if (memory != NULL) {
        if (key.value_size != 0)
            memcpy(memory, key.value, key.value_size);
        bide_log_headers_write_(&written, memory + key.value_size);
        if (data.value_size != 0)
            memcpy(memory + key.value_size + encoded, data.value, data.value_size);
        message->key = key.value_size != 0 ? memory : NULL;
        message->key_size = key.value_size;
        message->encoded = memory + key.value_size;
        message->encoded_size = encoded;
        message->data = memory + key.value_size + encoded;
        message->size = data.value_size;
    }
    free(headers);
    return is_large ? -EMSGSIZE : memory == NULL ? -ENOMEM : 0;
}

void *bide_redis_memory_of_(const bide_log_message *message)
{
    return (void *)((uintptr_t)message->encoded - message->key_size);
}

void bide_redis_message_drop_(bide_log_message *message)
{
    free(bide_redis_memory_of_(message));
    message->encoded = NULL;
    message->key_size = 0;
}

int bide_redis_read_entry_(struct redis_link *link, bide_log_message *message)
{
    struct redis_fields fields = {.limit = link->redis->log.size};
    int64_t parts = 0, count = 0;
    bool is_nil = false;
    *message = (bide_log_message){.deliveries = 1};
    int status = bide_redis_read_array_(link, &parts);
    if (status < 0 || parts == 0)
        return status;
    status = bide_redis_read_id_(link, &message->position, &is_nil);
    message->time = message->position.high_ > UINT64_MAX / 1000000
                        ? UINT64_MAX
                        : message->position.high_ * 1000000;
    if (status == 0)
        status = bide_redis_read_array_(link, &count);
    if (status < 0)
        return status;
    for (int64_t i = 0; status == 0 && i < count / 2; i++)
        status = redis_read_field(link, &fields);
    if (status == 0 && count != 0)
        status = fields.is_large ? -EMSGSIZE : redis_message_make(&fields, message);
    free(fields.bytes);
    if (status == -ENOMEM)
        bide_redis_link_close_(link);
    return status < 0 ? status : count != 0;
}

int bide_redis_read_newest_(struct redis_link *link, bide_log_position *id)
{
    int64_t entries = 0, parts = 0;
    bool is_nil = false;
    *id = (bide_log_position){0, 0};
    bide_redis_command_(link, 6, "XREVRANGE", link->redis->stream, "+", "-", "COUNT", "1");
    int status = bide_redis_flush_(link);
    if (status == 0)
        status = bide_redis_read_array_(link, &entries);
    if (status == 0 && entries == 1)
        status = bide_redis_read_array_(link, &parts);
    if (status == 0 && parts == 2)
        status = bide_redis_read_id_(link, id, &is_nil);
    return status == 0 && parts == 2 ? bide_redis_skip_(link) : status;
}
