/*
 * async_select (status) { when (operation) statement ... }: waits until one of the operations can be
 * had, takes that one alone, and runs its statement.
 *
 * The await is that of select_any. The statements follow as a chain of ifs, so a break or a continue in
 * them belongs to the loop around.
 */
#include "bidec.h"

static struct node *parse_when(void)
{
    struct node *node = new_node(S_WHEN, at);
    if (!token_is(at, "when") || !token_is(at + 1, "("))
        reject_at(at, "async_select contains only its cases: when (operation) statement");
    at += 2;
    node->a = parse_assignment();
    if (node->a->awaits)
        reject_at(node->a->first, "await is not allowed in when(), which awaits its operation");
    expect(")");
    node->b = parse_substatement();
    return finish_node(with_part(node, node->b));
}

struct node *parse_select(void)
{
    struct node *node = new_node(S_SELECT, at), **last = &node->list;
    if (accept("try"))
        function->passes_errors = node->passes_errors = true;
    at++;
    if (is_synchronous(function))
        reject_at(node->first, "async_select is not allowed in %s, which is a generator(...)",
                  function->name);
    awaits_here();
    expect("(");
    if (token_is(at, ")") && !node->passes_errors)
        reject_at(node->first, "async_select stores its status: async_select (status) { ... }, or "
                               "try async_select () { ... }");
    if (!token_is(at, ")")) {
        node->a = parse_assignment();
        note_written(node->a);
        if (node->a->awaits)
            reject_at(node->a->first, "await is not allowed in the status of async_select");
    }
    expect(")");
    expect("{");
    while (!token_is(at, "}")) {
        if (tokens[at].kind == END)
            reject_at(node->first, "this async_select is not closed");
        *last = parse_when();
        with_part(node, *last);
        last = &(*last)->next;
    }
    if (node->list == NULL)
        reject_at(node->first, "async_select needs a case: when (operation) statement");
    at++;
    node->awaits = true;
    return finish_node(node);
}

void lower_select(struct node *node)
{
    unsigned count = 0, number = 0;
    for (const struct node *part = node->list; part != NULL; part = part->next)
        count++;
    whole.scope = add_inner_scope(node->scope);
    whole.scope->first = node->first;
    whole.scope->last = node->end - 1;
    begin_life(whole.scope);
    struct scope *slot = add_inner_scope(whole.scope);
    slot->first = node->first;
    slot->last = node->end - 1;
    const char *name = member_name(format_text("select_%u", ++serial));
    add_member(slot, format_text("struct { bide_select any; bide_select_case cases[%u]; } %s;",
                                 count, name));
    function->draws = true;
    struct text text = {0};
    text_add(&text, "(", 1);
    for (struct node *part = node->list; part != NULL; part = part->next, number++)
        text_print(&text, "bide_select_case_init(&bide_self->%s.cases[%u], %s), ", name, number,
                   select_case("when", part->a, slot));
    text_print(&text,
               "bide_select_any(&bide_self->%s.any, bide_self->%s.cases, %u, "
               "bide_async_random_(&bide_self->bide_random, bide_frame_)))",
               name, name, count);
    text_print(body, "{");
    lower_next(node, text_finish(&text));
    const char *winner = add_local("unsigned");
    text_print(body, "%s = (unsigned)bide_select_winner(&bide_self->%s.any);", winner, name);
    if (node->a != NULL) {
        begin_user_text(node->a->first);
        text_print(body, "%s = bide_status_;", step_text(node->a->first, node->a->end));
    }
    if (node->passes_errors)
        lower_passed_error(node, "bide_status_");
    number = 0;
    for (struct node *part = node->list; part != NULL; part = part->next) {
        begin_user_text(part->first);
        text_print(body, "%sif (%s == %u) {", number != 0 ? "else " : "", winner, number);
        number++;
        lower_statement(part->b);
        text_print(body, "}");
    }
    text_print(body, "}");
}
