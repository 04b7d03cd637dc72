/*
 * Typed pointers at async functions: async_pointer(type, parameters), async_pointer_to(function) and
 * async_call(pointer, arguments).
 *
 * The pointer is one at a plain C function that creates the async function: it has the parameters behind a
 * bide_async_call *, which leads to the allocator, the result and the awaiter, and returns a pointer of the
 * result's type. So the compiler checks a call by that type, and finds the result's type by a typeof of the
 * call, of which no part is evaluated.
 */
#include "bidec.h"

/* ---- The functions that are pointed at ---- */

static const char prefix[] = "bide_async_", suffix[] = "_pointer_";

/* The length of the function's name in the name of what async_pointer_to names; 0: it is another name. */
static unsigned pointed_length(const struct token *t)
{
    const unsigned around = sizeof prefix - 1 + sizeof suffix - 1;
    if (t->kind != NAME || t->length <= around || memcmp(t->at, prefix, sizeof prefix - 1) != 0 ||
        memcmp(t->at + t->length - (sizeof suffix - 1), suffix, sizeof suffix - 1) != 0)
        return 0;
    return t->length - around;
}

/* The places of async_pointer_to in the file. */
struct place {
    struct place *next;
    int token;
    const char *name; /* of the function */
};

static const struct place *find_places(void)
{
    static struct place *places = NULL;
    static bool found;
    struct place **last = &places;
    for (int i = 0; !found && i < token_count; i++) {
        const unsigned length = pointed_length(&tokens[i]);
        if (length == 0)
            continue;
        *last = allocate(sizeof **last);
        (*last)->token = i;
        (*last)->name = format_text("%.*s", (int)length, tokens[i].at + sizeof prefix - 1);
        last = &(*last)->next;
    }
    found = true;
    return places;
}

static bool is_pointed_at(const char *name)
{
    const struct place *place = find_places();
    while (place != NULL && strcmp(place->name, name) != 0)
        place = place->next;
    return place != NULL;
}

static void print_parameters(struct text *out, bool with_types)
{
    unsigned number = 0;
    for (struct declarator *d = function->parameters; d != NULL; d = d->next) {
        const char *name =
            d->name != 0 ? d->symbol->name : format_text("bide_unnamed_%u", ++number);
        text_print(out, ", %s", with_types ? member_declaration(d, name) : name);
    }
}

/* Behind the function's declaration. */
void print_pointer_target(struct text *out)
{
    struct function *f = function;
    if (!f->is_created || f->value != NULL || !is_pointed_at(f->name))
        return;
    if (out == plain) {
        text_print(out, "extern %s *bide_async_%s_pointer_(bide_async_call *bide_call_", f->result,
                   f->name);
        print_parameters(out, true);
        text_print(out, ");\n");
        return;
    }
    if (f->has_target)
        return;
    f->has_target = true;
    text_print(out,
               "static __attribute__((__unused__)) %s *bide_async_%s_pointer_(bide_async_call "
               "*bide_call_",
               f->result, f->name);
    print_parameters(out, true);
    text_print(out, ")\n{\n    bide_call_->awaiter = async_%s_created(bide_call_->allocator%s",
               f->name,
               f->returns_nothing ? "" : format_text(", (%s *)bide_call_->result", f->result));
    print_parameters(out, false);
    text_print(out, ");\n    return bide_call_->result;\n}\n");
}

/* At the end of the file: each async_pointer_to takes a function that has a frame of its own. */
void check_pointers(void)
{
    for (const struct place *place = find_places(); place != NULL; place = place->next) {
        const char *name = place->name;
        const int i = place->token;
        const struct function *f = find_function(name, strlen(name));
        if (f == NULL || !f->is_async)
            report_at(i, "async_pointer_to takes the name of an async function, and %s is none",
                      name);
        else if (f->value != NULL || f->kind != NULL)
            report_at(i, "%s cannot be called by a pointer: it is %s", name,
                      f->value != NULL ? "a generator" : format_text("of the kind %s", f->kind));
        else if (!f->is_created)
            report_at(i,
                      "%s has no frame of its own, which a call by a pointer needs: declare it "
                      "async_created",
                      name);
        else if (f->first_declared > i)
            report_at(i, "%s is declared further down: declare it in front of this", name);
    }
}

/* ---- Calls ---- */

bool is_pointer_call(const struct node *node)
{
    return node->kind == E_CALL && node->a->kind == E_TOKENS &&
           node->a->end == node->a->first + 1 && tokens[node->a->first].symbol == NULL &&
           is_name(node->a->first, "async_call") && called_function(node) == NULL;
}

void check_pointer_call(const struct node *node)
{
    const struct node *pointer = node->list;
    if (pointer == NULL)
        reject_at(node->first,
                  "async_call takes a pointer at an async function, and its arguments");
    if (pointer->kind != E_TOKENS || pointer->end != pointer->first + 1 ||
        tokens[pointer->first].symbol != NULL)
        return;
    const struct token *t = &tokens[pointer->first];
    const struct function *f = find_function(t->at, t->length);
    if (f != NULL && (f->is_async || f->makes_awaiter))
        reject_at(pointer->first, "async_call takes a pointer, and %s is a function: await %s(...)",
                  f->name, f->name);
}

/* The name of a probe, at file scope, that has the type of what the pointer's function returns. */
static const char *probe_of(struct node *node)
{
    if (node->called != NULL)
        return node->called;
    struct text call = {0};
    check_pointer_call(node);
    text_print(&call, "(%s)((bide_async_call *)0",
               file_scope_text(node->list->first, node->list->end));
    for (const struct node *part = node->list->next; part != NULL; part = part->next)
        text_print(&call, ", %s", file_scope_text(part->first, part->end));
    node->called = format_text("bide_called_in_%s_%u", function->name, ++serial);
    text_print(&outer, "\n# %u \"%s\"\nextern __typeof__(%s)) %s;\n", tokens[node->first].line,
               tokens[node->first].file, text_finish(&call), node->called);
    return node->called;
}

static const char *returns_nothing(const char *probe)
{
    return format_text("__builtin_types_compatible_p(__typeof__(%s), void *)", probe);
}

/* The result's type; that of a function that returns nothing is char. */
static const char *result_type(const char *probe)
{
    return format_text("__typeof__(*__builtin_choose_expr(%s, (char *)0, %s))",
                       returns_nothing(probe), probe);
}

const char *pointer_call_status(struct node *node, bool is_passed)
{
    const char *probe = probe_of(node);
    return format_text("__builtin_choose_expr(%s, %s, (*(%s *)0))", returns_nothing(probe),
                       is_passed ? "(*(int *)0)" : "(void)0", result_type(probe));
}

/* The arguments and the pointer, which is evaluated first, as a call through `call`, a bide_async_call. */
static const char *call_text(struct node *node, const char *call, const char *result)
{
    struct text text = {0};
    const struct node *last = last_awaiting(node->list);
    const char *pointer = NULL;
    text_add(&text, "", 0);
    for (struct node *part = node->list; part != NULL; part = part->next) {
        const char *one = last != NULL && part != last ? keep_value(part) : lower_value(part);
        if (part == last)
            last = NULL;
        if (pointer == NULL)
            pointer = one;
        else
            text_print(&text, ", %s", one);
    }
    return format_text(
        "(%s.allocator = %s, %s.result = (void *)&%s, (void)(%s)(&%s%s), %s.awaiter)", call,
        allocator_text(), call, result, pointer, call, text_finish(&text), call);
}

const char *pointer_awaiter(struct node *node, struct scope *slot)
{
    const char *probe = probe_of(node);
    const char *name = member_name(format_text("async_call_%u", ++serial));
    add_member(slot, format_text("struct { bide_async_call call; %s result; } %s;",
                                 result_type(probe), name));
    node->member = name;
    return call_text(node, format_text("bide_self->%s.call", name),
                     format_text("bide_self->%s.result", name));
}

const char *pointer_value(const struct node *node, bool is_passed)
{
    return format_text("__builtin_choose_expr(%s, %s, bide_self->%s.result)",
                       returns_nothing(node->called), is_passed ? "bide_status_" : "(void)0",
                       node->member);
}

void check_pointer_drops(const char *by, struct node *node)
{
    const char *probe = probe_of(node);
    begin_user_text(node->first);
    text_print(body,
               "_Static_assert(%s || __builtin_types_compatible_p(__typeof__(%s), int *), \"%s() "
               "drops the result of async_call: store it through a pointer, or cast the call to "
               "void\");",
               returns_nothing(probe), probe, by);
}

/* spawn(scope, async_call(pointer, ...)): the frame is created, and its branch is allocated beside it. */
const char *lower_spawned_pointer(struct node *to, struct node *call)
{
    const char *value = add_local("int"), *probe = probe_of(call);
    const char *scope_text = call->awaits ? keep_value(to) : lower_value(to);
    const char *start = call_text(call, "bide_spawned_->call", "bide_spawned_->result");
    text_print(body, "{");
    if (file_packs())
        text_print(body, "\n#pragma pack(push)\n#pragma pack()\n");
    begin_user_text(call->first);
    text_print(body,
               "struct { bide_async_spawned_ spawned; bide_async_call call; %s result; } "
               "*bide_spawned_ = bide_async_spawned_new_(%s, sizeof *bide_spawned_, "
               "_Alignof(__typeof__(*bide_spawned_)));",
               result_type(probe), allocator_text());
    if (file_packs())
        text_print(body, "\n#pragma pack(pop)\n");
    begin_user_text(call->first);
    text_print(body,
               "bide_awaiter *bide_spawns_ = bide_spawned_ == 0 ? 0 : %s;"
               "%s = bide_async_spawn_created_(%s, bide_spawned_, bide_spawns_, "
               "&bide_async_%s_code_, %u);}",
               start, value, scope_text, function->name, tokens[call->first].line);
    return value;
}
