/*
 * AddressSanitizer: the members of a block are poisoned where the block ends, so that a use of its locals
 * behind it is reported, as that of a local of C is.
 *
 * The members of a scope are a region of the frame, between two members without a size; the regions of
 * inner scopes are inside of it. Siblings overlap, so a scope begins by unpoisoning its region: a block,
 * a whole expression with an await, the target of a switch or a goto. Where a block ends its region is
 * poisoned, and so it is by a jump out of the block. The
 * whole frame is unpoisoned when it is made, and before it ends: its memory is used for other things then.
 */
#include "bidec.h"

bool poisons;
bool emits;
static unsigned last_region;

static const char *region_text(const char *what, struct scope *of)
{
    if (of->region == 0)
        of->region = ++last_region;
    return format_text("__asan_%s_memory_region(bide_self->bide_begin_%u, "
                       "__builtin_offsetof(struct %s, bide_end_%u) - "
                       "__builtin_offsetof(struct %s, bide_begin_%u));",
                       what, of->region, frame_tag(), of->region, frame_tag(), of->region);
}

/* On a line of its own: behind a statement of the user's it would be misleading. */
void begin_life(struct scope *of)
{
    if (!poisons)
        return;
    begin_generated_text(of->first);
    text_print(body, "%s", region_text("unpoison", of));
}

void end_life(struct scope *of)
{
    if (!poisons)
        return;
    begin_generated_text(of->last);
    text_print(body, "%s", region_text("poison", of));
}

/* What a jump does that enters scopes: `in`, and those around it up to `outside`, which it is in. */
const char *text_of_entry(struct scope *in, const struct scope *outside)
{
    struct scope *outermost = NULL;
    for (; poisons && in != NULL && in != outside; in = in->up) {
        if (in->awaits)
            outermost = in;
    }
    return outermost != NULL ? region_text("unpoison", outermost) : "";
}

/* What a jump does that leaves scopes: `from`, and those around it up to `stop`, in which it stays. */
const char *text_of_exit(struct scope *from, const struct scope *stop)
{
    struct scope *outermost = NULL;
    for (; poisons && from != NULL && from != stop; from = from->up) {
        if (from->awaits)
            outermost = from;
    }
    return outermost != NULL && outermost != function->scope ? region_text("poison", outermost)
                                                             : "";
}

void print_frame_life(struct text *out, const char *frame)
{
    if (poisons)
        text_print(out, "    __asan_unpoison_memory_region(%s, sizeof *%s);\n", frame, frame);
}

void print_life_functions(struct text *out)
{
    text_print(
        out,
        "void __asan_poison_memory_region(void const volatile *bide_at_, __typeof__(sizeof 0) "
        "bide_size_);\n"
        "void __asan_unpoison_memory_region(void const volatile *bide_at_, __typeof__(sizeof 0) "
        "bide_size_);\n");
}
