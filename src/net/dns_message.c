/* The contract: dns_message.h. */
#define _GNU_SOURCE
#include "dns_message.h"

#include "names.h"

#include "../system/portable.h"

#include <errno.h>
#include <string.h>

enum { DNS_RECORD_REST = 10, DNS_QUESTION_REST = 4, DNS_MINIMUM = 4, DNS_SRV_HEAD = 6 };
enum { DNS_LABEL_MAX = 63, DNS_POINTER = 0xc0, DNS_NAME_MAX = 253 };
enum { DNS_SOA = 6 };

/* A position in a message. */
typedef struct dns_reader {
    const uint8_t *message;
    size_t size, at;
} dns_reader;

typedef struct dns_record {
    unsigned type;
    uint32_t life;
    size_t data, size; /* of its data: where, and how many bytes */
} dns_record;

static unsigned dns_read_16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static uint32_t dns_read_32(const uint8_t *at)
{
    return (uint32_t)dns_read_16(at) << 16 | dns_read_16(at + 2);
}

/* A time to live; negative numbers are 0 (RFC 2181, 8). */
static uint32_t dns_read_life(const uint8_t *at)
{
    uint32_t life = dns_read_32(at);
    return life <= INT32_MAX ? life : 0;
}

/* Whether so many bytes are left. */
static bool dns_has(const dns_reader *reader, size_t count)
{
    return reader->size - reader->at >= count;
}

static bool dns_skip_name(dns_reader *reader)
{
    while (dns_has(reader, 1)) {
        unsigned length = reader->message[reader->at++];
        if (length == 0)
            return true;
        bool is_pointer = (length & DNS_POINTER) == DNS_POINTER; /* which ends the name */
        if (is_pointer)
            length = 1;
        if (length > DNS_LABEL_MAX || !dns_has(reader, length))
            return false;
        reader->at += length;
        if (is_pointer)
            return true;
    }
    return false;
}

/* Begins after the questions. */
static bool dns_read_questions(dns_reader *reader, const uint8_t *message, size_t size)
{
    *reader = (dns_reader){message, size, BIDE_DNS_HEADER_};
    if (size < BIDE_DNS_HEADER_)
        return false;
    for (unsigned left = dns_read_16(message + 4); left != 0; left--) {
        if (!dns_skip_name(reader) || !dns_has(reader, DNS_QUESTION_REST))
            return false;
        reader->at += DNS_QUESTION_REST;
    }
    return true;
}

static bool dns_read_record(dns_reader *reader, dns_record *record)
{
    if (!dns_skip_name(reader) || !dns_has(reader, DNS_RECORD_REST))
        return false;
    const uint8_t *rest = reader->message + reader->at;
    reader->at += DNS_RECORD_REST;
    record->type = dns_read_16(rest);
    record->life = dns_read_life(rest + 4);
    record->data = reader->at;
    record->size = dns_read_16(rest + 8);
    if (!dns_has(reader, record->size))
        return false;
    reader->at += record->size;
    return true;
}

bool bide_dns_absence_(const uint8_t *message, size_t size, uint32_t *seconds)
{
    dns_reader reader;
    dns_record record;
    if (!dns_read_questions(&reader, message, size))
        return false;
    for (unsigned left = dns_read_16(message + 6); left != 0; left--) {
        if (!dns_read_record(&reader, &record))
            return false;
    }
    for (unsigned left = dns_read_16(message + 8); left != 0; left--) {
        if (!dns_read_record(&reader, &record))
            return false;
        if (record.type != DNS_SOA || record.size < DNS_MINIMUM)
            continue;
        uint32_t minimum = dns_read_life(message + record.data + record.size - DNS_MINIMUM);
        *seconds = record.life < minimum ? record.life : minimum;
        return true;
    }
    return false;
}

/* ---- Records ---- */

static bool dns_is_host_character(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '/';
}

/*
 * Reads the host name at `at` as text. Each pointer has to lead to an earlier place than the one before,
 * so the walk ends. Returns its length, or a negative number: it is invalid.
 */
static int dns_read_host(const dns_record *record, const dns_reader *reader, size_t at, char *text)
{
    size_t length = 0, before = record->data, end = record->data + record->size;
    for (;;) {
        if (at >= end)
            return -1;
        unsigned label = reader->message[at++];
        if ((label & DNS_POINTER) == DNS_POINTER) {
            if (at >= end)
                return -1;
            at = (label & ~(unsigned)DNS_POINTER) << 8 | reader->message[at];
            if (at >= before)
                return -1;
            end = before;
            before = at;
            continue;
        }
        if (label == 0)
            break;
        if (label > DNS_LABEL_MAX || label > end - at || length + label + 1 > DNS_NAME_MAX + 1)
            return -1;
        for (unsigned i = 0; i < label; i++) {
            if (!dns_is_host_character(reader->message[at + i]))
                return -1;
        }
        memcpy(text + length, reader->message + at, label);
        length += label;
        text[length++] = '.';
        at += label;
    }
    if (length > 1)
        length--; /* without the dot at its end */
    else
        text[length++] = '.'; /* the root: "." */
    text[length] = '\0';
    return (int)length;
}

static int dns_add_host(bide_resolve_records_operation *operation, const dns_reader *reader,
                        const dns_record *record)
{
    char text[DNS_NAME_MAX + 3];
    const uint8_t *head = reader->message + record->data;
    bide_name_record found = {.text = text};
    bool is_srv = operation->kind == BIDE_RECORD_SRV;
    if (is_srv && record->size < DNS_SRV_HEAD)
        return -EREMOTEIO;
    if (is_srv) {
        found.priority = (uint16_t)dns_read_16(head);
        found.weight = (uint16_t)dns_read_16(head + 2);
        found.port = (uint16_t)dns_read_16(head + 4);
    }
    int length = dns_read_host(record, reader, record->data + (is_srv ? DNS_SRV_HEAD : 0), text);
    if (length < 0)
        return -EREMOTEIO;
    found.size = (size_t)length;
    bide_names_add_record_(operation, &found);
    return 0;
}

/* Joins the strings of the record, each of which has its length in front. */
static int dns_add_texts(bide_resolve_records_operation *operation, const dns_reader *reader,
                         const dns_record *record)
{
    char *text = operation->text + operation->used;
    size_t room = sizeof operation->text - operation->used;
    const uint8_t *data = reader->message + record->data;
    size_t length = 0;
    if (room == 0) {
        operation->omitted++;
        return 0;
    }
    for (size_t at = 0; at < record->size;) {
        size_t part = data[at++];
        if (part > record->size - at)
            return -EREMOTEIO;
        if (part >= room - length) { /* (room for the zero too) */
            operation->omitted++;
            return 0;
        }
        memcpy(text + length, data + at, part);
        length += part;
        at += part;
    }
    bide_names_add_record_(operation, &(bide_name_record){.text = text, .size = length});
    return 0;
}

int bide_dns_records_(bide_resolve_records_operation *operation, const uint8_t *message,
                      size_t size, uint32_t *life)
{
    dns_reader reader;
    dns_record record;
    int count = 0;
    *life = INT32_MAX;
    if (!dns_read_questions(&reader, message, size))
        return -EREMOTEIO;
    for (unsigned left = dns_read_16(message + 6); left != 0; left--) {
        if (!dns_read_record(&reader, &record))
            return -EREMOTEIO;
        *life = record.life < *life ? record.life : *life;
        if (record.type != bide_names_record_type_(operation->kind))
            continue;
        int error = operation->kind == BIDE_RECORD_TXT ? dns_add_texts(operation, &reader, &record)
                                                       : dns_add_host(operation, &reader, &record);
        if (error != 0)
            return error;
        count++;
    }
    return count;
}
