/*
 * Quicksort that sorts its two halves in parallel. Prints the smallest and the greatest of a
 * million numbers, and whether they are sorted.
 */
#include "bide/join.h"

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000000, SMALL = 2000 };

struct slice {
    uint32_t *numbers;
    size_t count;
};

static int compare(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

static uint32_t middle_of_three(const struct slice *slice)
{
    uint32_t some[] = {slice->numbers[0], slice->numbers[slice->count / 2],
                       slice->numbers[slice->count - 1]};
    qsort(some, 3, sizeof some[0], compare);
    return some[1];
}

/* Returns the size of the left part: none of its numbers is greater than any on the right. */
static size_t partition(const struct slice *slice)
{
    uint32_t *numbers = slice->numbers, pivot = middle_of_three(slice);
    size_t left = 0, right = slice->count - 1;
    for (;; left++, right--) {
        while (numbers[left] < pivot)
            left++;
        while (numbers[right] > pivot)
            right--;
        if (left >= right)
            return right + 1 < slice->count ? right + 1 : right;
        uint32_t number = numbers[left];
        numbers[left] = numbers[right];
        numbers[right] = number;
    }
}

/* Small slices are sorted sequentially, so that each fork is worth its cost. */
static void sort(void *argument)
{
    const struct slice *self = argument;
    if (self->count <= SMALL) {
        qsort(self->numbers, self->count, sizeof self->numbers[0], compare);
        return;
    }
    size_t cut = partition(self);
    struct slice left = {self->numbers, cut}, right = {self->numbers + cut, self->count - cut};
    bide_join(sort, &left, sort, &right);
}

int main(void)
{
    bide_thread_pool *pool;
    uint32_t *numbers = malloc(COUNT * sizeof numbers[0]);
    if (numbers == NULL || bide_thread_pool_create(&pool, 0) != 0)
        return 1;
    uint32_t number = 1;
    for (size_t i = 0; i < COUNT; i++) {
        number = number * 1664525 + 1013904223;
        numbers[i] = number;
    }

    struct slice all = {numbers, COUNT};
    bide_call_in(pool, sort, &all);

    size_t wrong = 0;
    for (size_t i = 1; i < COUNT; i++)
        wrong += numbers[i - 1] > numbers[i];
    printf("%u to %u, %zu out of order\n", (unsigned)numbers[0], (unsigned)numbers[COUNT - 1],
           wrong);
    bide_thread_pool_destroy(pool);
    free(numbers);
    return wrong != 0;
}
