/* Generators: the words of a text that arrives in pieces, the primes, and the nodes of a tree. */
#include <bide/async.h>
#include <bide/loop.h>
#include <bide/sleep.h>
#include <ctype.h>
#include <stdio.h>

/* Yields one character at a time; each piece has to be awaited. */
async_generator(char) int characters(const char *const *pieces)
{
    for (; *pieces != NULL; pieces++) {
        try await bide_sleep_for(1000);
        for (const char *c = *pieces; *c != 0; c++)
            yield *c;
    }
    return 0;
}

async_generator(const char *) int words(const char *const *pieces)
{
    char word[32];
    size_t length = 0;
    try async_for(char c, characters(pieces))
    {
        if (!isspace((unsigned char)c) && length < sizeof word - 1) {
            word[length++] = c;
        } else if (length > 0) {
            word[length] = 0;
            yield word;
            length = 0;
        }
    }
    word[length] = 0;
    if (length > 0)
        yield word;
    return 0;
}

generator(int) void primes(void)
{
    int found[100], count = 0;
    for (int n = 2;; n++) {
        int i = 0;
        while (i < count && n % found[i] != 0)
            i++;
        if (i < count)
            continue;
        if (count < 100)
            found[count++] = n;
        yield n;
    }
}

struct node {
    const struct node *left, *right;
    int value;
};

async_created recursive_generator(int) void in_order(const struct node *node)
{
    if (node == NULL)
        return;
    yield_from in_order(node->left);
    yield node->value;
    yield_from in_order(node->right);
}

async int main(void)
{
    static const char *const pieces[] = {"to b", "e or not ", "to be", NULL};
    static const struct node one = {NULL, NULL, 1}, three = {NULL, NULL, 3},
                             top = {&one, &three, 2};
    try async_for(const char *word, words(pieces)) printf("%s.", word);
    async_for(int prime, primes())
    {
        if (prime > 20)
            break;
        printf(" %d", prime);
    }
    async_for(int value, in_order(&top)) printf(" <%d>", value);
    printf("\n");
    return 0;
}
