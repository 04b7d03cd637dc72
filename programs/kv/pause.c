/*
 * CLIENT PAUSE and UNPAUSE. Until the pause ends, requests that it postpones stay in their clients, whose coroutines wait for
 * kv->pause.ended (client.c). It ends by a coroutine (expire.c), so the clients continue in the order in which they began to wait.
 * Keys expire meanwhile. One thread.
 */
#include "commands.h"

static void begin_pause(struct pause *pause, int64_t end, bool is_of_all)
{
    if (pause->end == 0) {
        pause->is_of_all = false;
        bide_event_reset(&pause->ended);
    }
    if (pause->end < end)
        pause->end = end;
    pause->is_of_all |= is_of_all;
    bide_single_consumer_auto_event_set(&pause->changed);
}

/* Parses a time from now in milliseconds. Returns false after an error reply. */
static bool read_pause_end(struct client *client, struct bytes text, int64_t *end)
{
    if (!number_read(text, end))
        REPLY(client, "-ERR timeout is not an integer or out of range");
    else if (*end < 0)
        REPLY(client, "-ERR timeout is negative");
    else if (__builtin_add_overflow(*end, client->kv->keys.now, end))
        REPLY(client, "-ERR timeout is out of range");
    else
        return true;
    return false;
}

/* CLIENT PAUSE milliseconds [WRITE|ALL] */
void client_pause(struct client *client)
{
    bool has_mode = client->request.count == 4;
    bool is_write = has_mode && bytes_are(client_argument(client, 3), "WRITE");
    int64_t end;
    if (has_mode && !is_write && !bytes_are(client_argument(client, 3), "ALL")) {
        REPLY(client, "-ERR CLIENT PAUSE mode must be WRITE or ALL");
    } else if (read_pause_end(client, client_argument(client, 2), &end)) {
        begin_pause(&client->kv->pause, end, !is_write);
        reply_ok(client);
    }
}

void pause_end(struct kv *kv)
{
    kv->pause.end = 0;
    bide_event_set(&kv->pause.ended);
}

/* A pause of changes postpones messages too, and transactions with either, as redis has it. */
bool pause_postpones(const struct client *client, const struct command *command)
{
    const struct pause *pause = &client->kv->pause;
    if (pause->end == 0)
        return false;
    if (pause->is_of_all || command->run == command_publish)
        return true;
    if (command->run == command_exec)
        return client->transaction.changes || client->transaction.publishes;
    return (command->kind & WRITES) != 0;
}
