/*
 * Replays: writes an execution as a text, and makes a run follow such a text. replay.h has the format.
 *
 * Writing goes through the steps of the execution in order. A step that took the newest store, or
 * chose 0, has no decision in the text. Equal consecutive parts are merged into one with a count.
 *
 * Reading turns the text into tokens. The run asks for the next token at three places: which thread
 * runs next, whether that thread may add its step, and which option the step takes. Options are
 * offered newest first, so a token without a decision takes the first one. A step that the token does
 * not fit ends the execution, with a message that names the part of the text.
 *
 * The state is static: one scenario at a time is checked, on one system thread.
 */
#define _GNU_SOURCE
#include "replay.h"

#include "execution.h"
#include "storage.h"

#include "bide/platform.h"

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

struct replay {
    token *tokens;
    unsigned count;
    unsigned capacity;
    unsigned next;
    unsigned taken; /* how many of the next token's steps have been taken */
};

static struct replay the_replay;

static void write_reference(FILE *out, char what, reference r)
{
    if (is_initial(r))
        fprintf(out, "%c-", what);
    else
        fprintf(out, "%c%u.%u", what, r.thread, r.index);
}

/* Returns the newest store below `position` that has been run, or INITIAL. */
static reference newest_run_below(const location *l, unsigned position, const unsigned run[THREADS])
{
    while (position-- > 0) {
        if (is_run(run, l->stores[position]))
            return l->stores[position];
    }
    return INITIAL;
}

/*
 * Writes the decision of a step. `run` counts the steps of each thread that were run before it.
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
    reference newest = newest_run_below(l, l->count, run);
    reference chosen = is_load ? e->rf : newest_run_below(l, e->position, run);
    if (!same_reference(newest, chosen))
        write_reference(out, is_load ? '<' : '>', chosen);
}

/* Writes the parts of a text; equal consecutive parts become one, with a count. */
typedef struct writer {
    FILE *out;
    char *part; /* the next part, which is not yet written */
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

/* Writes the threads that were run after `steps` steps without a step of their own. */
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

char *replay_write(void)
{
    char *text = NULL, *step = NULL;
    size_t size = 0, step_size = 0;
    unsigned run[THREADS] = {0};
    unsigned count;
    const reference *order = execution_order(&count);
    writer w = {.out = open_memstream(&text, &size), .is_first = true};
    if (the_checker.samples)
        fputs("~ ", w.out);
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

bool replay_read(const char *text)
{
    the_checker.replay = NULL;
    the_replay.count = the_replay.next = the_replay.taken = 0;
    if (text == NULL)
        return true;
    the_checker.samples = *text == '~';
    text += the_checker.samples;
    for (;;) {
        while (*text == ' ')
            text++;
        if (*text == '\0')
            break;
        the_replay.tokens = grown(the_replay.tokens, &the_replay.capacity, the_replay.count + 1,
                                  sizeof *the_replay.tokens);
        if (!read_token(&text, &the_replay.tokens[the_replay.count++]) ||
            (*text != ' ' && *text != '\0'))
            return false;
    }
    the_checker.replay = &the_replay;
    return true;
}

static const token *replay_token(void)
{
    if (the_checker.replay == NULL || the_replay.next == the_replay.count)
        return NULL;
    bide_assert(the_replay.next < the_replay.count);
    return &the_replay.tokens[the_replay.next];
}

bool replay_is_turn_of(unsigned thread)
{
    const token *t = replay_token();
    bool may_wait = the_checker.samples || the_checker.scenario->symmetric;
    return t == NULL || (t->thread == thread && (t->times != 0 || !may_wait));
}

unsigned replay_next_thread(void)
{
    const token *t = replay_token();
    return t == NULL ? THREADS : t->thread;
}

bool replay_has_step_of(unsigned thread)
{
    if (replay_token() == NULL)
        return false;
    unsigned taken = the_replay.taken;
    for (unsigned i = the_replay.next; i < the_replay.count; i++) {
        if (the_replay.tokens[i].thread == thread && the_replay.tokens[i].times > taken)
            return true;
        taken = 0;
    }
    return false;
}

bool replay_wants(char what, reference other, unsigned choice, bool spurious)
{
    const token *t = replay_token();
    if (t == NULL || (t->what == ' ' && !t->spurious))
        return !spurious;
    if (t->spurious != spurious)
        return false;
    if (t->what == ' ')
        return true;
    return t->what == what && (what == '=' ? choice == t->choice : same_reference(other, t->other));
}

void replay_step(event_kind kind)
{
    const token *t = replay_token();
    if (t == NULL)
        return;
    bool has_options = kind != EVENT_FENCE;
    if (t->times == 0 || (!has_options && (t->what != ' ' || t->spurious)))
        replay_mismatch();
    if (++the_replay.taken == t->times) {
        the_replay.next++;
        the_replay.taken = 0;
    }
}

void replay_idle_run(unsigned thread)
{
    const token *t = replay_token();
    if (t == NULL)
        return;
    if (t->times != 0 || t->thread != thread)
        replay_mismatch();
    the_replay.next++;
}

bool replay_is_finished(void)
{
    return replay_token() == NULL;
}

void replay_mismatch(void)
{
    execution_found(BIDE_CHECK_BAD_SCENARIO,
                    "the replay does not fit the scenario: its part %u of %u is impossible",
                    the_replay.next + 1, the_replay.count);
}
