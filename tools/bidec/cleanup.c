/*
 * Cleanups and jumps.
 *
 * A cleanup is a deferred statement, or the cleanup function of a variable. It has a flag in the
 * frame, which is set where the cleanup is declared. The cleanup runs if its flag is set: at the
 * end of its block, before a jump out of that block, and at the end of the function, where a frame
 * that is destroyed goes as well.
 *
 * The text of a deferred statement stands once, where it was declared: its names mean the same there,
 * and its static variables exist once. Each place that runs it jumps there with a number, and the
 * statement jumps back behind the place with that number.
 *
 * A jump is rewritten at its own token, wherever it is written. A jump from a block that is copied
 * first goes behind the statement that contains the block. So the compiler runs the cleanup functions
 * of the copied block, whose variables are locals of C, before those of the blocks around it.
 */
#include "bidec.h"

#include <string.h>

struct cleanup *last_cleanup;
static unsigned labels, returns;

/* A jump from a copied block: what it does after that block. */
struct departure {
    struct departure *next; /* a later one */
    int token;
    unsigned number;
    const char *text;
};

static struct departure *departures;

void reset_cleanups(void)
{
    last_cleanup = NULL;
    departures = NULL;
    labels = returns = 0;
}

/* ---- Cleanups ---- */

void print_cleanup(struct text *out, struct cleanup *c)
{
    text_print(out, "if (bide_self->bide_armed_%u) { bide_self->bide_armed_%u = 0; ", c->number,
               c->number);
    if (c->statement == NULL) {
        text_print(out, "%s; }", c->text);
        return;
    }
    unsigned number = ++returns;
    c->last_return = number;
    text_print(&c->returns, "    case %u: goto bide_back_%u;\n", number, number);
    text_print(out, "bide_back_ = %u; goto bide_deferred_%u; bide_back_%u: ; }", number, c->number,
               number);
}

void lower_deferred(struct cleanup *c)
{
    const struct node *statement = c->statement;
    text_print(body, "bide_self->bide_armed_%u = 1; if (0) { bide_deferred_%u: ;", c->number,
               c->number);
    print_tokens(body, statement->first, statement->end);
    begin_generated_text(statement->end - 1);
    text_print(body, "goto bide_deferred_end_%u; }", c->number);
}

void print_deferred_ends(struct text *out)
{
    for (struct cleanup *c = last_cleanup; c != NULL; c = c->previous) {
        if (c->statement != NULL)
            text_print(out,
                       "bide_deferred_end_%u:\n    switch (bide_back_) {\n%s    default: goto "
                       "bide_back_%u;\n    }\n",
                       c->number, c->returns.at, c->last_return);
    }
}

void lower_departures(const struct node *node)
{
    struct departure **place = &departures;
    while (*place != NULL) {
        struct departure *one = *place;
        if (one->token < node->first || one->token >= node->end) {
            place = &one->next;
            continue;
        }
        *place = one->next;
        begin_generated_text(one->token);
        text_print(body, "if (0) { bide_leave_%u: %s }", one->number, one->text);
    }
}

void lower_cleanups(struct scope *of)
{
    for (struct cleanup *c = of->cleanups; c != NULL; c = c->next)
        print_cleanup(body, c);
}

static struct cleanup *add_cleanup(struct scope *to, int token)
{
    struct cleanup *c = allocate(sizeof *c);
    c->scope = to;
    c->token = token;
    c->number = last_cleanup != NULL ? last_cleanup->number + 1 : 1;
    c->previous = last_cleanup;
    last_cleanup = c;
    c->next = to->cleanups;
    to->cleanups = c;
    return c;
}

void find_cleanups(struct node *node)
{
    if (node == NULL)
        return;
    if (node->kind == S_DEFER) {
        add_cleanup(node->scope, node->first)->statement = node->a;
        return;
    }
    if (node->kind == S_EACH) {
        const char *type = synchronous_generator(node);
        node->member = member_name(format_text("next_%u", ++serial));
        add_member(node->scope,
                   type != NULL
                       ? format_text("%s *%s;", type, node->member)
                       : format_text("bide_async_generator_next_operation %s;", node->member));
        add_cleanup(node->scope, node->first)->text =
            type != NULL ? format_text("%s_destroy(bide_self->%s)", type, node->member)
                         : format_text("bide_async_generator_destroy(bide_self->%s.generator)",
                                       node->member);
    }
    if (node->kind == S_DECLARATION) {
        for (struct declarator *d = node->declarators; d != NULL; d = d->next) {
            find_cleanups(d->initialiser);
            if (d->cleanup != 0 && d->symbol->in_frame)
                add_cleanup(node->scope, d->name)->text =
                    format_text("%s(&bide_self->%s)", spelling_of(d->cleanup), d->symbol->member);
        }
        return;
    }
    find_cleanups(node->a);
    find_cleanups(node->b);
    find_cleanups(node->c);
    find_cleanups(node->d);
    for (struct node *part = node->list; part != NULL; part = part->next)
        find_cleanups(part);
}

struct cleanup *cleanup_at(const struct scope *of, int token)
{
    struct cleanup *c = of->cleanups;
    while (c != NULL && c->token != token)
        c = c->next;
    return c;
}

/*
 * Returns the cleanups of a jump: of all scopes out to `stop`, which is not left, and those of `stop`
 * itself that are declared after `label`.
 */
static const char *leaving_text(struct scope *from, const struct scope *stop, int label)
{
    struct text text = {0};
    text_add(&text, "", 0);
    for (struct scope *s = from; s != NULL && s != stop; s = s->up) {
        for (struct cleanup *c = s->cleanups; c != NULL; c = c->next)
            print_cleanup(&text, c);
    }
    for (struct cleanup *c = stop != NULL && label != 0 ? stop->cleanups : NULL; c != NULL;
         c = c->next) {
        if (c->token > label)
            print_cleanup(&text, c);
    }
    const char *exit_text = text_of_exit(from, stop);
    text_add(&text, exit_text, strlen(exit_text));
    return text_finish(&text);
}

/* ---- The result: a struct may have members that are const, so it is not assigned ---- */

const char *result_begins(void)
{
    return function->returns_struct ? "__builtin_memcpy((void *)&bide_result_, &(struct { "
                                      "__typeof__(bide_result_) value; }){("
                                    : "bide_result_ = (";
}

const char *result_ends(void)
{
    return function->returns_struct ? ")}, sizeof bide_result_)" : ")";
}

/* ---- Jumps ---- */

static bool scope_contains(const struct scope *outer_scope, const struct scope *in)
{
    while (in != NULL && in != outer_scope)
        in = in->up;
    return in != NULL;
}

static const char *leaving_by_goto(struct node *node)
{
    const struct node *label = node->target;
    if (label == NULL) {
        report_at(node->first + 1, "there is no label '%s' in this function",
                  spelling_of(node->first + 1));
        return "";
    }
    struct scope *common = label->scope;
    while (!scope_contains(common, node->scope))
        common = common->up;
    return format_text("%s%s", leaving_text(node->scope, common, label->first),
                       text_of_entry(label->scope, common));
}

/* The jump goes to the place behind its statement, where it runs the cleanups and goes on. */
static void depart(struct node *node, const char *cleanups)
{
    struct departure *one = allocate(sizeof *one), **last = &departures;
    const char *instead = mark_of(&tokens[node->first])->instead;
    one->token = node->first;
    one->number = ++labels;
    one->text = format_text("%s %s", cleanups,
                            instead != NULL ? format_text("%s;", instead)
                                            : step_text(node->first, node->end));
    while (*last != NULL)
        last = &(*last)->next;
    *last = one;
    mark_at(node->first)->instead = format_text("goto bide_leave_%u", one->number);
    if (node->kind == S_GOTO)
        mark_at(node->first + 1)->instead = "";
}

static void prepare_jump(struct node *node)
{
    const char *before = "";
    if (node->kind == S_RETURN) {
        struct mark *word = mark_at(node->first), *end = mark_at(node->end - 1);
        if (node->a == NULL) {
            word->instead = "goto bide_return_";
        } else if (!node->awaits) {
            bool nothing = function->returns_nothing;
            word->instead = format_text("{ %s", nothing ? "(void)(" : result_begins());
            end->instead = format_text("%s; goto bide_return_; }", nothing ? ")" : result_ends());
        }
        return;
    }
    if (node->kind == S_GOTO) {
        before = leaving_by_goto(node);
    } else {
        struct node *around = node->around;
        const struct scope *stop = around->scope;
        if (node->kind == S_BREAK && around->kind == S_FOR)
            stop = stop->up;
        before = leaving_text(node->scope, stop, 0);
        if (node->kind == S_CONTINUE && around->number != 0)
            mark_at(node->first)->instead = format_text("goto bide_continue_%u", around->number);
    }
    if (*before != 0 && !node->scope->awaits) {
        depart(node, before);
    } else if (*before != 0) {
        mark_at(node->first)->before = format_text("{ %s ", before);
        mark_at(node->end - 1)->after = " }";
    }
}

static bool awaits_at_end(const struct node *node)
{
    return (node->kind == S_DO && node->a->awaits) ||
           (node->kind == S_FOR && node->c != NULL && node->c->awaits);
}

void prepare_jumps(struct node *node)
{
    if (node == NULL)
        return;
    if (node->jumps && awaits_at_end(node))
        node->number = ++labels;
    if (node->kind == S_RETURN || node->kind == S_GOTO || node->kind == S_BREAK ||
        node->kind == S_CONTINUE)
        prepare_jump(node);
    if (node->kind == S_DECLARATION) {
        for (struct declarator *d = node->declarators; d != NULL; d = d->next)
            prepare_jumps(d->initialiser);
    }
    prepare_jumps(node->a);
    prepare_jumps(node->b);
    prepare_jumps(node->c);
    prepare_jumps(node->d);
    for (struct node *part = node->list; part != NULL; part = part->next)
        prepare_jumps(part);
}
