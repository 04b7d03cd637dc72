/*
 * Pointers at async functions in all places, in a program that awaits only functions of its own: with BIDE_SYNCHRONOUS it
 * is plain C without bidec, and prints the same.
 */
#include <bide/async.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef BIDE_SYNCHRONOUS
#define PAUSE (void)0
#else
#include <bide/sync_wait.h>
#define PAUSE await bide_sleep_for(1) /* it suspends */
#endif

struct node {
    struct node *left, *right;
    int key;
};

struct pair {
    long first;
    char text[12];
};

typedef async_pointer(int, int, int) binary;
typedef async_pointer(void, const struct node *, void *) visit;

async_created static int add(int a, int b)
{
    PAUSE;
    return a + b;
}

async_created static int multiply(int a, int b)
{
    int kept = a;
    PAUSE;
    return kept * b;
}

async_created static int power(int base, int exponent)
{
    int result = 1;
    binary step = async_pointer_to(multiply);
    while (exponent-- > 0)
        result = await async_call(step, result, base);
    return result;
}

/* A function that returns a pointer, and one that takes and returns one. */
static binary choose(char sign)
{
    return sign == '+'   ? async_pointer_to(add)
           : sign == '*' ? async_pointer_to(multiply)
                         : (binary)NULL;
}

async_created static binary other_than(binary one)
{
    PAUSE;
    return one == async_pointer_to(add) ? async_pointer_to(multiply) : async_pointer_to(add);
}

/* ---- In structs and arrays ---- */

struct operation {
    char sign;
    struct {
        binary call;
        async_pointer(struct pair, struct pair) more[2];
    } in;
};

async_created static struct pair next(struct pair pair)
{
    PAUSE;
    pair.first++;
    pair.text[0]++;
    return pair;
}

static const struct operation operations[] = {
    {'+', {async_pointer_to(add), {NULL, async_pointer_to(next)}}},
    {'*', {async_pointer_to(multiply), {async_pointer_to(next), NULL}}},
    {'^', {async_pointer_to(power), {NULL, NULL}}},
};

async static int fold(const char *signs, int start)
{
    int value = start;
    for (const char *sign = signs; *sign != 0; sign++) {
        for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
            const struct operation *operation = &operations[i];
            if (operation->sign != *sign)
                continue;
            value = await async_call(operation->in.call, value % 100,
                                     await async_call(choose('+'), 1, 1));
        }
    }
    return value;
}

/* ---- Recursion, and a visitor ---- */

async_created static void print_key(const struct node *node, void *state)
{
    PAUSE;
    printf("%d ", node->key);
    *(int *)state += node->key;
}

async_created static void print_leaf(const struct node *node, void *state)
{
    if (node->left == NULL && node->right == NULL)
        await print_key(node, state);
}

async_created static void walk(const struct node *node, visit each, void *state)
{
    if (node == NULL)
        return;
    await walk(node->left, each, state);
    await async_call(each, node, state);
    await walk(node->right, each, state);
}

async_created static int down(int n);
static async_pointer(int, int) const down_pointer = async_pointer_to(down);

async_created static int down(int n)
{
    return n == 0 ? 0 : 1 + await async_call(down_pointer, n - 1);
}

/* ---- In expressions ---- */

async static long expressions(void)
{
    binary table[2][2] = {{choose('+'), choose('*')}, {choose('*'), choose('+')}};
    binary *at = table[1];
    struct pair pair = {1, "abc"};
    long sum = 0;
    for (int i = 0; i < 8; i++) {
        sum = sum * 3 + await async_call(table[i & 1][i >> 1 & 1], i, i + 1) -
              (i % 3 == 0 ? await async_call(*at, i, 2)
                          : await async_call(at[1], await async_call(at[0], i, i), 1));
        if (await async_call(i % 2 ? table[0][0] : table[1][0], i, 0) && i > 5)
            break;
        pair = await async_call(operations[i & 1].in.more[!(i & 1)], pair);
        sum += pair.first + (await async_call(operations[1].in.more[0], pair)).text[0];
    }
    binary swapped = await other_than(table[0][0]);
    async_pointer(binary, binary) other = async_pointer_to(other_than);
    sum += await async_call(await async_call(other, swapped), 1000, 1) +
           await async_call(swapped, 1000, 1) * (swapped != table[0][0]);
    switch (await async_call(swapped, 2, 2)) {
    case 4:
        sum += sizeof(await async_call(operations[0].in.more[1], pair)) == sizeof(struct pair);
        break;
    default:
        sum = -1;
    }
    return sum + pair.text[0];
}

async static int everything(void)
{
    struct node nodes[] = {
        {NULL, NULL, 1}, {&nodes[0], &nodes[2], 2}, {NULL, NULL, 3}, {&nodes[1], NULL, 4}};
    int sum = 0;
    printf("%d %d\n", await fold("+*^+", 3), await fold("^^*", 7));
    await walk(&nodes[3], async_pointer_to(print_key), &sum);
    await walk(&nodes[3], async_pointer_to(print_leaf), &sum);
    printf("%d\n%d\n", sum, await down(300));
    printf("%ld\n", await expressions());
    return 0;
}

int main(void)
{
#ifdef BIDE_SYNCHRONOUS
    return everything();
#else
    async_frame(everything) frame;
    bide_sync_wait(async_everything(&frame));
    return frame.result;
#endif
}
