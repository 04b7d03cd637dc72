/*
 * A prefix sum in two loops over blocks: first the sum of each block, then the numbers of each
 * block from the sum of the blocks before it. The result is compared with a sequential sum.
 */
#include "bide/parallel.h"

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000000, BLOCK = 10000, BLOCKS = COUNT / BLOCK };

struct sums {
    const uint32_t *numbers;
    uint64_t *prefix;        /* the sum up to and including each number */
    uint64_t before[BLOCKS]; /* each block's sum, then the sum of all blocks before it */
};

static void sum_blocks(void *argument, size_t begin, size_t end)
{
    struct sums *self = argument;
    for (size_t block = begin; block < end; block++) {
        uint64_t sum = 0;
        for (size_t i = block * BLOCK; i < (block + 1) * BLOCK; i++)
            sum += self->numbers[i];
        self->before[block] = sum;
    }
}

static void fill_blocks(void *argument, size_t begin, size_t end)
{
    struct sums *self = argument;
    for (size_t block = begin; block < end; block++) {
        uint64_t sum = self->before[block];
        for (size_t i = block * BLOCK; i < (block + 1) * BLOCK; i++)
            self->prefix[i] = sum += self->numbers[i];
    }
}

static void make_prefix_sum(void *argument)
{
    struct sums *self = argument;
    bide_parallel_for(0, BLOCKS, 1, sum_blocks, self);
    uint64_t sum = 0;
    for (size_t block = 0; block < BLOCKS; block++) {
        uint64_t its = self->before[block];
        self->before[block] = sum;
        sum += its;
    }
    bide_parallel_for(0, BLOCKS, 1, fill_blocks, self);
}

int main(void)
{
    bide_thread_pool *pool;
    uint32_t *numbers = malloc(COUNT * sizeof numbers[0]);
    uint64_t *prefix = malloc(COUNT * sizeof prefix[0]);
    if (numbers == NULL || prefix == NULL || bide_thread_pool_create(&pool, 0) != 0)
        return 1;
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = (uint32_t)i % 1000;

    struct sums sums = {.numbers = numbers, .prefix = prefix};
    bide_call_in(pool, make_prefix_sum, &sums);

    uint64_t sum = 0;
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT; i++) {
        sum += numbers[i];
        wrong += prefix[i] != sum;
    }
    printf("the last is %llu, %zu are wrong\n", (unsigned long long)prefix[COUNT - 1], wrong);
    bide_thread_pool_destroy(pool);
    free(prefix);
    free(numbers);
    return wrong != 0;
}
