/*
 * The limit of memory: before a request that may need memory, values that have been discarded are freed and keys are evicted, until
 * the memory is below the limit. That is work of the request's client, and others have their turn meanwhile. An evicted key is
 * deleted in the append-only file too. One thread.
 */
#include "commands.h"

#include "memory.h"

enum room { ROOM_NONE, ROOM_LATER, ROOM_BEHIND, ROOM_FOUND };

/* Returns false if no key is to be evicted. */
static bool evict_key(struct kv *kv)
{
    struct entry *entry = eviction_choose(&kv->keys, kv->options.eviction, kv_draw, kv, &kv->work);
    if (entry == NULL)
        return false;
    struct entry **link = keyspace_peek(&kv->keys, entry_key(entry));
    if (link == NULL)
        return true; /* it had expired */
    kv->evictions++;
    kv_log_delete(kv, entry_key(entry));
    kv_notify(kv, NOTIFY_EVICTED, "evicted", entry_key(entry));
    keyspace_remove(&kv->keys, link);
    return true;
}

/*
 * While the append-only file has no room, nothing is evicted, and requests that change keys are refused anyway. ROOM_BEHIND: more
 * is evicted when the file has the next group.
 */
static enum room make_room(struct client *client)
{
    struct kv *kv = client->kv;
    uint64_t limit = client_work_limit(client);
    while (memory_used > kv->options.max_memory && !kv->journal.is_full) {
        if (kv->work >= limit)
            return ROOM_LATER;
        if (keyspace_unfreed(&kv->keys) == 0 && journal_is_behind(&kv->journal))
            return ROOM_BEHIND;
        if (keyspace_unfreed(&kv->keys) > 0)
            kv->work += keyspace_free_some(&kv->keys, (size_t)(limit - kv->work));
        else if (!evict_key(kv))
            return ROOM_NONE;
    }
    return ROOM_FOUND;
}

/* EXEC without memory ends the transaction. */
static void reply_no_room(struct client *client, const struct command *command)
{
    if (command->run == command_exec) {
        transaction_clear(client);
        REPLY(client, "-EXECABORT Transaction discarded because of: OOM command not allowed when "
                      "used memory > 'maxmemory'.");
    } else {
        client->transaction.is_rejected |= client->transaction.is_open;
        REPLY(client, "-OOM command not allowed when used memory > 'maxmemory'.");
    }
}

bool command_lacks_room(struct client *client, const struct command *command)
{
    const struct transaction *transaction = &client->transaction;
    bool is_queued = transaction->is_open && (command->kind & AT_ONCE) == 0;
    bool grows = (command->kind & GROWS) != 0 ||
                 (command->run == command_exec && transaction->is_open && transaction->grows);
    if (!is_queued && !grows)
        return false;
    enum room room = make_room(client);
    client->awaits_group = room == ROOM_BEHIND;
    if (room == ROOM_LATER)
        client_end_turn(client);
    else if (room == ROOM_BEHIND)
        client_repeat_request(client);
    else if (room == ROOM_NONE)
        reply_no_room(client, command);
    return room != ROOM_FOUND;
}
