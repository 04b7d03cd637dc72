/*
 * The translation of one async function: its declarations, init function, constants and step
 * function. print_function() runs the passes over the tree in their order.
 */
#include "bidec.h"

#include <string.h>

/* ---- The function ---- */

static void print_init_parameters(struct text *out)
{
    unsigned number = 0; /* for those without a name, which have no member either */
    for (struct declarator *d = function->parameters; d != NULL; d = d->next)
        text_print(out, ", %s",
                   member_declaration(d, d->name != 0 ? d->symbol->name
                                                      : format_text("bide_unnamed_%u", ++number)));
}

/* The parameters as the user wrote them. */
static const char *own_parameters(void)
{
    struct text text = {0};
    if (function->is_block)
        return captures_text();
    text_add(&text, "", 0);
    for (int i = function->open + 1; i < function->close; i++)
        text_print(&text, " %s", spelling_of(i));
    return text_finish(&text);
}

static void print_head(struct text *out)
{
    text_print(out, "%s%s *async_%s(struct async_%s *bide_self",
               function->is_static ? "static inline " : "",
               function->value != NULL ? function->generator : "bide_awaiter", function->name,
               function->name);
    print_init_parameters(out);
    text_print(out, ")");
}

static void print_created_head(struct text *out)
{
    text_print(out, "%sbide_awaiter *async_%s_created(bide_allocator *bide_allocator",
               function->is_static ? "static inline " : "", function->name);
    if (!function->returns_nothing)
        text_print(out, ", %s *bide_result_to", function->result);
    print_init_parameters(out);
    text_print(out, ")");
}

/* The struct of a function whose frame has a given size: the same header, and room for the rest. */
static void print_opaque(struct text *out)
{
    const char *name = function->name;
    if (file_packs())
        text_print(out, "#pragma pack(push)\n#pragma pack()\n");
    text_print(out, "struct async_%s {\n%s;\n", name, frame_header());
    if (!function->returns_nothing)
        text_print(out, "union {\n%s result;\n", function->result);
    text_print(out, "unsigned char bide_room[(%s) - sizeof(%s)];\n", function->size,
               function->value != NULL ? function->generator : "bide_task");
    if (!function->returns_nothing)
        text_print(out, "};\n");
    text_print(out, "} __attribute__((__may_alias__, __aligned__(16)));\n");
    if (file_packs())
        text_print(out, "#pragma pack(pop)\n");
}

/* Declares the function under its own name, so that a call without an await is an error. */
static void print_own_declaration(struct text *out)
{
    const char *name = function->name;
    text_print(out,
               "extern %s %s(%s) __attribute__((__error__(\"%s is %s: %s, or start it with "
               "async_%s(frame, ...)\")));\n",
               function->result, name, own_parameters(), name,
               is_synchronous(function) ? "a generator" : "async",
               function->value != NULL ? "iterate it with async_for" : "await it", name);
}

static void print_declarations(struct text *out)
{
    const char *name = function->name;
    struct token *t = &tokens[function->name_token];
    text_print(out, "\n# %u \"%s\" 3\n", t->line, t->file);
    if (function->size != NULL && !function->size_declared)
        print_opaque(out);
    else
        text_print(out, "struct async_%s;\n", name);
    if (out != plain && !is_main() && !function->is_block)
        print_own_declaration(out);
    if (out == plain) /* the constant is for async_create */
        text_print(out,
                   "extern const bide_point bide_async_%s_start_ __attribute__((__unused__));\n",
                   name);
    if (out == plain)
        text_print(out, "%s%s %s(%s) __attribute__((__unused__));\n",
                   function->is_static ? "static " : "", function->result, name, own_parameters());
    bool is_static = function->is_static;
    function->is_static = is_static && out != plain; /* nothing is defined there */
    print_head(out);
    text_print(out, ";\n");
    if (function->is_created) {
        print_created_head(out);
        text_print(out, ";\n");
    }
    function->is_static = is_static;
    print_pointer_target(out);
}

void print_declaration(struct text *out)
{
    if (plain != NULL)
        print_declarations(plain);
    print_declarations(out);
    if (function->size != NULL)
        function->size_declared = function->defined = true;
}

static void print_parameters_kept(struct text *out, const char *self)
{
    for (struct declarator *d = function->parameters; d != NULL; d = d->next) {
        if (d->symbol == NULL)
            continue;
        const char *member = d->symbol->member, *name = d->symbol->name;
        bool is_struct = d->specifiers->is_struct && !d->is_pointer && !d->is_array &&
                         !d->is_function && !is_scalar(d->specifiers);
        if (is_struct) /* it may have const members */
            text_print(out, "    __builtin_memcpy((void *)&%s->%s, &%s, sizeof %s);\n", self,
                       member, name, name);
        else
            text_print(out, "    %s->%s = %s;\n", self, member, name);
    }
}

/* Checks the declared size. If it is too small, the compiler's message contains the needed size. */
static void print_size_check(struct text *out)
{
    const char *name = function->name;
    const struct token *t = &tokens[function->name_token];
    text_print(
        out,
        "\n# %u \"%s\"\n"
        "extern char async_%s_needs_this_size[sizeof(struct async_%s)];\n"
        "extern char async_%s_needs_this_size[sizeof(struct bide_async_%s_frame_) <= sizeof(struct "
        "async_%s) ? sizeof(struct async_%s) : sizeof(struct bide_async_%s_frame_)];\n"
        "_Static_assert(_Alignof(struct bide_async_%s_frame_) <= _Alignof(struct async_%s), \"the "
        "frame of %s needs a larger alignment than async_sized gives\");\n"
        "\n# %u \"%s\" 3\n",
        t->line, t->file, name, name, name, name, name, name, name, name, name, name, t->line,
        t->file);
}

static void print_init(struct text *out)
{
    const char *name = function->name, *self = "bide_self";
    print_head(out);
    text_print(out, "\n{\n");
    print_frame_life(out, "bide_self");
    if (function->size != NULL) {
        self = "bide_inner";
        text_print(out, "    struct bide_async_%s_frame_ *bide_inner = (void *)bide_self;\n", name);
    }
    if (function->is_created)
        text_print(out, "    bide_self->bide_allocator = &bide_heap;\n");
    if (function->is_created && !function->returns_nothing)
        text_print(out, "    bide_self->bide_result_to = 0;\n");
    print_parameters_kept(out, self);
    for (const struct cleanup *c = last_cleanup; c != NULL; c = c->previous)
        text_print(out, "    %s->bide_armed_%u = 0;\n", self, c->number);
    if (function->draws)
        text_print(out, "    %s->bide_random = 0;\n", self);
    if (function->kind_members != 0)
        text_print(out, "    __builtin_memcpy((void *)&%s->promise, &%s, sizeof %s->promise);\n",
                   self, promise_text(), self);
    else if (function->kind != NULL)
        text_print(out, "    __builtin_memset((void *)&%s->promise, 0, sizeof %s->promise);\n",
                   self, self);
    if (function->kind != NULL)
        text_print(out,
                   "    return bide_frame_init(&%s->promise.frame, &bide_async_%s_start_);\n}\n",
                   self, name);
    else if (function->value != NULL)
        text_print(out, "    return %s_init(&%s->generator, &bide_async_%s_start_);\n}\n",
                   function->generator, self, name);
    else
        text_print(out, "    return bide_frame_init(&%s->task.frame, &bide_async_%s_start_);\n}\n",
                   self, name);
    if (!function->is_created)
        return;
    print_created_head(out);
    text_print(
        out,
        "\n{\n    struct async_%s *bide_self = bide_async_create_(sizeof "
        "*bide_self, _Alignof(struct async_%s), &bide_async_%s_start_, bide_allocator);\n    if "
        "(bide_self != 0) {\n"
        "    bide_self->bide_allocator = bide_allocator;\n",
        name, name, name);
    if (!function->returns_nothing)
        text_print(out, "    bide_self->bide_result_to = bide_result_to;\n");
    print_parameters_kept(out, "bide_self");
    for (const struct cleanup *c = last_cleanup; c != NULL; c = c->previous)
        text_print(out, "    bide_self->bide_armed_%u = 0;\n", c->number);
    if (function->draws)
        text_print(out, "    bide_self->bide_random = 0;\n");
    text_print(out, "    }");
    if (!function->returns_nothing)
        text_print(out,
                   " else {\n    __builtin_memset((void *)bide_result_to, 0, sizeof "
                   "*bide_result_to);\n    _Generic(*bide_result_to, int: "
                   "bide_async_fails_int_, long: bide_async_fails_long_, long long: "
                   "bide_async_fails_long_long_, default: "
                   "bide_async_fails_)((void *)bide_result_to, BIDE_ASYNC_NO_MEMORY_);\n    }");
    text_print(out, "\n    return bide_owned(bide_self, &bide_async_%s_start_);\n}\n", name);
}

/* True if the step function may be called directly (async.h). */
bool may_be_direct(const struct function *f)
{
    return f->value == NULL && !f->is_created && f->kind == NULL;
}

static void print_constants(struct text *out, unsigned count)
{
    const char *name = function->name, *file = tokens[function->name_token].file;
    unsigned line = tokens[function->name_token].line;
    text_print(
        out,
        "static bide_next bide_async_%s_step_(bide_frame *bide_frame_, unsigned bide_depth_);\n",
        name);
    text_print(out,
               "static const bide_coroutine_type *const bide_async_%s_type_ = &%s_type;\n"
               "static const bide_point bide_async_%s_finished_;\n",
               name,
               function->kind != NULL    ? function->kind
               : function->value != NULL ? function->generator
                                         : "bide_task",
               name);
    text_print(out,
               "static const bide_coroutine_code bide_async_%s_code_ = {bide_async_%s_step_, "
               "\"%s\", \"%s\", "
               "&bide_async_%s_type_, &bide_async_%s_finished_};\n",
               name, name, name, file, name, name);
    text_print(out,
               "static const bide_point bide_async_%s_finished_ = {{0, bide_frame_started_, 0, 0, "
               "bide_frame_withdraw_, 0, 0}, &bide_async_%s_code_, 0, 0, %u, BIDE_AT_END};\n",
               name, name, line);
    text_print(
        out,
        "static const bide_point bide_async_%s_start_ = {{0, 0, 0, 0, bide_frame_withdraw_, 0, 0}, "
        "&bide_async_%s_code_, 0, 0, %u, BIDE_AT_START};\n",
        name, name, line);
    if (count != 0)
        text_print(out, "static const bide_point bide_async_%s_points_[] = {\n%s};\n", name,
                   point_table.at);
}

static bool has_deferred(void)
{
    for (const struct cleanup *c = last_cleanup; c != NULL; c = c->previous) {
        if (c->statement != NULL)
            return true;
    }
    return false;
}

/* The bounds of a parameter that is an array are evaluated as the function begins. */
static void print_bound_effects(struct text *out, const struct declarator *d)
{
    for (int i = d->first; i < d->end; i++) {
        if (!token_is(i, "["))
            continue;
        int first = i + 1, end = closing_bracket(i);
        bool has_effect = false;
        while (token_is(first, "static") || token_is(first, "const") ||
               token_is(first, "restrict") || token_is(first, "volatile"))
            first++;
        for (int n = first; n < end; n++)
            has_effect |= token_is(n, "++") || token_is(n, "--") || token_is(n, "=") ||
                          (token_is(n, "(") && n > first && tokens[n - 1].kind == NAME &&
                           !token_is(n - 1, "sizeof"));
        if (has_effect)
            text_print(out, "    (void)(%s);\n", step_text(first, end));
        i = end;
    }
}

/* Where a try ends the function: the result is the error if it is a number, or else zeros. */
static void print_passed_error(struct text *out)
{
    text_print(out, "if (0) {\nbide_passes_error_:\n    ;\n");
    if (!function->returns_nothing)
        text_print(out, "    __builtin_memset((void *)&bide_result_, 0, sizeof bide_result_);\n"
                        "    _Generic(bide_result_, int: bide_async_fails_int_, long: "
                        "bide_async_fails_long_, long long: bide_async_fails_long_long_, default: "
                        "bide_async_fails_)((void *)&bide_result_, bide_error_);\n");
    text_print(out, "}\n");
}

/* With what the frame ends. */
static const char *error_text(void)
{
    const char *of_result =
        "_Generic(bide_self->result, int: bide_async_error_of_int_, "
        "long: bide_async_error_of_long_, long long: bide_async_error_of_long_long_, "
        "default: bide_async_no_error_)(&bide_self->result)";
    if (function->kind != NULL)
        return "bide_ends_";
    if (function->returns_nothing)
        return function->passes_errors ? "bide_error_" : "0";
    return function->passes_errors ? format_text("bide_error_ != 0 ? bide_error_ : %s", of_result)
                                   : of_result;
}

static void print_step(struct text *out, unsigned count, const struct text *statements)
{
    const char *name = function->name;
    text_print(
        out,
        "static bide_next bide_async_%s_step_(bide_frame *bide_frame_, unsigned bide_depth_)\n{\n"
        "    struct %s *const bide_self = (void *)bide_frame_;\n%s",
        name, frame_tag(),
        has_budget(function)
            ? "    bide_async_budget_ bide_budget_left_ = bide_async_budget_take_();\n"
            : "");
    if (count != 0)
        text_print(
            out, "    bide_awaiter *bide_awaiter_;\n    const bide_awaiter_ops "
                 "*bide_ops_;\n    bide_frame *bide_next_;\n"
                 "    int bide_status_;\n    const bide_point *bide_here_;\n"
                 "    bide_async_looked_ bide_looked_;\n"
                 "    (void)bide_awaiter_, (void)bide_ops_, (void)bide_next_, (void)bide_status_, "
                 "(void)bide_here_, (void)bide_looked_;\n");
    if (function->pends)
        text_print(out, "    const unsigned bide_inner_ = bide_async_inner_(bide_depth_);\n");
    if (!function->returns_nothing)
        text_print(out, "    __typeof__(bide_self->result) bide_result_%s;\n",
                   has_deferred() && !function->returns_struct ? " = 0" : "");
    if (function->passes_errors)
        text_print(out, "    int bide_error_ = 0;\n");
    if (function->kind != NULL)
        text_print(out, "    int bide_ends_ = 0;\n");
    if (has_deferred())
        text_print(out, "    unsigned bide_back_ = 0;\n");
    text_print(out, "    ");
    print_locals(out, function->scope);
    /* a frame that is destroyed has no result; this keeps compilers from warning about it */
    bool is_direct = may_be_direct(function);
    /* (one without an await is short, and may be inlined) */
    const char *finish = is_direct && count != 0 ? "bide_async_finish_" : "bide_frame_finish_";
    text_print(out, "\n");
    if (is_direct)
        text_print(out, "    if (!bide_async_is_direct_(bide_depth_)) {\n");
    text_print(out, "    if (__builtin_expect(bide_depth_ == (~0U), 0)) {\n");
    if (last_cleanup != NULL) {
        text_print(
            out, "%s        goto bide_return_;\n",
            !function->returns_nothing
                ? "        __builtin_memset((void *)&bide_result_, 0, sizeof bide_result_);\n"
                : "");
    } else {
        print_frame_life(out, "bide_self");
        text_print(out,
                   "        return bide_next_frame(%s(bide_frame_, &bide_async_%s_code_, "
                   "&bide_async_%s_finished_, -2147483647 - 1));\n",
                   finish, name, name);
    }
    text_print(out, "    }\n");
    if (count != 0) {
        text_print(out, "    switch (bide_frame_point(bide_frame_)->number) {\n");
        for (unsigned i = 1; i <= count; i++)
            text_print(out, "    case %u: goto bide_resume_%u;\n", i, i);
        text_print(out, "    default: break;\n    }\n");
    }
    if (is_direct)
        text_print(out, "    }\n");
    if (is_direct && function->pends)
        text_print(out, "    else if (bide_async_ends_depth_(bide_depth_))\n"
                        "        return bide_next_frame(bide_async_too_deep_());\n");
    text_print(out, "    bide_frame_runs_(bide_frame_);\n");
    for (struct declarator *d = function->parameters; d != NULL; d = d->next) {
        if (d->symbol != NULL && d->symbol->is_local)
            text_print(out, "    %s = bide_self->%s;\n", d->symbol->member, d->symbol->member);
        if (d->symbol != NULL && d->symbol->is_local && function->kind_members != 0)
            text_print(out, "    (void)%s;\n", d->symbol->member); /* perhaps the promise's alone */
    }
    for (struct declarator *d = function->parameters; d != NULL; d = d->next)
        print_bound_effects(out, d);
    text_add(out, statements->at, statements->length);
    const struct token *last = &tokens[function->body->end - 1];
    text_print(out, "\n# %u \"%s\" 3\n", last->line, last->file);
    if (function->is_block) /* where its end is reached */
        text_print(out, "    bide_result_ = 0;\n");
    if (function->passes_errors)
        print_passed_error(out);
    text_print(out, "bide_return_: __attribute__((__unused__));\n");
    if (function->kind != NULL)
        print_kind_return(out);
    print_frame_life(out, "bide_self");
    for (struct cleanup *c = last_cleanup; c != NULL; c = c->previous) {
        print_cleanup(out, c);
        text_print(out, "\n");
    }
    if (has_budget(function))
        text_print(out, "    bide_async_budget_keep_(&bide_budget_left_);\n");
    if (count != 0 && (is_direct || last_cleanup != NULL))
        text_print(out, "    bide_depth_ = bide_async_unknown_(bide_depth_);\n");
    if (last_cleanup != NULL)
        text_print(out,
                   "    if (__builtin_expect(bide_depth_ == (~0U), 0))\n"
                   "        return bide_next_frame(%s(bide_frame_, &bide_async_%s_code_, "
                   "&bide_async_%s_finished_, -2147483647 - 1));\n",
                   finish, name, name);
    if (!function->returns_nothing)
        text_print(out, "    __builtin_memcpy((void *)&bide_self->result, &bide_result_, sizeof "
                        "bide_result_);\n");
    if (function->is_created && !function->returns_nothing)
        text_print(out, "    if (bide_self->bide_result_to != 0)\n"
                        "        __builtin_memcpy((void *)bide_self->bide_result_to, "
                        "&bide_self->result, sizeof bide_self->result);\n");
    const char *error = error_text();
    if (is_direct)
        text_print(out,
                   "    if (bide_async_is_direct_(bide_depth_))\n"
                   "        return bide_next_frame(bide_async_ends_(bide_frame_, "
                   "&bide_async_%s_code_, &bide_async_%s_finished_, %s));\n",
                   name, name, error);
    text_print(out,
               "    return bide_next_frame(%s(bide_frame_, &bide_async_%s_code_, "
               "&bide_async_%s_finished_, %s));\n",
               finish, name, name, error);
    if (function->waits)
        text_print(out, "bide_wait_:\n    bide_async_budget_keep_(&bide_budget_left_);\n"
                        "    return bide_next_frame(bide_async_wait_(bide_frame_, bide_awaiter_, "
                        "bide_here_, bide_depth_));\n");
    if (function->pends)
        text_print(out, "bide_pend_:\n"
                        "    return bide_next_frame(bide_async_pend_(bide_frame_, bide_awaiter_, "
                        "bide_here_, bide_depth_, bide_next_));\n");
    print_deferred_ends(out);
    text_print(out, "}\n");
}

void print_function(struct text *out)
{
    /* static, to use their memory for each function */
    static struct text statements, step, frame;
    struct text *const texts[] = {&statements, &step, &frame, &outer, &point_table};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        texts[i]->length = 0;
        text_add(texts[i], "", 0);
    }
    unsigned points = verify_tree();
    reset_cleanups();
    reset_points();
    serial = 0;
    body = &statements;
    lay_out_frame(function->body);
    keep_literals(function->body);
    find_cleanups(function->body);
    for (struct cleanup *c = last_cleanup; c != NULL; c = c->previous)
        add_member(function->scope, format_text("unsigned char bide_armed_%u : 1;", c->number));
    prepare_jumps(function->body);
    lower_block(function->body);
    if (function->draws)
        add_member(function->scope, "uint64_t bide_random;");
    if (error_count != 0)
        return;
    verify_translation(points);
    unsigned count = point_count();
    if (poisons && emits) /* the declarations at the top are no part of the source file */
        print_life_functions(out);
    print_declaration(out);
    if (function->kind != NULL)
        check_kind(out);
    print_frame(&frame); /* which adds to `outer` */
    text_add(out, outer.at, outer.length);
    text_add(out, frame.at, frame.length);
    if (plain != NULL) {
        text_add(plain, outer.at, outer.length);
        text_add(plain, frame.at, frame.length);
    }
    text_print(out, "\n# %u \"%s\" 3\n", tokens[function->name_token].line,
               tokens[function->name_token].file);
    if (function->size != NULL)
        print_size_check(out);
    print_constants(out, count);
    function->has_step = true;
    print_init(out);
    print_step(&step, count, &statements);
    /* a deferred statement returns to several places, which looks like a way around each initialiser */
    if (has_deferred())
        text_print(out, "#pragma GCC diagnostic push\n"
                        "#pragma GCC diagnostic ignored \"-Wpragmas\"\n"
                        "#pragma GCC diagnostic ignored \"-Wunknown-warning-option\"\n"
                        "#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n");
    text_add(out, step.at, step.length);
    if (has_deferred())
        text_print(out, "#pragma GCC diagnostic pop\n");
    if (is_main())
        print_main(out);
    if (tables)
        print_size_queries(out);
}
