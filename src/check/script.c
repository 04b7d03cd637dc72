#define _GNU_SOURCE
#include "script.h"

#include "machine.h"
#include "storage.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct token {
    unsigned thread;
    unsigned times;
    char what; /* ' ', '<', '>' or '=' */
    bool spurious;
    reference other;
    unsigned choice;
} token;

struct script {
    token *tokens;
    unsigned count;
    unsigned capacity;
    unsigned next;
    unsigned taken; /* of the next one's times */
};

static struct script the_script;

static void write_reference(FILE *out, char what, reference r)
{
    if (is_initial(r))
        fprintf(out, "%c-", what);
    else
        fprintf(out, "%c%u.%u", what, r.thread, r.index);
}

/* What a step had beside its thread; `run` tells which of each thread's steps were run before it. */
static void write_step(FILE *out, const event *e, const unsigned run[THREADS])
{
    const graph *g = the_checker.g;
    if (e->kind == EVENT_CHOICE && e->value != 0)
        fprintf(out, "=%u", (unsigned)e->value);
    if (e->kind > EVENT_STORE)
        return;
    if (e->spurious)
        fputc('!', out);
    const location *l = &g->locations[e->location];
    unsigned self = e->kind == EVENT_STORE ? e->position : l->count;
    for (unsigned i = l->count; i-- > 0;) {
        reference store = l->stores[i];
        if (i == self || (!is_initial(store) && store.index >= run[store.thread]))
            continue;
        /* the newest that was there */
        if (e->kind == EVENT_LOAD && !same(store, e->rf))
            write_reference(out, '<', e->rf);
        if (e->kind == EVENT_STORE && i > e->position) {
            do
                i--;
            while (i == self ||
                   (!is_initial(l->stores[i]) && l->stores[i].index >= run[l->stores[i].thread]) ||
                   i > self);
            write_reference(out, '>', l->stores[i]);
        }
        return;
    }
}

char *script_write(void)
{
    char *text = NULL, *last = NULL;
    size_t size = 0, step_size = 0;
    unsigned run[THREADS] = {0};
    unsigned count, times = 1;
    const reference *order = machine_order(&count);
    FILE *out = open_memstream(&text, &size);
    for (unsigned i = 0; i <= count; i++) {
        char *step = NULL;
        if (i < count) {
            FILE *one = open_memstream(&step, &step_size);
            fprintf(one, "%u", order[i].thread);
            write_step(one, event_at(the_checker.g, order[i]), run);
            fclose(one);
            run[order[i].thread]++;
            if (last != NULL && strcmp(step, last) == 0) {
                times++;
                free(step);
                continue;
            }
        }
        if (last != NULL) {
            fputs(last, out);
            if (times > 1)
                fprintf(out, "x%u", times);
            if (i < count)
                fputc(' ', out);
            free(last);
        }
        last = step;
        times = 1;
    }
    fclose(out);
    return text;
}

static bool read_number(const char **text, unsigned *number)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    *number = (unsigned)strtoul(*text, &end, 10);
    *text = end;
    return true;
}

static bool read_token(const char **text, token *t)
{
    *t = (token){.times = 1, .what = ' '};
    if (!read_number(text, &t->thread) || t->thread >= THREADS)
        return false;
    if (**text == '!') {
        t->spurious = true;
        ++*text;
    }
    if (**text == '=') {
        t->what = '=';
        ++*text;
        if (!read_number(text, &t->choice))
            return false;
    } else if (**text == '<' || **text == '>') {
        unsigned thread, index;
        t->what = *(*text)++;
        if (**text == '-') {
            t->other = INITIAL;
            ++*text;
        } else if (read_number(text, &thread) && *(*text)++ == '.' && read_number(text, &index)) {
            t->other = (reference){(uint16_t)thread, (uint16_t)index};
        } else {
            return false;
        }
    }
    if (**text == 'x') {
        ++*text;
        return read_number(text, &t->times) && t->times > 0;
    }
    return true;
}

bool script_read(const char *text)
{
    the_checker.script = NULL;
    the_script.count = the_script.next = the_script.taken = 0;
    if (text == NULL)
        return true;
    for (;;) {
        while (*text == ' ')
            text++;
        if (*text == '\0')
            break;
        the_script.tokens = grown(the_script.tokens, &the_script.capacity, the_script.count + 1,
                                  sizeof *the_script.tokens);
        if (!read_token(&text, &the_script.tokens[the_script.count++]) ||
            (*text != ' ' && *text != '\0'))
            return false;
    }
    the_checker.script = &the_script;
    return true;
}

static const token *current(void)
{
    if (the_checker.script == NULL || the_script.next == the_script.count)
        return NULL;
    return &the_script.tokens[the_script.next];
}

bool script_is_turn_of(unsigned thread)
{
    const token *t = current();
    return t == NULL || t->thread == thread;
}

unsigned script_next_thread(void)
{
    const token *t = current();
    return t == NULL ? THREADS : t->thread;
}

bool script_wants(const graph *g, reference other, unsigned choice, bool spurious)
{
    const token *t = current();
    (void)g;
    if (t == NULL)
        return true;
    if (t->spurious != spurious)
        return false;
    if (t->what == '=')
        return choice == t->choice;
    return t->what == ' ' || same(other, t->other);
}

void script_step(void)
{
    const token *t = current();
    if (t != NULL && ++the_script.taken == t->times) {
        the_script.next++;
        the_script.taken = 0;
    }
}
