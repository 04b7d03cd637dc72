/*
 * Background work, a limited number at a time: removing expired keys, freeing flushed ones, serving the
 * clients that one turn could not serve, and delivering messages to the many subscribers of one.
 */
#include "tasks.h"

#include <errno.h>

enum {
    MAX_KEYS = 256,       /* removed at a time */
    FREED_AT_A_TIME = 512 /* keys and elements */
};

/*
 * Expiries are in wall-clock time, and the clock may be set. So it is read again after a minute at
 * the latest.
 */
async int expire_keys(struct kv *kv)
{
    const int64_t minute = 60000;
    for (;;) {
        int status;
        kv_update_clock(kv);
        int64_t next = keyspace_next_expiry(&kv->keys), left = next - kv->keys.now;
        if (next == INT64_MAX) {
            status = await bide_single_consumer_auto_event_wait(&kv->next_expiry_changed);
        } else if (left > 0) {
            uint64_t time =
                bide_now(bide_this_context()) + (uint64_t)(left < minute ? left : minute) * 1000000;
            status = await bide_with_deadline(
                time, bide_single_consumer_auto_event_wait(&kv->next_expiry_changed));
        } else {
            kv->notify_limit = kv->work + CLIENT_MAX_WORK;
            keyspace_expire(&kv->keys, MAX_KEYS);
            waiting_leave(&kv->waiting);
            journal_wake_writer(&kv->journal);
            do /* (until the notifications are delivered) */
                status = await bide_sleep_for(TASKS_PAUSE);
            while (status == 0 && kv->pubsub.without_cause > 0);
            if (status == 0 && buffer_used(&kv->journal.filling) > JOURNAL_MAX_PENDING)
                status = kv->journal.is_full ? await bide_event_wait(&kv->journal.has_room)
                                             : await journal_next_group(&kv->journal);
        }
        if (status < 0 && status != -ETIMEDOUT)
            return status;
    }
}

/* Ends a pause at its time, of which the clock may be set: so it is read again after a minute at the latest. */
async int end_pauses(struct kv *kv)
{
    const int64_t minute = 60000;
    for (;;) {
        struct pause *pause = &kv->pause;
        int status = 0;
        kv_update_clock(kv);
        int64_t left = pause->end - kv->keys.now;
        if (pause->end != 0 && left > 0) {
            uint64_t time =
                bide_now(bide_this_context()) + (uint64_t)(left < minute ? left : minute) * 1000000;
            status = await bide_with_deadline(
                time, bide_single_consumer_auto_event_wait(&pause->changed));
        } else {
            pause_end(kv);
            status = await bide_single_consumer_auto_event_wait(&pause->changed);
        }
        if (status < 0 && status != -ETIMEDOUT)
            return status;
    }
}

async int free_flushed_keys(struct kv *kv)
{
    for (;;) {
        if (keyspace_free_some(&kv->keys, FREED_AT_A_TIME) > 0)
            try await bide_sleep_for(TASKS_PAUSE);
        else
            try await bide_single_consumer_auto_event_wait(&kv->flushed);
    }
}

async int serve_waiting_clients(struct kv *kv)
{
    for (;;) {
        kv_update_clock(kv);
        bool more = waiting_serve(kv);
        journal_wake_writer(&kv->journal);
        if (!more)
            try await bide_single_consumer_auto_event_wait(&kv->waiting.unserved);
        else if (kv->journal.is_full)
            try await bide_event_wait(&kv->journal.has_room);
        else
            try await bide_sleep_for(TASKS_PAUSE);
    }
}

async int deliver_publications(struct kv *kv)
{
    for (;;) {
        if (publications_deliver(kv)) {
            kv->turns_ended++;
            try await bide_sleep_for(TASKS_PAUSE);
        } else {
            try await bide_single_consumer_auto_event_wait(&kv->pubsub.queued);
        }
    }
}
