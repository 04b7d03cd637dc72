/*
 * Statements of the step function, which runs a frame from its suspension point to the next one.
 *
 * A block without an await is copied. In a block with an await, each statement is written in turn,
 * and the block's variables are members of the frame. The function begins with a switch that jumps
 * to the await at which the frame is suspended, into the blocks, loops and switches around it.
 */
#include "bidec.h"

#include <string.h>

/* ---- Literals: the memory of a compound literal lives as long as its block, so it is a member ---- */

void keep_literals(struct node *node)
{
    if (node == NULL)
        return;
    if (node->kind == S_DECLARATION) {
        bool is_static = node->specifiers->is_static;
        for (struct declarator *d = node->declarators; d != NULL; d = d->next) {
            if (!is_static)
                keep_literals(d->initialiser);
        }
        return;
    }
    struct scope *block = node->scope;
    while (node->kind == E_LITERAL && block->has_no_braces)
        block = block->up; /* programs use them behind an if, as compilers allow */
    if (node->kind == E_LITERAL && block->awaits) {
        node->member = member_name(format_text("literal_%u", ++serial));
        add_member(block, format_text("%s %s;", type_of_literal(node), node->member));
        if (!node->awaits) {
            const char *text =
                literal_may_be_shorter(node) ? step_text(node->first, node->end) : NULL;
            mark_at(node->first)->before = format_text(
                "(*(__typeof__(bide_self->%s) *)__builtin_memcpy((void *)&bide_self->%s, &",
                node->member, node->member);
            mark_at(node->end - 1)->after =
                text != NULL ? format_text(", sizeof(%s)))", text)
                             : format_text(", sizeof bide_self->%s))", node->member);
            mark_at(node->a->end - 1)->after = mark_at(node->end - 1)->after;
        }
    }
    keep_literals(node->a);
    keep_literals(node->b);
    keep_literals(node->c);
    keep_literals(node->d);
    for (struct node *part = node->list; part != NULL; part = part->next)
        keep_literals(part);
}

/* ---- Statements ---- */

static const char *lower_whole(struct node *node)
{
    begin_whole_expression(node);
    return lower_value(node);
}

/* `value` is an expression, not braces. */
static void initialise_variable(const struct declarator *d, const char *value)
{
    const char *member = d->symbol->member;
    if (d->symbol->is_local)
        text_print(body, "%s = %s;", member, value);
    else if (d->specifiers->is_struct && !d->is_pointer)
        text_print(body,
                   "__builtin_memcpy((void *)&bide_self->%s, &(struct { "
                   "__typeof__(bide_self->%s) value; }){%s}, sizeof bide_self->%s);",
                   member, member, value, member);
    else
        text_print(body, "bide_self->%s = %s;", member, value);
}

/* Braces of zeros: written in place, however large the variable is. */
static bool is_zero(const struct node *node)
{
    bool zero = true;
    if (node->kind == E_ELEMENT)
        return is_zero(node->a);
    if (node->kind == E_INITIALISER) {
        for (const struct node *e = node->list; e != NULL; e = e->next)
            zero &= is_zero(e);
        return zero;
    }
    return node->kind == E_CONSTANT && tokens[node->first].symbol == NULL &&
           token_is(node->first, "0");
}

static void lower_initialiser(struct declarator *d)
{
    const char *member = d->symbol->member;
    struct node *initialiser = d->initialiser;
    if (initialiser != NULL && d->symbol->is_local) {
        bool braces = initialiser->kind == E_INITIALISER;
        const char *value = lower_whole(initialiser);
        begin_user_text(d->initialiser_first);
        if (braces)
            text_print(body, "%s = (__typeof__(%s))%s;", member, member, value);
        else
            initialise_variable(d, value);
    } else if (initialiser != NULL) {
        const char *value = lower_whole(initialiser);
        bool braces = initialiser->kind == E_INITIALISER;
        begin_user_text(d->initialiser_first);
        if (braces && d->open_bound != 0)
            text_print(body,
                       "_Static_assert(sizeof bide_self->%s == sizeof((__typeof__(*bide_self->%s) "
                       "[])%s), \"give this array its length\");",
                       member, member, value);
        bool is_text = initialiser->kind == E_STRING && d->is_array && d->open_bound == 0;
        if ((braces && is_zero(initialiser)) || is_text)
            text_print(body, "__builtin_memset((void *)&bide_self->%s, 0, sizeof bide_self->%s);",
                       member, member);
        if (is_text)
            text_print(body,
                       "__builtin_memcpy((void *)&bide_self->%s, %s, sizeof(%s) < sizeof "
                       "bide_self->%s ? sizeof(%s) : sizeof bide_self->%s);",
                       member, value, value, member, value, member);
        else if (braces && is_zero(initialiser))
            ;
        else if (braces || d->is_array)
            text_print(body,
                       "__builtin_memcpy((void *)&bide_self->%s, "
                       "&(__typeof__(bide_self->%s))%s%s%s, sizeof "
                       "bide_self->%s);",
                       member, member, braces ? "" : "{", value, braces ? "" : "}", member);
        else
            initialise_variable(d, value);
    }
    struct cleanup *cleanup = cleanup_at(d->symbol->scope, d->name);
    if (cleanup != NULL)
        text_print(body, "bide_self->bide_armed_%u = 1;", cleanup->number);
}

/* A type that has moved in front of the frame has the size that it has where it stands. */
static void assert_sizes(const struct specifiers *specifiers)
{
    for (int i = specifiers->first; specifiers->has_body && i < specifiers->end; i++) {
        const struct definition *d = mark_of(&tokens[i])->definition;
        if (d == NULL || token_is(d->keyword, "enum"))
            continue;
        struct text attributes = {0};
        text_add(&attributes, "", 0);
        const int hoisted = mark_of(&tokens[d->keyword + 1])->hoisted; /* attributes before a tag */
        for (int a = d->keyword + 1; hoisted != 0 && a <= hoisted && a < d->open; a++)
            text_print(&attributes, "%s ", spelling_of(a));
        const char *word = spelling_of(d->keyword), *moved = d->symbol->member;
        begin_generated_text(d->keyword);
        text_print(body,
                   "{ %s %sbide_plain_ {%s} %s; _Static_assert(sizeof(%s bide_plain_) == sizeof(%s "
                   "%s) && _Alignof(%s bide_plain_) == _Alignof(%s %s), \"bidec: a local type has "
                   "another size in front of the frame\"); }",
                   word, attributes.at, step_text(d->open + 1, d->close),
                   step_text(d->close + 1, d->end), word, word, moved, word, word, moved);
        i = d->close;
    }
}

static void lower_declaration(struct node *node)
{
    struct specifiers *specifiers = node->specifiers;
    assert_sizes(specifiers);
    if (specifiers->is_typedef || specifiers->is_constexpr || node->declarators == NULL)
        return; /* defined before the struct */
    if (specifiers->is_static || specifiers->is_extern) {
        print_tokens(body, node->first, node->end);
        return;
    }
    for (struct declarator *d = node->declarators; d != NULL; d = d->next) {
        if (d->symbol->in_frame)
            lower_initialiser(d);
        else
            text_print(body, "%s %s;", step_text(specifiers->first, specifiers->end),
                       step_text(d->first, d->end));
    }
}

static void lower_loop(struct node *node)
{
    struct node *condition = node->kind == S_FOR ? node->b : node->a;
    struct node *inner = node->kind == S_FOR ? node->d : node->b;
    struct node *step = node->kind == S_FOR ? node->c : NULL;
    bool at_end = node->kind == S_DO;
    bool awaits = condition != NULL && condition->awaits;
    if (node->kind == S_FOR) {
        text_print(body, "{");
        print_locals(body, node->scope);
        begin_life(node->scope);
        if (node->a != NULL)
            lower_statement(node->a);
    }
    begin_user_text(node->first);
    if (at_end)
        text_print(body, "do {");
    else
        text_print(body, "for (; %s; %s) {",
                   condition != NULL && !awaits ? step_text(condition->first, condition->end) : "",
                   step != NULL && !step->awaits ? step_text(step->first, step->end) : "");
    if (awaits && !at_end)
        text_print(body, "if (!(%s)) break;", lower_whole(condition));
    lower_statement(inner);
    if (node->number != 0)
        text_print(body, "bide_continue_%u:;", node->number);
    if (step != NULL && step->awaits) {
        begin_whole_expression(step);
        lower_discarded(step);
    }
    if (awaits && at_end)
        text_print(body, "if (!(%s)) break;", lower_whole(condition));
    text_print(body, "}");
    if (at_end)
        text_print(body, "while (%s);",
                   condition == NULL || awaits ? "1" : step_text(condition->first, condition->end));
    if (node->kind == S_FOR) {
        lower_cleanups(node->scope);
        end_life(node->scope);
        text_print(body, "}");
    }
}

/* A cleanup of the loop's scope ends the generator if it has not ended. */
static void lower_each(struct node *node)
{
    const char *next = format_text("bide_self->%s", node->member);
    const char *type = synchronous_generator(node), *member = type != NULL ? "->" : ".";
    const struct function *f = called_function(node->a);
    const char *value = f != NULL && f->value != NULL
                            ? format_text("*(__typeof__(%s) *)%s%svalue", f->value, next, member)
                            : format_text("%s.value", next);
    if (type == NULL && is_synchronous(function))
        reject_at(node->first, "%s is a generator(...), and may iterate only those",
                  function->name);
    text_print(body, "{");
    print_locals(body, node->scope);
    begin_life(node->scope);
    begin_whole_expression(node->a);
    const char *generator = lower_generator(node->a, node->scope);
    begin_user_text(node->first);
    text_print(body, "%s%s = %s;", next, type != NULL ? "" : ".generator", generator);
    text_print(body, "bide_self->bide_armed_%u = 1;", cleanup_at(node->scope, node->first)->number);
    text_print(body, "for (;;) {");
    const char *status = "bide_status_";
    if (type != NULL) {
        text_print(body, "if (%s_next(%s) == 0) {", type, next);
        status = format_text("%s->frame.error", next);
    } else {
        const bool transforms = kind_transforms(function); /* and may not ask the generator */
        if (transforms)
            text_print(body, "%s.value = 0;", next);
        lower_next(node, format_text("bide_async_generator_next(&%s, %s.generator)", next, next));
        text_print(body, "if (%s.value == 0%s) {", next, transforms ? " || bide_status_ < 0" : "");
    }
    if (node->b != NULL) {
        begin_user_text(node->b->first);
        text_print(body, "%s = %s;", step_text(node->b->first, node->b->end), status);
    }
    if (node->passes_errors)
        lower_passed_error(node, status);
    text_print(body, "break; }");
    begin_user_text(node->declarators->name);
    initialise_variable(node->declarators, value);
    lower_statement(node->d);
    text_print(body, "}");
    lower_cleanups(node->scope);
    end_life(node->scope);
    text_print(body, "}");
}

static void lower_if(struct node *node)
{
    const char *condition = lower_whole(node->a);
    begin_user_text(node->first);
    text_print(body, "if (%s) {", condition);
    lower_statement(node->b);
    text_print(body, "}");
    if (node->c != NULL) {
        text_print(body, " else {");
        lower_statement(node->c);
        text_print(body, "}");
    }
}

static void lower_switch(struct node *node)
{
    const char *value = lower_whole(node->a);
    if (node->b->kind == S_BLOCK)
        begin_life(node->b->scope); /* a case is behind the beginning of the block */
    begin_user_text(node->first);
    text_print(body, "switch (%s) {", value);
    lower_statement(node->b);
    text_print(body, "}");
}

static void lower_return(struct node *node)
{
    begin_whole_expression(node->a);
    if (function->returns_nothing) {
        lower_discarded(node->a);
    } else {
        const char *value = lower_value(node->a);
        begin_user_text(node->first);
        text_print(body, "%s %s%s;", result_begins(), value, result_ends());
    }
    text_print(body, "goto bide_return_;");
}

/* A statement with an error is left out: the function is not written then. */
static void lower_or_recover(struct node *node)
{
    const struct whole_expression outer_whole = whole;
    struct recovery here = {.outer = recovery, .scope = scope};
    if (setjmp(here.place) != 0) {
        whole = outer_whole;
        scope = here.scope;
    } else {
        recovery = &here;
        lower_statement(node);
    }
    recovery = here.outer;
}

void lower_block(struct node *node)
{
    if (node->scope != function->scope) {
        begin_generated_text(node->first);
        text_print(body, "{");
        print_locals(body, node->scope);
        begin_life(node->scope);
    } else {
        begin_user_text(node->first);
        text_print(body, "{");
    }
    for (struct node *s = node->list; s != NULL; s = s->next)
        lower_or_recover(s);
    if (node->scope != function->scope) {
        lower_cleanups(node->scope);
        end_life(node->scope);
    }
    begin_user_text(node->end - 1);
    text_print(body, "}");
}

static void lower_one_statement(struct node *node)
{
    if (node->kind == S_DECLARATION) {
        lower_declaration(node);
        return;
    }
    if (node->kind == S_LABEL) {
        print_tokens(body, node->first, node->sign);
        text_print(body, " ;");
        if (node->a != NULL)
            lower_statement(node->a);
        return;
    }
    if (!node->awaits) {
        print_tokens(body, node->first, node->end);
        return;
    }
    switch (node->kind) {
    case S_BLOCK:
        lower_block(node);
        break;
    case S_IF:
        lower_if(node);
        break;
    case S_WHILE:
    case S_DO:
    case S_FOR:
        lower_loop(node);
        break;
    case S_EACH:
        lower_each(node);
        break;
    case S_SELECT:
        lower_select(node);
        break;
    case S_YIELD:
        lower_yield(node);
        break;
    case S_SWITCH:
        lower_switch(node);
        break;
    case S_RETURN:
        lower_return(node);
        break;
    case S_DEFER:
        lower_deferred(cleanup_at(node->scope, node->first));
        break;
    default:
        begin_whole_expression(node->a);
        lower_discarded(node->a);
        break;
    }
}

void lower_statement(struct node *node)
{
    lower_one_statement(node);
    lower_departures(node);
}
