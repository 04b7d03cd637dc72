/*
 * bidec --editor: declarations of the functions that make awaiters, for editors whose parser is
 * clang. Such a function is overloaded with a declaration that has no waiter and returns the value of
 * its await.
 */
#include "bidec.h"

/* An argument that is an awaiter is a call of any type there, so the parameters from it on are "...". */
static void print_editor_parameters(struct text *out, const struct function *f,
                                    const char *separator)
{
    int number = 0, first = f->open + 1;
    for (int i = first; i <= f->close; i++) {
        if (i != f->close && (token_is(i, "(") || token_is(i, "["))) {
            i = closing_bracket(i);
            continue;
        }
        if (i != f->close && !token_is(i, ","))
            continue;
        if (number != 0 && number < 16 && f->takes_awaiter[number]) {
            text_print(out, "%s...", separator);
            return;
        }
        if (number != 0) {
            text_print(out, "%s%s", separator, file_scope_text(first, i));
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
            continue; /* an async function always passes the waiter */
        if (f->kept_for != NULL)
            continue;
        const struct value *value = find_value(f->waiter);
        const char *type = value != NULL ? value->type : "int";
        /* a function behind a macro, which is called with bide_here_ */
        bool is_inner = f->name[strlen(f->name) - 1] == '_';
        /* (in parentheses, because a macro may have its name) */
        text_print(out, is_inner ? "%s %s(struct bide_here_ *bide_here" : "%s (%s)(", type,
                   f->name);
        print_editor_parameters(out, f, is_inner ? ", " : "");
        text_print(out, ") BIDE_EDITOR_;\n");
    }
}
