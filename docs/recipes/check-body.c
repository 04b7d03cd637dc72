/* cc -std=c11 -g $(pkg-config --cflags bide-check) -fsanitize=thread -c check-body.c &&
   cc check-body.o $(pkg-config --libs bide-check) -o check */
#include <bide/check.h>
#include <bide/core.h>
#include <stdio.h>

struct mailbox {     /* your structure: a number is handed over without a lock */
    bide_task taker; /* (the checker sets the rest to zeros) */
    bide_atomic(uint32_t) is_full;
    int number;
};

bide_coroutine(taker_body)
{
    bide_begin(taker_body, struct mailbox * self);
    if (bide_atomic_load(&self->is_full, acquire) == 1)
        bide_check_assert(self->number == 42);
    bide_end();
}

static void take(void *mailbox)
{
    bide_sync_wait(bide_task_init(&((struct mailbox *)mailbox)->taker, &taker_body));
}

static void put(void *mailbox)
{
    ((struct mailbox *)mailbox)->number = 42;
    bide_atomic_store(&((struct mailbox *)mailbox)->is_full, 1, release); /* relaxed: a data race */
}

int main(void)
{
    bide_check_scenario scenario = {.size = sizeof(struct mailbox), .threads = {put, take}};
    bide_check_result result;
    bide_check_explore(&scenario, &result);
    puts(result.finding == BIDE_CHECK_NOTHING ? "right in every execution" : result.message);
    bide_check_result_free(&result);
}
