/*
 * Kinds of coroutine of one's own: `async_kind(name, members) type function(parameters)`.
 *
 * A kind is a type, the promise, whose first member is `bide_frame frame`, and its hooks, a constant
 * `name_type` of type bide_coroutine_type. The translator reads which hooks the constant has, so that it
 * can reject what the kind does not allow. It writes a call of each hook where a body written by hand
 * has one; the compiler, which sees the constant, inlines it.
 */
#include "bidec.h"

#include <stdio.h>

/* ---- The hooks ---- */

/* The members of a bide_coroutine_type, in their order. */
static const char *const hook_names[] = {
    "name",
    "get_return_object",
    "initial_suspend",
    "yield_value",
    "return_value",
    "return_void",
    "unhandled_error",
    "final_suspend",
    "await_transform",
    "allocate",
    "deallocate",
    "get_return_object_on_allocation_failure",
    "release",
    "destroyed",
};
enum { HOOKS = sizeof hook_names / sizeof *hook_names };

struct hooks {
    struct hooks *next;
    const char *name;  /* of the constant */
    int values[HOOKS]; /* the first token of each; 0: NULL */
};

static struct hooks *all_hooks;

struct awaited_kind {
    struct awaited_kind *next;
    const char *name;
};

static struct awaited_kind *awaited_kinds;

static bool is_null(int first, int end)
{
    static const char *const parts[] = {"(", ")", "void", "*", "0", "NULL", "nullptr"};
    for (int i = first; i < end; i++) {
        bool is_part = false;
        for (size_t n = 0; n < sizeof parts / sizeof *parts; n++)
            is_part |= token_is(i, parts[n]);
        if (!is_part)
            return false;
    }
    return true;
}

void note_hooks(int name, int open)
{
    struct hooks *hooks = allocate(sizeof *hooks);
    const int close = closing_bracket(open);
    int index = 0;
    hooks->name = spelling_of(name);
    hooks->next = all_hooks;
    for (int i = open + 1; i < close; i++, index++) {
        if (token_is(i, ".") && token_is(i + 2, "=")) {
            for (index = 0; index < HOOKS && !token_is(i + 1, hook_names[index]);)
                index++;
            i += 3;
        }
        const int first = i;
        for (; i < close && !token_is(i, ","); i++) {
            if (token_is(i, "(") || token_is(i, "{") || token_is(i, "["))
                i = closing_bracket(i);
        }
        if (index < HOOKS && !is_null(first, i))
            hooks->values[index] = first;
    }
    all_hooks = hooks;
}

void note_awaited_kind(const char *name)
{
    struct awaited_kind *kind = allocate(sizeof *kind);
    kind->name = name;
    kind->next = awaited_kinds;
    awaited_kinds = kind;
}

static const struct hooks *hooks_of(const char *kind)
{
    const char *name = format_text("%s_type", kind);
    const struct hooks *hooks = all_hooks;
    while (hooks != NULL && strcmp(hooks->name, name) != 0)
        hooks = hooks->next;
    return hooks;
}

/* Returns the token of a hook, or 0. */
static int hook_of(const struct function *f, const char *hook)
{
    const struct hooks *hooks = f->kind != NULL ? hooks_of(f->kind) : NULL;
    for (int i = 0; hooks != NULL && i < HOOKS; i++) {
        if (strcmp(hook_names[i], hook) == 0)
            return hooks->values[i];
    }
    return 0;
}

bool kind_has(const struct function *f, const char *hook)
{
    return hook_of(f, hook) != 0;
}

static bool forbids_awaits(const struct function *f)
{
    const int hook = hook_of(f, "await_transform");
    return hook != 0 && (token_is(hook, "bide_await_forbidden") ||
                         (token_is(hook, "&") && token_is(hook + 1, "bide_await_forbidden")));
}

bool kind_transforms(const struct function *f)
{
    return kind_has(f, "await_transform");
}

/* ---- The specifier ---- */

/* async_kind(name) or async_kind(name, members) at the function's declaration. */
void read_kind(struct function *f, const struct specifiers *specifiers)
{
    const int name = specifiers->kind, end = specifiers->kind_end;
    if (tokens[name].kind != NAME || (name + 1 != end && !token_is(name + 1, ",")))
        reject_at(name, "async_kind takes the name of a kind, and then members of its promise");
    const char *kind = spelling_of(name);
    if (!is_global_type(name))
        reject_at(name,
                  "%s is no kind: declare a type of that name, whose first member is bide_frame "
                  "frame",
                  kind);
    if (hooks_of(kind) == NULL)
        reject_at(
            name,
            "the kind %s has no hooks here: define static const bide_coroutine_type %s_type = "
            "{...} in front of its functions",
            kind, kind);
    if (specifiers->is_created || specifiers->size != 0 || specifiers->value != 0)
        reject_at(name,
                  "async_kind cannot be combined with another word: a frame for %s is made by "
                  "async_create(%s, allocator)",
                  f->name, f->name);
    if (f->kind != NULL && strcmp(f->kind, kind) != 0)
        reject_at(name, "%s was declared with the kind %s", f->name, f->kind);
    if (f->kind == NULL && f->open != 0 && f->is_async)
        reject_at(name, "%s was declared without a kind", f->name);
    f->kind = kind;
    f->kind_members = name + 1 != end ? name + 2 : 0;
    f->kind_end = end;
    f->yields = format_text("%s_value", kind);
    if (!is_type_of_file(f->yields))
        f->yields = NULL;
}

/* What the function returns must be what the hook takes. */
void check_kind(struct text *out)
{
    const struct function *f = function;
    const int name = f->name_token;
    const char *result = format_text("%s_result", f->kind);
    text_print(
        out,
        "\n# %u \"%s\"\n_Static_assert(__builtin_types_compatible_p(__typeof__(((%s *)0)->frame), "
        "bide_frame) && __builtin_offsetof(%s, frame) == 0, \"the first member of the kind %s has "
        "to be bide_frame frame\");\n",
        tokens[name].line, tokens[name].file, f->kind, f->kind, f->kind);
    if (!kind_has(f, "return_value"))
        return;
    if (f->returns_nothing)
        reject_at(name, "%s returns nothing, and the kind %s takes a value (its return_value)",
                  f->name, f->kind);
    if (!is_type_of_file(result))
        reject_at(name,
                  "the kind %s takes a value (its return_value): declare %s, the type of that",
                  f->kind, result);
    text_print(
        out,
        "\n# %u \"%s\"\n_Static_assert(__builtin_types_compatible_p(%s, %s), \"functions of the "
        "kind %s return the type %s\");\n",
        tokens[name].line, tokens[name].file, f->result, result, f->kind, result);
}

/* ---- In the body ---- */

void check_kind_awaits(int token)
{
    if (function != NULL && forbids_awaits(function))
        reject_at(token, "a function of the kind %s does not await (its await_transform)",
                  function->kind);
}

void check_kind_yields(int token)
{
    if (!kind_has(function, "yield_value"))
        reject_at(token, "a function of the kind %s does not yield: it has no yield_value",
                  function->kind);
    if (function->yields == NULL)
        reject_at(token, "the kind %s yields (its yield_value): declare %s_value, the type of that",
                  function->kind, function->kind);
}

/* What awaits, spawns or groups the function needs it to resume its continuation. */
void check_kind_awaited(const struct function *f, int token)
{
    const struct awaited_kind *kind = awaited_kinds;
    if (f->kind == NULL || !kind_has(f, "final_suspend"))
        return;
    while (kind != NULL && strcmp(kind->name, f->kind) != 0)
        kind = kind->next;
    if (kind == NULL)
        reject_at(token,
                  "%s is of the kind %s, whose final_suspend says what follows: start it with "
                  "bide_start_async(async_%s(frame, ...), context), or mark the kind with "
                  "BIDE_AWAITED(%s) if that hook returns the awaiting frame",
                  f->name, f->kind, f->name, f->kind);
}

/* ---- Its text ---- */

/* The promise, with the members that the specifier names. */
const char *promise_text(void)
{
    return format_text("(%s){%s}", function->kind,
                       file_scope_text(function->kind_members, function->kind_end));
}

/* At the label that each return goes to, in front of the deferred statements: the hook for how the body ended. */
void print_kind_return(struct text *out)
{
    const struct function *f = function;
    const bool has_value = kind_has(f, "return_value");
    const char *result =
        f->returns_nothing || has_value
            ? "0"
            : "_Generic(bide_result_, int: bide_async_error_of_int_, long: "
              "bide_async_error_of_long_, long long: bide_async_error_of_long_long_, "
              "default: bide_async_no_error_)((void *)&bide_result_)";
    const char *error =
        f->passes_errors ? format_text("bide_error_ != 0 ? bide_error_ : %s", result) : result;
    text_print(out,
               "    if (bide_depth_ != (~0U))\n"
               "        bide_ends_ = bide_async_returns_(bide_frame_, &%s_type, %s, %s);\n",
               f->kind, has_value ? "(void *)&bide_result_" : "0", error);
}
