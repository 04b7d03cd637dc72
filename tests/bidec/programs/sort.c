/* Sorting in three ways, with recursion, pointers to functions and arrays of arrays. */
#include <stdio.h>
#include <string.h>

static unsigned state = 12345;

static unsigned next_random(void)
{
    state = state * 1103515245 + 12345;
    return state >> 16 & 0x7fff;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int descending(const void *a, const void *b)
{
    return ascending(b, a);
}

static void quick(int *from, int *to, int (*compare)(const void *, const void *))
{
    if (to - from < 2)
        return;
    int *left = from, *right = to - 1, pivot = from[(to - from) / 2];
    do {
        while (compare(left, &pivot) < 0)
            left++;
        while (compare(right, &pivot) > 0)
            right--;
        if (left <= right) {
            int keep = *left;
            *left++ = *right;
            *right-- = keep;
        }
    } while (left <= right);
    quick(from, right + 1, compare);
    quick(left, to, compare);
}

static void merge(int list[], int length)
{
    int half = length / 2, other[64], i = 0, j = half, n = 0;
    if (length < 2)
        return;
    merge(list, half);
    merge(list + half, length - half);
    while (i < half || j < length)
        other[n++] = j == length || (i < half && list[i] <= list[j]) ? list[i++] : list[j++];
    memcpy(list, other, sizeof *list * (size_t)length);
}

static void insertion(int *list, int length)
{
    for (int i = 1; i < length; i++) {
        int moved = list[i], j;
        for (j = i; j > 0 && list[j - 1] > moved; j--)
            list[j] = list[j - 1];
        list[j] = moved;
    }
}

int main(void)
{
    static const char *const names[] = {"quick", "quick down", "merge", "insertion"};
    int lists[4][50];
    for (int i = 0; i < 50; i++)
        lists[0][i] = lists[1][i] = lists[2][i] = lists[3][i] = (int)(next_random() % 1000);
    quick(lists[0], lists[0] + 50, ascending);
    quick(lists[1], lists[1] + 50, descending);
    merge(lists[2], 50);
    insertion(lists[3], 50);
    for (int n = 0; n < 4; n++) {
        printf("%s:", names[n]);
        for (int i = 0; i < 50; i++)
            printf(" %d", lists[n][i]);
        printf("\n");
    }
    return lists[0][7] & 63;
}
