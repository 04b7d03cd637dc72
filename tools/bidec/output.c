/*
 * The text of the step function: tokens with the names that they have there, and line markers.
 *
 * A token keeps its line, and its column where that is possible, so that the compiler's messages and
 * a debugger point at the user's source. Generated text is marked as a system header's, so that the
 * compiler does not warn about it.
 */
#include "bidec.h"

#include <string.h>

struct text *body;

/* ---- Tokens as they are written in the step function ---- */

static void print_token(struct text *out, int token)
{
    const struct token *t = &tokens[token];
    const struct symbol *symbol = t->symbol;
    if (mark_of(t)->before != NULL)
        text_add(out, mark_of(t)->before, strlen(mark_of(t)->before));
    if (mark_of(t)->instead != NULL || mark_of(t)->named != NULL)
        text_print(out, "%s",
                   mark_of(t)->instead != NULL ? mark_of(t)->instead : mark_of(t)->named);
    else if (symbol == NULL || (symbol->kind != VARIABLE && symbol->member == NULL) ||
             (symbol->kind == VARIABLE && !symbol->in_frame))
        text_add(out, t->at, t->length);
    else if (symbol->kind == VARIABLE && has_variable_rows(symbol->declarator))
        text_print(out, "(%sbide_self->%s)", cast_to_rows(symbol->declarator), symbol->member);
    else if (symbol->kind == VARIABLE && symbol->is_local && symbol->is_const)
        text_print(out, "(*(const __typeof__(%s) *)&%s)", symbol->member, symbol->member);
    else if (symbol->kind == VARIABLE && !symbol->is_local && symbol->is_const)
        text_print(out, "(*(const __typeof__(bide_self->%s) *)&bide_self->%s)", symbol->member,
                   symbol->member);
    else if (symbol->kind == VARIABLE && !symbol->is_local)
        text_print(out, "bide_self->%s", symbol->member);
    else if (symbol->kind == TAG && symbol->token == 0)
        text_print(out, "%.*s %s", (int)t->length, t->at, symbol->member);
    else
        text_add(out, symbol->member, strlen(symbol->member));
    if (mark_of(t)->after != NULL)
        text_add(out, mark_of(t)->after, strlen(mark_of(t)->after));
}

static unsigned out_line, out_column;
static const char *out_file;

void begin_user_text(int token)
{
    const struct token *t = &tokens[token];
    text_print(body, "\n# %u \"%s\"%s\n", t->line, t->file, t->system ? " 3" : "");
    out_line = t->line;
    out_file = t->file;
    out_column = 1;
    for (; out_column < t->column && out_column < 200; out_column++)
        text_add(body, " ", 1);
}

void begin_generated_text(int token)
{
    const struct token *t = &tokens[token];
    text_print(body, "\n# %u \"%s\" 3\n", t->line, t->file);
    out_file = NULL;
}

/* `lines`: with a line marker before each line, and, up to column 200, each token in its column. */
static void print_range(struct text *out, int first, int end, bool lines)
{
    for (int i = first; i < end; i++) {
        const struct token *t = &tokens[i];
        if (t->kind == PRAGMA) {
            if (lines)
                text_print(out, "\n%.*s", (int)t->length, t->at);
            out_file = NULL;
            continue;
        }
        if (lines && (t->file != out_file || t->line != out_line)) {
            begin_user_text(i);
        } else if (i > first && (t->space || (t->kind == NAME && tokens[i - 1].kind == NAME))) {
            text_add(out, " ", 1);
        }
        if (is_attribute_of_tag(i)) {
            i = closing_bracket(i);
        } else if (mark_of(t)->unevaluated != 0) {
            text_print(out, "%s", file_scope_text(i, mark_of(t)->unevaluated));
            i = mark_of(t)->unevaluated - 1;
        } else if (mark_of(t)->hoisted != 0)
            i = mark_of(t)->hoisted; /* defined before the frame */
        else
            print_token(out, i);
    }
}

void print_tokens(struct text *out, int first, int end)
{
    out_file = NULL;
    print_range(out, first, end, true);
}

const char *step_text(int first, int end)
{
    struct text text = {0};
    text_add(&text, "", 0);
    print_range(&text, first, end, false);
    return text_finish(&text);
}
