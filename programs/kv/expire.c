/* What is done beside the clients: keys whose time has come, and what was flushed. */
#include "tasks.h"

#include <errno.h>

enum {
    MOST = 256,       /* keys at a time */
    RECORDS = 1 << 20 /* bytes of what waits to be written, above which no more keys are taken */
};

/*
 * The times are of the wall's clock, which may be set. So it is looked at again after a minute at
 * the latest.
 */
async int keep_expiring(struct kv *kv)
{
    const int64_t minute = 60000;
    for (;;) {
        int status;
        kv_look_at_clock(kv);
        int64_t next = keyspace_next_time(&kv->keys), left = next - kv->keys.now;
        if (next == INT64_MAX) {
            status = await bide_single_consumer_auto_event_wait(&kv->sooner);
        } else if (left > 0) {
            uint64_t time =
                bide_now(bide_this_context()) + (uint64_t)(left < minute ? left : minute) * 1000000;
            status =
                await bide_with_deadline(time, bide_single_consumer_auto_event_wait(&kv->sooner));
        } else {
            keyspace_expire(&kv->keys, MOST);
            journal_poke(&kv->journal);
            status = await bide_sleep_for(TASKS_PAUSE);
            if (status == 0 && buffer_used(&kv->journal.filling) > RECORDS)
                status = await journal_next_group(&kv->journal);
        }
        if (status < 0 && status != -ETIMEDOUT)
            return status;
    }
}

async int keep_sweeping(struct kv *kv)
{
    for (;;) {
        int status = keyspace_sweep(&kv->keys)
                         ? await bide_sleep_for(TASKS_PAUSE)
                         : await bide_single_consumer_auto_event_wait(&kv->flushed);
        if (status < 0)
            return status;
    }
}
