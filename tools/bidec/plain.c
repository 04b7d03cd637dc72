/*
 * The plain reading of a file, for the compiler's warnings and errors: async functions as plain ones,
 * with the user's tokens in their lines and columns.
 *
 * What is awaited becomes the call of a function that is declared and never defined, of the type that
 * the await has. A deferred statement stands at the end of its block, and is reached from its place.
 * Nothing is run: the compiler looks at the text and throws its output away.
 */
#include "bidec.h"

struct text *plain; /* NULL: none is wanted */
bool for_clang;

/* What is written around a token, or in its place. */
struct change {
    const char *before, *instead, *after;
    int moved;                    /* at a deferred statement: its end */
    bool is_ordered, was_ordered; /* a statement with awaits begins, has ended */
    bool is_alone, was_alone;     /* and it is the body of another */
};

static struct change *changes; /* of each token */
static struct text operations; /* declarations of those that are awaited */

static void add_before(int token, const char *text)
{
    struct change *c = &changes[token];
    c->before = c->before != NULL ? format_text("%s%s", c->before, text) : text;
}

static void add_after(int token, const char *text)
{
    struct change *c = &changes[token];
    c->after = c->after != NULL ? format_text("%s%s", text, c->after) : text;
}

static void wrap(const struct node *node, const char *before, const char *after)
{
    add_before(node->first, before);
    add_after(node->end - 1, after);
}

static void leave_out(int first, int end)
{
    for (int i = first; i < end; i++)
        changes[i].instead = "";
}

/* ---- Awaits ---- */

static void read_node(const struct node *node);
static void read_block_call(const struct node *node);

/* (*(pointer)((bide_async_call *)0, arguments)); the * is generated text, as a result may be nothing. */
static void read_pointer_call(const struct node *node)
{
    const struct token *t = &tokens[node->first];
    const struct node *pointer = node->list;
    if (pointer == NULL)
        return;
    for (const struct node *part = node->list; part != NULL; part = part->next)
        read_node(part);
    changes[node->first].instead = format_text("\n# %u \"%s\" 3\n(*\n", t->line, t->file);
    changes[node->end - 1].instead = pointer->next != NULL ? "))" : ")((bide_async_call *)0))";
    if (pointer->next != NULL)
        changes[pointer->end].instead = ")((bide_async_call *)0,";
}

static const struct node *inner_of(const struct node *node)
{
    while (node->kind == E_PARENTHESES || is_discarded(node))
        node = node->a;
    return node;
}

/* Declares what the call of an operation without its waiter gives, which is the value of the await. */
static const char *declared_operation(const struct function *f, const struct node *await)
{
    static unsigned uses;
    const char *name = format_text("bide_plain_%s_%u", f->name, ++uses);
    int first = f->open + 1;
    if (for_clang)
        text_print(&operations,
                   "static void (*const bide_plain_uses_%u)(void) __attribute__((__used__)) = "
                   "(void (*)(void))%s;\n",
                   uses, f->name);
    else
        text_print(&operations, "extern __typeof__(%s) %s __attribute__((__unused__));\n", f->name,
                   f->name);
    while (!token_is(first, ",") && first < f->close)
        first = token_is(first, "(") ? closing_bracket(first) + 1 : first + 1;
    text_print(&operations, "extern %s %s(%s);\n",
               await != NULL ? format_text("__typeof__(%s)", await_status_of(await)) : "int", name,
               first < f->close ? file_scope_text(first + 1, f->close) : "void");
    return name;
}

/*
 * What is awaited by `await`, or is a part of that (NULL). True if it has the type bide_awaiter *, so that
 * it has to be wrapped.
 */
static bool read_awaited(const struct node *node, const struct node *await)
{
    const struct node *of = inner_of(node);
    const char *group = group_of(of);
    const struct function *f = called_function(of);
    if (group != NULL) {
        bool selects = strncmp(group, "select_", 7) == 0;
        changes[of->first].instead = selects ? "bide_plain_select_" : "";
        for (const struct node *part = of->list; part != NULL; part = part->next) {
            if (selects && part == of->list) {
                read_node(part);
                continue;
            }
            wrap(part, selects ? "((void)(" : "(void)(", selects ? "), 0)" : ")");
            if (read_awaited(part, NULL))
                wrap(part, "bide_plain_await_(", ")");
        }
        if (!selects)
            add_before(of->end - 1, ", bide_plain_status_()");
        return false;
    }
    if (is_pointer_call(of)) {
        read_pointer_call(of);
        return false;
    }
    if (f == NULL || (!f->is_async && !f->makes_awaiter)) {
        read_node(of);
        return true;
    }
    if (f->is_block) {
        read_block_call(of);
        return false;
    }
    bool needs = !f->is_async && needs_waiter(f, of), is_first = true;
    int number = needs ? 1 : 0;
    if (needs)
        changes[of->first].instead = declared_operation(f, await);
    for (const struct node *part = of->list; part != NULL; part = part->next) {
        if (is_first && needs && is_here(part)) {
            leave_out(part->first, part->end + token_is(part->end, ","));
        } else {
            bool is_awaiter = f->makes_awaiter && number < 16 && f->takes_awaiter[number++];
            if (!is_awaiter) {
                read_node(part);
            } else if (!read_awaited(part, NULL)) {
                wrap(part, "((void)(", "), bide_plain_awaiter_())");
            }
        }
        is_first = false;
    }
    return !f->is_async && !needs;
}

/* ---- The tree ---- */

/* The call of the block's function, with the captures' initialisers. */
static void read_block_call(const struct node *node)
{
    for (int i = node->first; i < node->end; i++) {
        struct change *c = &changes[i];
        if (i > node->first && i < node->end - 1)
            *c = (struct change){0};
        c->instead = "";
    }
    changes[node->first].instead = format_text("%s(", node->block->name);
    changes[node->end - 1].instead = ")";
    for (const struct node *part = node->list; part != NULL; part = part->next) {
        for (int i = part->first; i < part->end; i++)
            changes[i].instead = NULL;
        read_node(part);
        if (part->next != NULL)
            add_after(part->end - 1, ", ");
    }
}

static void read_parts(const struct node *node)
{
    for (const struct declarator *d = node->declarators; d != NULL; d = d->next) {
        if (node->kind == S_DECLARATION && d->initialiser != NULL)
            read_node(d->initialiser);
    }
    const struct node *const parts[] = {node->a, node->b, node->c, node->d};
    for (size_t i = 0; i < 4; i++) {
        if (parts[i] != NULL)
            read_node(parts[i]);
    }
    for (const struct node *part = node->list; part != NULL; part = part->next)
        read_node(part);
}

/* for (T v = (... , *(T *)...); more; ) */
static void read_each(const struct node *node)
{
    const char *name = spelling_of(node->declarators->name);
    leave_out(node->first, node->first + node->passes_errors);
    changes[node->first + node->passes_errors].instead = "for";
    changes[node->a->first - 1].instead = "= ((void)(";
    add_after(node->a->end - 1, format_text("), *(__typeof__(%s) *)bide_plain_pointer_()); "
                                            "bide_plain_more_()",
                                            name));
    if (node->b != NULL) {
        changes[node->b->first - 1].instead = " || (";
        add_after(node->b->end - 1, " = bide_plain_status_(), 0)");
    }
    add_before(closing_bracket(node->first + node->passes_errors + 1), ";");
}

/*
 * { (status = ...); { if (...) { (void)(operation); statement } else if (...) ... } }, and with a try the
 * last one is an else.
 */
static void read_select(const struct node *node)
{
    bool is_first = true;
    changes[node->first].instead = "";
    leave_out(node->first, node->first + 1 + node->passes_errors);
    add_before(node->first, "{ ");
    if (node->a != NULL) {
        read_node(node->a);
        add_after(node->a->end - 1, " = bide_plain_status_()");
        add_after(node->a->end, ";");
    } else { /* try async_select () */
        leave_out(node->first + 2, node->first + 4);
    }
    for (const struct node *part = node->list; part != NULL; part = part->next) {
        bool is_last = node->passes_errors && part->next == NULL;
        changes[part->first].instead = format_text("%s%s { (void)", is_first ? "" : "else ",
                                                   !is_last   ? "if (bide_plain_more_())"
                                                   : is_first ? "if (1)"
                                                              : "");
        if (read_awaited(part->a, NULL))
            wrap(part->a, "bide_plain_await_(", ")");
        add_after(part->a->end, ";");
        read_node(part->b);
        add_after(part->end - 1, " }");
        is_first = false;
    }
    add_after(node->end - 1, " }");
}

/* The operands around an await have an order, which the compiler does not know. */
static void note_order(const struct node *node)
{
    bool is_whole = node->kind == S_EXPRESSION || node->kind == S_RETURN ||
                    (node->kind == S_DECLARATION && token_is(node->end - 1, ";"));
    if (is_whole && node->awaits)
        changes[node->first].is_ordered = changes[node->end - 1].was_ordered = true;
}

/* The pragmas around such a statement are statements, too: a body needs braces around all three. */
static void note_body(const struct node *node)
{
    while (node != NULL && node->kind == S_LABEL)
        node = node->a;
    if (node != NULL && changes[node->first].is_ordered &&
        (node->kind == S_EXPRESSION || node->kind == S_RETURN))
        changes[node->first].is_alone = changes[node->end - 1].was_alone = true;
}

/* No jump may pass such a variable in its block: clang says so. */
static bool has_cleanup_behind(const struct node *defer)
{
    for (int i = defer->end, depth = 0; depth >= 0; i++) {
        depth += token_is(i, "{");
        depth -= token_is(i, "}");
        if (depth == 0 && (token_is(i, "cleanup") || token_is(i, "__cleanup__")) &&
            token_is(i + 1, "("))
            return true;
    }
    return false;
}

static void read_node(const struct node *node)
{
    note_order(node);
    const struct mark *mark = mark_of(&tokens[node->first]);
    switch (node->kind) {
    case E_SIZEOF:
        if (mark->operand != NULL)
            read_node(mark->operand);
        return;
    case E_AWAIT:
        leave_out(node->first, node->first + 1 + node->passes_errors);
        if (read_awaited(node->a, node))
            wrap(node->a, "bide_plain_await_(", ")");
        return;
    case E_SPAWN:
        changes[node->first].instead = "";
        for (const struct node *part = node->list; part != NULL; part = part->next)
            wrap(part, "(void)(", ")");
        add_before(node->end - 1, ", bide_plain_status_()");
        break;
    case E_CALL:
        if (is_pointer_call(node)) {
            read_pointer_call(node);
            return;
        }
        if (node->block == NULL)
            break;
        read_block_call(node);
        return;
    case S_DEFER:
        if (has_cleanup_behind(node)) {
            changes[node->first].instead = "{ if (bide_plain_more_())";
            add_after(node->end - 1, " }");
        } else {
            changes[node->first].moved = node->end;
        }
        break;
    case S_YIELD:
        if (node->passes_errors) /* yield_from */
            changes[node->first].instead = "(void)(";
        else
            changes[node->first].instead = format_text("bide_plain_yield_%s(", function->name);
        add_before(node->end - 1, ")");
        break;
    case S_EACH:
        read_each(node);
        break;
    case S_SELECT:
        read_select(node);
        return;
    case S_FOR:
        read_parts(node);
        if (node->a != NULL) /* a part of a statement */
            changes[node->a->first].is_ordered = changes[node->a->end - 1].was_ordered = false;
        note_body(node->d);
        return;
    default:
        break;
    }
    read_parts(node);
    if (node->kind == S_IF || node->kind == S_WHILE || node->kind == S_DO ||
        node->kind == S_SWITCH || node->kind == S_EACH || node->kind == S_DEFER) {
        const struct node *const bodies[] = {node->a, node->b, node->c, node->d};
        for (size_t i = 0; i < 4; i++)
            note_body(bodies[i]);
    }
}

/* ---- Text ---- */

static void begin_line(const struct token *t)
{
    text_print(plain, "\n# %u \"%s\"%s\n", t->line, t->file, t->system ? " 3" : "");
    for (unsigned column = 1; column < t->column; column++)
        text_add(plain, " ", 1);
}

static void print_plain_range(int first, int end);

/*
 * The deferred statements of the block that ends at `close`, the last one first. The jumps at their
 * places reach them, and nothing goes on behind them.
 */
static void print_deferred(int close)
{
    bool any = false;
    for (int i = close - 1, depth = 0; depth >= 0 && i > function->close; i--) {
        depth += token_is(i, "}");
        depth -= token_is(i, "{");
        if (depth != 0 || changes[i].moved == 0)
            continue;
        text_print(plain, "%sbide_plain_end_%d:;", any ? "" : "\nif (0) {", i);
        print_plain_range(i + 1, changes[i].moved);
        any = true;
    }
    if (any)
        text_print(plain, "bide_plain_stop_(); }");
}

/*
 * Each token that does not stand behind the one before it begins a line of its own, and so does what is
 * added: behind a substatement of an `if` it would be misleading.
 */
static void print_plain_range(int first, int end)
{
    const struct token *last = NULL;
    for (int i = first; i < end; i++) {
        const struct token *t = &tokens[i];
        const struct change *c = &changes[i];
        if (t->kind == PRAGMA) {
            text_print(plain, "\n%.*s", (int)t->length, t->at);
            last = NULL;
            continue;
        }
        if (c->moved != 0) {
            text_print(plain, "\n{ if (bide_plain_more_()) goto bide_plain_end_%d; }", i);
            i = c->moved - 1;
            last = NULL;
            continue;
        }
        if (c->is_ordered) {
            text_print(plain, "%s\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored "
                              "\"-Wsequence-point\"\n",
                       c->is_alone ? " {" : "");
            last = NULL;
        }
        if (token_is(i, "}")) {
            size_t length = plain->length;
            print_deferred(i);
            if (plain->length != length)
                last = NULL;
        }
        const char *behind = last != NULL ? last->at + last->length : NULL;
        if (last == NULL || last->line != t->line || last->file != t->file || t->at < behind ||
            memchr(behind, '\n', (size_t)(t->at - behind)) != NULL)
            begin_line(t);
        else
            text_add(plain, behind, (size_t)(t->at - behind));
        last = t;
        if (c->before != NULL || c->instead != NULL || c->after != NULL) {
            const char *text = c->instead != NULL ? c->instead : spelling_of(i);
            text_print(plain, "%s%s%s", c->before != NULL ? c->before : "", text,
                       c->after != NULL ? c->after : "");
            last = NULL;
        } else {
            text_add(plain, t->at, t->length);
        }
        if (c->was_ordered) {
            text_print(plain, "\n#pragma GCC diagnostic pop\n%s", c->was_alone ? "}" : "");
            last = NULL;
        }
    }
}

static void leave_out_words(const struct specifiers *specifiers)
{
    for (int i = specifiers->first; i < specifiers->end; i++) {
        if (is_word_with_type(i)) {
            int close = closing_bracket(i + 1);
            leave_out(i, close + 1);
            i = close;
        } else if (token_is(i, "async") || token_is(i, "async_created")) {
            leave_out(i, i + 1);
        }
    }
}

void print_plain_function(const struct specifiers *specifiers, int end)
{
    static bool begun;
    const struct token *t = &tokens[function->name_token];
    if (changes == NULL)
        changes = allocate((size_t)token_count * sizeof *changes);
    operations.length = 0;
    text_add(&operations, "", 0);
    if (specifiers != NULL)
        leave_out_words(specifiers);
    outer.length = 0; /* what is printed already */
    if (function->body != NULL)
        read_node(function->body);
    text_print(plain, "\n# %u \"%s\" 3\n", t->line, t->file);
    if (!begun)
        text_print(plain, "extern bide_frame *bide_frame_;\n"
                          "extern int bide_plain_status_(void), bide_plain_more_(void);\n"
                          "extern void bide_plain_stop_(void) __attribute__((__noreturn__));\n"
                          "extern void *bide_plain_pointer_(void);\n"
                          "extern bide_awaiter *bide_plain_awaiter_(void);\n"
                          "extern int bide_plain_await_(bide_awaiter *), "
                          "bide_plain_select_(void *, ...);\n");
    begun = true;
    if (outer.length != 0)
        text_add(plain, outer.at, outer.length);
    text_add(plain, operations.at, operations.length);
    if (function->value != NULL)
        text_print(plain, "extern void bide_plain_yield_%s(%s);\n", function->name,
                   function->value);
    if (function->yields != NULL)
        text_print(plain, "extern void bide_plain_yield_%s(%s);\n", function->name,
                   function->yields);
    if (function->kind != NULL && function->body != NULL)
        add_after(function->body->first,
                  function->kind_members != 0
                      ? format_text("\n# %u \"%s\"\n(void)&%s_type; (void)%s;",
                                    tokens[function->kind_members].line,
                                    tokens[function->kind_members].file, function->kind,
                                    promise_text())
                      : format_text(" (void)&%s_type;", function->kind));
    if (specifiers != NULL) {
        print_plain_range(specifiers->first, end);
        return;
    }
    begin_line(t); /* (clang looks into no functions of system headers) */
    text_print(plain, "static int %s(%s", function->name,
               function->parameters == NULL ? "void" : "");
    for (const struct declarator *d = function->parameters; d != NULL; d = d->next) {
        begin_line(&tokens[d->specifiers->first]);
        text_print(plain, "%s%s", member_declaration(d, d->symbol->name),
                   d->next != NULL ? "," : "");
    }
    text_print(plain, ")\n");
    leave_out(function->open + 1, function->first_statement);
    add_before(end - 1, "return 0; ");
    print_plain_range(function->open, end);
}
