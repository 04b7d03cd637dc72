/* Maps a file, checks each frame, and applies the records to the keyspace. */
#include "replay.h"

#include "request.h"
#include "sorted_set.h"

#include <errno.h>
#include <stdio.h>
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
    if (link != NULL && (*link)->type != VALUE_STRING)
        return -EBADMSG;
    struct entry *entry = keyspace_upsert(keys, key, size + more.size, true);
    if (entry == NULL)
        return -ENOMEM;
    memcpy(entry->bytes + entry->key_size + size, more.data, more.size);
    return 0;
}

static int replay_set_range(struct keyspace *keys, const struct request *request, struct bytes key,
                            const char *data)
{
    struct bytes part = record_word(request, data, 3);
    struct entry **link = keyspace_find(keys, key);
    int64_t offset;
    if (link != NULL && (*link)->type != VALUE_STRING)
        return -EBADMSG;
    if (!number_read(record_word(request, data, 2), &offset) || offset < 0 ||
        (uint64_t)offset > UINT32_MAX - part.size)
        return -EBADMSG;
    return keyspace_set_range(keys, key, (size_t)offset, part) != NULL ? 0 : -ENOMEM;
}

/* A number of items, or the index of one. */
static bool read_count(const struct request *request, const char *data, size_t *count)
{
    int64_t number;
    if (!number_read(record_word(request, data, 2), &number) || number < 0 ||
        (uint64_t)number > SIZE_MAX)
        return false;
    *count = (size_t)number;
    return true;
}

/* Records of hashes. Returns 1 if it is another one. */
static int replay_hash(struct collection *hash, struct bytes name, const struct request *request,
                       const char *data)
{
    int status = 0;
    if (bytes_are(name, "HSET")) {
        for (size_t i = 2; i + 1 < request->count && status >= 0; i += 2)
            status =
                hash_set(hash, record_word(request, data, i), record_word(request, data, i + 1));
    } else if (bytes_are(name, "HDEL")) {
        for (size_t i = 2; i < request->count; i++)
            hash_delete(hash, record_word(request, data, i));
    } else {
        return 1;
    }
    return status < 0 ? status : 0;
}

/* Records of sets. Returns 1 if it is another one. */
static int replay_members(struct collection *set, struct bytes name, const struct request *request,
                          const char *data)
{
    int status = 0;
    bool adds = bytes_are(name, "SADD");
    if (!adds && !bytes_are(name, "SREM"))
        return 1;
    for (size_t i = 2; i < request->count && status >= 0; i++) {
        if (adds)
            status = set_add(set, record_word(request, data, i));
        else
            set_remove(set, record_word(request, data, i));
    }
    return status < 0 ? status : 0;
}

/* Records of sorted sets. Returns 1 if it is another one. */
static int replay_scores(struct collection *set, struct bytes name, const struct request *request,
                         const char *data)
{
    int status = 0;
    if (bytes_are(name, "ZADD") && request->count % 2 == 0) {
        double score;
        for (size_t i = 2; i < request->count && status >= 0; i += 2)
            status = score_read(record_word(request, data, i), &score)
                         ? sorted_set_put(set, record_word(request, data, i + 1), score)
                         : -EBADMSG;
    } else if (bytes_are(name, "ZREM")) {
        for (size_t i = 2; i < request->count; i++)
            sorted_set_remove(set, record_word(request, data, i));
    } else if (bytes_are(name, "ZREMRANGEBYRANK") && request->count == 4) {
        int64_t first, last;
        if (!number_read(record_word(request, data, 2), &first) ||
            !number_read(record_word(request, data, 3), &last) || first < 0 || last < first ||
            (uint64_t)last >= collection_count(set))
            return -EBADMSG;
        sorted_set_remove_range(set, (size_t)first, (size_t)(last - first) + 1);
    } else {
        return 1;
    }
    return status < 0 ? status : 0;
}

/* Records of lists. Returns 1 if it is another one. */
static int replay_list(struct collection *list, struct bytes name, const struct request *request,
                       const char *data)
{
    size_t size = collection_count(list), at = 0;
    bool is_push = bytes_are(name, "RPUSH") || bytes_are(name, "LPUSH");
    for (size_t i = 2; is_push && i < request->count; i++) {
        at = bytes_are(name, "RPUSH") ? collection_count(list) : 0;
        if (!list_insert(list, at, record_word(request, data, i)))
            return -ENOMEM;
    }
    if (is_push)
        return 0;
    if (bytes_are(name, "LREM") && request->count == 4) {
        int64_t count;
        if (!number_read(record_word(request, data, 2), &count) || count == INT64_MIN)
            return -EBADMSG;
        list_remove_equal(list, record_word(request, data, 3),
                          count != 0 ? (size_t)(count < 0 ? -count : count) : SIZE_MAX, count < 0);
        return 0;
    }
    if (request->count < 3 || !read_count(request, data, &at))
        return -EBADMSG;
    if (at <= size && bytes_are(name, "LPOP"))
        list_remove(list, 0, at);
    else if (at <= size && bytes_are(name, "RPOP"))
        list_remove(list, size - at, at);
    else if (at < size && bytes_are(name, "LSET") && request->count == 4)
        return list_set(list, at, record_word(request, data, 3)) ? 0 : -ENOMEM;
    else if (at <= size && bytes_are(name, "LINSERT") && request->count == 4)
        return list_insert(list, at, record_word(request, data, 3)) ? 0 : -ENOMEM;
    else
        return 1;
    return 0;
}

static int replay_collection(struct keyspace *keys, struct bytes name, struct bytes key,
                             const struct request *request, const char *data)
{
    struct entry **link = keyspace_find(keys, key);
    char first = (char)(name.data[0] | 32);
    enum value_type type = first == 'h'   ? VALUE_HASH
                           : first == 's' ? VALUE_SET
                           : first == 'z' ? VALUE_SORTED_SET
                                          : VALUE_LIST;
    bool is_new;
    if (link != NULL && (*link)->type != type)
        return -EBADMSG;
    struct collection *collection = keyspace_change(keys, key, type, &is_new);
    if (collection == NULL)
        return -ENOMEM;
    int status = type == VALUE_HASH         ? replay_hash(collection, name, request, data)
                 : type == VALUE_SET        ? replay_members(collection, name, request, data)
                 : type == VALUE_SORTED_SET ? replay_scores(collection, name, request, data)
                                            : replay_list(collection, name, request, data);
    keyspace_remove_if_empty(keys, key);
    return status == 1 ? -EBADMSG : status;
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
    if (bytes_are(name, "SETRANGE") && request->count == 4)
        return replay_set_range(keys, request, key, data);
    if ((bytes_are(name, "RENAME") || bytes_are(name, "COPY")) && request->count == 3)
        return keyspace_copy(keys, key, record_word(request, data, 2), bytes_are(name, "RENAME"))
                   ? 0
                   : -ENOMEM;
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
    if (request->count >= 3 && name.size > 0)
        return replay_collection(keys, name, key, request, data);
    return -EBADMSG;
}

/* ---- Frames ---- */

/* Applies the records of a group, or only parses them if `keys` is NULL. */
static int replay_group(struct keyspace *keys, struct request *request, char *data, size_t size,
                        uint64_t *records)
{
    int status = 0;
    for (size_t at = 0; status == 0 && at < size; at += request->size) {
        if (!read_record(request, data + at, size - at))
            return -EBADMSG;
        if (keys != NULL)
            status = replay_record(keys, request, data + at);
        ++*records;
    }
    while (keys != NULL && keyspace_free_some(keys, SIZE_MAX) > 0)
        continue;
    return status;
}

static size_t size_without_zeros(const char *data, size_t size)
{
    while (size > 0 && data[size - 1] == '\0')
        size--;
    return size;
}

/* The state of a file whose intact frames end at replayed->good. */
static enum replay_state judge_end(const struct replayed *replayed, const char *data, size_t size)
{
    if (replayed->kind == FILE_SNAPSHOT)
        return replayed->ends_with_mark && replayed->good == replayed->size ? REPLAY_INTACT
                                                                            : REPLAY_DAMAGED;
    if (replayed->good >= replayed->used)
        return REPLAY_INTACT;
    return format_find_synced(data, size, (size_t)replayed->good, &replayed->identity) >
                   replayed->good
               ? REPLAY_DAMAGED
               : REPLAY_TORN;
}

static int replay_frames(struct keyspace *keys, char *data, size_t size, struct replayed *replayed)
{
    const struct file_identity *identity = &replayed->identity;
    struct request request = {0};
    struct frame frame;
    size_t at = FORMAT_HEADER;
    int status = 0;
    while (status == 0 && format_read_head(data, size, at, identity, &frame) &&
           format_is_intact(data, size, &frame, identity)) {
        replayed->ends_with_mark = frame.kind == FRAME_MARK;
        if (!replayed->ends_with_mark) {
            status = replay_group(keys, &request, data + at + FORMAT_HEAD, (size_t)frame.size,
                                  &replayed->records);
            replayed->groups++;
        }
        if (status == 0)
            at += FORMAT_HEAD + (size_t)frame.size;
    }
    free(request.more);
    replayed->good = (int64_t)at;
    /* (zeros behind the frames may also be the last bytes of an intact frame) */
    if (replayed->used < replayed->good)
        replayed->used = replayed->good;
    replayed->state = status == -EBADMSG ? REPLAY_DAMAGED : judge_end(replayed, data, size);
    return status == -EBADMSG ? 0 : status;
}

int replay_data(struct keyspace *keys, char *data, size_t size, unsigned kind,
                struct replayed *replayed)
{
    static const enum replay_state states[] = {
        [HEADER_FOREIGN] = REPLAY_FOREIGN,
        [HEADER_OLD] = REPLAY_OLD,
        [HEADER_NEWER] = REPLAY_NEWER,
        [HEADER_DAMAGED] = REPLAY_DAMAGED,
    };
    *replayed = (struct replayed){.size = (int64_t)size};
    if (size == 0) {
        replayed->state = REPLAY_EMPTY;
        return 0;
    }
    enum header_state header =
        format_read_header(data, size, &replayed->kind, &replayed->version, &replayed->identity);
    replayed->state = states[header];
    if (header != HEADER_GOOD)
        return 0;
    if ((kind != 0 && replayed->kind != kind) ||
        (replayed->kind != FILE_JOURNAL && replayed->kind != FILE_SNAPSHOT)) {
        replayed->state = REPLAY_OTHER_KIND;
        return 0;
    }
    replayed->used = (int64_t)size_without_zeros(data, size);
    if (keys != NULL)
        keys->is_loading = true;
    int status = replay_frames(keys, data, size, replayed);
    if (keys != NULL)
        keys->is_loading = false;
    return status;
}

int replay_file(struct keyspace *keys, int fd, unsigned kind, struct replayed *replayed)
{
    struct stat about;
    *replayed = (struct replayed){0};
    if (fstat(fd, &about) != 0)
        return -errno;
    if (!S_ISREG(about.st_mode))
        return -EINVAL;
    if (about.st_size == 0)
        return replay_data(keys, NULL, 0, kind, replayed);
    if ((uint64_t)about.st_size > SIZE_MAX)
        return -EFBIG;
    size_t size = (size_t)about.st_size;
    char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    int status = replay_data(keys, data, size, kind, replayed);
    munmap(data, size);
    return status;
}

const char *replay_explain(const struct replayed *replayed, char *buffer, size_t size)
{
    switch (replayed->state) {
    case REPLAY_EMPTY:
        return "an empty file, which this server never leaves; remove it to begin a new one";
    case REPLAY_FOREIGN:
        return "not a file of this server: its signature is not at byte 0";
    case REPLAY_OLD:
        return "commands without this server's signature, as redis and versions before 0.1 write "
               "them; 'redis-cli --pipe' can send them to a server that has a new file";
    case REPLAY_NEWER:
        snprintf(buffer, size,
                 "a file of version %u, at byte 12; this server reads versions up to %d",
                 replayed->version, FORMAT_VERSION);
        break;
    case REPLAY_OTHER_KIND:
        return replayed->kind == FILE_SNAPSHOT  ? "a snapshot, not an append-only file"
               : replayed->kind == FILE_JOURNAL ? "an append-only file, not a snapshot"
                                                : "a kind of file that this server does not know";
    case REPLAY_TORN:
        snprintf(buffer, size,
                 "the last %lld bytes, from byte %lld on, belong to incomplete changes",
                 (long long)(replayed->used - replayed->good), (long long)replayed->good);
        break;
    default:
        snprintf(buffer, size, "damaged at byte %lld of %lld", (long long)replayed->good,
                 (long long)replayed->size);
        break;
    }
    return buffer;
}
