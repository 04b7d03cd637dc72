/* Maps a file of records, checks each group's checksum, and applies the records to the keyspace. */
#define _GNU_SOURCE
#include "replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct request_limits no_limits = {SIZE_MAX >> 1, 1 << 20, SIZE_MAX >> 1};

static struct bytes record_word(const struct request *request, const char *data, size_t i)
{
    const struct argument *argument = &request_arguments(request)[i];
    return (struct bytes){data + argument->offset, argument->size};
}

/* Parses the record at `data`. Returns false if it is incomplete or malformed. */
static bool read_record(struct request *request, char *data, size_t size)
{
    request_clear(request);
    return size > 0 && data[0] == '*' &&
           request_read(request, data, size, &no_limits) == REQUEST_COMPLETE;
}

/* ---- One record ---- */

static int replay_set(struct keyspace *keys, const struct request *request, struct bytes key,
                      struct bytes value, const char *data)
{
    int64_t time = 0;
    struct entry *entry = keyspace_upsert(keys, key, value.size, false);
    if (entry == NULL)
        return -ENOMEM;
    memcpy(entry->bytes + entry->key_size, value.data, value.size);
    if (request->count == 4 && bytes_are(record_word(request, data, 3), "KEEPTTL"))
        return 0;
    if (request->count == 5 && (!bytes_are(record_word(request, data, 3), "PXAT") ||
                                !number_read(record_word(request, data, 4), &time)))
        return -EBADMSG;
    return keyspace_set_expiry(keys, entry, time) ? 0 : -ENOMEM;
}

static int replay_append(struct keyspace *keys, struct bytes key, struct bytes more)
{
    struct entry **link = keyspace_find(keys, key);
    size_t size = link != NULL ? (*link)->value_size : 0;
    struct entry *entry = keyspace_upsert(keys, key, size + more.size, true);
    if (entry == NULL)
        return -ENOMEM;
    memcpy(entry->bytes + entry->key_size + size, more.data, more.size);
    return 0;
}

static int replay_record(struct keyspace *keys, const struct request *request, const char *data)
{
    struct bytes name = record_word(request, data, 0), key = {NULL, 0};
    struct entry **link = NULL;
    int64_t time = 0;
    if (request->count > 1) {
        key = record_word(request, data, 1);
        link = keyspace_find(keys, key);
    }
    if (bytes_are(name, "SET") && request->count >= 3)
        return replay_set(keys, request, key, record_word(request, data, 2), data);
    if (bytes_are(name, "APPEND") && request->count == 3)
        return replay_append(keys, key, record_word(request, data, 2));
    if (bytes_are(name, "DEL") && request->count == 2) {
        if (link != NULL)
            keyspace_remove(keys, link);
        return 0;
    }
    if (bytes_are(name, "FLUSHALL") && request->count == 1) {
        keyspace_remove_all(keys);
        return 0;
    }
    if (bytes_are(name, "PERSIST") && request->count == 2)
        return link == NULL || keyspace_set_expiry(keys, *link, 0) ? 0 : -ENOMEM;
    if (bytes_are(name, "PEXPIREAT") && request->count == 3 &&
        number_read(record_word(request, data, 2), &time))
        return link == NULL || keyspace_set_expiry(keys, *link, time) ? 0 : -ENOMEM;
    return -EBADMSG;
}

/* ---- Groups ---- */

/* The size of the intact group at `data`, including its checksum; 0 if there is none. */
static size_t read_group(struct request *request, char *data, size_t size)
{
    for (size_t at = 0; at < size; at += request->size) {
        if (!read_record(request, data + at, size - at))
            return 0;
        struct bytes name = record_word(request, data + at, 0);
        if (!bytes_are(name, "GROUP"))
            continue;
        struct bytes sum = request->count == 2 ? record_word(request, data + at, 1) : name;
        char text[17] = "", *end = text;
        if (sum.size != 16)
            return 0;
        memcpy(text, sum.data, 16);
        return strtoull(text, &end, 16) == record_sum((struct bytes){data, at}) && end == text + 16
                   ? at + request->size
                   : 0;
    }
    return 0;
}

/*
 * True if the rest of the file has an intact group. Each group begins behind the checksum of
 * another.
 */
static bool has_group(struct request *request, char *data, size_t size)
{
    static const char end[] = "*2\r\n$5\r\nGROUP\r\n$16\r\n";
    char *at = memmem(data, size, end, sizeof end - 1);
    for (; at != NULL; at = memmem(at + 1, (size_t)(data + size - at - 1), end, sizeof end - 1)) {
        size_t behind = (size_t)(at - data) + RECORD_GROUP_SIZE;
        if (behind < size && read_group(request, data + behind, size - behind) > 0)
            return true;
    }
    return false;
}

static int replay_data(struct kv *kv, char *data, size_t size, int64_t *good)
{
    struct request request = {0};
    size_t begin = 0, group;
    int status = 0;
    while (status == 0 && begin < size &&
           (group = read_group(&request, data + begin, size - begin)) > 0) {
        size_t end = begin + group - RECORD_GROUP_SIZE;
        for (size_t at = begin; status == 0 && at < end; at += request.size) {
            read_record(&request, data + at, end - at);
            status = replay_record(&kv->keys, &request, data + at);
        }
        if (status == 0)
            begin += group;
        while (keyspace_free_flushed(&kv->keys))
            continue;
    }
    *good = (int64_t)begin;
    if (status == 0 && begin < size && has_group(&request, data + begin, size - begin))
        status = -EBADMSG;
    free(request.more);
    return status;
}

static size_t size_without_zeros(const char *data, size_t size)
{
    while (size > 0 && data[size - 1] == '\0')
        size--;
    return size;
}

int replay(struct kv *kv, const char *path, struct extent *extent)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC), status = 0;
    *extent = (struct extent){0};
    if (fd < 0)
        return -errno;
    char *data = MAP_FAILED;
    if (fstat(fd, &about) != 0)
        status = -errno;
    else if (about.st_size > 0) {
        extent->size = about.st_size;
        data = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            status = -errno;
    }
    close(fd);
    if (data == MAP_FAILED)
        return status;
    kv->keys.is_loading = true;
    size_t used = size_without_zeros(data, (size_t)about.st_size);
    extent->used = (int64_t)used;
    status = replay_data(kv, data, used, &extent->good);
    kv->keys.is_loading = false;
    munmap(data, (size_t)about.st_size);
    return status;
}
