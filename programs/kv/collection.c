/* Hashes, sets and lists. collection.h has the model. */
#include "collection.h"

#include "sorted_set.h"

#include <errno.h>

struct collection *collection_create(enum value_type type, const uint64_t key[2])
{
    struct collection *collection = memory_allocate(sizeof *collection);
    if (collection == NULL)
        return NULL;
    *collection = (struct collection){.type = type};
    if (collection_has_table(collection))
        table_init(&collection->fields, key);
    if (type == VALUE_SORTED_SET)
        collection->fields.before_free = sorted_set_free_node;
    return collection;
}

size_t collection_count(const struct collection *collection)
{
    return collection_has_table(collection) ? collection->fields.count : collection->list.count;
}

bool collection_free_some(struct collection *collection, size_t elements)
{
    if (collection_has_table(collection)) {
        if (!table_free_some(&collection->fields, elements))
            return false;
    } else {
        struct list *list = &collection->list;
        for (; list->count > 0 && elements > 0; elements--)
            list_remove(collection, list->count - 1, 1);
        if (list->count > 0)
            return false;
        memory_free(list->items);
    }
    memory_free(collection);
    return true;
}

struct copying {
    struct collection *to;
    int status;
};

static void copy_field(void *argument, struct entry *entry)
{
    struct copying *copying = argument;
    if (copying->status < 0)
        return;
    if (copying->to->type == VALUE_SORTED_SET)
        copying->status =
            sorted_set_put(copying->to, entry_key(entry), sorted_node_of(entry)->score);
    else
        copying->status = hash_set(copying->to, entry_key(entry), entry_value(entry));
}

struct collection *collection_copy(struct collection *from)
{
    struct copying copying = {collection_create(from->type, from->fields.key), 0};
    if (copying.to == NULL)
        return NULL;
    if (collection_has_table(from)) {
        size_t cursor = 0;
        do
            cursor = table_scan(&from->fields, cursor, copy_field, &copying);
        while (cursor != 0 && copying.status >= 0);
    }
    for (size_t i = 0; !collection_has_table(from) && i < from->list.count; i++) {
        if (!list_insert(copying.to, i, list_get(from, i))) {
            copying.status = -ENOMEM;
            break;
        }
    }
    if (copying.status >= 0)
        return copying.to;
    while (!collection_free_some(copying.to, SIZE_MAX))
        continue;
    return NULL;
}

/* ---- Hashes ---- */

static struct entry **find_field(struct collection *hash, struct bytes field)
{
    struct entry **link = table_find(&hash->fields, field, table_hash(&hash->fields, field));
    return link != NULL && *link != NULL ? link : NULL;
}

struct entry *hash_find(struct collection *hash, struct bytes field)
{
    struct entry **link = find_field(hash, field);
    return link != NULL ? *link : NULL;
}

int hash_set(struct collection *hash, struct bytes field, struct bytes value)
{
    struct entry **link = find_field(hash, field), *entry;
    bool is_new = link == NULL;
    if (is_new)
        entry = table_add(&hash->fields, field, table_hash(&hash->fields, field), value.size);
    else if (value.size <= (*link)->value_capacity && value.size >= (*link)->value_capacity / 4)
        entry = *link;
    else
        entry = table_grow_value(link, value.size, false);
    if (entry == NULL)
        return -ENOMEM;
    memcpy(entry->bytes + entry->key_size, value.data, value.size);
    entry->value_size = (uint32_t)value.size;
    return is_new;
}

bool hash_delete(struct collection *hash, struct bytes field)
{
    struct entry **link = find_field(hash, field);
    if (link == NULL)
        return false;
    memory_free(table_unlink(&hash->fields, link));
    return true;
}

/* ---- Lists ---- */

static struct item **item_at(struct list *list, size_t at)
{
    return &list->items[(list->first + at) & (list->capacity - 1)];
}

static struct item *create_item(struct bytes value)
{
    struct item *item = memory_allocate(sizeof *item + value.size);
    if (item == NULL)
        return NULL;
    item->size = value.size;
    memcpy(item->bytes, value.data, value.size);
    return item;
}

/* Doubles the ring. What has wrapped around moves behind the rest. */
static bool grow_list(struct list *list)
{
    enum { MIN_CAPACITY = 4 };
    size_t capacity = list->capacity > 0 ? 2 * list->capacity : MIN_CAPACITY;
    struct item **items = capacity <= SIZE_MAX / sizeof *items
                              ? memory_reallocate(list->items, capacity * sizeof *items)
                              : NULL;
    if (items == NULL)
        return false;
    if (list->capacity > 0)
        memcpy(items + list->capacity, items, list->first * sizeof *items);
    list->items = items;
    list->capacity = capacity;
    return true;
}

bool list_insert(struct collection *list, size_t at, struct bytes value)
{
    struct list *items = &list->list;
    struct item *item = create_item(value);
    bide_assert(at <= items->count);
    if (item == NULL || (items->count == items->capacity && !grow_list(items))) {
        memory_free(item);
        return false;
    }
    items->count++;
    if (at < items->count / 2) { /* the shorter part moves */
        items->first = (items->first - 1) & (items->capacity - 1);
        for (size_t i = 0; i < at; i++)
            *item_at(items, i) = *item_at(items, i + 1);
    } else {
        for (size_t i = items->count - 1; i > at; i--)
            *item_at(items, i) = *item_at(items, i - 1);
    }
    *item_at(items, at) = item;
    return true;
}

bool list_set(struct collection *list, size_t at, struct bytes value)
{
    struct item *item = create_item(value);
    bide_assert(at < list->list.count);
    if (item == NULL)
        return false;
    memory_free(*item_at(&list->list, at));
    *item_at(&list->list, at) = item;
    return true;
}

/* Gives memory back when the ring is almost empty. */
static void shrink_list(struct list *list)
{
    enum { SMALL = 64 };
    size_t capacity = list->capacity / 4;
    if (list->capacity <= SMALL || list->count > capacity / 2)
        return;
    struct item **items = memory_allocate(capacity * sizeof *items);
    if (items == NULL)
        return;
    for (size_t i = 0; i < list->count; i++)
        items[i] = *item_at(list, i);
    memory_free(list->items);
    *list = (struct list){items, 0, list->count, capacity};
}

void list_remove(struct collection *list, size_t at, size_t count)
{
    struct list *items = &list->list;
    bide_assert(at <= items->count && count <= items->count - at);
    for (size_t i = at; i < at + count; i++)
        memory_free(*item_at(items, i));
    if (at < items->count - at - count) { /* the shorter part moves */
        for (size_t i = at; i > 0; i--)
            *item_at(items, i - 1 + count) = *item_at(items, i - 1);
        items->first = (items->first + count) & (items->capacity - 1);
    } else {
        for (size_t i = at + count; i < items->count; i++)
            *item_at(items, i - count) = *item_at(items, i);
    }
    items->count -= count;
    shrink_list(items);
}

size_t list_remove_equal(struct collection *list, struct bytes value, size_t max, bool from_end)
{
    struct list *items = &list->list;
    size_t count = items->count, removed = 0;
    /* the items that stay move towards the end at which the search began */
    for (size_t i = 0; i < count; i++) {
        size_t at = from_end ? count - 1 - i : i, to = from_end ? at + removed : at - removed;
        struct item *item = *item_at(items, at);
        if (removed < max && bytes_equal((struct bytes){item->bytes, item->size}, value)) {
            memory_free(item);
            removed++;
        } else {
            *item_at(items, to) = item;
        }
    }
    if (from_end && count > 0)
        items->first = (items->first + removed) & (items->capacity - 1);
    items->count -= removed;
    shrink_list(items);
    return removed;
}
