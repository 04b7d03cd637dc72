/*
 * Values: an expression with an await is decomposed into statements and a remaining expression.
 *
 * lower_value() writes the statements and returns the remaining expression as text. The caller
 * either uses the text before anything else is written, or keeps its value in a member of the frame
 * (keep_value). So the operands around an await are evaluated from left to right. An assignment
 * evaluates its right side first, and then the object that it assigns to.
 */
#include "bidec.h"

#include <string.h>

struct whole_expression whole;

/* ---- Values that are kept across an await ---- */

static bool is_constant(const struct node *node)
{
    if (node->awaits)
        return false;
    if (node->kind == E_CONSTANT || node->kind == E_STRING || node->kind == E_SIZEOF)
        return true;
    if (node->kind == E_PARENTHESES || node->kind == E_CAST ||
        (node->kind == E_UNARY && !token_is(node->sign, "&") && !token_is(node->sign, "*") &&
         !token_is(node->sign, "++") && !token_is(node->sign, "--")))
        return is_constant(node->a);
    if (node->kind == E_BINARY)
        return is_constant(node->a) && is_constant(node->b);
    return false;
}

static const char *add_kept(const char *type)
{
    const char *name = member_name(format_text("kept_%u", ++serial));
    add_member(whole.scope, format_text("%s %s;", type, name));
    return format_text("bide_self->%s", name);
}

/* A statement that gives the variable `to` the node's value. A struct may have members that are const. */
static void write_value(const char *to, const struct node *node, const char *text)
{
    if (is_scalar_value(node))
        text_print(body, "%s = %s;", to, text);
    else
        text_print(body,
                   "__builtin_memcpy((void *)&%s, &(struct { __typeof__(%s) value; }){(%s)}, "
                   "sizeof %s);",
                   to, to, text, to);
}

/* Returns the value as text that stays valid across an await. */
const char *keep_value(struct node *node)
{
    const struct symbol *symbol = tokens[node->first].symbol;
    bool is_rows = node->kind == E_TOKENS && symbol != NULL && symbol->kind == VARIABLE &&
                   has_variable_rows(symbol->declarator); /* such a parameter never changes */
    if (is_constant(node) || is_rows)
        return step_text(node->first, node->end);
    const char *text = lower_value(node), *kept = add_kept(type_of(node));
    begin_user_text(node->first);
    write_value(kept, node, text);
    return kept;
}

/* Declares a local of the step function, for a value that is used before the next await. */
const char *add_local(const char *type)
{
    const char *name = format_text("bide_value_%u", ++serial);
    text_print(body, "%s %s;", type, name);
    return name;
}

struct node *last_awaiting(struct node *list)
{
    struct node *last = NULL;
    for (; list != NULL; list = list->next) {
        if (list->awaits)
            last = list;
    }
    return last;
}

const char *comma_after(const struct node *node)
{
    return node->next != NULL ? ", " : "";
}

static const char *lower_list(struct node *list)
{
    struct text text = {0};
    struct node *last = last_awaiting(list);
    text_add(&text, "", 0);
    for (struct node *node = list; node != NULL; node = node->next) {
        const char *one;
        if (last != NULL && node != last && node->kind != E_ELEMENT)
            one = keep_value(node);
        else
            one = lower_value(node);
        if (node == last)
            last = NULL;
        text_print(&text, "%s%s", one, comma_after(node));
    }
    return text_finish(&text);
}

/* Each element before the last one that awaits is kept; inner braces are lowered in the same way. */
static const char *lower_braces(struct node *node, bool more)
{
    struct text text = {0};
    struct node *last = last_awaiting(node->list);
    text_add(&text, "{", 1);
    for (struct node *e = node->list; e != NULL; e = e->next) {
        bool more_follows = more || last != NULL;
        if (e == last) {
            last = NULL;
            more_follows = more;
        }
        text_print(&text, "%s", step_text(e->first, e->sign));
        const char *one;
        if (e->a->kind == E_INITIALISER)
            one = lower_braces(e->a, more_follows);
        else if (more_follows)
            one = keep_value(e->a);
        else
            one = lower_value(e->a);
        text_print(&text, "%s%s", one, comma_after(e));
    }
    text_add(&text, "}", 1);
    return text_finish(&text);
}

/* ---- Temporaries: a member of a struct that a call returns lives to the end of the whole expression ---- */

static bool is_temporary(const struct node *node)
{
    while (node->kind == E_PARENTHESES)
        node = node->a;
    return node->kind == E_CALL || node->kind == E_AWAIT || node->kind == E_CONDITION ||
           node->kind == E_COMMA || node->kind == E_ASSIGN || node->kind == E_BLOCK ||
           node->kind == E_CAST;
}

/* Counts the awaits, up to MANY_AWAITS; the blocks and choices, which are statements of their own, count as so many. */
enum { MANY_AWAITS = 1 << 10 };

static unsigned count_awaits(const struct node *node)
{
    if (node == NULL || !node->awaits)
        return 0;
    unsigned count = node->kind == E_AWAIT || node->kind == E_SPAWN;
    if (node->kind == E_BLOCK || node->kind == E_CONDITION)
        return MANY_AWAITS;
    count += count_awaits(node->a) + count_awaits(node->b) + count_awaits(node->c);
    for (const struct node *part = node->list; part != NULL; part = part->next)
        count += count_awaits(part);
    return count < MANY_AWAITS ? count : MANY_AWAITS;
}

static void temporary_text(const char *member, const char **before, const char **after)
{
    *before = format_text("(*(__typeof__(bide_self->%s) *)__builtin_memcpy((void *)&bide_self->%s, "
                          "&(struct { __typeof__(bide_self->%s) value; }){",
                          member, member, member);
    *after = format_text("}, sizeof bide_self->%s))", member);
}

/*
 * The member may be an array, and a pointer to its elements is kept across an await. So the struct is
 * kept in the frame, unless the only awaits are those that make it.
 */
static void keep_temporaries(struct node *node, unsigned awaits)
{
    if (node == NULL || node->kind == E_BLOCK || node->kind == E_SIZEOF || node->kind == E_TOKENS)
        return;
    unsigned own = node->kind == E_MEMBER ? count_awaits(node->a) : 0;
    if (node->kind == E_MEMBER && token_is(node->sign, ".") && is_temporary(node->a) &&
        (own != awaits || own >= MANY_AWAITS)) {
        const char *before, *after;
        node->member = member_name(format_text("temporary_%u", ++serial));
        add_member(whole.scope, format_text("%s %s;", type_of(node->a), node->member));
        temporary_text(node->member, &before, &after);
        if (!node->a->awaits) {
            struct mark *left = mark_at(node->a->first), *right = mark_at(node->a->end - 1);
            left->before = format_text("%s%s", left->before != NULL ? left->before : "", before);
            right->after = format_text("%s%s", after, right->after != NULL ? right->after : "");
        }
    }
    keep_temporaries(node->a, awaits);
    keep_temporaries(node->b, awaits);
    keep_temporaries(node->c, awaits);
    for (struct node *part = node->list; part != NULL; part = part->next)
        keep_temporaries(part, awaits);
}

static const char *lower_member(struct node *node)
{
    const char *before = "", *after = "", *of = lower_value(node->a);
    if (node->member != NULL)
        temporary_text(node->member, &before, &after);
    return format_text("%s%s%s%s", before, of, after, step_text(node->sign, node->end));
}

/* ---- Expressions ---- */

/*
 * The members of a block in an expression live as long as the values that are kept for the expression,
 * so the block's scope moves into the scope of the whole expression.
 */
static void move_into_whole(struct scope *block)
{
    struct scope **place_of = &block->up->inner, *before = NULL;
    while (*place_of != block) {
        before = *place_of;
        place_of = &before->next;
    }
    *place_of = block->next;
    if (block->up->last_inner == block)
        block->up->last_inner = before;
    block->next = NULL;
    block->up = whole.scope;
    if (whole.scope->last_inner != NULL)
        whole.scope->last_inner->next = block;
    else
        whole.scope->inner = block;
    whole.scope->last_inner = block;
}

static const char *lower_block_value(struct node *node)
{
    struct node *last = NULL, **end = &node->a->list;
    const char *value = NULL;
    move_into_whole(node->a->scope);
    for (struct node *s = node->a->list; s != NULL; s = s->next) {
        last = s;
        if (s->next != NULL)
            end = &s->next;
    }
    struct node *label = last;
    while (last != NULL && last->kind == S_LABEL)
        last = last->a;
    if (last != NULL && last->kind == S_EXPRESSION) {
        value = add_local(type_of(last->a));
        *end = NULL; /* the last statement is the value */
    }
    const struct whole_expression outer_whole = whole;
    text_print(body, "{");
    print_locals(body, node->a->scope);
    begin_life(node->a->scope);
    for (struct node *s = node->a->list; s != NULL; s = s->next)
        lower_statement(s);
    if (value != NULL) {
        struct node *const whole_last = label;
        for (; label != last; label = label->a) {
            print_tokens(body, label->first, label->sign);
            text_print(body, " ;");
        }
        whole.scope = add_inner_scope(node->a->scope);
        whole.scope->first = whole.scope->last = last->first;
        begin_life(whole.scope);
        keep_temporaries(last->a, (unsigned)-1); /* all of them */
        const char *text = lower_value(last->a);
        begin_user_text(last->first);
        write_value(value, last->a, text);
        *end = whole_last;
    }
    lower_cleanups(node->a->scope);
    begin_life(node->a->scope); /* what overlaps it in the whole expression may follow */
    text_print(body, "}");
    whole = outer_whole;
    return value != NULL ? value : "(void)0";
}

static const char *lower_choice(struct node *node)
{
    const char *condition, *value = add_local(type_of(node));
    if (node->b == NULL) {
        condition = lower_value(node->a);
        text_print(body, "%s = %s; if (!%s) {", value, condition, value);
    } else {
        condition = lower_value(node->a);
        text_print(body, "if (%s) {", condition);
        const char *yes = lower_value(node->b);
        write_value(value, node, yes);
        text_print(body, "} else {");
    }
    const char *no = lower_value(node->c);
    if (node->b != NULL)
        write_value(value, node, no);
    else
        text_print(body, "%s = %s;", value, no);
    text_print(body, "}");
    return value;
}

static const char *lower_binary(struct node *node)
{
    const char *sign = spelling_of(node->sign);
    bool is_or = token_is(node->sign, "||");
    if ((is_or || token_is(node->sign, "&&")) && node->b->awaits) {
        const char *value = add_local("int"), *left = lower_value(node->a);
        text_print(body, "%s = !!(%s); if (%s%s) {", value, left, is_or ? "!" : "", value);
        const char *right = lower_value(node->b);
        text_print(body, "%s = !!(%s); }", value, right);
        return value;
    }
    const char *left = node->b->awaits ? keep_value(node->a) : lower_value(node->a);
    const char *right = lower_value(node->b);
    return format_text("%s %s %s", left, sign, right);
}

static bool file_has_vectors(void)
{
    static int has = -1;
    for (int i = 0; has < 0 && i < token_count; i++) {
        if (token_is(i, "vector_size") || token_is(i, "__vector_size__") ||
            token_is(i, "ext_vector_type") || token_is(i, "__ext_vector_type__"))
            has = 1;
    }
    if (has < 0)
        has = 0;
    return has == 1;
}

static bool is_place(const struct node *node)
{
    while (node->kind == E_PARENTHESES || node->kind == E_INDEX ||
           (node->kind == E_MEMBER && token_is(node->sign, ".")))
        node = node->a;
    return node->kind == E_TOKENS || node->kind == E_LITERAL || node->kind == E_MEMBER ||
           (node->kind == E_UNARY && token_is(node->sign, "*"));
}

/* An array or a vector that is a variable: it is found after the index as well as before it. */
static bool is_named_place(const struct node *node)
{
    while (node->kind == E_PARENTHESES)
        node = node->a;
    const struct symbol *symbol = tokens[node->first].symbol;
    return node->kind == E_TOKENS && node->end == node->first + 1 && symbol != NULL &&
           symbol->kind == VARIABLE && !symbol->declarator->is_pointer;
}

static bool is_named_pointer(const struct node *node)
{
    while (node->kind == E_PARENTHESES)
        node = node->a;
    const struct symbol *symbol = tokens[node->first].symbol;
    return node->kind == E_TOKENS && node->end == node->first + 1 && symbol != NULL &&
           symbol->kind == VARIABLE && symbol->declarator->is_pointer;
}

/*
 * A pointer or an array is kept as a pointer. A vector must be kept as its address, because the element
 * may be written; which of them it is, only the compiler knows.
 */
static const char *lower_index_of(struct node *node, const char *(*lower)(struct node *index))
{
    if (is_named_place(node->a)) {
        const char *index = lower(node->b);
        return format_text("%s[%s]", step_text(node->a->first, node->a->end), index);
    }
    if (!is_place(node->a) || is_named_pointer(node->a) || !file_has_vectors()) {
        const char *base = keep_value(node->a);
        return format_text("%s[%s]", base, lower(node->b));
    }
    const char *of = file_scope_text(node->a->first, node->a->end);
    const char *kept = add_kept(
        format_text("__typeof__(__builtin_choose_expr(__builtin_classify_type(%s) != 5, &(%s), "
                    "(%s) + 0))",
                    of, of, of));
    const char *base = lower_value(node->a);
    const char *is_vector =
        format_text("__builtin_types_compatible_p(__typeof__(*%s), __typeof__(%s))", kept, base);
    text_print(body, "%s = (__typeof__(%s))__builtin_choose_expr(%s, &(%s), (%s));", kept, kept,
               is_vector, base, base);
    const char *index = lower(node->b);
    return format_text("(*__builtin_choose_expr(%s, %s, &%s))[%s]", is_vector, kept, kept, index);
}

static const char *lower_index(struct node *node)
{
    if (node->b->awaits)
        return lower_index_of(node, lower_value);
    return format_text("%s[%s]", lower_value(node->a), step_text(node->b->first, node->b->end));
}

/*
 * A member that is assigned to: its struct is kept as a pointer, since the member may be a bit-field.
 * NULL: it is no member.
 */
static const char *lower_place_of_member(struct node *place)
{
    while (place->kind == E_PARENTHESES)
        place = place->a;
    if (place->kind != E_MEMBER)
        return NULL;
    const char *name = step_text(place->sign + 1, place->end);
    if (token_is(place->sign, "->"))
        return format_text("%s->%s", keep_value(place->a), name);
    const char *text = lower_value(place->a);
    const char *type = file_scope_text(place->a->first, place->a->end);
    const char *pointer = add_kept(format_text("__typeof__(&(%s))", type));
    text_print(body, "%s = &(%s);", pointer, text);
    return format_text("%s->%s", pointer, name);
}

static const char *lower_assignment(struct node *node)
{
    const char *sign = spelling_of(node->sign);
    if (!node->b->awaits)
        return format_text("%s %s %s", lower_value(node->a), sign,
                           step_text(node->b->first, node->b->end));
    if (!node->a->awaits) {
        const char *right = lower_value(node->b);
        return format_text("%s %s %s", step_text(node->a->first, node->a->end), sign, right);
    }
    if (node->a->kind == E_INDEX &&
        file_has_vectors()) { /* an element of a vector has no address */
        const char *element = lower_index_of(node->a, keep_value), *right = lower_value(node->b);
        return format_text("%s %s %s", element, sign, right);
    }
    const char *place = lower_place_of_member(node->a);
    if (place != NULL)
        return format_text("%s %s %s", place, sign, lower_value(node->b));
    const char *place_text = lower_value(node->a);
    const char *type = file_scope_text(node->a->first, node->a->end);
    const char *pointer = add_kept(format_text("__typeof__(&(%s))", type));
    text_print(body, "%s = &(%s);", pointer, place_text);
    const char *right = lower_value(node->b);
    return format_text("*%s %s %s", pointer, sign, right);
}

/* The callee is evaluated before the arguments. */
static const char *lower_call(struct node *node)
{
    const char *callee;
    if (last_awaiting(node->list) == NULL)
        callee = lower_value(node->a);
    else if (node->a->kind == E_TOKENS && tokens[node->a->first].symbol == NULL)
        callee = step_text(node->a->first, node->a->end);
    else
        callee = keep_value(node->a);
    const char *arguments = lower_list(node->list);
    return format_text("%s(%s)", callee, arguments);
}

static const char *lower_literal(struct node *node)
{
    const char *braces = lower_braces(node->a, false);
    const char *type = step_text(node->type, node->type_end);
    if (node->member == NULL)
        return format_text("(%s)%s", type, braces);
    return format_text(
        "(*(__typeof__(bide_self->%s) *)__builtin_memcpy((void *)&bide_self->%s, &(%s)%s, "
        "sizeof(%s)))",
        node->member, node->member, type, braces,
        literal_may_be_shorter(node) ? format_text("(%s)%s", type, braces)
                                     : format_text("bide_self->%s", node->member));
}

/* The text of a comma expression is in parentheses: it may stand where an operand ends at a comma. */
const char *lower_value(struct node *node)
{
    if (!node->awaits)
        return format_text(node->kind == E_COMMA ? "(%s)" : "%s",
                           step_text(node->first, node->end));
    switch (node->kind) {
    case E_PARENTHESES:
        return format_text("(%s)", lower_value(node->a));
    case E_CALL:
        return lower_call(node);
    case E_INDEX:
        return lower_index(node);
    case E_MEMBER:
        return lower_member(node);
    case E_POSTFIX:
        return format_text("%s%s", lower_value(node->a), spelling_of(node->sign));
    case E_UNARY:
        return format_text("%s %s", spelling_of(node->sign), lower_value(node->a));
    case E_CAST:
        return format_text("(%s)%s", step_text(node->type, node->type_end), lower_value(node->a));
    case E_LITERAL:
        return lower_literal(node);
    case E_INITIALISER:
        return lower_braces(node, false);
    case E_BINARY:
        return lower_binary(node);
    case E_CONDITION:
        if ((node->b != NULL && node->b->awaits) || node->c->awaits)
            return lower_choice(node);
        return format_text("%s%s", lower_value(node->a), step_text(node->sign, node->end));
    case E_ASSIGN:
        return lower_assignment(node);
    case E_COMMA:
        lower_discarded(node->a);
        return lower_value(node->b);
    case E_AWAIT:
        return lower_await(node);
    case E_SPAWN:
        return lower_spawn(node);
    case E_BLOCK:
        return lower_block_value(node);
    default:
        reject_at(node->first, "await is not allowed in this expression");
    }
}

static void write_statement(int token, const char *text)
{
    begin_user_text(token);
    text_print(body, "%s;", text);
}

/* Lowers an expression whose value is not used. */
void lower_discarded(struct node *node)
{
    const struct whole_expression outer_whole = whole;
    if (!node->awaits) {
        begin_user_text(node->first);
        text_print(body, "%s;", step_text(node->first, node->end));
        return;
    }
    switch (node->kind) {
    case E_PARENTHESES:
        lower_discarded(node->a);
        return;
    case E_UNARY:
        if (!token_is(node->sign, "__extension__"))
            break;
        lower_discarded(node->a);
        return;
    case E_CAST:
        if (node->type_end == node->type + 1 && token_is(node->type, "void")) {
            lower_discarded(node->a);
            return;
        }
        break;
    case E_COMMA:
        lower_discarded(node->a);
        lower_discarded(node->b);
        return;
    case E_CONDITION:
        if (node->b == NULL)
            break;
        text_print(body, "if (%s) {", lower_value(node->a));
        lower_discarded(node->b);
        text_print(body, "} else {");
        lower_discarded(node->c);
        text_print(body, "}");
        return;
    case E_BINARY:
        if (!token_is(node->sign, "&&") && !token_is(node->sign, "||"))
            break;
        text_print(body, "if (%s(%s)) {", token_is(node->sign, "||") ? "!" : "",
                   lower_value(node->a));
        lower_discarded(node->b);
        text_print(body, "}");
        return;
    case E_AWAIT:
        lower_await(node);
        return;
    case E_SPAWN:
        text_print(body, "(void)%s;", lower_spawn(node));
        return;
    case E_BLOCK:
        move_into_whole(node->a->scope);
        text_print(body, "{");
        print_locals(body, node->a->scope);
        begin_life(node->a->scope);
        for (struct node *s = node->a->list; s != NULL; s = s->next) {
            if (s->next == NULL && s->kind == S_EXPRESSION && !s->awaits) {
                begin_user_text(s->first);
                text_print(body, "(void)(%s);", step_text(s->a->first, s->a->end));
            } else {
                lower_statement(s);
            }
        }
        lower_cleanups(node->a->scope);
        begin_life(node->a->scope);
        text_print(body, "}");
        whole = outer_whole;
        return;
    default:
        break;
    }
    write_statement(node->first, lower_value(node));
}

/* Opens the scope of the values that are kept until the end of the whole expression. */
void begin_whole_expression(struct node *node)
{
    if (node == NULL || !node->awaits)
        return;
    whole.scope = add_inner_scope(node->scope);
    whole.scope->first = node->first;
    whole.scope->last = node->end - 1;
    begin_life(whole.scope);
    unsigned awaits = count_awaits(node);
    keep_temporaries(node, awaits);
}
