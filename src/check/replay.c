#define _GNU_SOURCE
#include "replay.h"

#include "execution.h"
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

/* The newest store below `position` that was run already; INITIAL if there is none. */
static reference newest_run(const location *l, unsigned position, const unsigned run[THREADS])
{
    while (position-- > 0) {
        if (is_run(run, l->stores[position]))
            return l->stores[position];
    }
    return INITIAL;
}

/*
 * What a step had beside its thread; `run` tells which of each thread's steps were run before it.
 */
static void write_step(FILE *out, const event *e, const unsigned run[THREADS])
{
    if (e->kind == EVENT_CHOICE && e->value != 0)
        fprintf(out, "=%u", (unsigned)e->value);
    if (e->kind > EVENT_STORE)
        return;
    if (e->spurious)
        fputc('!', out);
    const location *l = &the_checker.g->locations[e->location];
    bool is_load = e->kind == EVENT_LOAD;
    reference newest = newest_run(l, l->count, run);
    reference chosen = is_load ? e->rf : newest_run(l, e->position, run);
    if (!same(newest, chosen))
        write_reference(out, is_load ? '<' : '>', chosen);
}

/* Writes parts of the text, equal ones that follow each other as one. */
typedef struct writer {
    FILE *out;
    char *part; /* that is not yet written, and how often it came */
    unsigned times;
    bool is_first;
} writer;

static void write_part(writer *w, char *part)
{
    if (w->part != NULL && part != NULL && strcmp(w->part, part) == 0) {
        w->times++;
        free(part);
        return;
    }
    if (w->part != NULL) {
        fprintf(w->out, "%s%s", w->is_first ? "" : " ", w->part);
        if (w->times > 1)
            fprintf(w->out, "x%u", w->times);
        w->is_first = false;
        free(w->part);
    }
    w->part = part;
    w->times = 1;
}

/* The threads that were run after so many steps without taking one. */
static void write_idle_runs(writer *w, unsigned steps)
{
    unsigned count;
    const idle_run *runs = execution_idle_runs(&count);
    for (unsigned i = 0; i < count; i++) {
        char part[16];
        snprintf(part, sizeof part, "%ux0", runs[i].thread);
        if (runs[i].steps == steps)
            write_part(w, strdup(part));
    }
}

char *script_write(void)
{
    char *text = NULL, *step = NULL;
    size_t size = 0, step_size = 0;
    unsigned run[THREADS] = {0};
    unsigned count;
    const reference *order = execution_order(&count);
    writer w = {.out = open_memstream(&text, &size), .is_first = true};
    for (unsigned i = 0; i < count; i++) {
        write_idle_runs(&w, i);
        FILE *one = open_memstream(&step, &step_size);
        fprintf(one, "%u", order[i].thread);
        write_step(one, event_at(the_checker.g, order[i]), run);
        fclose(one);
        run[order[i].thread]++;
        write_part(&w, step);
    }
    write_idle_runs(&w, count);
    write_part(&w, NULL);
    fclose(w.out);
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
        } else if (read_number(text, &thread) && *(*text)++ == '.' && read_number(text, &index) &&
                   thread < THREADS && index < UINT16_MAX) {
            t->other = (reference){(uint16_t)thread, (uint16_t)index};
        } else {
            return false;
        }
    }
    if (**text == 'x') {
        ++*text;
        return read_number(text, &t->times);
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

bool script_wants(char what, reference other, unsigned choice, bool spurious)
{
    const token *t = current();
    if (t == NULL || (t->what == ' ' && !t->spurious))
        return !spurious;
    if (t->spurious != spurious)
        return false;
    if (t->what == ' ')
        return true;
    return t->what == what && (what == '=' ? choice == t->choice : same(other, t->other));
}

void script_step(event_kind kind)
{
    const token *t = current();
    if (t == NULL)
        return;
    bool has_options = kind != EVENT_FENCE;
    if (t->times == 0 || (!has_options && (t->what != ' ' || t->spurious)))
        script_does_not_fit();
    if (++the_script.taken == t->times) {
        the_script.next++;
        the_script.taken = 0;
    }
}

void script_no_step(unsigned thread)
{
    const token *t = current();
    if (t == NULL)
        return;
    if (t->times != 0 || t->thread != thread)
        script_does_not_fit();
    the_script.next++;
}

bool script_is_over(void)
{
    return current() == NULL;
}

void script_does_not_fit(void)
{
    execution_found(
        BIDE_CHECK_BAD_SCENARIO,
        "the text to be run again does not fit the scenario: its part %u of %u cannot be",
        the_script.next + 1, the_script.count);
}
