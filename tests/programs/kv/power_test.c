/*
 * Power cuts: the server's own journal, rewrites and snapshots run over files in memory, in virtual time,
 * and all that they do to files is recorded. Then the power is cut at each of these operations, and the
 * files are read as the server reads them at its start.
 *
 *     power_test [ROUNDS]
 *
 * The model of a disk. A write or truncation is on the disk when a later sync of that file has ended;
 * a name when a later sync of the directory has. Anything else may be there or not, each write by itself,
 * in part, as zeros or as garbage; names in their order.
 *
 * The model of the server. Changes are numbered in the order in which they are made. After a power cut
 * the keys are those after n changes, where n is at least the number of changes that were acknowledged
 * (with FSYNC_ALWAYS), or that were written before the last sync (with FSYNC_EACH_SECOND), and at most
 * the number that had been made. Some changes are made together, as by a transaction: n is never
 * between them. Damage is never reported, since nothing is damaged.
 *
 * And the other way round: of a file that was ended in order, each byte is changed, and each length is
 * cut off. Then damage is reported, or all keys are there; a file that is cut behind a group may have
 * fewer changes.
 *
 * It is translated by bidec. The functions of the library that change files are wrapped by the linker.
 */
#include "../../../programs/kv/kv.h"
#include "../../../programs/kv/replay.h"
#include "../../../programs/kv/sorted_set.h"
#include "../../../programs/kv/tasks.h"

#include "testing.h"

#include <bide/memory_io.h>
#include <bide/sim_loop.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define JOURNAL  "/tmp/kv-power-test.journal"
#define SNAPSHOT "/tmp/kv-power-test.snapshot"

static uint64_t seed;
static void print_operations(void);

/* With POWER_TRACE in the environment, a failure also prints the operations. */

#define REQUIRE(condition, ...)                                                              \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            printf("FAILED: seed %llu: %s, line %d: ", (unsigned long long)seed, #condition, \
                   __LINE__);                                                                \
            printf(__VA_ARGS__);                                                             \
            printf("\n");                                                                    \
            if (getenv("POWER_TRACE") != NULL)                                               \
                print_operations();                                                          \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

static uint64_t draw_state;

static uint32_t draw(uint32_t below)
{
    draw_state = draw_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((draw_state >> 33) % below);
}

/* ---- The record of what was done ---- */

enum kind { CREATED, WRITTEN, TRUNCATED, SYNCED, DIRECTORY_SYNCED, RENAMED, REMOVED };

enum { MAX_OPERATIONS = 4000, MAX_FILES = 200, MAX_DESCRIPTORS = 4096, MAX_CHANGES = 400 };

struct operation {
    enum kind kind;
    int file;
    int64_t offset;
    size_t size;
    char *data;
    char from[64], to[64];
    /* when it began: changes that were acknowledged and made, and syncs of the journal that had ended */
    int acknowledged, made;
    uint64_t syncs;
};

static struct kv kv;
static bide_memory_io *io;
static struct operation operations[MAX_OPERATIONS];
static int operation_count, file_count, acknowledged, made;
static int files[MAX_DESCRIPTORS]; /* by number; -1: the directory */
static struct {
    bide_descriptor *descriptor;
    int file;
} opening;

static struct operation *record(enum kind kind, int file)
{
    REQUIRE(operation_count < MAX_OPERATIONS, "too many operations");
    struct operation *operation = &operations[operation_count++];
    *operation = (struct operation){.kind = kind,
                                    .file = file,
                                    .acknowledged = acknowledged,
                                    .made = made,
                                    .syncs = kv.journal.syncs};
    return operation;
}

/* The file of a descriptor, which is known when it is first used. */
static int file_of(bide_descriptor *descriptor)
{
    int fd = bide_descriptor_fd(descriptor);
    REQUIRE(fd >= 0, "closed");
    fd %= MAX_DESCRIPTORS;
    if (opening.descriptor == descriptor) {
        files[fd] = opening.file;
        opening.descriptor = NULL;
    }
    return files[fd];
}

bide_awaiter *__real_bide_open(bide_file_operation *operation, bide_descriptor *file,
                               const char *path, int flags, unsigned mode);
bide_awaiter *__wrap_bide_open(bide_file_operation *operation, bide_descriptor *file,
                               const char *path, int flags, unsigned mode);
bide_awaiter *__wrap_bide_open(bide_file_operation *operation, bide_descriptor *file,
                               const char *path, int flags, unsigned mode)
{
    if ((flags & O_CREAT) != 0) {
        REQUIRE((flags & (O_EXCL | O_NOFOLLOW)) == (O_EXCL | O_NOFOLLOW) && mode == 0600,
                "it follows links, or is for others");
        opening.descriptor = file;
        opening.file = file_count++;
        REQUIRE(file_count <= MAX_FILES, "too many files");
        snprintf(record(CREATED, opening.file)->to, sizeof operations->to, "%s", path);
    } else if ((flags & O_DIRECTORY) != 0) {
        opening.descriptor = file;
        opening.file = -1;
    }
    return __real_bide_open(operation, file, path, flags, mode);
}

bide_awaiter *__real_bide_write_at(bide_file_operation *operation, bide_descriptor *file,
                                   const void *data, size_t size, int64_t offset);
bide_awaiter *__wrap_bide_write_at(bide_file_operation *operation, bide_descriptor *file,
                                   const void *data, size_t size, int64_t offset);
bide_awaiter *__wrap_bide_write_at(bide_file_operation *operation, bide_descriptor *file,
                                   const void *data, size_t size, int64_t offset)
{
    struct operation *written = record(WRITTEN, file_of(file));
    written->offset = offset;
    written->size = size;
    written->data = malloc(size);
    REQUIRE(written->data != NULL, "no memory");
    memcpy(written->data, data, size);
    return __real_bide_write_at(operation, file, data, size, offset);
}

bide_awaiter *__real_bide_truncate(bide_file_operation *operation, bide_descriptor *file,
                                   int64_t size);
bide_awaiter *__wrap_bide_truncate(bide_file_operation *operation, bide_descriptor *file,
                                   int64_t size);
bide_awaiter *__wrap_bide_truncate(bide_file_operation *operation, bide_descriptor *file,
                                   int64_t size)
{
    record(TRUNCATED, file_of(file))->offset = size;
    return __real_bide_truncate(operation, file, size);
}

bide_awaiter *__real_bide_sync(bide_file_operation *operation, bide_descriptor *file,
                               bide_sync_what what);
bide_awaiter *__wrap_bide_sync(bide_file_operation *operation, bide_descriptor *file,
                               bide_sync_what what);
bide_awaiter *__wrap_bide_sync(bide_file_operation *operation, bide_descriptor *file,
                               bide_sync_what what)
{
    int synced = file_of(file);
    record(synced < 0 ? DIRECTORY_SYNCED : SYNCED, synced);
    return __real_bide_sync(operation, file, what);
}

bide_awaiter *__real_bide_rename(bide_file_operation *operation, const char *from, const char *to);
bide_awaiter *__wrap_bide_rename(bide_file_operation *operation, const char *from, const char *to);
bide_awaiter *__wrap_bide_rename(bide_file_operation *operation, const char *from, const char *to)
{
    struct operation *renamed = record(RENAMED, -1);
    snprintf(renamed->from, sizeof renamed->from, "%s", from);
    snprintf(renamed->to, sizeof renamed->to, "%s", to);
    return __real_bide_rename(operation, from, to);
}

bide_awaiter *__real_bide_unlink(bide_file_operation *operation, const char *path, int flags);
bide_awaiter *__wrap_bide_unlink(bide_file_operation *operation, const char *path, int flags);
bide_awaiter *__wrap_bide_unlink(bide_file_operation *operation, const char *path, int flags)
{
    snprintf(record(REMOVED, -1)->from, sizeof operations->from, "%s", path);
    return __real_bide_unlink(operation, path, flags);
}

/* Files in memory have no locks, and no other process. */
int __wrap_flock(int fd, int what);
int __wrap_flock(int fd, int what)
{
    (void)fd;
    (void)what;
    return 0;
}

static void forget_all(void)
{
    for (int i = 0; i < operation_count; i++)
        free(operations[i].data);
    operation_count = file_count = acknowledged = made = 0;
    opening.descriptor = NULL;
}

/* ---- The server ---- */

void kv_update_clock(struct kv *changed)
{
    changed->keys.now = 1000;
}

/* No client watches keys here. */
void watching_touch(struct watching *watching, struct bytes key)
{
    (void)watching;
    (void)key;
}

void waiting_touch(struct waiting *waiting, struct bytes name)
{
    (void)waiting;
    (void)name;
}

/* (lack of room is reported) */
void kv_report(const char *format, ...)
{
    (void)format;
}

/* ---- Changes, and the keys after each number of them ---- */

enum { KEYS = 8, MAX_VALUE = 4000, ITEMS = 12, MAX_ITEM = 20 };

struct item_state {
    bool exists;
    uint32_t size;
    char bytes[MAX_ITEM];
};

struct key_state {
    bool exists;
    enum value_type type;
    int64_t time;
    size_t size; /* of a string; items of a list */
    char value[MAX_VALUE];
    struct item_state items[ITEMS]; /* of a list; or the fields of a hash: a, b, ... */
};

struct state {
    struct key_state keys[KEYS];
};

static struct state state;
static uint64_t digests[MAX_CHANGES + 1]; /* of the keys after a number of changes */
static bool is_inside[MAX_CHANGES + 1];   /* a transaction that continues: never found in a file */

static uint64_t mix(uint64_t digest, const void *data, size_t size)
{
    const uint64_t key[2] = {digest, size};
    return bytes_hash((struct bytes){data, size}, key);
}

static uint64_t digest_of_state(void)
{
    uint64_t digest = 0;
    for (int i = 0; i < KEYS; i++) {
        const struct key_state *key = &state.keys[i];
        uint64_t about[] = {(uint64_t)i, (uint64_t)key->time, key->type};
        if (!key->exists)
            continue;
        digest = mix(digest, about, sizeof about);
        if (key->type == VALUE_STRING)
            digest = mix(digest, key->value, key->size);
        for (uint64_t at = 0; key->type != VALUE_STRING && at < ITEMS; at++) {
            if (!key->items[at].exists)
                continue;
            digest = mix(digest, &at, sizeof at);
            digest = mix(digest, key->items[at].bytes, key->items[at].size);
        }
    }
    return digest;
}

static struct bytes key_of(int i, char name[4])
{
    name[0] = 'k';
    name[1] = (char)('0' + i);
    return (struct bytes){name, 2};
}

static struct bytes field_name(uint64_t at, char name[1])
{
    name[0] = (char)('a' + at);
    return (struct bytes){name, 1};
}

static uint64_t digest_of_collection(uint64_t digest, struct collection *collection)
{
    size_t count = 0;
    for (uint64_t at = 0; at < ITEMS; at++) {
        char name[1], score[SCORE_SIZE];
        struct bytes value;
        if (collection->type == VALUE_LIST) {
            if (at >= collection_count(collection))
                continue;
            value = list_get(collection, at);
        } else {
            struct entry *field = hash_find(collection, field_name(at, name));
            if (field == NULL)
                continue;
            value = entry_value(field);
            if (collection->type == VALUE_SORTED_SET)
                value = (struct bytes){score, score_print(score, sorted_node_of(field)->score)};
        }
        digest = mix(digest, &at, sizeof at);
        digest = mix(digest, value.data, value.size);
        count++;
    }
    REQUIRE(count == collection_count(collection) && count > 0, "unknown elements, or none");
    return digest;
}

static uint64_t digest_of(struct keyspace *keys)
{
    uint64_t digest = 0;
    size_t count = 0;
    for (int i = 0; i < KEYS; i++) {
        char name[4];
        struct entry **link = keyspace_find(keys, key_of(i, name));
        if (link == NULL)
            continue;
        uint64_t about[] = {(uint64_t)i, (uint64_t)keyspace_expiry(keys, *link), (*link)->type};
        struct bytes value = entry_value(*link);
        digest = mix(digest, about, sizeof about);
        digest = (*link)->type == VALUE_STRING
                     ? mix(digest, value.data, value.size)
                     : digest_of_collection(digest, entry_collection(*link));
        count++;
    }
    REQUIRE(count == keys->keys.table.count, "unknown keys");
    return digest;
}

static void set_value(struct bytes key, const char *value, size_t size)
{
    struct entry *entry = keyspace_upsert(&kv.keys, key, size, false);
    REQUIRE(entry != NULL, "no memory");
    memcpy(entry->bytes + entry->key_size, value, size);
}

static void log_words(const char *name, struct bytes key, struct bytes second, struct bytes third)
{
    const struct bytes words[] = {bytes_of(name), key, second, third};
    kv_log_words(&kv, words, third.data != NULL ? 4 : 3);
}

static void assign_item(struct item_state *item, struct bytes value)
{
    item->exists = true;
    item->size = (uint32_t)value.size;
    memcpy(item->bytes, value.data, value.size);
}

static void change_hash(struct key_state *key, struct bytes name, struct bytes value)
{
    char field_text[1];
    uint64_t at = draw(ITEMS);
    bool is_new;
    struct bytes field = field_name(at, field_text);
    struct collection *hash = keyspace_change(&kv.keys, name, VALUE_HASH, &is_new);
    REQUIRE(hash != NULL, "no memory");
    if (draw(3) == 0 && key->items[at].exists) {
        REQUIRE(hash_delete(hash, field), "no field");
        keyspace_remove_if_empty(&kv.keys, name);
        log_words("HDEL", name, field, (struct bytes){NULL, 0});
        key->items[at].exists = false;
    } else {
        REQUIRE(hash_set(hash, field, value) == !key->items[at].exists, "the field");
        log_words("HSET", name, field, value);
        assign_item(&key->items[at], value);
    }
}

static void change_set(struct key_state *key, struct bytes name)
{
    char member_text[1];
    uint64_t at = draw(ITEMS);
    const struct bytes member = field_name(at, member_text), none = {NULL, 0};
    bool is_new;
    struct collection *set = keyspace_change(&kv.keys, name, VALUE_SET, &is_new);
    REQUIRE(set != NULL, "no memory");
    if (key->items[at].exists) {
        REQUIRE(set_remove(set, member), "no member");
        keyspace_remove_if_empty(&kv.keys, name);
        log_words("SREM", name, member, none);
        key->items[at].exists = false;
    } else {
        REQUIRE(set_add(set, member) == 1, "the member");
        log_words("SADD", name, member, none);
        assign_item(&key->items[at], (struct bytes){"", 0});
    }
}

static void change_sorted_set(struct key_state *key, struct bytes name)
{
    char member_text[1], text[SCORE_SIZE];
    uint64_t at = draw(ITEMS);
    double score = draw(8) == 0 ? -INFINITY : (double)draw(16) / 4 - 2;
    const struct bytes member = field_name(at, member_text), none = {NULL, 0};
    const struct bytes number = {text, score_print(text, score)};
    bool is_new;
    struct collection *set = keyspace_change(&kv.keys, name, VALUE_SORTED_SET, &is_new);
    REQUIRE(set != NULL, "no memory");
    size_t count = collection_count(set);
    if (count > 0 && draw(4) == 0) {
        char texts[2][NUMBER_SIZE];
        size_t first = draw((uint32_t)count), removed = 1 + draw((uint32_t)(count - first));
        for (size_t i = 0; i < removed; i++) {
            struct bytes gone = entry_key(sorted_set_at(set, first + i)->entry);
            key->items[gone.data[0] - 'a'].exists = false;
        }
        sorted_set_remove_range(set, first, removed);
        keyspace_remove_if_empty(&kv.keys, name);
        log_words("ZREMRANGEBYRANK", name,
                  (struct bytes){texts[0], number_print(texts[0], (int64_t)first)},
                  (struct bytes){texts[1], number_print(texts[1], (int64_t)(first + removed - 1))});
    } else if (draw(3) == 0 && key->items[at].exists) {
        REQUIRE(sorted_set_remove(set, member), "no member");
        keyspace_remove_if_empty(&kv.keys, name);
        log_words("ZREM", name, member, none);
        key->items[at].exists = false;
    } else {
        REQUIRE(sorted_set_put(set, member, score) == !key->items[at].exists, "the member");
        log_words("ZADD", name, number, member);
        assign_item(&key->items[at], number);
    }
}

/* Removes items from the model of a list. */
static void remove_items(struct key_state *key, size_t at, size_t count)
{
    memmove(key->items + at, key->items + at + count,
            (key->size - at - count) * sizeof *key->items);
    key->size -= count;
    for (size_t i = key->size; i < ITEMS; i++)
        key->items[i].exists = false;
}

static void change_list(struct key_state *key, struct bytes name, struct bytes value)
{
    char number[NUMBER_SIZE];
    const struct bytes none = {NULL, 0};
    size_t at = draw((uint32_t)key->size + 1), count = key->size;
    uint32_t kind = draw(8);
    bool is_new;
    struct collection *list = keyspace_change(&kv.keys, name, VALUE_LIST, &is_new);
    struct bytes text = {number, number_print(number, (int64_t)at)};
    REQUIRE(list != NULL && collection_count(list) == count, "another count");
    if (count == ITEMS || (kind == 0 && count > 0)) { /* pop, some of them */
        bool is_first = draw(2) == 0;
        list_remove(list, is_first ? 0 : count - at, at);
        log_words(is_first ? "LPOP" : "RPOP", name, text, none);
        remove_items(key, is_first ? 0 : count - at, at);
    } else if (kind == 2 && at < count) {
        REQUIRE(list_set(list, at, value), "no memory");
        log_words("LSET", name, text, value);
        assign_item(&key->items[at], value);
    } else if ((kind == 3 || kind == 1) &&
               at < count) { /* the last one that is equal to one of them */
        struct item_state equal = key->items[at];
        struct bytes same = {equal.bytes, equal.size};
        REQUIRE(list_remove_equal(list, same, 1, true) == 1, "none is equal");
        log_words("LREM", name, bytes_of("-1"), same);
        for (size_t i = key->size; i > 0; i--) {
            struct item_state *item = &key->items[i - 1];
            if (bytes_equal((struct bytes){item->bytes, item->size}, same)) {
                remove_items(key, i - 1, 1);
                break;
            }
        }
    } else {
        const char *record = kind == 4 ? "LPUSH" : kind == 5 ? "RPUSH" : "LINSERT";
        at = kind == 4 ? 0 : kind == 5 ? count : at;
        REQUIRE(list_insert(list, at, value), "no memory");
        if (kind == 4 || kind == 5)
            log_words(record, name, value, none);
        else
            log_words(record, name, text, value);
        memmove(key->items + at + 1, key->items + at, (count - at) * sizeof *key->items);
        assign_item(&key->items[at], value);
        key->size++;
    }
    keyspace_remove_if_empty(&kv.keys, name);
}

static void change_collection(struct key_state *key, struct bytes name, struct bytes value)
{
    static const enum value_type types[] = {VALUE_HASH, VALUE_LIST, VALUE_SET, VALUE_SORTED_SET};
    if (!key->exists)
        *key = (struct key_state){.type = types[draw(4)]};
    if (key->type == VALUE_HASH)
        change_hash(key, name, value);
    else if (key->type == VALUE_SET)
        change_set(key, name);
    else if (key->type == VALUE_SORTED_SET)
        change_sorted_set(key, name);
    else
        change_list(key, name, value);
    key->exists = false;
    for (int i = 0; i < ITEMS; i++)
        key->exists |= key->items[i].exists;
}

/* Makes the next change, in the server and in the model. */
static void change_something(void)
{
    char name[4], value[600] = {0};
    int i = (int)draw(KEYS);
    uint32_t kind = draw(100);
    size_t size = draw(8) == 0 ? draw(sizeof value) : draw(20);
    struct bytes key = key_of(i, name);
    struct entry **link = keyspace_find(&kv.keys, key);
    for (size_t j = 0; j < size; j++)
        value[j] = (char)draw(256);
    if (size >= 8 && draw(2) == 0) /* like parts of the file */
        memcpy(value, "kvFr\1\0\0\0", 8);
    bool is_string = link != NULL && state.keys[i].type == VALUE_STRING;
    if (kind >= 10 && !is_string && draw(2) == 0) {
        /* (half of the values are of one byte, so that some are equal) */
        value[0] = draw(2) == 0 ? (char)('x' + draw(2)) : value[0];
        change_collection(&state.keys[i], key,
                          (struct bytes){value, draw(2) == 0 ? size % MAX_ITEM : 1});
    } else if (kind < 3) {
        keyspace_remove_all(&kv.keys);
        kv_log_flush(&kv);
        state = (struct state){0};
    } else if (kind < 20 && link != NULL) {
        keyspace_remove(&kv.keys, link);
        kv_log_delete(&kv, key);
        state.keys[i].exists = false;
    } else if (kind < 40 && is_string && state.keys[i].size + size <= MAX_VALUE) {
        struct entry *entry = keyspace_upsert(&kv.keys, key, state.keys[i].size + size, true);
        REQUIRE(entry != NULL, "no memory");
        memcpy(entry->bytes + entry->key_size + state.keys[i].size, value, size);
        kv_log_append(&kv, key, (struct bytes){value, size});
        memcpy(state.keys[i].value + state.keys[i].size, value, size);
        state.keys[i].size += size;
    } else if (kind < 48 && size > 0 && (link == NULL || is_string)) {
        size_t offset = draw(40), end = offset + size, old = link != NULL ? state.keys[i].size : 0;
        REQUIRE(keyspace_set_range(&kv.keys, key, offset, (struct bytes){value, size}) != NULL,
                "no memory");
        kv_log_set_range(&kv, key, offset, (struct bytes){value, size});
        if (link == NULL)
            state.keys[i] = (struct key_state){.type = VALUE_STRING};
        if (offset > old)
            memset(state.keys[i].value + old, 0, offset - old);
        memcpy(state.keys[i].value + offset, value, size);
        state.keys[i].size = old > end ? old : end;
        state.keys[i].exists = true;
    } else if (kind < 58 && link != NULL) {
        int j = (int)draw(KEYS);
        char other[4];
        bool moves = draw(2) == 0;
        REQUIRE(keyspace_copy(&kv.keys, key, key_of(j, other), moves), "no memory");
        kv_log_copy(&kv, key, key_of(j, other), moves);
        if (i != j) {
            state.keys[j] = state.keys[i];
            state.keys[i].exists = !moves;
        }
    } else if (kind < 66 && link != NULL) {
        int64_t time = 5000 + draw(1000);
        REQUIRE(keyspace_set_expiry(&kv.keys, *link, time), "no memory");
        kv_log_expiry(&kv, key, time);
        state.keys[i].time = time;
    } else {
        set_value(key, value, size);
        REQUIRE(keyspace_set_expiry(&kv.keys, *keyspace_find(&kv.keys, key), 0), "no memory");
        kv_log_set(&kv, key, (struct bytes){value, size}, RECORD_STAYS);
        state.keys[i] = (struct key_state){.exists = true, .size = size};
        memcpy(state.keys[i].value, value, size);
    }
    made++;
    REQUIRE(made <= MAX_CHANGES, "too many changes");
    digests[made] = digest_of_state();
}

/* ---- One life of the server ---- */

struct life {
    enum fsync fsync;
    int changes, clients, rewrites, snapshots;
    bide_memory_io_options disk;
};

async int change_and_wait(struct life *life)
{
    while (made < life->changes) {
        int last = 0;
        if (kv.journal.is_full) {
            try await bide_sleep_for(UINT64_C(50000000));
            continue;
        }
        bool is_transaction = draw(2) == 0;
        for (uint32_t count = 1 + draw(3); count > 0 && made < life->changes; count--) {
            change_something();
            last = made;
            is_inside[made] = is_transaction && count > 1 && made < life->changes;
        }
        journal_wake_writer(&kv.journal);
        int status = await journal_wait(&kv.journal);
        if (status < 0 && !journal_is_full_error(status))
            return status;
        if (status == 0 && last > acknowledged)
            acknowledged = last;
        if (draw(3) == 0)
            try await bide_sleep_for(draw(life->disk.disk_delay > 5000000 ? 300 : 1500) *
                                     UINT64_C(1000000));
    }
    return 0;
}

async int rewrite_and_save(struct life *life)
{
    for (int i = 0; i < life->rewrites; i++) {
        try await bide_sleep_for(draw(2000) * UINT64_C(1000000));
        int status = await rewrite_journal(&kv);
        if (status < 0 && status != -ENOSPC)
            return status;
    }
    for (int i = 0; i < life->snapshots; i++) {
        try await bide_sleep_for(draw(2000) * UINT64_C(1000000));
        int status = await save_snapshot(&kv);
        if (status < 0 && status != -ENOSPC)
            return status;
    }
    return 0;
}

async int live(struct life *life)
{
    async_frame(rewrite_journal) beginning;
    bide_scope clients, writer, background;
    try await async_rewrite_journal(&beginning, &kv);
    kv.journal.is_on = true;
    bide_memory_io_change(io, &life->disk);
    bide_scope_init(&clients, bide_this_frame());
    bide_scope_init(&writer, bide_this_frame());
    bide_scope_init(&background, bide_this_frame());
    defer bide_scope_destroy(&clients);
    defer bide_scope_destroy(&writer);
    defer bide_scope_destroy(&background);
    int status = spawn(&writer, journal_write(&kv.journal));
    if (status == 0 && life->fsync == FSYNC_EACH_SECOND)
        status = spawn(&background, journal_sync_each_second(&kv.journal));
    for (int i = 0; status == 0 && i < life->clients; i++)
        status = spawn(&clients, change_and_wait(life));
    if (status == 0)
        status = spawn(&clients, rewrite_and_save(life));
    REQUIRE(status == 0, "%s", strerror(-status));
    status = await bide_scope_join(&clients);
    REQUIRE(status == 0, "clients: %s", strerror(-status));
    life->disk.disk_full = 0;
    bide_memory_io_change(io, &life->disk);
    while (kv.journal.is_full || buffer_used(&kv.journal.filling) > 0 ||
           buffer_used(&kv.journal.writing) > 0)
        try await bide_sleep_for(UINT64_C(50000000));
    kv.journal.is_stopping = true;
    bide_single_consumer_auto_event_set(&kv.journal.writer_wakeup);
    status = await bide_scope_join(&writer);
    REQUIRE(status == 0, "writer: %s", strerror(-status));
    bide_scope_stop(&background);
    await bide_scope_join(&background);
    return 0;
}

static void run_life(struct life *life)
{
    static async_frame(live) frame;
    bide_sim_loop loop;
    const uint64_t key[2] = {seed, 1};
    struct journal *journal = &kv.journal;
    bide_sim_loop_init(&loop, seed);
    REQUIRE(bide_memory_io_create(&io, &loop, NULL) == 0, "no memory");
    kv = (struct kv){.options = {.snapshot = SNAPSHOT}};
    state = (struct state){0};
    digests[0] = digest_of_state();
    keyspace_init(&kv.keys, key);
    kv_update_clock(&kv);
    bide_mutex_init(&kv.save_lock);
    journal_init(journal, JOURNAL, life->fsync, &kv.client_count);
    kv.client_count = (size_t)life->clients;
    int status = bide_sim_loop_wait(&loop, async_live(&frame, life));
    REQUIRE(status == 0, "%s", strerror(-status));
    REQUIRE(made == life->changes, "%d of %d", made, life->changes);
    bide_close(&journal->file);
    keyspace_free(&kv.keys);
    buffer_free(&journal->filling);
    buffer_free(&journal->writing);
    bide_memory_io_destroy(io);
    bide_sim_loop_destroy(&loop);
}

/* ---- The disk after a power cut ---- */

/* A file's content, as an array that grows. */
struct content {
    char *data;
    size_t size, capacity;
};

static void resize_content(struct content *content, size_t size)
{
    if (size > content->capacity) {
        content->capacity = size * 2;
        content->data = realloc(content->data, content->capacity);
        REQUIRE(content->data != NULL, "no memory");
    }
    if (size > content->size)
        memset(content->data + content->size, 0, size - content->size);
    content->size = size;
}

/* How the writes that are not on the disk were treated by it. */
enum loss { ALL_LOST, NONE_LOST, ONE_LOST, DRAWN_LOST, LAST_TORN, ZEROS, GARBAGE, LOSSES };

/* Applies a write from `begin` to `end` of its data. */
static void apply_write(struct content *content, const struct operation *written, size_t begin,
                        size_t end, enum loss how)
{
    size_t offset = (size_t)written->offset;
    if (end > written->size)
        end = written->size;
    if (begin >= end)
        return;
    if (content->size < offset + end)
        resize_content(content, offset + end);
    if (how == ZEROS)
        memset(content->data + offset + begin, 0, end - begin);
    else if (how != GARBAGE)
        memcpy(content->data + offset + begin, written->data + begin, end - begin);
    for (size_t i = begin; how == GARBAGE && i < end; i++)
        content->data[offset + i] = (char)draw(256);
}

/* A write of which sectors are lost, each by itself. */
static void apply_sectors(struct content *content, const struct operation *written)
{
    enum { SECTOR = 512 };
    int64_t begin = 0, size = (int64_t)written->size;
    while (begin < size) {
        int64_t end = (written->offset + begin) / SECTOR * SECTOR + SECTOR - written->offset;
        if (draw(2) == 0)
            apply_write(content, written, (size_t)begin, (size_t)(end < size ? end : size),
                        DRAWN_LOST);
        begin = end;
    }
}

/* True if the sync has ended before operation `cut` began: its file was used again, or it was counted. */
static bool has_ended(int sync, int cut)
{
    if (operations[cut].syncs > operations[sync].syncs)
        return true;
    for (int i = sync + 1; i <= cut; i++) {
        if (operations[i].file == operations[sync].file || operations[i].kind == RENAMED)
            return true;
    }
    return false;
}

static bool is_synced(int at, int cut)
{
    for (int i = at + 1; i < cut; i++) {
        if (operations[i].kind == SYNCED && operations[i].file == operations[at].file &&
            has_ended(i, cut))
            return true;
    }
    return false;
}

/* The file of a name after a cut, with `names` operations on names that are not on the disk; or -1. */
static int file_named(const char *name, int cut, int names)
{
    int synced = 0, file = -1;
    char at[64];
    snprintf(at, sizeof at, "%s", name);
    for (int i = 0; i < cut; i++) {
        if (operations[i].kind == DIRECTORY_SYNCED)
            synced = i;
    }
    int last = synced;
    for (int i = synced; i < cut && names > 0; i++) {
        if (operations[i].kind == RENAMED || operations[i].kind == CREATED ||
            operations[i].kind == REMOVED) {
            names--;
            last = i + 1;
        }
    }
    /* backwards: where did the name come from? */
    for (int i = last - 1; i >= 0; i--) {
        const struct operation *operation = &operations[i];
        if (operation->kind == RENAMED && strcmp(operation->to, at) == 0)
            snprintf(at, sizeof at, "%s", operation->from);
        else if (operation->kind == CREATED && strcmp(operation->to, at) == 0)
            return operation->file;
        else if (operation->kind == REMOVED && strcmp(operation->from, at) == 0)
            return -1;
    }
    return file;
}

/* The content of a file if the power is cut when operation `cut` has begun. `torn`: bytes of it. */
static void content_after(struct content *content, int file, int cut, enum loss loss, int lost,
                          size_t torn)
{
    content->size = 0;
    int unsynced = 0;
    for (int i = 0; i <= cut && i < operation_count; i++) {
        const struct operation *operation = &operations[i];
        if (operation->file != file)
            continue;
        bool is_there = i < cut && is_synced(i, cut);
        if (operation->kind == TRUNCATED && (is_there || loss == NONE_LOST)) {
            resize_content(content, (size_t)operation->offset);
        } else if (operation->kind == WRITTEN) {
            if (is_there)
                apply_write(content, operation, 0, operation->size, NONE_LOST);
            else if (loss == DRAWN_LOST)
                apply_sectors(content, operation);
            else if (i == cut)
                apply_write(content, operation, 0, loss == LAST_TORN ? torn : 0, NONE_LOST);
            else if (loss == NONE_LOST || loss == LAST_TORN || loss == ZEROS || loss == GARBAGE ||
                     (loss == ONE_LOST && unsynced++ != lost))
                apply_write(content, operation, 0, operation->size,
                            loss == ZEROS || loss == GARBAGE ? loss : NONE_LOST);
        }
    }
}

/* ---- What the server makes of it ---- */

/* Loads a file. Returns the number of changes after which the keys are those; -1 if there is none. */
static int load(const struct content *content, unsigned kind, int least, int most,
                struct replayed *replayed)
{
    const uint64_t key[2] = {1, 2};
    struct keyspace keys;
    int found = -1;
    keyspace_init(&keys, key);
    keys.now = 1000;
    REQUIRE(replay_data(&keys, content->data, content->size, kind, replayed) == 0, "no memory");
    if (replayed->state == REPLAY_INTACT || replayed->state == REPLAY_TORN) {
        uint64_t digest = digest_of(&keys);
        for (int i = most; i >= least && found < 0; i--)
            found = digests[i] == digest && !is_inside[i] ? i : -1;
    }
    keyspace_free(&keys);
    return found;
}

/* The number of changes that have to be in the file that has the journal's name; -1: in none. */
static int least_after(const struct life *life, int file, int cut)
{
    if (life->fsync == FSYNC_ALWAYS)
        return operations[cut].acknowledged;
    int least = 0;
    for (int i = 0; i < cut; i++) {
        /* what was acknowledged before a sync began that has ended */
        if (operations[i].kind == SYNCED && operations[i].file == file && has_ended(i, cut) &&
            operations[i].acknowledged > least)
            least = operations[i].acknowledged;
    }
    return least;
}

static uint64_t cuts;

static void cut_power(const struct life *life, struct content *content, int cut)
{
    const struct operation *last = &operations[cut];
    int most = last->made;
    for (int names = 0, before = -1; names <= 3; names++) {
        int file = file_named(JOURNAL, cut, names), least = least_after(life, file, cut);
        if (file < 0) {
            REQUIRE(least == 0, "the name is lost, at operation %d", cut);
            continue;
        }
        for (int loss = ALL_LOST; file != before && loss < LOSSES; loss++) {
            int variants = loss == ONE_LOST || loss == DRAWN_LOST ? 6 : loss == LAST_TORN ? 12 : 1;
            for (int i = 0; i < variants; i++) {
                struct replayed replayed;
                size_t torn =
                    last->size > 0 ? i < 4 ? (size_t)i * 17 : draw((uint32_t)last->size) : 0;
                content_after(content, file, cut, (enum loss)loss, i, torn);
                int found = load(content, FILE_JOURNAL, least, most, &replayed);
                REQUIRE(found >= 0,
                        "operation %d of %d, loss %d, variant %d, names %d: state %d at byte %lld "
                        "of %lld, no state between %d and %d changes",
                        cut, operation_count, loss, i, names, (int)replayed.state,
                        (long long)replayed.good, (long long)replayed.size, least, most);
                cuts++;
            }
        }
        before = file;
        file = file_named(SNAPSHOT, cut, names);
        for (int loss = ALL_LOST; file >= 0 && loss < LOSSES; loss++) {
            struct replayed replayed;
            content_after(content, file, cut, (enum loss)loss, 0, 0);
            REQUIRE(load(content, FILE_SNAPSHOT, 0, most, &replayed) >= 0 &&
                        replayed.state == REPLAY_INTACT,
                    "a snapshot after operation %d, loss %d", cut, loss);
            cuts++;
        }
    }
}

/* ---- Each byte, each length ---- */

static uint64_t flips;

static void damage(struct content *content, unsigned kind)
{
    struct replayed replayed;
    size_t size = content->size, mark = size - FORMAT_HEAD;
    REQUIRE(load(content, kind, 0, made, &replayed) >= 0 && replayed.state == REPLAY_INTACT &&
                replayed.ends_with_mark,
            "state %d", (int)replayed.state);
    int whole = load(content, kind, 0, made, &replayed);
    for (size_t at = 0; at < size; at++) {
        const char masks[] = {1, (char)0x80, (char)0xff};
        for (size_t i = 0; i < sizeof masks; i++) {
            content->data[at] ^= masks[i];
            int found = load(content, kind, whole, whole, &replayed);
            bool is_torn = replayed.state == REPLAY_TORN && kind == FILE_JOURNAL && at >= mark;
            REQUIRE(replayed.state != REPLAY_INTACT && (is_torn ? found == whole : found < 0),
                    "byte %zu of %zu: state %d", at, size, (int)replayed.state);
            REQUIRE(replayed.good <= (int64_t)at, "byte %zu: reported at %lld", at,
                    (long long)replayed.good);
            content->data[at] ^= masks[i];
            flips++;
        }
    }
    for (size_t cut = 0; cut < size; cut++) {
        content->size = cut;
        int found = load(content, kind, 0, made, &replayed);
        if (kind == FILE_SNAPSHOT || cut < FORMAT_HEADER)
            REQUIRE(replayed.state != REPLAY_INTACT && replayed.state != REPLAY_TORN,
                    "cut at %zu: state %d", cut, (int)replayed.state);
        else
            REQUIRE(replayed.good <= (int64_t)cut &&
                        (found >= 0 || replayed.state == REPLAY_DAMAGED),
                    "cut at %zu: state %d", cut, (int)replayed.state);
        flips++;
    }
    content->size = size;
    REQUIRE(load(content, kind, whole, whole, &replayed) == whole, "the test changes it");
}

static void run_round(struct content *content, bool flips_too)
{
    struct life life = {.fsync = draw(2) == 0 ? FSYNC_ALWAYS : FSYNC_EACH_SECOND,
                        .changes = 10 + (int)draw(50),
                        .clients = 1 + (int)draw(4),
                        .rewrites = (int)draw(3),
                        .snapshots = (int)draw(2),
                        .disk = {.disk_delay = draw(2) == 0 ? 5000000 : 400000000,
                                 .disk_full = draw(3) == 0 ? 2 + draw(6) : 0}};
    run_life(&life);
    record(WRITTEN, MAX_FILES); /* the end: all that came before has ended */
    for (int cut = 0; cut < operation_count; cut++)
        cut_power(&life, content, cut);
    int end = operation_count - 1;
    if (flips_too) {
        content_after(content, file_named(JOURNAL, end, 3), end, NONE_LOST, 0, 0);
        damage(content, FILE_JOURNAL);
    }
    int snapshot = file_named(SNAPSHOT, end, 3);
    if (flips_too && snapshot >= 0) {
        content_after(content, snapshot, end, NONE_LOST, 0, 0);
        damage(content, FILE_SNAPSHOT);
    }
    forget_all();
}

static void print_operations(void)
{
    static const char *const names[] = {"created",          "written", "truncated", "synced",
                                        "directory synced", "renamed", "removed"};
    for (int i = 0; i < operation_count; i++)
        printf("%3d %s file %d offset %lld size %zu %s %s acknowledged %d made %d syncs %llu\n", i,
               names[operations[i].kind], operations[i].file, (long long)operations[i].offset,
               operations[i].size, operations[i].from, operations[i].to, operations[i].acknowledged,
               operations[i].made, (unsigned long long)operations[i].syncs);
}

static void live_once(uint64_t given, struct content *content, bool flips_too)
{
    seed = given;
    draw_state = seed * UINT64_C(0x9e3779b97f4a7c15);
    run_round(content, flips_too);
}

/*
 * Lives in which changes were once acknowledged and then not on the disk: a client was resumed only
 * after the group that had no room was written at last, without the client's own changes.
 */
static const uint64_t earlier[] = {448000375, 448174120};

int main(int argc, char **argv)
{
    struct content content = {0};
    const char *given = getenv("BIDE_SEED");
    uint64_t rounds = rounds_of(argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 20);
    uint64_t first = given != NULL ? strtoull(given, NULL, 0) : 1;
    /* One life is repeated; with seeds for all tests it is where they begin. */
    bool is_repeated = given != NULL && getenv("BIDE_SEEDS_FROM") == NULL;
    if (is_repeated)
        rounds = 1;
    for (size_t i = 0; !is_repeated && i < sizeof earlier / sizeof *earlier; i++)
        live_once(earlier[i], &content, false);
    for (uint64_t i = first; i < first + rounds; i++)
        live_once(i, &content, i % 4 == 1 || is_repeated);
    free(content.data);
    printf("%llu lives, %llu disks after a power cut, %llu damaged files\n",
           (unsigned long long)rounds, (unsigned long long)cuts, (unsigned long long)flips);
    return 0;
}
