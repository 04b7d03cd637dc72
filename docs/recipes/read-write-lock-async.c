#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

struct settings {
    bide_rw_lock lock;
    int value;
};

async int read_value(struct settings *settings)
{
    bide_rw_lock_waiter key;
    try await bide_rw_lock_read(&key, &settings->lock); /* beside other readers */
    defer bide_rw_lock_unlock(&key);
    return settings->value;
}

int main(void)
{
    struct settings settings = {.value = 1};
    async_frame(read_value) reader;
    bide_rw_lock_waiter key;
    bide_spawned spawned;
    bide_rw_lock_init(&settings.lock);
    if (bide_rw_lock_write_blocking(&key, &settings.lock, BIDE_FOREVER) != 0)
        return 1;
    bide_spawn(&spawned, &bide_default_context, async_read_value(&reader, &settings));
    settings.value = 2; /* the reader waits */
    bide_rw_lock_unlock(&key);
    printf("%d\n", reader.result);
}
