/*
 * kv's files. The first byte of the input chooses one of these:
 *
 *     0, 1   the rest is the file
 *     2      the rest is the content of a group, with sound checksums: if it is accepted, a snapshot of the keys that it
 *            makes gives the same keys
 *     3      the rest is a list of changes. Groups of them make a journal, which gives the keys of a model. Then one byte of
 *            the file is changed, or its end is cut off: the groups before the damage are there, and the damage is found.
 */
#include "../../programs/kv/record.h"
#include "../../programs/kv/replay.h"
#include "../../programs/kv/sorted_set.h"
#include "fuzz.h"

const unsigned fuzz_executions = 15000;
const char *const fuzz_words[] = {"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n", "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n", "PEXPIREAT", "$9",
                                  "*1\r\n$8\r\nFLUSHALL\r\n", "PERSIST", "APPEND", "KEEPTTL", "PXAT", "*4\r\n$4\r\nHSET\r\n$1\r\nh\r\n$1\r\nf\r\n$1\r\nv\r\n",
                                  "*3\r\n$4\r\nHDEL\r\n$1\r\nh\r\n$1\r\nf\r\n", "*4\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$1\r\na\r\n$1\r\nb\r\n",
                                  "*3\r\n$4\r\nSADD\r\n$1\r\ns\r\n$1\r\nm\r\n", "SREM",
                                  "*4\r\n$4\r\nZADD\r\n$1\r\nz\r\n$3\r\n1.5\r\n$1\r\nm\r\n", "ZREM",
                                  "*4\r\n$15\r\nZREMRANGEBYRANK\r\n$1\r\nz\r\n$1\r\n0\r\n$1\r\n0\r\n", "-inf", "1e-9", "LPUSH", "LPOP", "RPOP", "LSET", "LREM", "LINSERT", "kvFr", "\r\n", "-1",
                                  "9223372036854775807", NULL};

static const uint64_t hash_key[2] = {1, 2};

static void begin_keys(struct keyspace *keys)
{
    keyspace_init(keys, hash_key);
    keys->now = INT64_MIN; /* (nothing expires) */
}

static const struct entry *find(struct keyspace *keys, struct bytes key)
{
    struct entry **link = keyspace_find(keys, key);
    return link != NULL ? *link : NULL;
}

static bool same_bytes(struct bytes a, struct bytes b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* The same members are in both, with the same scores and so in the same order. */
static void compare_orders(const struct collection *one, const struct collection *other)
{
    const struct sorted_node *node = NULL, *same = NULL;
    for (size_t i = 0; i < collection_count(one); i++) {
        node = i == 0 ? sorted_set_at(one, 0) : sorted_set_next(node, false);
        same = sorted_set_at(other, i);
        FUZZ_REQUIRE(node != NULL && sorted_set_rank(node) == i && node->score == same->score);
        FUZZ_REQUIRE(same_bytes(entry_key(node->entry), entry_key(same->entry)));
    }
    FUZZ_REQUIRE(node == NULL || sorted_set_next(node, false) == NULL);
}

/* One is a collection of the same elements as the other. */
static void compare_collections(struct collection *one, struct collection *other)
{
    FUZZ_REQUIRE(collection_count(one) == collection_count(other));
    if (one->type == VALUE_SORTED_SET) {
        compare_orders(one, other);
        return;
    }
    for (size_t i = 0; !collection_has_table(one) && i < collection_count(one); i++)
        FUZZ_REQUIRE(same_bytes(list_get(one, i), list_get(other, i)));
    for (int array = 0; collection_has_table(one) && array < 2; array++) {
        for (size_t i = 0; one->fields.buckets[array] != NULL && i < one->fields.sizes[array]; i++) {
            for (const struct entry *entry = one->fields.buckets[array][i]; entry != NULL; entry = entry->next) {
                const struct entry *same = hash_find(other, entry_key(entry));
                FUZZ_REQUIRE(same != NULL && same_bytes(entry_value(same), entry_value(entry)));
            }
        }
    }
}

/* The same keys, values and times are in both. */
static void compare_keys(struct keyspace *one, struct keyspace *other)
{
    FUZZ_REQUIRE(one->keys.table.count == other->keys.table.count);
    for (int array = 0; array < 2; array++) {
        for (size_t i = 0; one->keys.table.buckets[array] != NULL && i < one->keys.table.sizes[array]; i++) {
            for (const struct entry *entry = one->keys.table.buckets[array][i]; entry != NULL; entry = entry->next) {
                const struct entry *same = find(other, entry_key(entry));
                FUZZ_REQUIRE(same != NULL && same->type == entry->type);
                if (entry->type == VALUE_STRING)
                    FUZZ_REQUIRE(same_bytes(entry_value(same), entry_value(entry)));
                else
                    compare_collections(entry_collection(entry), entry_collection(same));
                FUZZ_REQUIRE(keyspace_expiry(other, same) == keyspace_expiry(one, entry));
            }
        }
    }
}

/* ---- Files ---- */

static void append(struct buffer *file, const void *data, size_t size)
{
    FUZZ_REQUIRE(buffer_reserve(file, size));
    buffer_append(file, data, size);
}

static void begin_file(struct buffer *file, enum file_kind kind, struct file_identity *identity)
{
    char header[FORMAT_HEADER];
    FUZZ_REQUIRE(format_make_header(header, kind, identity) == 0);
    append(file, header, sizeof header);
}

static void append_group(struct buffer *file, struct buffer *group, const struct file_identity *identity, int64_t synced)
{
    FUZZ_REQUIRE(format_seal_group(group, identity, (int64_t)buffer_used(file), synced));
    append(file, group->data + group->begin, buffer_used(group));
    buffer_clear(group, 0);
}

static struct replayed replay(struct keyspace *keys, const struct buffer *file, size_t size, unsigned kind)
{
    struct replayed replayed;
    char text[400];
    char *copy = fuzz_copy(size != 0 ? file->data + file->begin : NULL, size);
    FUZZ_REQUIRE(replay_data(keys, copy, size, kind, &replayed) == 0);
    FUZZ_REQUIRE(replayed.good >= 0 && replayed.good <= replayed.size && replayed.size == (int64_t)size);
    FUZZ_REQUIRE(replayed.used <= replayed.size);
    if (replayed.state != REPLAY_INTACT)
        FUZZ_REQUIRE(replay_explain(&replayed, text, sizeof text) != NULL);
    free(copy);
    return replayed;
}

/* ---- 0 to 2 ---- */

static void replay_bytes(const uint8_t *data, size_t size)
{
    struct buffer file = {0};
    struct keyspace keys;
    append(&file, data, size);
    begin_keys(&keys);
    struct replayed replayed = replay(&keys, &file, size, 0), again = replay(NULL, &file, size, 0);
    FUZZ_REQUIRE(size != 0 || replayed.state == REPLAY_EMPTY);
    FUZZ_REQUIRE(again.groups >= replayed.groups);
    keyspace_free(&keys);
    buffer_free(&file);
}

static void replay_content(const uint8_t *data, size_t size)
{
    struct buffer file = {0}, group = {0}, snapshot = {0};
    struct file_identity identity;
    struct keyspace keys, copy;
    char mark[FORMAT_HEAD];
    begin_keys(&keys);
    begin_keys(&copy);
    begin_file(&file, FILE_JOURNAL, &identity);
    append(&group, data, size);
    append_group(&file, &group, &identity, 0);
    struct replayed replayed = replay(&keys, &file, buffer_used(&file), FILE_JOURNAL);
    FUZZ_REQUIRE(replayed.state == REPLAY_INTACT || replayed.state == REPLAY_DAMAGED);
    FUZZ_REQUIRE(replayed.groups == 1);
    if (replayed.state == REPLAY_INTACT) {
        begin_file(&snapshot, FILE_SNAPSHOT, &identity);
        keyspace_start_snapshot(&keys, &group);
        while (keyspace_snapshot_slice(&keys, 4096) == 0)
            continue;
        keyspace_stop_snapshot(&keys);
        append_group(&snapshot, &group, &identity, 0);
        format_make_mark(mark, &identity, (int64_t)buffer_used(&snapshot), (int64_t)buffer_used(&snapshot));
        append(&snapshot, mark, sizeof mark);
        replayed = replay(&copy, &snapshot, buffer_used(&snapshot), FILE_SNAPSHOT);
        FUZZ_REQUIRE(replayed.state == REPLAY_INTACT);
        compare_keys(&keys, &copy);
    }
    keyspace_free(&keys);
    keyspace_free(&copy);
    buffer_free(&file);
    buffer_free(&group);
    buffer_free(&snapshot);
}

/* ---- 3 ---- */

enum { KEYS = 8, MAX_GROUPS = 32, MAX_VALUE = 40 };

/* The model: its keys are "0", "1" and so on. */
struct model {
    bool is_there[KEYS];
    char values[KEYS][MAX_VALUE];
    size_t sizes[KEYS];
    int64_t times[KEYS];
};

static void compare_model(struct keyspace *keys, const struct model *model)
{
    size_t count = 0;
    for (int i = 0; i < KEYS; i++) {
        char name = (char)('0' + i);
        const struct entry *entry = find(keys, (struct bytes){&name, 1});
        count += model->is_there[i];
        FUZZ_REQUIRE((entry != NULL) == model->is_there[i]);
        if (entry == NULL)
            continue;
        FUZZ_REQUIRE(entry->value_size == model->sizes[i]);
        FUZZ_REQUIRE(memcmp(entry_value(entry).data, model->values[i], model->sizes[i]) == 0);
        FUZZ_REQUIRE(keyspace_expiry(keys, entry) == model->times[i]);
    }
    FUZZ_REQUIRE(keys->keys.table.count == count);
}

/* Makes a change, whose bytes begin at data: three, and those of a value. Returns how many it takes. */
static size_t change(struct model *model, struct buffer *group, const uint8_t *data, size_t size)
{
    unsigned kind = data[0] % 8, i = data[1] % KEYS;
    char name = (char)('0' + i);
    struct bytes key = {&name, 1};
    size_t length = kind < 3 && size > 3 ? data[2] % 16 : 0;
    if (length > size - 3)
        length = size - 3;
    struct bytes value = {(const char *)data + 3, length};
    int64_t time = (int64_t)data[2] * 1000 + 1;
    bool is_done = true;
    switch (kind) {
    case 0: /* with a time, without one, or with that which it has */
    case 1: {
        int64_t set = data[0] & 8 ? time : data[0] & 16 ? RECORD_KEEPS_TIME : RECORD_STAYS;
        is_done = record_set(group, key, value, set);
        model->times[i] = set == RECORD_KEEPS_TIME ? (model->is_there[i] ? model->times[i] : 0) : set;
        model->is_there[i] = true;
        model->sizes[i] = length;
        memcpy(model->values[i], value.data, length);
        break;
    }
    case 2:
        if (!model->is_there[i])
            model->sizes[i] = 0, model->times[i] = 0;
        if (model->sizes[i] + length > MAX_VALUE)
            break;
        is_done = record_append(group, key, value);
        model->is_there[i] = true;
        memcpy(model->values[i] + model->sizes[i], value.data, length);
        model->sizes[i] += length;
        break;
    case 3:
    case 4:
        is_done = record_delete(group, key);
        model->is_there[i] = false;
        break;
    case 5:
        is_done = record_expire(group, key, time);
        model->times[i] = time;
        break;
    case 6:
        is_done = record_persist(group, key);
        model->times[i] = 0;
        break;
    default:
        is_done = record_flush(group);
        memset(model->is_there, 0, sizeof model->is_there);
        break;
    }
    FUZZ_REQUIRE(is_done);
    return 3 + length;
}

static void check_file(const struct buffer *file, size_t size, const struct model *model, uint64_t groups,
                       enum replay_state state)
{
    struct keyspace keys;
    begin_keys(&keys);
    struct replayed replayed = replay(&keys, file, size, FILE_JOURNAL);
    FUZZ_REQUIRE(replayed.state == state && replayed.groups == groups);
    compare_model(&keys, model);
    keyspace_free(&keys);
}

static void replay_changes(const uint8_t *data, size_t size)
{
    static struct model models[MAX_GROUPS + 1], current; /* after so many groups */
    int64_t ends[MAX_GROUPS + 1], synced[MAX_GROUPS + 1], last_synced = 0;
    struct buffer file = {0}, group = {0};
    struct file_identity identity;
    size_t groups = 0, at = 3;
    if (size < 3)
        return;
    memset(&current, 0, sizeof current);
    models[0] = current;
    begin_file(&file, FILE_JOURNAL, &identity);
    ends[0] = (int64_t)buffer_used(&file);
    while (size - at >= 3 && groups < MAX_GROUPS) {
        bool is_synced = data[at] & 64;
        at += change(&current, &group, data + at, size - at);
        if (buffer_used(&group) == 0 || ((data[at - 1] & 1) != 0 && size - at >= 3))
            continue;
        if (is_synced)
            last_synced = ends[groups];
        append_group(&file, &group, &identity, last_synced);
        models[++groups] = current;
        synced[groups] = last_synced;
        ends[groups] = (int64_t)buffer_used(&file);
    }
    size_t all = buffer_used(&file);
    char *bytes = file.data + file.begin;
    check_file(&file, all, &models[groups], groups, REPLAY_INTACT);

    /* the place of the damage: within the frames */
    size_t place = FORMAT_HEADER + ((size_t)data[0] << 8 | data[1]) % (all - FORMAT_HEADER + 1), whole = 0;
    while (whole < groups && (size_t)ends[whole + 1] <= place)
        whole++;
    if (place == all || data[2] == 0) { /* a cut */
        size_t end = place;
        while (end > (size_t)ends[whole] && bytes[end - 1] == '\0')
            end--;
        check_file(&file, place, &models[whole], whole, end == (size_t)ends[whole] ? REPLAY_INTACT : REPLAY_TORN);
    } else {
        int64_t later = 0;
        for (size_t i = whole + 1; i <= groups; i++) {
            bool is_head_intact = i != whole + 1 || place >= (size_t)ends[whole] + FORMAT_HEAD;
            if (is_head_intact && synced[i] > later)
                later = synced[i];
        }
        bytes[place] ^= (char)data[2];
        check_file(&file, all, &models[whole], whole, later > ends[whole] ? REPLAY_DAMAGED : REPLAY_TORN);
    }
    buffer_free(&file);
    buffer_free(&group);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] == 3)
        replay_changes(data + 1, size - 1);
    else if (data[0] == 2)
        replay_content(data + 1, size - 1);
    else
        replay_bytes(data + 1, size - 1);
    return 0;
}
