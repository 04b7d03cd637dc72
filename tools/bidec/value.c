/*
 * Values: an expression with an await is taken apart into statements, and what is left of it.
 *
 * lower() writes what has to happen first, and returns the rest as text. The text is either used at
 * once, before anything else is written, or kept: its value goes into a member of the frame. So
 * operands are evaluated from left to right around an await. An assignment evaluates its right side
 * first, and then the place that is assigned to.
 */
#include "bidec.h"

#include <string.h>

struct text *body;

static struct scope *whole; /* of the whole expression that is taken apart */
static int whole_first;     /* its first token */
static int enclosing_first; /* ... and of that whose block is written; 0: of none */

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

void place(int token)
{
    const struct token *t = &tokens[token];
    text_print(body, "\n# %u \"%s\"%s\n", t->line, t->file, t->system ? " 3" : "");
    out_line = t->line;
    out_file = t->file;
    out_column = 1;
    for (; out_column < t->column && out_column < 200; out_column++)
        text_add(body, " ", 1);
}

void generated(int token)
{
    const struct token *t = &tokens[token];
    text_print(body, "\n# %u \"%s\" 3\n", t->line, t->file);
    out_file = NULL;
}

/* In lines: each token on its line, and as far as that goes in its column. */
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
            place(i);
        } else if (i > first && (t->space || (t->kind == NAME && tokens[i - 1].kind == NAME))) {
            text_add(out, " ", 1);
        }
        if (mark_of(t)->hoisted != 0)
            i = mark_of(t)->hoisted; /* defined in front of the frame */
        else
            print_token(out, i);
    }
}

void print_tokens(struct text *out, int first, int end)
{
    out_file = NULL;
    print_range(out, first, end, true);
}

const char *inside(int first, int end)
{
    struct text text = {0};
    text_add(&text, "", 0);
    print_range(&text, first, end, false);
    return text_kept(&text);
}

/* ---- What is kept ---- */

static bool is_constant(const struct node *node)
{
    if (node->kind == E_CONSTANT || node->kind == E_STRING || node->kind == E_SIZEOF)
        return true;
    if (node->kind == E_PARENTHESES || node->kind == E_CAST ||
        (node->kind == E_UNARY && !is(node->sign, "&") && !is(node->sign, "*") &&
         !is(node->sign, "++") && !is(node->sign, "--")))
        return is_constant(node->a);
    if (node->kind == E_BINARY)
        return is_constant(node->a) && is_constant(node->b);
    /* a name that is called: its function */
    return false;
}

static const char *add_kept(const char *type)
{
    const char *name = member_name(print("kept_%u", ++serial));
    add_member(whole, print("%s %s;", type, name));
    return print("bide_self->%s", name);
}

/* Its value, which stays what it is while something else awaits. */
static const char *keep(struct node *node)
{
    if (is_constant(node))
        return inside(node->first, node->end);
    const char *text = lower(node), *kept = add_kept(type_of(node));
    place(node->first);
    text_print(body, "%s = %s;", kept, text);
    return kept;
}

/* A local of the step function, for what is used before the next await. */
static const char *add_local(const char *type)
{
    const char *name = print("bide_value_%u", ++serial);
    text_print(body, "%s %s;", type, name);
    return name;
}

static struct node *last_awaiting(struct node *list)
{
    struct node *last = NULL;
    for (; list != NULL; list = list->next) {
        if (list->awaits)
            last = list;
    }
    return last;
}

static const char *separator(const struct node *node)
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
            one = keep(node);
        else
            one = lower(node);
        if (node == last)
            last = NULL;
        text_print(&text, "%s%s", one, separator(node));
    }
    return text_kept(&text);
}

/* Elements of braces: before the last that awaits, each is kept, but for braces in braces. */
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
        text_print(&text, "%s", inside(e->first, e->sign));
        const char *one;
        if (e->a->kind == E_INITIALISER)
            one = lower_braces(e->a, more_follows);
        else if (more_follows)
            one = keep(e->a);
        else
            one = lower(e->a);
        text_print(&text, "%s%s", one, separator(e));
    }
    text_add(&text, "}", 1);
    return text_kept(&text);
}

/* ---- Awaits ---- */

struct function *called(const struct node *node)
{
    if (node->kind != E_CALL || node->a->kind != E_TOKENS ||
        tokens[node->a->first].symbol != NULL || node->a->end != node->a->first + 1)
        return NULL;
    return find_function(tokens[node->a->first].at, tokens[node->a->first].length);
}

static unsigned length_of(const struct node *list)
{
    unsigned count = 0;
    for (; list != NULL; list = list->next)
        count++;
    return count;
}

static struct node *bare(struct node *node)
{
    while (node->kind == E_PARENTHESES)
        node = node->a;
    return node;
}

/* all(...), any(...), all_ready(...), select_any(...) */
static const char *group_of(const struct node *node)
{
    static const char *const words[] = {"all", "any", "all_ready", "select_any"};
    if (node->kind != E_CALL || node->a->kind != E_TOKENS ||
        tokens[node->a->first].symbol != NULL || called(node) != NULL)
        return NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (is(node->a->first, words[i]))
            return words[i];
    }
    return NULL;
}

/* An operation that is a macro is called with this in place of a waiter: async_macros.h. */
static bool is_here(const struct node *node)
{
    while (node != NULL && node->kind == E_PARENTHESES)
        node = node->a;
    return node != NULL && node->kind == E_TOKENS && is(node->first, "bide_here_");
}

/* The waiter of an operation that is called without one. */
static bool brings_waiter(const struct function *f, const struct node *node)
{
    return f->makes_awaiter && f->waiter != NULL && node->list != NULL &&
           (is_here(node->list) || (int)length_of(node->list) == f->parameter_count - 1);
}

static const char *awaiter_of(struct node *node, struct scope *slot);

/* Arguments; each that is an awaiter itself is made in the same place. */
static const char *awaiter_arguments(const struct function *f, struct node *list, int first,
                                     struct scope *slot)
{
    struct text text = {0};
    struct node *last = last_awaiting(list);
    int number = first;
    text_add(&text, "", 0);
    for (struct node *node = list; node != NULL; node = node->next, number++) {
        const char *one;
        if (number < 16 && f->takes_awaiter[number] && last != NULL && node != last && node->awaits)
            refuse(node->first, "what is awaited together has one await in it at most: give this "
                                "value a name before");
        if (number < 16 && f->takes_awaiter[number])
            one = awaiter_of(node, slot);
        else if (last != NULL && node != last)
            one = keep(node);
        else
            one = lower(node);
        if (node == last)
            last = NULL;
        text_print(&text, "%s%s", one, separator(node));
    }
    return text_kept(&text);
}

static const char *group_awaiter(const char *group, struct node *node, struct scope *slot)
{
    unsigned count = length_of(node->list), number = 0;
    if (count == 0)
        refuse(node->first, "%s() of nothing", group);
    const char *name = member_name(print("%s_%u", group, ++serial));
    add_member(slot,
               print("struct { bide_when when; bide_branch branches[%u]; } %s;", count, name));
    struct text text = {0};
    text_add(&text, "(", 1);
    for (struct node *part = node->list; part != NULL; part = part->next, number++) {
        if (part->awaits)
            refuse(part->first, "what %s() waits for is begun together: no await inside", group);
        const char *one = awaiter_of(part, slot);
        text_print(&text, "bide_branch_init(&bide_self->%s.branches[%u], %s), ", name, number, one);
    }
    text_print(&text, "bide_when_%s(&bide_self->%s.when, bide_self->%s.branches, %u))", group, name,
               name, count);
    return text_kept(&text);
}

/* select_any(&which, ...): its value is the status, and the index of the case goes to *which. */
static const char *select_awaiter(struct node *node, struct scope *slot)
{
    unsigned count = length_of(node->list) - 1, number = 0;
    if (node->list == NULL || count == 0)
        refuse(node->first, "select_any() takes the place of an index, and then operations");
    const char *name = member_name(print("select_%u", ++serial));
    add_member(slot,
               print("struct { bide_select any; bide_select_case cases[%u]; } %s;", count, name));
    function->draws = true;
    node->member =
        print("*(%s) = %sbide_select_winner(&bide_self->%s.any)", keep(node->list), "(int)", name);
    struct text text = {0};
    text_add(&text, "(", 1);
    for (struct node *part = node->list->next; part != NULL; part = part->next, number++) {
        const struct function *f = called(bare(part));
        if (part->awaits)
            refuse(part->first, "what select_any() waits for is begun together: no await inside");
        if (group_of(bare(part)) != NULL || (f != NULL && f->is_async))
            refuse(part->first, "select_any() takes operations that can be attempted; any() waits "
                                "for the first of several functions");
        const char *one = awaiter_of(part, slot);
        text_print(&text, "bide_select_case_init(&bide_self->%s.cases[%u], %s), ", name, number,
                   one);
    }
    text_print(&text,
               "bide_select_any(&bide_self->%s.any, bide_self->%s.cases, %u, "
               "bide_async_random_(&bide_self->bide_random, bide_frame_)))",
               name, name, count);
    return text_kept(&text);
}

/* Where the frames of functions that are awaited come from. */
static const char *allocator(void)
{
    if (function->is_created)
        return "bide_self->bide_allocator";
    for (const struct declarator *d = function->parameters; d != NULL; d = d->next) {
        for (int i = d->specifiers->first; i < d->specifiers->end; i++) {
            if (is(i, "bide_allocator") && d->is_pointer)
                return print("bide_self->%s", d->symbol->member);
        }
    }
    return "(&bide_heap)";
}

/* Of a function whose frames are created: its result is written into the frame that awaits it. */
static const char *created_awaiter(struct function *f, struct node *node, const char *arguments,
                                   struct scope *slot)
{
    const char *comma = node->list != NULL ? ", " : "";
    if (f->returns_nothing)
        return print("async_%s_created(%s%s%s)", f->name, allocator(), comma, arguments);
    node->member = member_name(f->name);
    add_member(slot, print("__typeof__(%s) %s;", f->result, node->member));
    return print("async_%s_created(%s, &bide_self->%s%s%s)", f->name, allocator(), node->member,
                 comma, arguments);
}

/* The call of an async function: its frame is a member of `slot`. */
static const char *async_awaiter(struct function *f, struct node *node, struct scope *slot)
{
    if (!f->defined && !f->is_created)
        refuse(node->first,
               strcmp(f->name, function->name) == 0
                   ? "%s awaits itself: its frame would have to contain itself; declare it "
                     "async_created"
                   : "the frame of %s is not known here: define it before it is awaited, or "
                     "declare it async_sized(...) or async_created",
               f->name);
    if ((int)length_of(node->list) != f->parameter_count)
        refuse(node->first, "%s takes %d arguments, not %u", f->name, f->parameter_count,
               length_of(node->list));
    const char *arguments = awaiter_arguments(f, node->list, 0, slot);
    if (f->is_created)
        return created_awaiter(f, node, arguments, slot);
    const char *name = member_name(f->name);
    add_member(slot, print("struct async_%s %s;", f->name, name));
    node->member = name;
    return print("async_%s(&bide_self->%s%s%s)", f->name, name, node->list != NULL ? ", " : "",
                 arguments);
}

static const char *awaiter_of(struct node *node, struct scope *slot)
{
    node = bare(node);
    const char *group = group_of(node);
    if (group != NULL && strcmp(group, "select_any") == 0)
        return select_awaiter(node, slot);
    if (group != NULL)
        return group_awaiter(group, node, slot);
    struct function *f = called(node);
    if (f != NULL && f->value != NULL)
        refuse(node->first, "%s is a generator: async_for takes its values", f->name);
    if (f != NULL && f->is_async)
        return async_awaiter(f, node, slot);
    if (f != NULL && f->makes_awaiter) {
        bool brings = brings_waiter(f, node);
        struct node *list = is_here(node->list) ? node->list->next : node->list;
        const char *arguments = awaiter_arguments(f, list, brings ? 1 : 0, slot);
        if (!brings)
            return print("%s(%s)", f->name, arguments);
        const char *name = member_name(print("%s_%u", f->name, ++serial));
        add_member(slot, print("%s %s;", f->waiter, name));
        node->member = name;
        return print("%s(&bide_self->%s%s%s)", f->name, name, node->list != NULL ? ", " : "",
                     arguments);
    }
    return lower(node);
}

/* spawn(scope, call): memory for a branch and the frame, which the branch frees when it ends. */
static const char *lower_spawn(struct node *node)
{
    if (length_of(node->list) != 2)
        refuse(node->first, "spawn() takes a scope and the call of an async function");
    struct node *call = bare(node->list->next);
    struct function *f = called(call);
    if (f == NULL || !f->is_async || f->value != NULL)
        refuse(call->first, "spawn() takes a scope and the call of an async function");
    if (!f->defined && f != function)
        refuse(call->first,
               "the frame of %s is not known here: define it before it is spawned, or "
               "declare it async_sized(...)",
               f->name);
    if ((int)length_of(call->list) != f->parameter_count)
        refuse(call->first, "%s takes %d arguments, not %u", f->name, f->parameter_count,
               length_of(call->list));
    const char *value = add_local("int");
    const char *to = call->awaits ? keep(node->list) : lower(node->list);
    const char *arguments = awaiter_arguments(f, call->list, 0, leaf(whole));
    text_print(body, "{");
    place(node->first);
    text_print(body,
               "struct { bide_async_spawned_ spawned; struct async_%s frame; } *bide_spawned_ = "
               "bide_async_spawned_new_(%s, sizeof *bide_spawned_);",
               f->name, allocator());
    place(node->first);
    text_print(body,
               "bide_awaiter *bide_spawns_ = bide_spawned_ == 0 ? 0 : "
               "async_%s(&bide_spawned_->frame%s%s);",
               f->name, call->list != NULL ? ", " : "", arguments);
    if (f->is_created)
        text_print(body, "if (bide_spawned_ != 0) bide_spawned_->frame.bide_allocator = %s;",
                   allocator());
    text_print(body, "%s = bide_async_spawn_(%s, bide_spawned_, bide_spawns_);", value, to);
    text_print(body, "}");
    return value;
}

/* What an await is at file scope: an expression of its type. */
const char *await_status_of(const struct node *node)
{
    if (node->kind == E_SPAWN)
        return "(*(int *)0)";
    const struct node *of = bare(node->a);
    struct function *f = called(of);
    if (f != NULL && f->is_async) {
        if (f->returns_nothing)
            return "((void)0)";
        return print("(*(__typeof__(%s) *)0)", f->result);
    }
    if (f != NULL && brings_waiter(f, of)) {
        struct value *value = find_value(f->waiter);
        if (value != NULL)
            return print("(*(%s *)0)", value->type);
    }
    return "(*(int *)0)";
}

static unsigned points;
struct text point_table;

/* The constant of a place where the function is suspended. */
static unsigned add_point(int token, const char *state)
{
    unsigned point = ++points;
    text_print(&point_table,
               "    [%u] = {{0, bide_frame_started_, 0, 0, bide_frame_withdraw_, 0, 0}, "
               "&async_%s_code, 0, %u, %u, %s},\n",
               point, function->name, point, tokens[token].line, state);
    return point;
}

static void print_await(const struct node *node, const char *awaiter, bool takes_status)
{
    unsigned point = add_point(node->first, "BIDE_AT_AWAIT");
    place(node->first);
    text_print(body, "bide_awaiter_ = %s;", awaiter);
    generated(node->first);
    text_print(body, "bide_ops_ = bide_awaiter_->ops;\n");
    struct text saves = {0}, loads = {0};
    text_add(&saves, "", 0);
    text_add(&loads, "", 0);
    print_saves(&saves, node->scope, whole_first, node->first, false);
    print_saves(&loads, node->scope, whole_first, node->first, true);
    text_print(body,
               "bide_looked_ = bide_async_look_(bide_frame_, bide_awaiter_, bide_ops_, "
               "&async_%s_points[%u], &bide_budget_left_);\n"
               "if (bide_looked_ != BIDE_ASYNC_GOES_ON_) {\n    %s\n"
               "    if (bide_async_suspends_(bide_frame_, bide_awaiter_, &bide_ops_, "
               "&async_%s_points[%u], "
               "bide_looked_, bide_depth_, &bide_budget_left_, &bide_next_))\n"
               "        return bide_next_frame(bide_next_);\n    }\n",
               function->name, point, saves.at, function->name, point);
    if (takes_status)
        text_print(body, "bide_status_ = bide_awaiter_resume(bide_awaiter_, bide_ops_);\n");
    text_print(body, "if (0) {\nbide_resume_%u:\n", point);
    if (takes_status)
        text_print(body, "bide_awaiter_ = bide_frame_->awaiter.link;\n");
    text_print(body, "bide_frame_runs_(bide_frame_);\n%s\n", loads.at);
    if (takes_status)
        text_print(body,
                   "bide_status_ = bide_awaiter_resume(bide_awaiter_, bide_awaiter_->ops);\n");
    text_print(body, "    }\n");
}

static const char *lower_await(struct node *node)
{
    struct node *of = bare(node->a);
    struct scope *slot = leaf(whole);
    slot->first = node->first;
    slot->last = node->end - 1;
    const char *awaiter = awaiter_of(of, slot);
    struct function *f = called(of);
    bool is_known = group_of(of) != NULL || (f != NULL && (f->is_async || f->makes_awaiter));
    if (!is_known) {
        place(node->first);
        text_print(body,
                   "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), bide_awaiter *), "
                   "\"await takes a call of an async function, or a bide_awaiter *\");",
                   awaiter);
    }
    bool is_child = f != NULL && f->is_async;
    print_await(node, awaiter, !is_child || f->is_created);
    if (is_child)
        return f->returns_nothing ? "(void)0"
                                  : print("((void)0, bide_self->%s%s)", of->member,
                                          f->is_created ? "" : ".result");
    if (group_of(of) != NULL && of->member != NULL)
        return print("(%s, bide_status_)", of->member);
    if (f != NULL && of->member != NULL) {
        struct value *value = find_value(f->waiter);
        if (value != NULL)
            return print("(bide_status_ < 0 ? (%s)bide_status_ : (%s)bide_self->%s.%s)",
                         value->type, value->type, of->member, value->expression);
    }
    return "((void)0, bide_status_)";
}

/* What stands for the generator of an async_for, whose frame is a member of `slot`. */
const char *lower_generator(struct node *node, struct scope *slot)
{
    struct function *f = called(bare(node));
    if (f != NULL && f->value != NULL)
        return async_awaiter(f, bare(node), slot);
    const char *generator = lower(node);
    place(node->first);
    text_print(body,
               "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), bide_async_generator "
               "*), \"async_for takes a call of an async_generator, or a bide_async_generator "
               "*\");",
               generator);
    return generator;
}

/* Awaits the next value, as a statement. */
void lower_next(struct node *node, const char *awaiter)
{
    whole_first = enclosing_first != 0 ? enclosing_first : node->first;
    print_await(node, awaiter, true);
}

void lower_yield(struct node *node)
{
    begin_expression(node->a);
    const char *value = lower(node->a);
    place(node->first);
    text_print(body,
               "__builtin_memcpy((void *)&bide_self->value, &(struct { "
               "__typeof__(bide_self->value) value; }){(%s)}, sizeof bide_self->value);",
               value);
    generated(node->first);
    unsigned point = add_point(node->first, "BIDE_AT_YIELD");
    int first = enclosing_first != 0 ? enclosing_first : node->end;
    print_saves(body, node->scope, first, node->first, false);
    text_print(body,
               "\nbide_frame_->awaiter.ops = &async_%s_points[%u].ops;\n"
               "bide_frame_yields_(bide_frame_);\nbide_async_budget_keep_(&bide_budget_left_);\n"
               "return bide_next_frame(bide_async_generator_yield_(bide_frame_, "
               "(void *)&bide_self->value));\nbide_resume_%u:\nbide_frame_runs_(bide_frame_);\n",
               function->name, point, point);
    print_saves(body, node->scope, first, node->first, true);
}

unsigned point_count(void)
{
    unsigned count = points;
    points = 0;
    return count;
}

/* ---- Expressions ---- */

/* A block in an expression lives while what is kept in the expression does: beside it. */
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
    block->up = whole;
    if (whole->last_inner != NULL)
        whole->last_inner->next = block;
    else
        whole->inner = block;
    whole->last_inner = block;
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
    if (last != NULL && last->kind == S_EXPRESSION) {
        value = add_local(type_of(last->a));
        *end = NULL; /* it is the value, and no statement */
    }
    struct scope *outer_whole = whole;
    int outer_first = whole_first, outer_enclosing = enclosing_first;
    enclosing_first = whole_first;
    text_print(body, "{");
    print_locals(body, node->a->scope);
    for (struct node *s = node->a->list; s != NULL; s = s->next)
        lower_statement(s);
    if (value != NULL) {
        whole = leaf(node->a->scope);
        whole->first = whole->last = last->first;
        whole_first = enclosing_first;
        const char *text = lower(last->a);
        place(last->first);
        text_print(body, "%s = %s;", value, text);
        *end = last;
    }
    lower_cleanups(node->a->scope);
    text_print(body, "}");
    whole = outer_whole;
    whole_first = outer_first;
    enclosing_first = outer_enclosing;
    return value != NULL ? value : "(void)0";
}

static const char *lower_choice(struct node *node)
{
    const char *condition, *value = add_local(type_of(node));
    if (node->b == NULL) {
        condition = lower(node->a);
        text_print(body, "%s = %s; if (!%s) {", value, condition, value);
    } else {
        condition = lower(node->a);
        text_print(body, "if (%s) {", condition);
        const char *yes = lower(node->b);
        text_print(body, "%s = %s; } else {", value, yes);
    }
    const char *no = lower(node->c);
    text_print(body, "%s = %s; }", value, no);
    return value;
}

static const char *lower_binary(struct node *node)
{
    const char *sign = spelled(node->sign);
    bool is_or = is(node->sign, "||");
    if ((is_or || is(node->sign, "&&")) && node->b->awaits) {
        const char *value = add_local("int"), *left = lower(node->a);
        text_print(body, "%s = !!(%s); if (%s%s) {", value, left, is_or ? "!" : "", value);
        const char *right = lower(node->b);
        text_print(body, "%s = !!(%s); }", value, right);
        return value;
    }
    const char *left = node->b->awaits ? keep(node->a) : lower(node->a);
    const char *right = lower(node->b);
    return print("%s %s %s", left, sign, right);
}

static const char *lower_assignment(struct node *node)
{
    const char *sign = spelled(node->sign);
    if (!node->b->awaits)
        return print("%s %s %s", lower(node->a), sign, inside(node->b->first, node->b->end));
    if (!node->a->awaits) {
        const char *right = lower(node->b);
        return print("%s %s %s", inside(node->a->first, node->a->end), sign, right);
    }
    const char *place_text = lower(node->a);
    const char *type = outside(node->a->first, node->a->end);
    const char *pointer = add_kept(print("__typeof__(&(%s))", type));
    text_print(body, "%s = &(%s);", pointer, place_text);
    const char *right = lower(node->b);
    return print("*%s %s %s", pointer, sign, right);
}

/* The callee and the arguments in this order. */
static const char *lower_call(struct node *node)
{
    const char *callee;
    if (last_awaiting(node->list) == NULL)
        callee = lower(node->a);
    else if (node->a->kind == E_TOKENS && tokens[node->a->first].symbol == NULL)
        callee = inside(node->a->first, node->a->end);
    else
        callee = keep(node->a);
    const char *arguments = lower_list(node->list);
    return print("%s(%s)", callee, arguments);
}

static const char *lower_literal(struct node *node)
{
    const char *braces = lower_braces(node->a, false);
    const char *type = inside(node->type, node->type_end);
    if (node->member == NULL)
        return print("(%s)%s", type, braces);
    return print("(*(__typeof__(bide_self->%s) *)__builtin_memcpy((void *)&bide_self->%s, &(%s)%s, "
                 "sizeof bide_self->%s))",
                 node->member, node->member, type, braces, node->member);
}

static const char *lower_index(struct node *node)
{
    const char *base = node->b->awaits ? keep(node->a) : lower(node->a);
    const char *index = lower(node->b);
    return print("%s[%s]", base, index);
}

const char *lower(struct node *node)
{
    if (!node->awaits)
        return inside(node->first, node->end);
    switch (node->kind) {
    case E_PARENTHESES:
        return print("(%s)", lower(node->a));
    case E_CALL:
        return lower_call(node);
    case E_INDEX:
        return lower_index(node);
    case E_MEMBER:
        return print("%s%s", lower(node->a), inside(node->sign, node->end));
    case E_POSTFIX:
        return print("%s%s", lower(node->a), spelled(node->sign));
    case E_UNARY:
        return print("%s %s", spelled(node->sign), lower(node->a));
    case E_CAST:
        return print("(%s)%s", inside(node->type, node->type_end), lower(node->a));
    case E_LITERAL:
        return lower_literal(node);
    case E_INITIALISER:
        return lower_braces(node, false);
    case E_BINARY:
        return lower_binary(node);
    case E_CONDITION:
        if ((node->b != NULL && node->b->awaits) || node->c->awaits)
            return lower_choice(node);
        return print("%s%s", lower(node->a), inside(node->sign, node->end));
    case E_ASSIGN:
        return lower_assignment(node);
    case E_COMMA:
        if (!node->b->awaits)
            return print("%s, %s", lower(node->a), inside(node->b->first, node->b->end));
        lower_to_nothing(node->a);
        return lower(node->b);
    case E_AWAIT:
        return lower_await(node);
    case E_SPAWN:
        return lower_spawn(node);
    case E_BLOCK:
        return lower_block_value(node);
    default:
        refuse(node->first, "an await cannot stand in this");
    }
}

static void write_statement(int token, const char *text)
{
    place(token);
    text_print(body, "%s;", text);
}

/* An expression whose value is not used, and may be none. */
void lower_to_nothing(struct node *node)
{
    struct scope *outer_whole = whole;
    int outer_first = whole_first;
    if (!node->awaits) {
        place(node->first);
        text_print(body, "%s;", inside(node->first, node->end));
        return;
    }
    switch (node->kind) {
    case E_PARENTHESES:
        lower_to_nothing(node->a);
        return;
    case E_CAST:
        if (node->type_end == node->type + 1 && is(node->type, "void")) {
            lower_to_nothing(node->a);
            return;
        }
        break;
    case E_COMMA:
        lower_to_nothing(node->a);
        lower_to_nothing(node->b);
        return;
    case E_CONDITION:
        if (node->b == NULL)
            break;
        text_print(body, "if (%s) {", lower(node->a));
        lower_to_nothing(node->b);
        text_print(body, "} else {");
        lower_to_nothing(node->c);
        text_print(body, "}");
        return;
    case E_BINARY:
        if (!is(node->sign, "&&") && !is(node->sign, "||"))
            break;
        text_print(body, "if (%s(%s)) {", is(node->sign, "||") ? "!" : "", lower(node->a));
        lower_to_nothing(node->b);
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
        for (struct node *s = node->a->list; s != NULL; s = s->next) {
            if (s->next == NULL && s->kind == S_EXPRESSION && !s->awaits)
                text_print(body, "(void)(%s);", inside(s->a->first, s->a->end));
            else
                lower_statement(s);
        }
        lower_cleanups(node->a->scope);
        text_print(body, "}");
        whole = outer_whole;
        whole_first = outer_first;
        return;
    default:
        break;
    }
    write_statement(node->first, lower(node));
}

/* A whole expression begins: what is kept in it lives until its end. */
void begin_expression(struct node *node)
{
    if (node == NULL || !node->awaits)
        return;
    whole = leaf(node->scope);
    whole->first = node->first;
    whole_first = enclosing_first != 0 ? enclosing_first : node->first;
    whole->last = node->end - 1;
}
