/*
 * bidec --editor: what editors have to be told of the functions that make awaiters. clang lets a
 * function have several declarations, of which one may be plain; so each gets another one, without
 * its waiter, that returns what the await of it gives.
 */
#include "bidec.h"

/* A parameter's awaiter is a call of whatever type there: the rest is not looked at. */
static void print_parameters(struct text *out, const struct function *f, const char *separator)
{
    int number = 0, first = f->open + 1;
    for (int i = first; i <= f->close; i++) {
        if (i != f->close && (is(i, "(") || is(i, "["))) {
            i = closing(i);
            continue;
        }
        if (i != f->close && !is(i, ","))
            continue;
        if (number != 0 && number < 16 && f->takes_awaiter[number]) {
            text_print(out, "%s...", separator);
            return;
        }
        if (number != 0) {
            text_print(out, "%s%s", separator, outside(first, i));
            separator = ", ";
        }
        number++;
        first = i + 1;
    }
}

void print_for_editors(struct text *out)
{
    for (const struct function *f = first_function; f != NULL; f = f->next) {
        if (!f->makes_awaiter || f->waiter == NULL || f->parameter_count < 2 ||
            strstr(f->waiter, "bide_frame") != NULL || strcmp(f->waiter, "bide_task") == 0)
            continue; /* none that an async function calls without its waiter */
        const struct value *value = find_value(f->waiter);
        const char *type = value != NULL ? value->type : "int";
        /* those behind macros, which are called with bide_here_ */
        bool is_inner = f->name[strlen(f->name) - 1] == '_';
        text_print(out, "%s %s(%s", type, f->name, is_inner ? "struct bide_here_ *bide_here" : "");
        print_parameters(out, f, is_inner ? ", " : "");
        text_print(out, ") BIDE_EDITOR_;\n");
    }
}
