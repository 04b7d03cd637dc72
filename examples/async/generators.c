/* Generators: the words of a text that arrives in pieces, the primes, and the nodes of a tree. */
#include <bide/async.h>
#include <bide/run_loop.h>
#include <bide/sleep.h>
#include <ctype.h>
#include <stdio.h>

/* Yields one character at a time; each piece has to be awaited. */
async_generator(char) int characters(const char *const *pieces)
{
    for (; *pieces != NULL; pieces++) {
        int status = await bide_sleep_for(1000);
        if (status < 0)
            return status;
        for (const char *c = *pieces; *c != 0; c++)
            yield *c;
    }
    return 0;
}

async_generator(const char *) int words(const char *const *pieces)
{
    char word[32];
    size_t length = 0;
    int status = 0;
    async_for(char c, characters(pieces), status)
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
    return status;
}

async_generator(int) void primes(void)
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

/* In order, with an explicit stack: a generator's frame cannot contain a frame of its own type. */
async_generator(int) void in_order(const struct node *node)
{
    const struct node *above[32];
    int depth = 0;
    while (node != NULL || depth > 0) {
        for (; node != NULL; node = node->left)
            above[depth++] = node;
        node = above[--depth];
        yield node->value;
        node = node->right;
    }
}

async int show(void)
{
    static const char *const pieces[] = {"to b", "e or not ", "to be", NULL};
    static const struct node one = {NULL, NULL, 1}, three = {NULL, NULL, 3},
                             top = {&one, &three, 2};
    async_for(const char *word, words(pieces)) printf("%s.", word);
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

int main(void)
{
    async_frame(show) frame;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    int status = bide_run_loop_wait(&loop, async_show(&frame));
    bide_run_loop_destroy(&loop);
    return -status;
}
