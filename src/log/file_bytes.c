/* The bytes of a log's files: headers and records (docs/internals/log.md). */
#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char log_file_magic[8] = {'b', 'i', 'd', 'e', 'l', 'o', 'g', '\n'};

enum { LOG_FILE_VERSION = 1 };

void bide_log_put_(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

uint64_t bide_log_get_(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

int bide_log_write_all_(int descriptor, const void *data, size_t size, uint64_t offset)
{
    const uint8_t *from = data;
    while (size != 0) {
        ssize_t done = pwrite(descriptor, from, size, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        if (done == 0)
            return -EIO;
        from += done;
        size -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

/* Reads until `size` bytes are there or the file ends; how many, or a negative errno. */
static ssize_t log_file_read_up_to(int descriptor, void *data, size_t size, uint64_t offset)
{
    size_t count = 0;
    while (count < size) {
        ssize_t done =
            pread(descriptor, (uint8_t *)data + count, size - count, (off_t)(offset + count));
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        if (done == 0)
            break;
        count += (size_t)done;
    }
    return (ssize_t)count;
}

int bide_log_read_all_(int descriptor, void *data, size_t size, uint64_t offset)
{
    ssize_t count = log_file_read_up_to(descriptor, data, size, offset);
    return count < 0 ? (int)count : (size_t)count == size;
}

void bide_log_header_write_(uint8_t bytes[LOG_FILE_HEADER], enum log_file_kind kind, uint64_t id,
                            uint64_t base)
{
    memset(bytes, 0, LOG_FILE_HEADER);
    memcpy(bytes, log_file_magic, sizeof log_file_magic);
    bide_log_put_(bytes + 8, LOG_FILE_VERSION, 4);
    bide_log_put_(bytes + 12, kind, 4);
    bide_log_put_(bytes + 16, id, 8);
    bide_log_put_(bytes + 24, base, 8);
    bide_log_put_(bytes + 60, bide_log_crc_(bytes, 60), 4);
}

int bide_log_header_read_(const uint8_t bytes[LOG_FILE_HEADER], enum log_file_kind kind,
                          uint64_t *id, uint64_t *base)
{
    if (memcmp(bytes, log_file_magic, sizeof log_file_magic) != 0)
        return -EBADMSG;
    if (bide_log_get_(bytes + 8, 4) != LOG_FILE_VERSION)
        return -EPROTONOSUPPORT;
    if (bide_log_get_(bytes + 12, 4) != kind ||
        bide_log_get_(bytes + 60, 4) != bide_log_crc_(bytes, 60))
        return -EBADMSG;
    *id = bide_log_get_(bytes + 16, 8);
    *base = bide_log_get_(bytes + 24, 8);
    return 0;
}

struct log_file_reader *bide_log_reader_create_(const struct log_file *file, int descriptor)
{
    struct log_file_reader *reader = malloc(sizeof *reader);
    if (reader == NULL)
        return NULL;
    reader->descriptor = descriptor;
    reader->id = file->id;
    reader->offset = reader->count = 0;
    return reader;
}

int bide_log_reader_get_(struct log_file_reader *reader, uint64_t offset, size_t size,
                         const uint8_t **at)
{
    bide_assert(size <= sizeof reader->bytes);
    if (offset < reader->offset || offset - reader->offset > reader->count ||
        reader->count - (offset - reader->offset) < size) {
        ssize_t count =
            log_file_read_up_to(reader->descriptor, reader->bytes, sizeof reader->bytes, offset);
        reader->offset = offset;
        reader->count = count < 0 ? 0 : (size_t)count;
        if (count < 0)
            return (int)count;
    }
    *at = reader->bytes + (offset - reader->offset);
    return reader->count - (offset - reader->offset) >= size;
}

size_t bide_log_record_body_(const struct log_file_record *record)
{
    return (size_t)record->key_size + record->encoded_size + record->size;
}

/* It begins with the log's number, so that a message with a record of another log is none here. */
static uint32_t log_record_crc(const uint8_t *header, uint64_t id)
{
    uint8_t bytes[8 + LOG_FILE_RECORD - 4];
    bide_log_put_(bytes, id, 8);
    memcpy(bytes + 8, header + 4, LOG_FILE_RECORD - 4);
    return bide_log_crc_(bytes, sizeof bytes);
}

bool bide_log_record_is_of_(const uint8_t *header, uint64_t id)
{
    return bide_log_get_(header, 4) == log_record_crc(header, id);
}

int bide_log_record_read_(struct log_file_reader *reader, uint64_t offset, uint64_t number,
                          struct log_file_record *record)
{
    const uint8_t *at;
    int status = bide_log_reader_get_(reader, offset, LOG_FILE_RECORD, &at);
    if (status <= 0)
        return status;
    if (!bide_log_record_is_of_(at, reader->id))
        return 0;
    record->body_crc = (uint32_t)bide_log_get_(at + 4, 4);
    record->number = bide_log_get_(at + 8, 8);
    record->time = bide_log_get_(at + 16, 8);
    record->key_size = (uint32_t)bide_log_get_(at + 24, 4);
    record->encoded_size = (uint32_t)bide_log_get_(at + 28, 4);
    record->size = (uint32_t)bide_log_get_(at + 32, 4);
    return record->number == number && bide_log_get_(at + 36, 4) <= number &&
           (uint64_t)record->key_size + record->encoded_size + record->size <= BIDE_LOG_SIZE_MAX;
}

int bide_log_record_load_(struct log_file_reader *reader, uint64_t offset,
                          const struct log_file_record *record, uint64_t file_size, uint8_t **body)
{
    size_t size = bide_log_record_body_(record);
    uint64_t from = offset + LOG_FILE_RECORD;
    const uint8_t *at = NULL;
    if (body != NULL)
        *body = NULL;
    if (size > file_size || from > file_size - size)
        return 0;
    bool is_large = size > sizeof reader->bytes;
    uint8_t *bytes = NULL;
    int status = 1;
    if (is_large || body != NULL) {
        bytes = malloc(size != 0 ? size : 1);
        if (bytes == NULL)
            return -ENOMEM;
        at = bytes;
    }
    if (is_large)
        status = bide_log_read_all_(reader->descriptor, bytes, size, from);
    else
        status = bide_log_reader_get_(reader, from, size, &at);
    if (status == 1 && bide_log_crc_(at, size) != record->body_crc)
        status = 0;
    if (status == 1 && body != NULL) {
        if (!is_large)
            memcpy(bytes, at, size);
        *body = bytes;
        return 1;
    }
    free(bytes);
    return status;
}

void bide_log_record_write_(uint8_t *out, const bide_log_message *message)
{
    size_t key = message->key != NULL ? message->key_size : 0;
    size_t encoded = bide_log_headers_size_(message);
    uint8_t *body = out + LOG_FILE_RECORD;
    if (key != 0)
        memcpy(body, message->key, key);
    bide_log_headers_write_(message, body + key);
    if (message->size != 0)
        memcpy(body + key + encoded, message->data, message->size);
    bide_log_put_(out + 4, bide_log_crc_(body, key + encoded + message->size), 4);
    bide_log_put_(out + 24, key, 4);
    bide_log_put_(out + 28, encoded, 4);
    bide_log_put_(out + 32, message->size, 4);
    bide_log_put_(out + 36, 0, 4);
}

size_t bide_log_record_size_(const uint8_t *out)
{
    return LOG_FILE_RECORD + (size_t)bide_log_get_(out + 24, 4) +
           (size_t)bide_log_get_(out + 28, 4) + (size_t)bide_log_get_(out + 32, 4);
}

void bide_log_record_number_(uint8_t *out, uint64_t id, uint64_t number, uint64_t time,
                             uint64_t synced)
{
    uint64_t unsynced = number - synced;
    bide_log_put_(out + 8, number, 8);
    bide_log_put_(out + 16, time, 8);
    bide_log_put_(out + 36, unsynced <= UINT32_MAX ? unsynced : 0, 4);
    bide_log_put_(out, log_record_crc(out, id), 4);
}
