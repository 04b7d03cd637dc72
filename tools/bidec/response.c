/*
 * Response files: `@file` is replaced by the words in that file, as in the compilers. A space ends a
 * word; quotes and backslashes keep the characters that they precede.
 */
#include "bidec.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_RESPONSE_FILES = 1000 }; /* a limit, because a file may name itself */

/* Returns the next word of the text, or NULL, and moves *p past it. */
static char *next_word(const char **p)
{
    struct text word = {0};
    char quote = 0;
    while (isspace((unsigned char)**p))
        ++*p;
    if (**p == 0)
        return NULL;
    text_add(&word, "", 0);
    for (; **p != 0 && (quote != 0 || !isspace((unsigned char)**p)); ++*p) {
        if (**p == '\\' && (*p)[1] != 0 && quote != '\'')
            text_add(&word, ++*p, 1);
        else if (quote == 0 && (**p == '"' || **p == '\''))
            quote = **p;
        else if (quote != 0 && **p == quote)
            quote = 0;
        else
            text_add(&word, *p, 1);
    }
    return word.at;
}

char **expand_response_files(char **words)
{
    size_t count = 0, room = 64;
    unsigned files = 0;
    char **all = allocate((room + 1) * sizeof *all);
    while (words[count] != NULL)
        count++;
    if (count > room)
        all = allocate(((room = count) + 1) * sizeof *all);
    memcpy(all, words, count * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        int file = all[i][0] == '@' && files < MAX_RESPONSE_FILES ? open(all[i] + 1, O_RDONLY) : -1;
        if (file < 0)
            continue;
        struct text text = read_all(file);
        const char *p = text.at;
        size_t own = 0;
        char **inner = allocate((text.length / 2 + 2) * sizeof *inner);
        close(file);
        files++;
        while ((inner[own] = next_word(&p)) != NULL)
            own++;
        char **larger = allocate((count + own + 1) * sizeof *larger);
        memcpy(larger, all, i * sizeof *all);
        memcpy(larger + i, inner, own * sizeof *inner);
        memcpy(larger + i + own, all + i + 1, (count - i - 1) * sizeof *all);
        all = larger;
        count += own - 1;
        i--; /* the words of the file may name files themselves */
    }
    return all;
}
