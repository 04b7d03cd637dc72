/* bidec cc -std=gnu11 -g $(pkg-config --cflags bide-check) -fsanitize=thread -c check-async.c &&
   cc check-async.o $(pkg-config --libs bide-check) -o check */
#include <bide/async.h>
#include <bide/check.h>
#include <bide/core.h>
#include <stdio.h>

struct mailbox { /* your structure: a number is handed over without a lock */
    bide_atomic(uint32_t) is_full;
    int number;
};

static void put(void *mailbox)
{
    ((struct mailbox *)mailbox)->number = 42;
    bide_atomic_store(&((struct mailbox *)mailbox)->is_full, 1, release); /* relaxed: a data race */
}

static int look(const struct mailbox *mailbox, int otherwise)
{
    return bide_atomic_load(&mailbox->is_full, acquire) == 1 ? mailbox->number : otherwise;
}

async void taker(const struct mailbox *mailbox)
{
    bide_check_assert(look(mailbox, 42) == 42);
}

static void take(void *mailbox)
{
    bide_sync_wait(async_taker(&(async_frame(taker)){0}, mailbox));
}

int main(void)
{
    bide_check_scenario scenario = {.size = sizeof(struct mailbox), .threads = {put, take}};
    bide_check_result result;
    bide_check_explore(&scenario, &result);
    puts(result.finding == BIDE_CHECK_NOTHING ? "right in every execution" : result.message);
}
