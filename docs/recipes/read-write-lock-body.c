#include <bide/bide.h>
#include <stdio.h>

struct settings {
    bide_rw_lock lock;
    int value;
};

struct reader {
    bide_task task;
    struct settings *settings;
    bide_rw_lock_waiter key;
    int seen;
};

bide_coroutine(reader_body)
{
    bide_begin(reader_body, struct reader * self);
    bide_try(bide_rw_lock_read(&self->key, &self->settings->lock)); /* beside other readers */
    self->seen = self->settings->value;
    bide_rw_lock_unlock(&self->key);
    bide_end();
}

int main(void)
{
    struct settings settings = {.value = 1};
    struct reader reader = {.settings = &settings};
    bide_rw_lock_waiter key;
    bide_spawned spawned;
    bide_rw_lock_init(&settings.lock);
    if (bide_rw_lock_write_blocking(&key, &settings.lock, BIDE_FOREVER) != 0)
        return 1;
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&reader.task, &reader_body));
    settings.value = 2; /* the reader waits */
    bide_rw_lock_unlock(&key);
    printf("%d\n", reader.seen);
}
