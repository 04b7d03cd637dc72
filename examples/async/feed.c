/* A market's ticks pass through a ring: one stage checks and prices them, then two readers see each, in order. */
#include <bide/async.h>
#include <bide/loop.h>
#include <bide/ring.h>
#include <bide/single_producer_sequencer.h>
#include <stdio.h>

enum { SIZE = 64, TICKS = 100000 };

struct tick {
    long price, quantity, value;
};

static struct tick memory[SIZE];
static bide_ring(struct tick) ring;
static bide_sequence_barrier published, priced, summed, watched;
static bide_sequence_group gate;
static bide_single_producer_sequencer sequencer;

async int publish(void)
{
    defer bide_single_producer_sequencer_close(&sequencer);
    for (long n = 0; n < TICKS;) {
        bide_claim claim;
        try await bide_single_producer_sequencer_claim_up_to(&claim, &sequencer,
                                                             (size_t)(TICKS - n));
        for (size_t i = 0; i < claim.count; i++, n++)
            *bide_ring_at(&ring, claim.first + i) = (struct tick){100 + n % 7, 1 + n % 3, 0};
        bide_single_producer_sequencer_publish_range(&sequencer, claim.first, claim.count);
    }
    return 0;
}

/* Yields the ticks that stage `behind` has published. Asking for the next one publishes the previous one as done. */
async_generator(struct tick *) int ticks(bide_sequence_barrier *behind, bide_sequence_barrier *done)
{
    defer bide_sequence_barrier_close(done);
    for (size_t next = bide_sequence_initial() + 1;;) {
        bide_sequence_waiter wait;
        int status = await bide_sequence_barrier_wait_until_published(&wait, behind, next);
        if (status < 0)
            return status == -EPIPE ? 0 : status;
        for (; next != wait.published + 1; next++)
            yield bide_ring_at(&ring, next);
        bide_sequence_barrier_publish(done, wait.published);
    }
}

async void price(void)
{
    try async_for(struct tick * tick, ticks(&published, &priced))
    {
        tick->value = tick->price * tick->quantity;
    }
}

async void sum(void)
{
    long total = 0;
    try async_for(struct tick * tick, ticks(&priced, &summed))
    {
        total += tick->value;
    }
    printf("turnover %ld\n", total);
}

async void watch(void)
{
    long highest = 0, count = 0;
    try async_for(struct tick * tick, ticks(&priced, &watched))
    {
        highest = tick->price > highest ? tick->price : highest;
        count++;
    }
    printf("%ld ticks, highest %ld\n", count, highest);
}

async int main(void)
{
    static bide_sequence_barrier *last[] = {&summed, &watched};
    bide_sequence_barrier *all_of[] = {&published, &priced, &summed, &watched};
    for (int i = 0; i < 4; i++)
        bide_sequence_barrier_init(all_of[i], bide_sequence_initial());
    bide_ring_init(&ring, memory, SIZE);
    bide_sequence_group_init(&gate, last, 2);
    bide_single_producer_sequencer_init(&sequencer, &published, &gate, SIZE);
    return await all(publish(), price(), sum(), watch());
}
