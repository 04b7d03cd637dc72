/*
 * bidec --frames: a table of each frame, with the offset and size of each member, and the lines where
 * it is live.
 *
 * Only the compiler knows sizes and offsets. Statements of asm take them as constants, and bidec
 * reads them from the compiler's assembly text, which is not assembled.
 */
#include "bidec.h"

#include <stdio.h>
#include <stdlib.h>

bool tables;

static const char *frame_type(void)
{
    return format_text("struct %s", frame_tag());
}

static void ask_for_member(struct text *out, const char *member, unsigned depth, const char *lines)
{
    text_print(out,
               "__asm__ volatile(\"\\n#bide member %%c0 %%c1 %u %s %s\" :: "
               "\"i\"(__builtin_offsetof(%s, %s)), \"i\"(sizeof ((%s *)0)->%s));\n",
               depth, member, lines, frame_type(), member, frame_type(), member);
}

static const char *lines_of(const struct scope *of)
{
    if (of == function->kept)
        return "kept until the function ends";
    if (of->first == 0)
        return "";
    unsigned first = tokens[of->first].line, last = tokens[of->last].line;
    return first == last ? format_text("line %u", first)
                         : format_text("lines %u to %u", first, last);
}

/* The name is the last word of a line of a struct. Bit-fields have no offset. */
static void ask_for_lines(struct text *out, const struct scope *in, unsigned depth)
{
    const char *line = in->members.at;
    for (const char *end; line != NULL && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const char *last = end - 1, *name;
        for (name = last; name > line && name[-1] != ' '; name--)
            ;
        if (strncmp(line, "unsigned char bide_armed_", 25) != 0)
            ask_for_member(out, format_text("%.*s", (int)(last - name), name), depth, lines_of(in));
    }
}

static void ask_for_symbols(struct text *out, const struct scope *in, const struct symbol *symbol,
                            unsigned depth)
{
    if (symbol == NULL)
        return;
    ask_for_symbols(out, in, symbol->next, depth);
    bool is_parameter = symbol->declarator != NULL && symbol->declarator->is_parameter;
    if (symbol->in_frame && (!symbol->is_local || symbol->is_saved || is_parameter))
        ask_for_member(out, symbol->member, depth,
                       is_parameter      ? "parameter"
                       : symbol->is_kept ? lines_of(function->kept)
                                         : lines_of(in));
}

static void ask_for_scope(struct text *out, const struct scope *in, unsigned depth)
{
    ask_for_symbols(out, in, in->symbols, depth);
    ask_for_lines(out, in, depth);
    for (const struct scope *inner = in->inner; inner != NULL; inner = inner->next)
        ask_for_scope(out, inner, depth + 1);
}

void print_size_queries(struct text *out)
{
    const struct token *t = &tokens[function->name_token];
    text_print(out,
               "static void bide_async_%s_table_(void) __attribute__((__used__));\n"
               "static void bide_async_%s_table_(void)\n{\n"
               "__asm__ volatile(\"\\n#bide frame %%c0 %%c1 %s %u\" :: \"i\"(sizeof(%s)), "
               "\"i\"(_Alignof(%s)));\n",
               function->name, function->name, function->name, t->line, frame_type(), frame_type());
    ask_for_member(out,
                   function->kind != NULL    ? "promise"
                   : function->value != NULL ? "generator"
                                             : "task",
                   0, "the header");
    if (function->value != NULL || function->yields != NULL)
        ask_for_member(out, "value", 0, "the latest yielded value");
    if (function->is_created) {
        ask_for_member(out, "bide_allocator", 0, "of this frame");
        if (!function->returns_nothing)
            ask_for_member(out, "bide_result_to", 0, "in the awaiting frame");
    }
    if (!function->returns_nothing)
        ask_for_member(out, "result", 0, "at the end, overlaps all that follows");
    ask_for_scope(out, function->scope, 0);
    ask_for_scope(out, function->kept, 0);
    text_print(out, "}\n");
}

bool warn_of_frames(const char *assembly, const char *file, unsigned long limit)
{
    bool any = false;
    for (const char *p = assembly; (p = strstr(p, "#bide frame ")) != NULL; p++) {
        unsigned long size, alignment;
        unsigned line;
        char name[256];
        if (sscanf(p, "#bide frame %lu %lu %255s %u", &size, &alignment, name, &line) != 4 ||
            size <= limit)
            continue;
        fprintf(stderr,
                "%s:%u: %s: the frame of %s has %lu bytes, more than %lu "
                "[-W%sasync-frame-larger-than=]\n",
                file, line, lints_are_errors ? "error" : "warning", name, size, limit,
                lints_are_errors ? "error=" : "");
        any = true;
    }
    return any;
}

void print_frame_tables(const char *assembly, const char *file)
{
    for (const char *p = assembly; (p = strstr(p, "#bide ")) != NULL; p++) {
        unsigned long a, b;
        unsigned depth, line;
        char name[256];
        int length = 0;
        if (sscanf(p, "#bide frame %lu %lu %255s %u", &a, &b, name, &line) == 4) {
            printf("%s:%u: %s: %lu bytes, aligned to %lu\n  offset    size\n", file, line, name, a,
                   b);
        } else if (sscanf(p, "#bide member %lu %lu %u %255s %n", &a, &b, &depth, name, &length) >=
                   4) {
            const char *rest = p + length;
            printf("%8lu %7lu  %*s%-*s %.*s\n", a, b, (int)depth * 2, "",
                   depth < 12 ? 30 - (int)depth * 2 : 6, name, (int)strcspn(rest, "\n"), rest);
        }
    }
}
