/* SORT and SORT_RO. Each runs to completion on the loop's thread. */
#include "sorted.h"

#include <stdlib.h>

enum {
    SORT_MAX_STEPS = 1 << 24, /* elements, values looked up, and STEP_BYTES of patterns */
    STEP_BYTES = 64
};

/* A request. Patterns have a `*` for the element, and behind `->` the field of a hash. */
struct sort {
    struct client *client;
    bool is_backward, is_by_text, is_unsorted; /* DESC; ALPHA; BY a pattern without `*` */
    struct bytes by;                           /* data NULL: the elements themselves */
    int64_t offset, limit;                     /* limit negative: all */
    size_t *get_at, gets;                      /* arguments of GET options */
    size_t pattern_bytes;                      /* of BY and GET */
    size_t target;                             /* the argument of STORE's key; or 0 */
    struct sort_item *items;
    size_t count, begin, end; /* items, and those of them that are replied */
    uint64_t element_bytes;
    struct buffer key; /* of a pattern, with an element */
};

/* An element, and its weight. Both are in the memory of values, which do not change meanwhile. */
struct sort_item {
    const struct sort *sort;
    struct bytes element, text;
    double score;
};

/* ---- Arguments ---- */

static bool has_star(struct bytes pattern)
{
    return pattern.size > 0 && memchr(pattern.data, '*', pattern.size) != NULL;
}

static bool read_sort_options(struct client *client, struct sort *sort, bool only_reads)
{
    size_t count = client->request.count;
    *sort = (struct sort){.client = client, .limit = -1};
    for (size_t i = 2; i < count; i++) {
        struct bytes word = client_argument(client, i);
        if (bytes_are(word, "ASC") || bytes_are(word, "DESC")) {
            sort->is_backward = bytes_are(word, "DESC");
        } else if (bytes_are(word, "ALPHA")) {
            sort->is_by_text = true;
        } else if (bytes_are(word, "LIMIT") && i + 2 < count) {
            if (!argument_number(client, i + 1, &sort->offset) ||
                !argument_number(client, i + 2, &sort->limit))
                return false;
            i += 2;
        } else if (bytes_are(word, "STORE") && i + 1 < count && !only_reads) {
            sort->target = ++i;
        } else if (bytes_are(word, "BY") && i + 1 < count) {
            sort->by = client_argument(client, ++i);
            sort->is_unsorted = !has_star(sort->by);
            sort->pattern_bytes += sort->by.size;
        } else if (bytes_are(word, "GET") && i + 1 < count) {
            if (sort->gets == 0)
                sort->get_at = malloc((count - i) * sizeof *sort->get_at);
            if (sort->get_at == NULL) {
                reply_no_memory(client);
                return false;
            }
            sort->get_at[sort->gets++] = ++i;
            sort->pattern_bytes += client_argument(client, i).size;
        } else {
            reply_syntax_error(client);
            return false;
        }
    }
    return true;
}

/* ---- Values of patterns ---- */

/* The size of the key's part of a pattern, from the `*` at `star` on; its field follows, if it is shorter than the pattern. */
static size_t key_size_of(struct bytes pattern, size_t star)
{
    for (size_t i = star + 1; i + 2 < pattern.size; i++) {
        if (pattern.data[i] == '-' && pattern.data[i + 1] == '>')
            return i;
    }
    return pattern.size;
}

/* The value that a pattern has for an element; data NULL if there is none. Returns false if memory is exhausted. */
static bool find_pattern(struct sort *sort, struct bytes pattern, struct bytes element,
                         struct bytes *value)
{
    struct kv *kv = sort->client->kv;
    struct buffer *key = &sort->key;
    *value = (struct bytes){NULL, 0};
    kv->work += 1 + (pattern.size + element.size) / STEP_BYTES;
    if (pattern.size == 1 && pattern.data[0] == '#') {
        *value = element;
        return true;
    }
    if (!has_star(pattern))
        return true;
    size_t star = (size_t)((const char *)memchr(pattern.data, '*', pattern.size) - pattern.data);
    size_t size = key_size_of(pattern, star);
    buffer_clear(key, SIZE_MAX);
    if (!buffer_reserve(key, size + element.size))
        return false;
    buffer_append(key, pattern.data, star);
    buffer_append(key, element.data, element.size);
    buffer_append(key, pattern.data + star + 1, size - star - 1);
    struct entry **link =
        keyspace_find(&kv->keys, (struct bytes){key->data + key->begin, buffer_used(key)});
    if (link == NULL)
        kv_note_miss(kv, (struct bytes){key->data + key->begin, buffer_used(key)});
    if (link == NULL || (*link)->type != (size < pattern.size ? VALUE_HASH : VALUE_STRING))
        return true;
    const struct entry *entry = *link;
    if (size < pattern.size)
        entry = hash_find(entry_collection(entry),
                          (struct bytes){pattern.data + size + 2, pattern.size - size - 2});
    if (entry != NULL)
        *value = entry_value(entry);
    return true;
}

/* ---- Elements ---- */

static void add_item(struct sort *sort, struct bytes element)
{
    sort->element_bytes += element.size;
    sort->items[sort->count++] =
        (struct sort_item){.sort = sort, .element = element, .text = element};
}

static void add_entry(void *argument, struct entry *entry)
{
    add_item(argument, entry_key(entry));
}

/* Collects the elements of a list, a set or a sorted set. Returns false if memory is exhausted. */
static bool collect_items(struct sort *sort, struct collection *collection)
{
    size_t count = collection_count(collection), cursor = 0;
    sort->items = malloc(count * sizeof *sort->items);
    if (sort->items == NULL)
        return false;
    sort->client->kv->work += count;
    if (collection->type == VALUE_LIST) {
        for (size_t i = 0; i < count; i++)
            add_item(sort, list_get(collection, i));
    } else if (collection->type == VALUE_SORTED_SET) {
        const struct sorted_node *node =
            sorted_set_at(collection, sort->is_backward ? count - 1 : 0);
        for (; node != NULL; node = sorted_set_next(node, sort->is_backward))
            add_item(sort, entry_key(node->entry));
    } else {
        do
            cursor = table_scan(&collection->fields, cursor, add_entry, sort);
        while (cursor != 0);
    }
    bide_assert(sort->count == count);
    return true;
}

static unsigned logarithm(size_t count)
{
    unsigned bits = 0;
    while (count >> bits > 1)
        bits++;
    return bits;
}

/*
 * Replies with an error and returns false if sorting `count` elements would hold others for long. Each element is looked up for
 * each pattern, whose key has its bytes, and is compared as often as the logarithm of their number.
 */
static bool check_steps(const struct sort *sort, size_t count)
{
    uint64_t patterns = sort->gets + (sort->by.data != NULL);
    uint64_t of_item = 1 + patterns + sort->pattern_bytes / STEP_BYTES;
    uint64_t of_bytes = patterns + logarithm(count);
    if (count == 0 || (of_item <= SORT_MAX_STEPS / count &&
                       sort->element_bytes / STEP_BYTES <= SORT_MAX_STEPS / (of_bytes + 1)))
        return true;
    reply_error(sort->client, "-ERR SORT would take more than %d steps", SORT_MAX_STEPS);
    return false;
}

/* Finds what the items are sorted by, whose bytes are compared too. Returns false after an error reply. */
static bool weigh_items(struct sort *sort)
{
    struct client *client = sort->client;
    for (size_t i = 0; i < sort->count; i++) {
        struct sort_item *item = &sort->items[i];
        if (sort->by.data != NULL && !find_pattern(sort, sort->by, item->element, &item->text)) {
            reply_no_memory(client);
            return false;
        }
        if (sort->by.data != NULL)
            sort->element_bytes += item->text.size;
        if (!check_steps(sort, sort->count))
            return false;
        if (!sort->is_by_text && item->text.size > 0 && !score_read(item->text, &item->score)) {
            REPLY(client, "-ERR One or more scores can't be converted into double");
            return false;
        }
    }
    return true;
}

static int compare_bytes(struct bytes a, struct bytes b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 && a.data != b.data ? memcmp(a.data, b.data, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* No weight is before any other; of equal weights, the elements decide. */
static int compare_items(const void *a, const void *b)
{
    const struct sort_item *one = a, *other = b;
    int order = 0;
    if (!one->sort->is_by_text)
        order = (one->score > other->score) - (one->score < other->score);
    else if (one->text.data == NULL || other->text.data == NULL)
        order = (one->text.data != NULL) - (other->text.data != NULL);
    else
        order = compare_bytes(one->text, other->text);
    if (order == 0)
        order = compare_bytes(one->element, other->element);
    return one->sort->is_backward ? -order : order;
}

static bool order_items(struct sort *sort)
{
    uint64_t steps = sort->count;
    if (sort->is_unsorted)
        return true;
    if (!weigh_items(sort))
        return false;
    for (size_t rest = sort->count; rest > 1; rest /= 2)
        sort->client->kv->work += steps;
    if (sort->count > 1) /* (without items there is no array) */
        qsort(sort->items, sort->count, sizeof *sort->items, compare_items);
    return true;
}

/* Chooses the items of LIMIT. */
static void limit_items(struct sort *sort)
{
    uint64_t offset = sort->offset > 0 ? (uint64_t)sort->offset : 0, count = sort->count;
    sort->begin = offset < count ? (size_t)offset : sort->count;
    sort->end = sort->count;
    if (sort->limit >= 0 && (uint64_t)sort->limit < sort->count - sort->begin)
        sort->end = sort->begin + (size_t)sort->limit;
}

/* ---- The result ---- */

/*
 * Calls a function for each value of the result, until it returns false. Returns false then, or if memory is exhausted.
 */
static bool for_each_value(struct sort *sort, bool (*use)(void *argument, struct bytes value),
                           void *argument)
{
    struct client *client = sort->client;
    struct bytes value;
    for (size_t at = sort->begin; at < sort->end; at++) {
        struct bytes element = sort->items[at].element;
        if (sort->gets == 0 && !use(argument, element))
            return false;
        for (size_t i = 0; i < sort->gets; i++) {
            if (!find_pattern(sort, client_argument(client, sort->get_at[i]), element, &value) ||
                !use(argument, value))
                return false;
        }
    }
    return true;
}

static size_t result_count(const struct sort *sort)
{
    return (sort->end - sort->begin) * (sort->gets > 0 ? sort->gets : 1);
}

static bool reply_value(void *argument, struct bytes value)
{
    struct client *client = argument;
    if (value.data != NULL)
        reply_bulk(client, value);
    else
        reply_nothing(client);
    return !client_refuses_reply(client);
}

static void reply_sorted(struct sort *sort)
{
    struct client *client = sort->client;
    size_t begin = buffer_used(&client->out);
    reply_array(client, result_count(sort));
    bool is_complete = for_each_value(sort, reply_value, client);
    if (!finish_counted(client, begin) || is_complete)
        return;
    reply_drop(client, begin, buffer_used(&client->out));
    reply_no_memory(client);
}

/* A list that is made, and the bytes that it may still have. */
struct storing {
    struct collection *list;
    uint64_t left;
    bool is_too_large;
};

static bool append_value(void *argument, struct bytes value)
{
    struct storing *storing = argument;
    storing->is_too_large = value.size > storing->left;
    storing->left -= storing->is_too_large ? 0 : value.size;
    return !storing->is_too_large &&
           list_insert(storing->list, collection_count(storing->list),
                       value.data != NULL ? value : (struct bytes){"", 0});
}

/* The result replaces the value of the target; an empty one removes it. */
static void store_sorted(struct sort *sort)
{
    struct client *client = sort->client;
    struct kv *kv = client->kv;
    struct bytes key = client_argument(client, sort->target);
    size_t count = result_count(sort);
    if (count == 0) {
        struct entry **link = keyspace_find(&kv->keys, key);
        if (link != NULL)
            kv_delete(kv, link, key);
        reply_number(client, 0);
        return;
    }
    struct storing storing = {.list = collection_create(VALUE_LIST, kv->keys.keys.table.key),
                              .left = kv->limits.total};
    if (storing.list != NULL && for_each_value(sort, append_value, &storing) &&
        keyspace_assign(&kv->keys, key, storing.list)) {
        kv_log_collection(kv, key, storing.list);
        kv_notify(kv, NOTIFY_LIST, "sortstore", key);
        reply_number(client, (int64_t)count);
        return;
    }
    if (storing.list != NULL)
        keyspace_discard(&kv->keys, storing.list);
    if (storing.is_too_large)
        reply_error(client, "-ERR the values have more than %llu bytes",
                    (unsigned long long)kv->limits.total);
    else
        reply_no_memory(client);
}

/* ---- The commands ---- */

/* Finds the collection; *collection is NULL if there is no such key. Returns false after an error reply. */
static bool find_source(struct client *client, struct collection **collection)
{
    struct bytes key = client_argument(client, 1);
    struct entry **link = keyspace_find(&client->kv->keys, key);
    *collection = NULL;
    if (link == NULL) {
        kv_note_miss(client->kv, key);
        return true;
    }
    if ((*link)->type == VALUE_STRING || (*link)->type == VALUE_HASH) {
        REPLY(client, "-WRONGTYPE Operation against a key holding the wrong kind of value");
        return false;
    }
    *collection = entry_collection(*link);
    return true;
}

/* A set has no order: what is stored of it is sorted anyway, as in redis. */
static void sort_stored_set(struct sort *sort)
{
    sort->is_unsorted = false;
    sort->is_by_text = true;
    sort->by = (struct bytes){NULL, 0};
}

static void sort_key(struct client *client, bool only_reads)
{
    struct collection *collection;
    struct sort sort;
    if (!read_sort_options(client, &sort, only_reads) || !find_source(client, &collection)) {
        free(sort.get_at);
        return;
    }
    if (sort.is_unsorted && sort.target != 0 && collection != NULL && collection->type == VALUE_SET)
        sort_stored_set(&sort);
    /* (before there is memory for the items, and again with their bytes) */
    bool is_bounded = check_steps(&sort, collection != NULL ? collection_count(collection) : 0);
    if (is_bounded && collection != NULL && !collect_items(&sort, collection)) {
        reply_no_memory(client);
    } else if (is_bounded && check_steps(&sort, sort.count) && order_items(&sort)) {
        limit_items(&sort);
        if (sort.target != 0)
            store_sorted(&sort);
        else
            reply_sorted(&sort);
    }
    free(sort.items);
    free(sort.get_at);
    buffer_free(&sort.key);
}

/* SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA] [STORE target] */
void command_sort(struct client *client)
{
    sort_key(client, false);
}

/* SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA] */
void command_sort_ro(struct client *client)
{
    sort_key(client, true);
}
