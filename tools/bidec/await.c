/*
 * Awaits, spawns and yields: the places where a function suspends.
 *
 * An await becomes four parts: the call that makes the awaiter, in a member of the frame that
 * lives as long as the await; a poll, which continues at once if the awaiter is ready; the return
 * that suspends the frame; and the label at which it resumes. Locals of the step function are saved
 * before the return and loaded behind the label.
 */
#include "bidec.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- Awaits ---- */

struct function *called_function(const struct node *node)
{
    if (node->block != NULL)
        return node->block;
    if (node->kind != E_CALL || node->a->kind != E_TOKENS ||
        tokens[node->a->first].symbol != NULL || node->a->end != node->a->first + 1)
        return NULL;
    return find_function(tokens[node->a->first].at, tokens[node->a->first].length);
}

static unsigned list_length(const struct node *list)
{
    unsigned count = 0;
    for (; list != NULL; list = list->next)
        count++;
    return count;
}

static struct node *without_parentheses(struct node *node)
{
    while (node->kind == E_PARENTHESES)
        node = node->a;
    return node;
}

/* all(...), any(...), all_ready(...), select_any(...), select_in_order(...) */
const char *group_of(const struct node *node)
{
    static const char *const words[] = {"all", "any", "all_ready", "select_any", "select_in_order"};
    if (node->kind != E_CALL || node->a->kind != E_TOKENS ||
        tokens[node->a->first].symbol != NULL || called_function(node) != NULL)
        return NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (token_is(node->a->first, words[i]))
            return words[i];
    }
    return NULL;
}

/* True for the argument that a macro of async_macros.h passes in place of a waiter. */
bool is_here(const struct node *node)
{
    while (node != NULL && node->kind == E_PARENTHESES)
        node = node->a;
    return node != NULL && node->kind == E_TOKENS && token_is(node->first, "bide_here_");
}

/* True if the operation is called without its waiter, so that the frame provides it. */
bool needs_waiter(const struct function *f, const struct node *node)
{
    return f->makes_awaiter && f->waiter != NULL && node->list != NULL &&
           (is_here(node->list) || (int)list_length(node->list) == f->parameter_count - 1);
}

static const char *awaiter_of(struct node *node, struct scope *slot);

/* Returns the operation whose value an await has: one that runs another may pass its value. */
static struct node *value_source(struct node *node)
{
    for (;;) {
        node = without_parentheses(node);
        const struct function *f = called_function(node);
        if (f == NULL || !f->passes_result)
            return node;
        struct node *part = is_here(node->list) ? node->list->next : node->list;
        int number = needs_waiter(f, node) ? 1 : 0;
        while (part != NULL && number < 16 && !f->takes_awaiter[number])
            part = part->next, number++;
        if (part == NULL || number == 16)
            return node;
        node = part;
    }
}

bool is_discarded(const struct node *node)
{
    return node->kind == E_CAST && node->type_end == node->type + 1 && token_is(node->type, "void");
}

/* Returns the operand of a cast to void, or NULL. */
static struct node *discarded(struct node *node)
{
    node = without_parentheses(node);
    return is_discarded(node) ? node->a : NULL;
}

/*
 * The awaiter of an operation that is awaited by another one, which ends with its status alone. A result
 * that is lost is an error, unless it is cast to void. Only the compiler knows whether a type is int.
 */
static const char *inner_awaiter(const char *by, struct node *node, struct scope *slot)
{
    struct node *of = discarded(node);
    if (of != NULL)
        return awaiter_of(of, slot);
    of = value_source(node);
    if (is_pointer_call(of))
        check_pointer_drops(by, of);
    const struct function *f = called_function(of);
    const struct value *value = f != NULL && needs_waiter(f, of) ? find_value(f->waiter) : NULL;
    if (value != NULL)
        reject_at(node->first,
                  "%s() drops the count of %s: call it with a %s of your own, or cast it to void",
                  by, f->shown, f->waiter);
    if (f != NULL && f->is_async && f->value == NULL && !f->returns_nothing) {
        begin_user_text(node->first);
        text_print(body,
                   "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), int), \"%s() drops "
                   "the result of %s: store it through a pointer, or cast the call to void\");",
                   f->result, by, f->name);
    }
    return awaiter_of(node, slot);
}

/*
 * Returns the arguments as text. The waiters of arguments that are awaiters are in `slot` too. `captured` is given the
 * locals, as statements, that have the values of a block's captures, where the order of these is of consequence; it may
 * be NULL for other calls.
 */
static const char *awaiter_arguments(const struct function *f, struct node *list, int first,
                                     struct scope *slot, struct text *captured)
{
    struct text text = {0};
    struct node *last = last_awaiting(list);
    int number = first;
    const bool has_order = captured != NULL && f->is_block && captures_have_order(list);
    text_add(&text, "", 0);
    for (struct node *node = list; node != NULL; node = node->next, number++) {
        const char *one;
        if (number < 16 && f->takes_awaiter[number] && last != NULL && node != last && node->awaits)
            reject_at(node->first,
                      "operations that are awaited together may contain one await at most: store "
                      "this value in a variable first");
        if (number < 16 && f->takes_awaiter[number])
            one = f->passes_result ? awaiter_of(node, slot) : inner_awaiter(f->shown, node, slot);
        else if (last != NULL && node != last)
            one = keep_value(node);
        else
            one = lower_value(node);
        if (node == last)
            last = NULL;
        if (has_order && last == NULL) {
            const char *local = format_text("bide_capture_%u_", ++serial);
            text_print(captured, "__typeof__(((void)0, (%s))) %s = (%s); ", one, local, one);
            one = local;
        }
        text_print(&text, "%s%s", one, comma_after(node));
    }
    return text_finish(&text);
}

/* A call of the function that puts a frame at its start, behind the locals of captures. */
static const char *start_text(const struct text *captured, const char *name, const char *frame,
                              bool has_arguments, const char *arguments)
{
    const char *call =
        format_text("async_%s(%s%s%s)", name, frame, has_arguments ? ", " : "", arguments);
    return captured->length == 0 ? call : format_text("({ %s%s; })", captured->at, call);
}

static const char *group_awaiter(const char *group, struct node *node, struct scope *slot)
{
    unsigned count = list_length(node->list), number = 0;
    if (count == 0)
        reject_at(node->first, "%s() needs an operation", group);
    const char *name = member_name(format_text("%s_%u", group, ++serial));
    add_member(
        slot, format_text("struct { bide_when when; bide_branch branches[%u]; } %s;", count, name));
    struct text text = {0};
    text_add(&text, "(", 1);
    for (struct node *part = node->list; part != NULL; part = part->next, number++) {
        if (part->awaits)
            reject_at(part->first,
                      "%s() starts its operations together: await is not allowed inside", group);
        const char *one = inner_awaiter(group, part, slot);
        text_print(&text, "bide_branch_init(&bide_self->%s.branches[%u], %s), ", name, number, one);
    }
    text_print(&text, "bide_when_%s(&bide_self->%s.when, bide_self->%s.branches, %u))", group, name,
               name, count);
    return text_finish(&text);
}

const char *select_case(const char *by, struct node *part, struct scope *slot)
{
    const struct function *f = called_function(without_parentheses(part));
    if (group_of(without_parentheses(part)) != NULL || (f != NULL && f->is_async) ||
        is_pointer_call(without_parentheses(part)))
        reject_at(part->first,
                  "%s() takes operations that can be attempted without waiting, or undone; use "
                  "any() to wait for the first of several functions",
                  by);
    return inner_awaiter(by, part, slot);
}

/* select_any(&which, ...) or select_in_order: its value is the status; it stores the index of the case
 * in *which. */
static const char *select_awaiter(const char *group, struct node *node, struct scope *slot)
{
    unsigned count = list_length(node->list) - 1, number = 0;
    bool in_order = strcmp(group, "select_in_order") == 0;
    if (node->list == NULL || count == 0)
        reject_at(node->first, "%s() takes the address of an index, and then operations", group);
    const char *name = member_name(format_text("select_%u", ++serial));
    add_member(slot, format_text("struct { bide_select any; bide_select_case cases[%u]; } %s;",
                                 count, name));
    function->draws |= !in_order;
    node->member = format_text("*(%s) = %sbide_select_winner(&bide_self->%s.any)",
                               keep_value(node->list), "(int)", name);
    struct text text = {0};
    text_add(&text, "(", 1);
    for (struct node *part = node->list->next; part != NULL; part = part->next, number++) {
        if (part->awaits)
            reject_at(part->first,
                      "%s() starts its operations together: await is not allowed inside", group);
        const char *one = select_case(group, part, slot);
        text_print(&text, "bide_select_case_init(&bide_self->%s.cases[%u], %s), ", name, number,
                   one);
    }
    text_print(&text, "bide_select_any%s(&bide_self->%s.any, bide_self->%s.cases, %u%s)",
               in_order ? "_in_order" : "", name, name, count,
               in_order ? "" : ", bide_async_random_(&bide_self->bide_random, bide_frame_)");
    text_print(&text, ")");
    return text_finish(&text);
}

const char *allocator_text(void)
{
    if (function->is_created)
        return "bide_self->bide_allocator";
    for (const struct declarator *d = function->parameters; d != NULL; d = d->next) {
        for (int i = d->specifiers->first; i < d->specifiers->end; i++) {
            if (token_is(i, "bide_allocator") && d->is_pointer && d->symbol != NULL)
                return format_text("bide_self->%s", d->symbol->member);
        }
    }
    return "(&bide_heap)";
}

/* The awaiter of an async_created function, which writes its result into the awaiting frame. */
static const char *created_awaiter(struct function *f, struct node *node, const char *arguments,
                                   struct scope *slot)
{
    const char *comma = node->list != NULL ? ", " : "";
    if (f->returns_nothing)
        return format_text("async_%s_created(%s%s%s)", f->name, allocator_text(), comma, arguments);
    node->member = member_name(f->name);
    add_member(slot, format_text("__typeof__(%s) %s;", f->result, node->member));
    return format_text("async_%s_created(%s, &bide_self->%s%s%s)", f->name, allocator_text(),
                       node->member, comma, arguments);
}

/* The awaiter of an async function, whose frame is a member of `slot`. */
static const char *async_awaiter(struct function *f, struct node *node, struct scope *slot)
{
    if (!f->defined && !f->is_created)
        reject_at(node->first,
                  strcmp(f->name, function->name) == 0
                      ? "%s awaits itself: its frame would have to contain itself; declare it "
                        "async_created"
                      : "the frame of %s is not known here: define it before it is awaited, or "
                        "declare it async_sized(...) or async_created",
                  f->name);
    if ((int)list_length(node->list) != f->parameter_count && !f->is_wrong)
        reject_at(node->first, "%s takes %d arguments, not %u", f->name, f->parameter_count,
                  list_length(node->list));
    struct text captured = {0};
    const char *arguments = awaiter_arguments(f, node->list, 0, slot, &captured);
    if (f->is_created)
        return created_awaiter(f, node, arguments, slot);
    const char *name = member_name(f->name);
    add_member(slot, format_text("struct async_%s %s;", f->name, name));
    node->member = name;
    return start_text(&captured, f->name, format_text("&bide_self->%s", name), node->list != NULL,
                      arguments);
}

/*
 * The call of an operation with its waiter. Whether the first argument is one, only the compiler knows: it
 * rejects another.
 */
static const char *with_waiter(const struct function *f, const struct node *node,
                               const char *arguments)
{
    unsigned count = list_length(node->list);
    if (f->waiter == NULL || node->list == NULL || f->takes_awaiter[0])
        return format_text("%s(%s)", f->name, arguments);
    if ((int)count != f->parameter_count)
        reject_at(node->first, "%s takes %d arguments, or %d without its waiter, not %u", f->shown,
                  f->parameter_count, f->parameter_count - 1, count);
    if (node->list->awaits)
        return format_text("%s(%s)", f->name, arguments);
    return format_text(
        "((void)sizeof(struct { int bide_unused_; _Static_assert(__builtin_types_compatible_p("
        "__typeof__(*(%s)), %s), \"%s takes %d arguments, the first a %s *, or %d without it\"); "
        "}), "
        "%s(%s))",
        lower_value(node->list), f->waiter, f->shown, f->parameter_count, f->waiter,
        f->parameter_count - 1, f->name, arguments);
}

/*
 * Rejects an operation of async_macros.h that is called with a wrong number of arguments: the call is one
 * of BIDE_BRING_3_1_ then, which is not defined, with the name of the operation's macro.
 */
static void check_brought(const struct node *node)
{
    unsigned takes, has;
    if (node->kind != E_CALL || node->a->kind != E_TOKENS || node->list == NULL ||
        sscanf(spelling_of(node->a->first), "BIDE_BRING_%u_%u_", &takes, &has) != 2)
        return;
    char *name = (char *)format_text("%s", spelling_of(node->list->first));
    for (char *p = name; *p != 0; p++)
        *p = p[1] == 0 && *p == '_' ? 0 : (char)tolower((unsigned char)*p);
    reject_at(node->first, "%s takes %u arguments, or %u without its waiter, not %u", name, takes,
              takes - 1, has);
}

static const char *awaiter_of(struct node *node, struct scope *slot)
{
    node = without_parentheses(node);
    check_brought(node);
    const char *group = group_of(node);
    if (group != NULL && strncmp(group, "select_", 7) == 0)
        return select_awaiter(group, node, slot);
    if (group != NULL)
        return group_awaiter(group, node, slot);
    if (is_pointer_call(node))
        return pointer_awaiter(node, slot);
    struct function *f = called_function(node);
    if (f != NULL && f->value != NULL)
        reject_at(node->first, "%s is a generator: iterate it with async_for", f->name);
    if (f != NULL && f->is_async) {
        check_kind_awaited(f, node->first);
        return async_awaiter(f, node, slot);
    }
    if (f != NULL && f->makes_awaiter) {
        bool needs = needs_waiter(f, node);
        struct node *list = is_here(node->list) ? node->list->next : node->list;
        const char *arguments = awaiter_arguments(f, list, needs ? 1 : 0, slot, NULL);
        if (!needs)
            return with_waiter(f, node, arguments);
        if (f->kept_for != NULL)
            reject_at(node->first, "%s is called with its %s here: %s needs it afterwards",
                      f->shown, f->waiter, f->kept_for);
        const char *name = member_name(format_text("%s_%u", f->shown, ++serial));
        add_member(f->is_coroutine_scoped ? function->kept : slot,
                   format_text("%s %s;", f->waiter, name));
        node->member = name;
        return format_text("%s(&bide_self->%s%s%s)", f->name, name, node->list != NULL ? ", " : "",
                           arguments);
    }
    const char *awaiter = lower_value(node);
    begin_user_text(node->first);
    text_print(body,
               "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), bide_awaiter *), "
               "\"await takes a call of an async function, or a bide_awaiter *\");",
               awaiter);
    return awaiter;
}

/* spawn(scope, call): allocates a branch and a frame, which the branch frees at its end. */
const char *lower_spawn(struct node *node)
{
    if (list_length(node->list) != 2)
        reject_at(node->first, "spawn() takes a scope and the call of an async function: "
                               "spawn(&scope, f(...))");
    struct node *call = without_parentheses(node->list->next);
    if (is_pointer_call(call))
        return lower_spawned_pointer(node->list, call);
    struct function *f = called_function(call);
    if (f == NULL || !f->is_async || f->value != NULL)
        reject_at(call->first, "spawn() takes a scope and the call of an async function");
    check_kind_awaited(f, call->first);
    if (!f->defined && f != function)
        reject_at(call->first,
                  "the frame of %s is not known here: define it before it is spawned, or "
                  "declare it async_sized(...)",
                  f->name);
    if ((int)list_length(call->list) != f->parameter_count && !f->is_wrong)
        reject_at(call->first, "%s takes %d arguments, not %u", f->name, f->parameter_count,
                  list_length(call->list));
    if (call->block != NULL)
        check_spawned_block(node->list, call);
    const char *value = add_local("int");
    const char *to = call->awaits ? keep_value(node->list) : lower_value(node->list);
    struct text captured = {0};
    const char *arguments =
        awaiter_arguments(f, call->list, 0, add_inner_scope(whole.scope), &captured);
    text_print(body, "{");
    if (file_packs())
        text_print(body, "\n#pragma pack(push)\n#pragma pack()\n");
    begin_user_text(node->first);
    text_print(
        body,
        "struct { bide_async_spawned_ spawned; struct async_%s frame; } *bide_spawned_ = "
        "bide_async_spawned_new_(%s, sizeof *bide_spawned_, _Alignof(__typeof__(*bide_spawned_)));",
        f->name, allocator_text());
    if (file_packs())
        text_print(body, "\n#pragma pack(pop)\n");
    begin_user_text(node->first);
    text_print(
        body, "bide_awaiter *bide_spawns_ = bide_spawned_ == 0 ? 0 : %s;",
        start_text(&captured, f->name, "&bide_spawned_->frame", call->list != NULL, arguments));
    if (f->is_created)
        text_print(body, "if (bide_spawned_ != 0) bide_spawned_->frame.bide_allocator = %s;",
                   allocator_text());
    text_print(body,
               "%s = bide_async_spawn_(%s, bide_spawned_, bide_spawns_, &bide_async_%s_code_, %u);",
               value, to, function->name, tokens[node->first].line);
    text_print(body, "}");
    return value;
}

/* Returns an expression of an await's type, for file scope. */
const char *await_status_of(const struct node *node)
{
    if (node->kind == E_SPAWN)
        return "(*(int *)0)";
    struct node *direct = without_parentheses(node->a), *of = value_source(node->a);
    if (is_pointer_call(of))
        return pointer_call_status(of, of != direct);
    struct function *f = called_function(of);
    if (f != NULL && f->is_async) {
        if (f->returns_nothing)
            return of == direct ? "((void)0)" : "(*(int *)0)";
        return format_text("(*(__typeof__(%s) *)0)", f->result);
    }
    if (f != NULL && needs_waiter(f, of)) {
        struct value *value = find_value(f->waiter);
        if (value != NULL)
            return format_text("(*(%s *)0)", value->type);
    }
    return "(*(int *)0)";
}

static unsigned points;
struct text point_table;

/* Adds the constant of a suspension point. */
static unsigned add_point(int token, const char *state)
{
    unsigned point = ++points;
    text_print(&point_table,
               "    [%u] = {{0, bide_frame_started_, 0, 0, bide_frame_withdraw_, 0, 0}, "
               "&bide_async_%s_code_, 0, %u, %u, %s},\n",
               point, function->name, point, tokens[token].line, state);
    return point;
}

/* How an await waits for what it awaits. */
enum wait {
    WAITS_AS_CALL,     /* for an async function whose step function is known: by calling it */
    WAITS_AS_CHILD,    /* for another coroutine, which is stepped at once */
    WAITS_AS_OPERATION /* through the library */
};

/* Goes to the end of the step function that all awaits share. The variables are saved first. */
static void print_departure(const char *label, const struct text *saves, unsigned point)
{
    text_print(body, "    %s\n    bide_here_ = &bide_async_%s_points_[%u];\n    goto %s;\n",
               saves->at, function->name, point, label);
}

/* `f`: the function that is called. */
static void print_call(const struct function *f, const struct text *saves, unsigned point)
{
    text_print(body,
               "bide_async_calls_(bide_frame_, bide_awaiter_, &bide_async_%s_points_[%u], "
               "&bide_budget_left_);\n"
               "bide_next_ = bide_async_%s_step_((bide_frame *)(void *)bide_awaiter_, "
               "bide_inner_).frame;\n"
               "if (__builtin_expect(bide_next_ != 0, 0)) {\n",
               function->name, point, f->name);
    print_departure("bide_pend_", saves, point);
    text_print(body, "}\nbide_async_called_(bide_frame_, &bide_budget_left_);\n");
    function->pends = true;
}

static void print_await(const struct node *node, const char *awaiter, enum wait wait,
                        const struct function *f, bool takes_status)
{
    unsigned point = add_point(node->first, "BIDE_AT_AWAIT");
    begin_user_text(node->first);
    text_print(body, "bide_awaiter_ = %s;", awaiter);
    begin_generated_text(node->first);
    text_print(body, "\n");
    if (kind_transforms(function)) { /* what is waited for is another operation */
        text_print(body,
                   "bide_awaiter_ = bide_async_transform_(bide_frame_, bide_awaiter_, "
                   "%s_type.await_transform, &bide_async_%s_points_[%u]);\n",
                   function->kind, function->name, point);
        wait = WAITS_AS_OPERATION;
        takes_status = true;
    }
    struct text saves = {0}, loads = {0};
    text_add(&saves, "", 0);
    text_add(&loads, "", 0);
    print_saves(&saves, node, false);
    print_saves(&loads, node, true);
    if (wait == WAITS_AS_CALL) {
        print_call(f, &saves, point);
    } else {
        text_print(body,
                   "bide_ops_ = bide_awaiter_->ops;\n"
                   "bide_looked_ = bide_async_look_(bide_frame_, bide_awaiter_, bide_ops_, "
                   "&bide_async_%s_points_[%u], &bide_budget_left_);\n"
                   "if (bide_looked_ != BIDE_ASYNC_GOES_ON_) {\n",
                   function->name, point);
        if (wait == WAITS_AS_OPERATION) {
            print_departure("bide_wait_", &saves, point);
            function->waits = true;
        } else {
            text_print(body, "    %s\n", saves.at);
            if (may_be_direct(function)) {
                text_print(body,
                           "    if (bide_async_is_direct_(bide_depth_)) {\n"
                           "        bide_here_ = &bide_async_%s_points_[%u];\n"
                           "        goto bide_wait_;\n    }\n",
                           function->name, point);
                function->waits = true;
            }
            text_print(body,
                       "    if (bide_async_suspends_(bide_frame_, bide_awaiter_, &bide_ops_, "
                       "&bide_async_%s_points_[%u], bide_looked_, bide_depth_, "
                       "&bide_budget_left_, &bide_next_))\n"
                       "        return bide_next_frame(bide_next_);\n",
                       function->name, point);
        }
        text_print(body, "}\n");
        if (takes_status)
            text_print(body, "bide_status_ = bide_awaiter_resume(bide_awaiter_, bide_ops_);\n");
    }
    text_print(body, "if (0) {\nbide_resume_%u:\n", point);
    if (takes_status)
        text_print(body, "bide_awaiter_ = bide_frame_->awaiter.link;\n");
    text_print(body, "bide_frame_runs_(bide_frame_);\n%s\n", loads.at);
    if (takes_status)
        text_print(body,
                   "bide_status_ = bide_awaiter_resume(bide_awaiter_, bide_awaiter_->ops);\n");
    text_print(body, "    }\n");
}

/*
 * If the operation around a function has failed, the function may not have begun, and has no result.
 * The result is the error then, or zeros, as that of a frame without memory.
 */
static void print_failed_result(const struct node *node, const char *result)
{
    begin_generated_text(node->first);
    text_print(
        body,
        "if (__builtin_expect(bide_status_ < 0, 0)) {\n"
        "    __builtin_memset((void *)&%s, 0, sizeof %s);\n"
        "    _Generic(%s, int: bide_async_fails_int_, long: bide_async_fails_long_, long long: "
        "bide_async_fails_long_long_, default: bide_async_fails_)((void *)&%s, "
        "bide_status_);\n}\n",
        result, result, result, result);
}

/* The error of a try ends the function: function.c has the label. */
void lower_passed_error(const struct node *node, const char *status)
{
    begin_generated_text(node->first);
    text_print(body,
               "if (__builtin_expect(%s < 0, 0)) {\n    bide_error_ = %s;\n"
               "    goto bide_passes_error_;\n}\n",
               status, status);
}

/* True if an await of the function takes a status: of a kind that ends as its hooks say, or by a transformed await. */
static bool has_status(const struct function *f)
{
    return f->kind != NULL || kind_transforms(function);
}

/* A frame that is a member keeps its error, which a result that is no number does not show. */
static const char *status_text(const struct function *f, const struct node *of)
{
    bool is_child = f != NULL && f->is_async && !f->is_created && !has_status(f);
    return is_child ? format_text("bide_self->%s.task.frame.error", of->member) : "bide_status_";
}

const char *lower_await(struct node *node)
{
    struct node *of = without_parentheses(node->a);
    struct scope *slot = add_inner_scope(whole.scope);
    slot->first = node->first;
    slot->last = node->end - 1;
    const char *awaiter = awaiter_of(of, slot);
    struct function *f = called_function(of);
    bool is_child = f != NULL && f->is_async;
    enum wait wait = is_pointer_call(of)               ? WAITS_AS_CHILD
                     : !is_child                       ? WAITS_AS_OPERATION
                     : f->has_step && may_be_direct(f) ? WAITS_AS_CALL
                                                       : WAITS_AS_CHILD;
    print_await(node, awaiter, wait, f, !is_child || f->is_created || has_status(f));
    struct node *source = value_source(of);
    bool is_passed = source != of;
    const char *stores = group_of(source) != NULL ? source->member : NULL;
    if (node->passes_errors && stores != NULL) {
        begin_user_text(node->first);
        text_print(body, "%s;", stores);
        stores = NULL;
    }
    if (node->passes_errors)
        lower_passed_error(node, status_text(f, of));
    if (is_pointer_call(source)) {
        if ((is_passed || kind_transforms(function)) && !node->passes_errors)
            print_failed_result(node, format_text("bide_self->%s.result", source->member));
        return pointer_value(source, is_passed);
    }
    f = called_function(source);
    if (f != NULL && f->is_async && f->returns_nothing)
        return is_passed ? "((void)0, bide_status_)" : "(void)0";
    if (f != NULL && f->is_async) {
        const char *result =
            format_text("bide_self->%s%s", source->member, f->is_created ? "" : ".result");
        if ((is_passed || has_status(f)) && !node->passes_errors)
            print_failed_result(node, result);
        return format_text("((void)0, %s)", result);
    }
    if (stores != NULL)
        return format_text("(%s, bide_status_)", stores);
    if (f != NULL && source->member != NULL) {
        struct value *value = find_value(f->waiter);
        size_t length = value != NULL ? strlen(value->expression) : 0;
        if (length > 2 && strcmp(value->expression + length - 2, "()") == 0)
            return format_text("(bide_status_ < 0 ? (%s)bide_status_ : (%s)%.*s(&bide_self->%s))",
                               value->type, value->type, (int)length - 2, value->expression,
                               source->member);
        if (value != NULL)
            return format_text("(bide_status_ < 0 ? (%s)bide_status_ : (%s)bide_self->%s.%s)",
                               value->type, value->type, source->member, value->expression);
    }
    return "((void)0, bide_status_)";
}

bool is_synchronous(const struct function *f)
{
    return f->value != NULL && strcmp(f->generator, "bide_async_generator") != 0;
}

bool has_budget(const struct function *f)
{
    return f->value == NULL || strcmp(f->generator, "bide_generator") != 0;
}

const char *synchronous_generator(const struct node *each)
{
    const struct node *of = each->a;
    while (of->kind == E_PARENTHESES)
        of = of->a;
    const struct function *f = called_function(of);
    return f != NULL && f->is_async && is_synchronous(f) ? f->generator : NULL;
}

/*
 * The generator at the start, whose frame is a member of `slot`. (A created function has a frame of
 * its own there too, and creates those that it yields from.)
 */
static const char *generator_awaiter(struct function *f, struct node *node, struct scope *slot)
{
    if (!f->is_created)
        return async_awaiter(f, node, slot);
    if (!f->defined || f == function)
        reject_at(node->first,
                  "the frame of %s is not known here: define it before the loop over it", f->name);
    f->is_created = false; /* (as a function that is not) */
    const char *text = async_awaiter(f, node, slot);
    f->is_created = true;
    return format_text("bide_async_generator_from_(%s, &bide_self->%s.bide_allocator, %s)", text,
                       node->member, allocator_text());
}

/* Returns the generator of an async_for. Its frame is a member of `slot`. */
const char *lower_generator(struct node *node, struct scope *slot)
{
    struct function *f = called_function(without_parentheses(node));
    if (f != NULL && f->value != NULL)
        return generator_awaiter(f, without_parentheses(node), slot);
    if (f != NULL && f->kind != NULL)
        reject_at(node->first,
                  "%s is of the kind %s: async_for takes generators of the language; the values of "
                  "a kind are taken by functions of its own",
                  f->name, f->kind);
    if (f != NULL && f->is_block)
        reject_at(node->first, "an async block is no generator: iterate an async_generator");
    const char *generator = lower_value(node);
    begin_user_text(node->first);
    text_print(body,
               "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), bide_async_generator "
               "*), \"async_for takes a call of an async_generator, or a bide_async_generator "
               "*\");",
               generator);
    return generator;
}

void lower_next(struct node *node, const char *awaiter)
{
    print_await(node, awaiter, WAITS_AS_CHILD, NULL, true);
}

/* Another recursive generator: what it yields, this one yields, and its error ends this one. */
static void lower_yield_from(struct node *node)
{
    begin_whole_expression(node->a);
    struct node *of = without_parentheses(node->a);
    struct scope *slot = add_inner_scope(node->scope);
    struct function *f = called_function(of);
    slot->first = node->first;
    slot->last = node->end - 1;
    begin_life(slot);
    const char *nested, *frame = "->frame.awaiter";
    if (f != NULL && f->is_async) {
        if (f->value == NULL || strcmp(f->generator, function->generator) != 0)
            reject_at(of->first, "yield_from takes a call of a recursive_generator, or a "
                                 "bide_recursive_generator *");
        nested = async_awaiter(f, of, slot);
        frame = f->is_created ? "" : frame;
    } else {
        nested = lower_value(of);
        begin_user_text(of->first);
        text_print(body,
                   "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), "
                   "bide_recursive_generator *), \"yield_from takes a call of a "
                   "recursive_generator, or a bide_recursive_generator *\");",
                   nested);
    }
    lower_next(node, format_text("bide_recursive_generator_transform_(bide_frame_, %s%s%s)",
                                 *frame != 0 ? "&" : "", nested, frame));
    lower_passed_error(node, "bide_status_");
}

void lower_yield(struct node *node)
{
    if (node->passes_errors) {
        lower_yield_from(node);
        return;
    }
    begin_whole_expression(node->a);
    const char *value = lower_value(node->a);
    const char *hook = function->kind != NULL ? format_text("%s_type.yield_value", function->kind)
                                              : format_text("%s_yield_", function->generator);
    begin_user_text(node->first);
    text_print(body,
               "__builtin_memcpy((void *)&bide_self->value, &(struct { "
               "__typeof__(bide_self->value) value; }){(%s)}, sizeof bide_self->value);",
               value);
    begin_generated_text(node->first);
    unsigned point = add_point(node->first, "BIDE_AT_YIELD");
    print_saves(body, node, false);
    text_print(body,
               "\nbide_frame_->awaiter.ops = &bide_async_%s_points_[%u].ops;\n"
               "bide_frame_yields_(bide_frame_);\n%s"
               "return bide_next_frame(%s(bide_frame_, "
               "(void *)&bide_self->value));\nbide_resume_%u:\nbide_frame_runs_(bide_frame_);\n",
               function->name, point,
               has_budget(function) ? "bide_async_budget_keep_(&bide_budget_left_);\n" : "", hook,
               point);
    print_saves(body, node, true);
}

void reset_points(void)
{
    points = 0;
}

unsigned point_count(void)
{
    return points;
}
