/*
 * The step function: what runs a frame from where it stands to where it next waits.
 *
 * A block without an await is written as it stands. In a block with one, each statement is written
 * in turn; its variables are members of the frame. The function begins with a switch that jumps to
 * the await at which the frame stands, into whatever blocks, loops and switches are around it.
 *
 * What runs when a scope is left (deferred statements, cleanup functions) has a flag in the frame,
 * which is set where it is declared. It runs where its flag is set: at the end of its block, before
 * a jump out of it, and at the end of the function, where a frame that is destroyed goes too.
 */
#include "bidec.h"

#include <string.h>

static struct cleanup *last_cleanup; /* of the function */
static unsigned labels;

/* ---- What runs when a scope is left ---- */

static void print_cleanup(struct text *out, struct cleanup *c)
{
    const char *what =
        c->statement != NULL ? inside(c->statement->first, c->statement->end) : c->text;
    text_print(out, "if (bide_self->bide_armed_%u) { bide_self->bide_armed_%u = 0; %s; }",
               c->number, c->number, what);
}

void lower_cleanups(struct scope *of)
{
    for (struct cleanup *c = of->cleanups; c != NULL; c = c->next)
        print_cleanup(body, c);
}

static struct cleanup *add_cleanup(struct scope *to, int token)
{
    struct cleanup *c = take(sizeof *c);
    c->scope = to;
    c->token = token;
    c->number = last_cleanup != NULL ? last_cleanup->number + 1 : 1;
    c->previous = last_cleanup;
    last_cleanup = c;
    c->next = to->cleanups;
    to->cleanups = c;
    return c;
}

static void find_cleanups(struct node *node)
{
    if (node == NULL)
        return;
    if (node->kind == S_DEFER) {
        add_cleanup(node->scope, node->first)->statement = node->a;
        return;
    }
    if (node->kind == S_EACH) {
        node->member = member_name(print("next_%u", ++serial));
        add_member(node->scope, print("bide_async_generator_next_operation %s;", node->member));
        add_cleanup(node->scope, node->first)->text =
            print("bide_async_generator_destroy(bide_self->%s.generator)", node->member);
    }
    if (node->kind == S_DECLARATION) {
        for (struct declarator *d = node->declarators; d != NULL; d = d->next) {
            find_cleanups(d->initialiser);
            if (d->cleanup != 0 && d->symbol->in_frame)
                add_cleanup(node->scope, d->name)->text =
                    print("%s(&bide_self->%s)", spelled(d->cleanup), d->symbol->member);
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

static struct cleanup *cleanup_at(const struct scope *of, int token)
{
    struct cleanup *c = of->cleanups;
    while (c != NULL && c->token != token)
        c = c->next;
    return c;
}

/* Of a jump: all that is left on the way out to `stop`, and what stands behind `label` there. */
static const char *leaving(struct scope *from, const struct scope *stop, int label)
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
    return text_kept(&text);
}

/* ---- The result: a struct may have members that are const, so it is not assigned ---- */

static const char *result_begins(void)
{
    return function->returns_struct ? "__builtin_memcpy((void *)&bide_result_, &(struct { "
                                      "__typeof__(bide_result_) value; }){"
                                    : "bide_result_ =";
}

static const char *result_ends(void)
{
    return function->returns_struct ? "}, sizeof bide_result_)" : "";
}

/* ---- Jumps: written at their tokens, wherever they stand ---- */

static struct symbol *find_label(struct scope *in, int name)
{
    for (struct symbol *s = in->symbols; s != NULL; s = s->next) {
        if (s->kind == LABEL && strlen(s->name) == tokens[name].length &&
            memcmp(s->name, tokens[name].at, tokens[name].length) == 0)
            return s;
    }
    for (struct scope *inner = in->inner; inner != NULL; inner = inner->next) {
        struct symbol *found = find_label(inner, name);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static bool contains(const struct scope *outer_scope, const struct scope *in)
{
    while (in != NULL && in != outer_scope)
        in = in->up;
    return in != NULL;
}

static const char *leaving_by_goto(struct node *node)
{
    struct symbol *label = find_label(function->scope, node->first + 1);
    if (label == NULL)
        refuse(node->first + 1, "there is no label '%s' in this function",
               spelled(node->first + 1));
    struct scope *common = label->scope;
    while (!contains(common, node->scope))
        common = common->up;
    return leaving(node->scope, common, label->token);
}

static void prepare_jump(struct node *node)
{
    const char *before = "";
    if (node->kind == S_RETURN) {
        struct mark *word = mark(node->first), *end = mark(node->end - 1);
        if (node->a == NULL) {
            word->instead = "goto bide_return_";
        } else if (!node->awaits) {
            word->instead = print("{ %s", function->returns_nothing ? "(void)" : result_begins());
            end->instead = print("%s; goto bide_return_; }", result_ends());
            if (function->returns_nothing) {
                mark(node->a->first)->before = "(";
                end->instead = "); goto bide_return_; }";
            }
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
        before = leaving(node->scope, stop, 0);
        if (node->kind == S_CONTINUE && around->number != 0)
            mark(node->first)->instead = print("goto bide_continue_%u", around->number);
    }
    if (*before != 0) {
        mark(node->first)->before = print("{ %s ", before);
        mark(node->end - 1)->after = " }";
    }
}

static bool awaits_at_end(const struct node *node)
{
    return (node->kind == S_DO && node->a->awaits) ||
           (node->kind == S_FOR && node->c != NULL && node->c->awaits);
}

static void prepare(struct node *node)
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
            prepare(d->initialiser);
    }
    prepare(node->a);
    prepare(node->b);
    prepare(node->c);
    prepare(node->d);
    for (struct node *part = node->list; part != NULL; part = part->next)
        prepare(part);
}

/* ---- Literals: the memory that one names lives as long as its block, so it is a member ---- */

static void keep_literals(struct node *node)
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
    if (node->kind == E_LITERAL && node->scope->awaits) {
        node->member = member_name(print("literal_%u", ++serial));
        add_member(node->scope, print("%s %s;", type_of_literal(node), node->member));
        if (!node->awaits) {
            mark(node->first)->before =
                print("(*(__typeof__(bide_self->%s) *)__builtin_memcpy((void *)&bide_self->%s, &",
                      node->member, node->member);
            mark(node->end - 1)->after = print(", sizeof bide_self->%s))", node->member);
            mark(node->a->end - 1)->after = mark(node->end - 1)->after;
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
    begin_expression(node);
    return lower(node);
}

/* Its first value, which is no braces. */
static void initialise(const struct declarator *d, const char *value)
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

static void lower_initialiser(struct declarator *d)
{
    const char *member = d->symbol->member;
    struct node *initialiser = d->initialiser;
    if (initialiser != NULL && d->symbol->is_local) {
        bool braces = initialiser->kind == E_INITIALISER;
        const char *value = lower_whole(initialiser);
        place(d->initialiser_first);
        if (braces)
            text_print(body, "%s = (__typeof__(%s))%s;", member, member, value);
        else
            initialise(d, value);
    } else if (initialiser != NULL) {
        const char *value = lower_whole(initialiser);
        bool braces = initialiser->kind == E_INITIALISER;
        place(d->initialiser_first);
        if (braces && d->open_bound != 0)
            text_print(body,
                       "_Static_assert(sizeof bide_self->%s == sizeof((__typeof__(*bide_self->%s) "
                       "[])%s), \"give this array its length\");",
                       member, member, value);
        if (braces || d->is_array)
            text_print(body,
                       "__builtin_memcpy((void *)&bide_self->%s, "
                       "&(__typeof__(bide_self->%s))%s%s%s, sizeof "
                       "bide_self->%s);",
                       member, member, braces ? "" : "{", value, braces ? "" : "}", member);
        else
            initialise(d, value);
    }
    struct cleanup *cleanup = cleanup_at(d->symbol->scope, d->name);
    if (cleanup != NULL)
        text_print(body, "bide_self->bide_armed_%u = 1;", cleanup->number);
}

static void lower_declaration(struct node *node)
{
    struct specifiers *specifiers = node->specifiers;
    if (specifiers->is_typedef || node->declarators == NULL)
        return; /* defined in front of the struct */
    if (specifiers->is_static || specifiers->is_extern) {
        print_tokens(body, node->first, node->end);
        return;
    }
    for (struct declarator *d = node->declarators; d != NULL; d = d->next) {
        if (d->symbol->in_frame)
            lower_initialiser(d);
        else
            text_print(body, "%s %s;", inside(specifiers->first, specifiers->end),
                       inside(d->first, d->end));
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
        if (node->a != NULL)
            lower_statement(node->a);
    }
    place(node->first);
    if (at_end)
        text_print(body, "do {");
    else
        text_print(body, "for (; %s; %s) {",
                   condition != NULL && !awaits ? inside(condition->first, condition->end) : "",
                   step != NULL && !step->awaits ? inside(step->first, step->end) : "");
    if (awaits && !at_end)
        text_print(body, "if (!(%s)) break;", lower_whole(condition));
    lower_statement(inner);
    if (node->number != 0)
        text_print(body, "bide_continue_%u:;", node->number);
    if (step != NULL && step->awaits) {
        begin_expression(step);
        lower_to_nothing(step);
    }
    if (awaits && at_end)
        text_print(body, "if (!(%s)) break;", lower_whole(condition));
    text_print(body, "}");
    if (at_end)
        text_print(body, "while (%s);", awaits ? "1" : inside(condition->first, condition->end));
    if (node->kind == S_FOR) {
        lower_cleanups(node->scope);
        text_print(body, "}");
    }
}

/* The generator is ended, where it has not, by what runs when the loop's scope is left. */
static void lower_each(struct node *node)
{
    const char *next = print("bide_self->%s", node->member);
    const struct function *f = called(node->a);
    const char *value = f != NULL && f->value != NULL
                            ? print("*(__typeof__(%s) *)%s.value", f->value, next)
                            : print("%s.value", next);
    text_print(body, "{");
    print_locals(body, node->scope);
    begin_expression(node->a);
    const char *generator = lower_generator(node->a, node->scope);
    place(node->first);
    text_print(body, "%s.generator = %s;", next, generator);
    text_print(body, "bide_self->bide_armed_%u = 1;", cleanup_at(node->scope, node->first)->number);
    text_print(body, "for (;;) {");
    lower_next(node, print("bide_async_generator_next(&%s, %s.generator)", next, next));
    text_print(body, "if (%s.value == 0) {", next);
    if (node->b != NULL) {
        place(node->b->first);
        text_print(body, "%s = bide_status_;", inside(node->b->first, node->b->end));
    }
    text_print(body, "break; }");
    place(node->declarators->name);
    initialise(node->declarators, value);
    lower_statement(node->d);
    text_print(body, "}");
    lower_cleanups(node->scope);
    text_print(body, "}");
}

static void lower_if(struct node *node)
{
    const char *condition = lower_whole(node->a);
    place(node->first);
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
    place(node->first);
    text_print(body, "switch (%s) {", value);
    lower_statement(node->b);
    text_print(body, "}");
}

static void lower_return(struct node *node)
{
    begin_expression(node->a);
    if (function->returns_nothing) {
        lower_to_nothing(node->a);
    } else {
        const char *value = lower(node->a);
        place(node->first);
        text_print(body, "%s %s%s;", result_begins(), value, result_ends());
    }
    text_print(body, "goto bide_return_;");
}

void lower_block(struct node *node)
{
    if (node->scope != function->scope) {
        generated(node->first);
        text_print(body, "{");
        print_locals(body, node->scope);
    } else {
        place(node->first);
        text_print(body, "{");
    }
    for (struct node *s = node->list; s != NULL; s = s->next)
        lower_statement(s);
    if (node->scope != function->scope)
        lower_cleanups(node->scope);
    place(node->end - 1);
    text_print(body, "}");
}

void lower_statement(struct node *node)
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
        text_print(body, "bide_self->bide_armed_%u = 1;",
                   cleanup_at(node->scope, node->first)->number);
        break;
    default:
        begin_expression(node->a);
        lower_to_nothing(node->a);
        break;
    }
}

/* ---- The function ---- */

static void print_parameters(struct text *out)
{
    for (struct declarator *d = function->parameters; d != NULL; d = d->next)
        text_print(out, ", %s", member_declaration(d, d->name != 0 ? d->symbol->name : ""));
}

/* The parameters as the user wrote them. */
static const char *own_parameters(void)
{
    struct text text = {0};
    text_add(&text, "", 0);
    for (int i = function->open + 1; i < function->close; i++)
        text_print(&text, " %s", spelled(i));
    return text_kept(&text);
}

static void print_head(struct text *out)
{
    text_print(out, "%s%s *async_%s(struct async_%s *bide_self",
               function->is_static ? "static inline " : "",
               function->value != NULL ? "bide_async_generator" : "bide_awaiter", function->name,
               function->name);
    print_parameters(out);
    text_print(out, ")");
}

static void print_created_head(struct text *out)
{
    text_print(out, "%sbide_awaiter *async_%s_created(bide_allocator *bide_allocator",
               function->is_static ? "static inline " : "", function->name);
    if (!function->returns_nothing)
        text_print(out, ", %s *bide_result_to", function->result);
    print_parameters(out);
    text_print(out, ")");
}

/* The struct of which only the size is known: it has the same head. */
static void print_opaque(struct text *out)
{
    const char *name = function->name;
    text_print(out, "struct async_%s {\n%s;\n", name, header());
    if (!function->returns_nothing)
        text_print(out, "union {\n%s result;\n", function->result);
    text_print(out, "unsigned char bide_room[(%s) - sizeof(%s)];\n", function->size,
               function->value != NULL ? "bide_async_generator" : "bide_task");
    if (!function->returns_nothing)
        text_print(out, "};\n");
    text_print(out, "} __attribute__((__may_alias__, __aligned__(16)));\n");
}

/* What stands for the function itself: to call it without an await is an error that says so. */
void print_declaration(struct text *out)
{
    const char *name = function->name;
    struct token *t = &tokens[function->name_token];
    text_print(out, "\n# %u \"%s\" 3\n", t->line, t->file);
    if (function->size != NULL && !function->size_declared)
        print_opaque(out);
    else
        text_print(out, "struct async_%s;\n", name);
    if (function->size != NULL)
        function->size_declared = function->defined = true;
    text_print(out,
               "extern %s %s(%s) __attribute__((__error__(\"%s is async: %s, or begin it by "
               "async_%s(frame, ...)\")));\n",
               function->result, name, own_parameters(), name,
               function->value != NULL ? "take its values by async_for" : "await it", name);
    print_head(out);
    text_print(out, ";\n");
    if (function->is_created) {
        print_created_head(out);
        text_print(out, ";\n");
    }
}

static void print_parameters_kept(struct text *out, const char *self)
{
    for (struct declarator *d = function->parameters; d != NULL; d = d->next) {
        const char *member = d->symbol->member, *name = d->symbol->name;
        bool is_struct = d->specifiers->is_struct && !d->is_pointer && !d->is_array &&
                         !d->is_function && !is_scalar(d->specifiers);
        if (is_struct) /* it may have members that are const */
            text_print(out, "    __builtin_memcpy((void *)&%s->%s, &%s, sizeof %s);\n", self,
                       member, name, name);
        else
            text_print(out, "    %s->%s = %s;\n", self, member, name);
    }
}

/* The room that the declaration gives must do; the message names the size that would. */
static void print_size_check(struct text *out)
{
    const char *name = function->name;
    const struct token *t = &tokens[function->name_token];
    text_print(
        out,
        "\n# %u \"%s\"\n"
        "extern char async_%s_needs_this_size[sizeof(struct async_%s)];\n"
        "extern char async_%s_needs_this_size[sizeof(struct async_%s_frame) <= sizeof(struct "
        "async_%s) ? sizeof(struct async_%s) : sizeof(struct async_%s_frame)];\n"
        "_Static_assert(_Alignof(struct async_%s_frame) <= _Alignof(struct async_%s), \"the "
        "frame of %s is aligned more than one of a given size is\");\n"
        "\n# %u \"%s\" 3\n",
        t->line, t->file, name, name, name, name, name, name, name, name, name, name, t->line,
        t->file);
}

static void print_init(struct text *out)
{
    const char *name = function->name, *self = "bide_self";
    print_head(out);
    text_print(out, "\n{\n");
    if (function->size != NULL) {
        self = "bide_inner";
        text_print(out, "    struct async_%s_frame *bide_inner = (void *)bide_self;\n", name);
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
    if (function->value != NULL)
        text_print(out,
                   "    return bide_async_generator_init(&%s->generator, &async_%s_start);\n}\n",
                   self, name);
    else
        text_print(out, "    return bide_frame_init(&%s->task.frame, &async_%s_start);\n}\n", self,
                   name);
    if (!function->is_created)
        return;
    print_created_head(out);
    text_print(out,
               "\n{\n    struct async_%s *bide_self = bide_create(sizeof *bide_self, "
               "&async_%s_start, bide_allocator);\n    if (bide_self != 0) {\n"
               "    bide_self->bide_allocator = bide_allocator;\n",
               name, name);
    if (!function->returns_nothing)
        text_print(out, "    bide_self->bide_result_to = bide_result_to;\n");
    print_parameters_kept(out, "bide_self");
    for (const struct cleanup *c = last_cleanup; c != NULL; c = c->previous)
        text_print(out, "    bide_self->bide_armed_%u = 0;\n", c->number);
    if (function->draws)
        text_print(out, "    bide_self->bide_random = 0;\n");
    text_print(out, "    }");
    if (!function->returns_nothing)
        text_print(out, " else {\n    __builtin_memset((void *)bide_result_to, 0, sizeof "
                        "*bide_result_to);\n    _Generic(*bide_result_to, int: "
                        "bide_async_no_memory_int_, long: bide_async_no_memory_long_, long long: "
                        "bide_async_no_memory_long_long_, default: "
                        "bide_async_no_memory_)((void *)bide_result_to);\n    }");
    text_print(out, "\n    return bide_owned(bide_self, &async_%s_start);\n}\n", name);
}

static void print_constants(struct text *out, unsigned count)
{
    const char *name = function->name, *file = tokens[function->name_token].file;
    unsigned line = tokens[function->name_token].line;
    text_print(out,
               "static bide_next async_%s_step(bide_frame *bide_frame_, unsigned bide_depth_);\n",
               name);
    text_print(out,
               "static const bide_coroutine_type *const async_%s_type = &%s;\n"
               "static const bide_point async_%s_finished;\n",
               name, function->value != NULL ? "bide_async_generator_type" : "bide_task_type",
               name);
    text_print(out,
               "static const bide_coroutine_code async_%s_code = {async_%s_step, \"%s\", \"%s\", "
               "&async_%s_type, &async_%s_finished};\n",
               name, name, name, file, name, name);
    text_print(out,
               "static const bide_point async_%s_finished = {{0, bide_frame_started_, 0, 0, "
               "bide_frame_withdraw_, 0, 0}, &async_%s_code, 0, 0, %u, BIDE_AT_END};\n",
               name, name, line);
    text_print(
        out,
        "static const bide_point async_%s_start = {{0, 0, 0, 0, bide_frame_withdraw_, 0, 0}, "
        "&async_%s_code, 0, 0, %u, BIDE_AT_START};\n",
        name, name, line);
    if (count != 0)
        text_print(out, "static const bide_point async_%s_points[] = {\n%s};\n", name,
                   point_table.at);
}

static void print_step(struct text *out, unsigned count, const struct text *statements)
{
    const char *name = function->name;
    text_print(out,
               "static bide_next async_%s_step(bide_frame *bide_frame_, unsigned bide_depth_)\n{\n"
               "    struct async_%s%s *const bide_self = (void *)bide_frame_;\n"
               "    bide_async_budget_ bide_budget_left_ = bide_async_budget_take_();\n",
               name, name, function->size != NULL ? "_frame" : "");
    if (count != 0)
        text_print(out, "    bide_awaiter *bide_awaiter_;\n    const bide_awaiter_ops "
                        "*bide_ops_;\n    bide_frame *bide_next_;\n"
                        "    int bide_status_;\n    bide_async_looked_ bide_looked_;\n"
                        "    (void)bide_awaiter_, (void)bide_ops_, (void)bide_next_, (void)bide_status_, "
                        "(void)bide_looked_;\n");
    if (!function->returns_nothing)
        text_print(out, "    __typeof__(bide_self->result) bide_result_;\n");
    text_print(out, "    ");
    print_locals(out, function->scope);
    /* a frame that is destroyed has no result; compilers shall not ask where it comes from */
    text_print(out,
               "\n    if (__builtin_expect(bide_depth_ == (~0U), 0)) {\n%s"
               "        goto bide_return_;\n    }\n",
               last_cleanup != NULL && !function->returns_nothing
                   ? "        __builtin_memset((void *)&bide_result_, 0, sizeof bide_result_);\n"
                   : "");
    if (count != 0) {
        text_print(out, "    switch (bide_frame_point(bide_frame_)->number) {\n");
        for (unsigned i = 1; i <= count; i++)
            text_print(out, "    case %u: goto bide_resume_%u;\n", i, i);
        text_print(out, "    default: break;\n    }\n");
    }
    text_print(out, "    bide_frame_runs_(bide_frame_);\n");
    for (struct declarator *d = function->parameters; d != NULL; d = d->next) {
        if (d->symbol->is_local)
            text_print(out, "    %s = bide_self->%s;\n", d->symbol->member, d->symbol->member);
    }
    text_add(out, statements->at, statements->length);
    const struct token *last = &tokens[function->body->end - 1];
    text_print(out, "\n# %u \"%s\" 3\nbide_return_:\n", last->line, last->file);
    for (struct cleanup *c = last_cleanup; c != NULL; c = c->previous) {
        print_cleanup(out, c);
        text_print(out, "\n");
    }
    text_print(out,
               "    bide_async_budget_keep_(&bide_budget_left_);\n"
               "    if (__builtin_expect(bide_depth_ == (~0U), 0))\n"
               "        return bide_next_frame(bide_frame_finish_(bide_frame_, "
               "&async_%s_code, &async_%s_finished, -2147483647 - 1));\n",
               name, name);
    if (!function->returns_nothing)
        text_print(out, "    __builtin_memcpy((void *)&bide_self->result, &bide_result_, sizeof "
                        "bide_result_);\n");
    if (function->is_created && !function->returns_nothing)
        text_print(out, "    if (bide_self->bide_result_to != 0)\n"
                        "        __builtin_memcpy((void *)bide_self->bide_result_to, "
                        "&bide_self->result, sizeof bide_self->result);\n");
    text_print(out,
               "    return bide_next_frame(bide_frame_finish_(bide_frame_, &async_%s_code, "
               "&async_%s_finished, %s));\n}\n",
               name, name,
               function->returns_nothing
                   ? "0"
                   : "_Generic(bide_self->result, int: bide_async_error_of_int_, "
                     "long: bide_async_error_of_long_, long long: bide_async_error_of_long_long_, "
                     "default: bide_async_no_error_)(&bide_self->result)");
}

void print_function(struct text *out)
{
    static struct text statements, step; /* their memory serves one function after the other */
    struct text *const texts[] = {&statements, &step, &outer, &point_table};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        texts[i]->length = 0;
        text_add(texts[i], "", 0);
    }
    last_cleanup = NULL;
    labels = 0;
    serial = 0;
    body = &statements;
    lay_out(function->body);
    keep_literals(function->body);
    find_cleanups(function->body);
    for (struct cleanup *c = last_cleanup; c != NULL; c = c->previous)
        add_member(function->scope, print("unsigned char bide_armed_%u : 1;", c->number));
    prepare(function->body);
    lower_block(function->body);
    if (function->draws)
        add_member(function->scope, "uint64_t bide_random;");
    unsigned count = point_count();
    print_declaration(out);
    text_add(out, outer.at, outer.length);
    print_frame(out);
    text_print(out, "\n# %u \"%s\" 3\n", tokens[function->name_token].line,
               tokens[function->name_token].file);
    if (function->size != NULL)
        print_size_check(out);
    print_constants(out, count);
    print_init(out);
    print_step(&step, count, &statements);
    text_add(out, step.at, step.length);
    if (tables)
        print_questions(out);
}
