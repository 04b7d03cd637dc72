/*
 * The frame: which variables are its members, and what its types are at file scope.
 *
 * The compiler finds the types. A value that is kept across an await has the type of its expression,
 * asked for with typeof where the struct is declared; and there the locals that the expression names
 * do not exist. So each of them has a probe: a variable of its type that is declared and never
 * defined.
 */
#include "bidec.h"

#include <string.h>

struct text outer;

static struct {
    const char *name[4096];
    unsigned count;
} taken;

/* `wanted`, or that with a number, if it is a member already. */
const char *member_name(const char *wanted)
{
    if (function->scope->member_count == 0) {
        taken.count = 0;
        taken.name[taken.count++] = "task";
        taken.name[taken.count++] = "result";
        taken.name[taken.count++] = "generator";
        taken.name[taken.count++] = "value";
        function->scope->member_count = 1;
    }
    const char *name = wanted;
    unsigned number = 1;
    for (unsigned i = 0; i < taken.count; i++) {
        if (strcmp(taken.name[i], name) == 0) {
            name = print("%s_%u", wanted, ++number);
            i = (unsigned)-1;
        }
    }
    if (taken.count == sizeof taken.name / sizeof *taken.name)
        refuse(function->name_token, "this function has too many variables");
    taken.name[taken.count++] = name;
    return name;
}

void add_member(struct scope *to, const char *line)
{
    text_print(&to->members, "%s\n", line);
}

struct scope *leaf(struct scope *in)
{
    struct scope *keep = scope;
    scope = in;
    struct scope *inner = open_scope();
    inner->awaits = true;
    scope = keep;
    return inner;
}

/* ---- Text at file scope ---- */

static const char *declared_as(const struct symbol *symbol, const char *name, bool as_member);

static const char *probe(struct symbol *symbol)
{
    if (symbol->probe == NULL) {
        symbol->probe = print("bide_type_of_%s_%s_%u", function->name, symbol->name, ++serial);
        const char *declaration = declared_as(symbol, symbol->probe, false);
        text_print(&outer, "extern %s;\n", declaration);
    }
    return symbol->probe;
}

static void outside_to(struct text *out, int first, int end);

static const char *type_of_block(const struct node *node)
{
    const struct node *last = NULL;
    for (struct node *s = node->a->list; s != NULL; s = s->next)
        last = s;
    while (last != NULL && last->kind == S_LABEL)
        last = last->a;
    if (last == NULL || last->kind != S_EXPRESSION)
        return "((void)0)";
    return print("(%s)", outside(last->a->first, last->a->end));
}

/* Of a literal with braces: its type, with the length that they give. */
const char *type_of_literal(const struct node *node)
{
    int open = 0;
    for (int i = node->type; i < node->type_end; i++) {
        if (is(i, "[") && is(i + 1, "]"))
            open = i;
    }
    if (open == 0)
        return print("__typeof__(%s)", outside(node->type, node->type_end));
    return print("__typeof__(%s%s%s)", outside(node->type, open + 1), open_bound(node->a),
                 outside(open + 1, node->type_end));
}

static void outside_to(struct text *out, int first, int end)
{
    for (int i = first; i < end; i++) {
        struct token *t = &tokens[i];
        if (t->kind == PRAGMA)
            continue;
        if (i > first && (t->space || (t->kind == NAME && tokens[i - 1].kind == NAME)))
            text_add(out, " ", 1);
        if (mark_of(t)->replaced != NULL) {
            const struct node *node = mark_of(t)->replaced;
            const char *text = node->kind == E_BLOCK ? type_of_block(node)
                               : node->kind == E_LITERAL
                                   ? print("(*(%s *)0)", type_of_literal(node))
                                   : await_status_of(node);
            text_add(out, text, strlen(text));
            i = node->end - 1;
            continue;
        }
        if (mark_of(t)->hoisted != 0) {
            i = mark_of(t)->hoisted;
            continue;
        }
        if (mark_of(t)->named != NULL) {
            text_print(out, "%s", mark_of(t)->named);
            continue;
        }
        struct symbol *symbol = t->symbol;
        if (symbol == NULL) {
            text_add(out, t->at, t->length);
        } else if (symbol->kind == VARIABLE) {
            const char *name = probe(symbol);
            text_add(out, name, strlen(name));
        } else if (symbol->kind == TAG && symbol->token == 0) {
            text_print(out, "%.*s %s", (int)t->length, t->at,
                       symbol->member != NULL ? symbol->member : "");
        } else if (symbol->member != NULL) {
            text_add(out, symbol->member, strlen(symbol->member));
        } else {
            text_add(out, t->at, t->length);
        }
    }
}

const char *outside(int first, int end)
{
    struct text text = {0};
    text_add(&text, "", 0);
    outside_to(&text, first, end);
    return text_kept(&text);
}

const char *type_of(const struct node *node)
{
    const char *value = outside(node->first, node->end);
    return print("__typeof__(0 ? (%s) : (%s))", value, value);
}

/* ---- Declarations at file scope ---- */

static bool is_attribute(int token)
{
    return (is(token, "__attribute__") || is(token, "__attribute")) && is(token + 1, "(");
}

/* An attribute that makes another type. */
static bool is_of_type(int token)
{
    static const char *const words[] = {
        "aligned",         "__aligned__", "mode",          "__mode__",      "vector_size",
        "__vector_size__", "may_alias",   "__may_alias__", "address_space", "transparent_union"};
    for (int i = token, close = closing(token + 1); i < close; i++) {
        for (size_t n = 0; n < sizeof words / sizeof *words; n++) {
            if (is(i, words[n]))
                return true;
        }
    }
    return false;
}

/* Specifiers without what belongs to the declaration rather than to the type. */
const char *plain_specifiers(const struct specifiers *specifiers, bool drop_const)
{
    static const char *const storage[] = {"static",        "extern",   "register", "auto",
                                          "typedef",       "inline",   "__inline", "__inline__",
                                          "_Thread_local", "__thread", "async",    "async_created",
                                          "__extension__"};
    struct text text = {0};
    text_add(&text, "", 0);
    for (int i = specifiers->first; i < specifiers->end; i++) {
        bool skip = false;
        for (size_t n = 0; n < sizeof storage / sizeof *storage; n++)
            skip |= is(i, storage[n]);
        if (drop_const && (is(i, "const") || is(i, "__const") || is(i, "__const__")))
            skip = true;
        if (is(i, "async_sized") || is(i, "async_generator"))
            i = closing(i + 1);
        if (skip || is(i, ")"))
            continue;
        if (is_attribute(i) && !is_of_type(i)) {
            i = closing(i + 1);
            continue;
        }
        int end = i + 1;
        if (is(i, "struct") || is(i, "union") || is(i, "enum")) {
            while (end < specifiers->end && !is(end, "{") && !is(end - 1, "}"))
                end++;
            if (is(end, "{"))
                end = closing(end) + 1;
        } else if (end < specifiers->end && is(end, "(")) {
            end = closing(end) + 1;
        }
        if (text.length != 0)
            text_add(&text, " ", 1);
        outside_to(&text, i, end);
        i = end - 1;
    }
    return text_kept(&text);
}

/* How many elements braces have, as an expression; a designator says where its element stands. */
static const char *count_of(const struct node *node)
{
    const char *most = "0";
    const char *next = "0";
    for (const struct node *e = node->list; e != NULL; e = e->next) {
        if (is(e->first, "[")) {
            int close = closing(e->first), first = e->first + 1;
            for (int i = first; i < close; i++) {
                if (is(i, "..."))
                    first = i + 1;
            }
            next = print("(%s)", outside(first, close));
        }
        next = print("%s + 1", next);
        if (is(e->first, "["))
            most = print("((%s) > (%s) ? (%s) : (%s))", most, next, most, next);
        else if (e->next == NULL || is(e->next->first, "["))
            most = print("((%s) > (%s) ? (%s) : (%s))", most, next, most, next);
    }
    if (strncmp(most, "((0) > ", 7) == 0 && node->list != NULL) {
        bool plain = true;
        unsigned count = 0;
        for (const struct node *e = node->list; e != NULL; e = e->next, count++)
            plain &= !is(e->first, "[");
        if (plain)
            return print("%u", count);
    }
    return most;
}

const char *open_bound(const struct node *initialiser)
{
    if (initialiser == NULL)
        return "";
    if (initialiser->kind == E_INITIALISER && initialiser->list != NULL &&
        initialiser->list->next == NULL && initialiser->list->a->kind == E_STRING)
        initialiser = initialiser->list->a;
    if (initialiser->kind == E_STRING) {
        const char *string = outside(initialiser->first, initialiser->end);
        return print("sizeof(%s) / sizeof *(%s)", string, string);
    }
    return initialiser->kind == E_INITIALISER ? count_of(initialiser) : "";
}

/* A typedef of an array: a parameter of that type is a pointer. */
static bool is_array_type(const struct specifiers *specifiers)
{
    for (int i = specifiers->first; i < specifiers->end; i++) {
        const struct symbol *symbol = tokens[i].symbol;
        if (symbol != NULL ? symbol->kind == TYPE_NAME && symbol->declarator->is_array
                           : is_global_array(i))
            return true;
    }
    return false;
}

static const char *declared_as(const struct symbol *symbol, const char *name, bool as_member)
{
    const struct declarator *d = symbol->declarator;
    struct text text = {0};
    bool stars = false;
    for (int i = d->first; i < d->suffix; i++)
        stars |= is(i, "*");
    if (d->specifiers->is_automatic && d->initialiser != NULL)
        return print("%s %s", type_of(d->initialiser), name);
    if (d->is_parameter && as_member && !stars && !d->is_array && !d->is_function &&
        is_array_type(d->specifiers))
        return print("__typeof__((0, *(%s *)0)) %s", plain_specifiers(d->specifiers, true), name);
    bool drop = as_member && d->is_const;
    text_print(&text, "%s ", plain_specifiers(d->specifiers, drop && !stars));
    int from = d->first;
    for (int i = d->first; drop && i < d->name; i++) {
        if (is(i, "const")) {
            bool last = true;
            for (int n = i; n < d->name; n++)
                last &= !is(n, "*");
            if (last) {
                outside_to(&text, from, i);
                from = i + 1;
            }
        }
    }
    int behind = d->name != 0 ? d->name + 1 : d->suffix;
    outside_to(&text, from, behind - (d->name != 0));
    if (d->is_parameter && d->is_array) {
        text_print(&text, "(*%s)", name);
        outside_to(&text, behind, d->bound);
        behind = closing(d->bound) + 1;
    } else if (d->is_parameter && d->is_function) {
        text_print(&text, "(*%s)", name);
    } else {
        char last = text.at[text.length - 1];
        text_print(&text, "%s%s", last == ' ' || last == '*' || last == '(' ? "" : " ", name);
    }
    if (d->open_bound != 0 && !d->is_parameter) {
        outside_to(&text, behind, d->open_bound + 1);
        text_print(&text, "%s", open_bound(d->initialiser));
        behind = d->open_bound + 1;
    }
    outside_to(&text, behind, d->end);
    for (int i = d->end; is_attribute(i); i = closing(i + 1) + 1) {
        if (is_of_type(i))
            text_print(&text, " %s", outside(i, closing(i + 1) + 1));
    }
    return text_kept(&text);
}

/* A parameter, as the init function declares it. */
const char *member_declaration(const struct declarator *d, const char *name)
{
    struct symbol symbol = {.declarator = (struct declarator *)d};
    return declared_as(&symbol, name, true);
}

/* ---- Which variables are members ---- */

/*
 * A whole expression with an await is taken apart, and so are the blocks in it: their variables are
 * members even where the block itself does not await.
 */
static bool take_apart(struct node *node)
{
    bool found = false;
    if (node == NULL)
        return false;
    if (node->kind == E_BLOCK) {
        node->a->scope->awaits = true;
        mark(node->first)->replaced = node;
        return node->awaits = true;
    }
    if (node->kind >= S_EXPRESSION)
        return false;
    found |= take_apart(node->a);
    found |= take_apart(node->b);
    found |= take_apart(node->c);
    for (struct node *part = node->list; part != NULL; part = part->next)
        found |= take_apart(part);
    return node->awaits |= found;
}

static void take_parts_of(struct node *node);

static void inside_expression(struct node *node)
{
    if (node == NULL)
        return;
    if (node->awaits)
        take_apart(node);
    take_parts_of(node);
}

/* Looks for whole expressions, in statements and in the blocks of expressions. */
static void take_parts_of(struct node *node)
{
    if (node == NULL)
        return;
    if (node->kind == S_DECLARATION) {
        for (struct declarator *d = node->declarators; d != NULL; d = d->next)
            inside_expression(d->initialiser);
        return;
    }
    struct node *parts[] = {node->a, node->b, node->c, node->d};
    for (int i = 0; i < 4; i++) {
        if (parts[i] == NULL)
            continue;
        if (node->kind >= S_EXPRESSION && parts[i]->kind < S_EXPRESSION)
            inside_expression(parts[i]);
        else
            take_parts_of(parts[i]);
    }
    for (struct node *part = node->list; part != NULL; part = part->next)
        take_parts_of(part);
}

/* Nothing outside of the function has the name that the variable would have in the step function. */
static bool is_free(const char *name)
{
    for (int i = function->body->first; i < function->body->end; i++) {
        if (tokens[i].symbol == NULL && is_name(i, name))
            return false;
    }
    return true;
}

/*
 * A number or a pointer whose address nobody takes is a local of the step function while that runs.
 * It is saved where the function suspends, if it is used behind that.
 */
static bool may_be_local(const struct symbol *symbol)
{
    const struct declarator *d = symbol->declarator;
    bool stars = false;
    for (int i = d->first; i < d->name; i++) {
        if (is(i, "volatile") || is(i, "__volatile__"))
            return false;
        stars |= is(i, "*");
    }
    if (symbol->needs_memory || d->cleanup != 0 || is_attribute(d->end))
        return false;
    if (d->is_array || (d->is_function && !d->is_parameter))
        return d->is_parameter && d->is_array && is_free(symbol->member);
    if (d->specifiers->is_automatic || (!stars && !d->is_pointer && !is_scalar(d->specifiers)))
        return false;
    return is_free(symbol->member);
}

static void lay_out_symbols(struct scope *in, struct symbol *symbol)
{
    if (symbol == NULL)
        return;
    lay_out_symbols(in, symbol->next); /* the earlier ones first */
    struct declarator *d = symbol->declarator;
    if (symbol->kind != VARIABLE || symbol->in_frame)
        return;
    if (d->specifiers->is_static || d->specifiers->is_extern ||
        (d->is_function && !d->is_parameter))
        return;
    symbol->in_frame = true;
    symbol->is_const = d->is_const;
    symbol->member = member_name(symbol->name);
    symbol->is_local = may_be_local(symbol);
    for (const struct node *loop = last_loop; loop != NULL; loop = loop->previous_loop) {
        bool inside_scope =
            loop->first > symbol->token || (loop->kind == S_FOR && loop->scope == symbol->scope);
        if (inside_scope && loop->first <= symbol->last_use && symbol->last_use < loop->end)
            symbol->last_use = loop->end;
    }
    if (has_labels)
        symbol->last_use = function->body->end;
}

/* No length of an array in these tokens may depend on a variable of the function. */
static void check_lengths(int name, int first, int end)
{
    unsigned depth = 0;
    for (int i = first; i < end; i++) {
        if ((is(i, "sizeof") || is(i, "_Alignof") || is(i, "__typeof__")) && is(i + 1, "("))
            i = closing(i + 1);
        else if (is(i, "["))
            depth++;
        else if (is(i, "]"))
            depth--;
        else if (depth != 0 && tokens[i].symbol != NULL && tokens[i].symbol->kind == VARIABLE)
            refuse(name,
                   "the length of '%s' is not constant, and it would have to be kept across an "
                   "await: give it a constant length, or allocate it",
                   spelled(name));
    }
}

static void check_bounds(const struct declarator *d)
{
    check_lengths(d->name, d->specifiers->first, d->specifiers->end);
    if (!d->is_parameter)
        check_lengths(d->name, d->first, d->end);
}

static void lay_out_scope(struct scope *in)
{
    if (!in->awaits)
        return;
    lay_out_symbols(in, in->symbols);
    for (struct scope *inner = in->inner; inner != NULL; inner = inner->next)
        lay_out_scope(inner);
}

/* ---- Locals of the step function ---- */

/* Declares those of a scope, where its block begins. */
static void print_locals_of(struct text *out, const struct symbol *symbol)
{
    if (symbol == NULL)
        return;
    print_locals_of(out, symbol->next);
    if (symbol->is_local)
        text_print(out, "%s; ", declared_as(symbol, symbol->member, true));
}

void print_locals(struct text *out, const struct scope *of)
{
    print_locals_of(out, of->symbols);
}

/*
 * Saves what is used behind the await at `token`, or `back`: loads it again. `first` is where the
 * expression begins in which the await stands: what is named there may be read after the await.
 */
void print_saves(struct text *out, const struct scope *from, int first, int token, bool back)
{
    for (; from != NULL; from = from->up) {
        for (struct symbol *s = from->symbols; s != NULL; s = s->next) {
            if (!s->is_local || s->token > token || s->last_use < first)
                continue;
            s->is_saved = true;
            if (!back && s->declarator->is_parameter && !s->is_written)
                continue; /* it is what it was */
            if (back)
                text_print(out, "%s = bide_self->%s; ", s->member, s->member);
            else
                text_print(out, "bide_self->%s = %s; ", s->member, s->member);
        }
    }
}

static void print_members(struct text *out, const struct symbol *symbol)
{
    if (symbol == NULL)
        return;
    print_members(out, symbol->next);
    if (!symbol->in_frame ||
        (symbol->is_local && !symbol->is_saved && !symbol->declarator->is_parameter))
        return;
    struct token *t = &tokens[symbol->declarator->name];
    text_print(out, "# %u \"%s\" 3\n%s;\n", t->line, t->file,
               declared_as(symbol, symbol->member, true));
}

static void check_scope(const struct scope *in)
{
    if (!in->awaits)
        return;
    for (const struct symbol *s = in->symbols; s != NULL; s = s->next) {
        if (s->in_frame)
            check_bounds(s->declarator);
    }
    for (const struct scope *inner = in->inner; inner != NULL; inner = inner->next)
        check_scope(inner);
}

/* Types that are defined in scopes with an await are defined in front of the struct. */
static void hoist(void)
{
    for (struct definition *d = definitions; d != NULL; d = d->next) {
        if (!d->scope->awaits)
            continue;
        d->symbol->member = print("async_%s_%s_%u", function->name,
                                  d->symbol->token != 0 ? d->symbol->name : "type", ++serial);
        if (d->keyword != 0 && is(d->keyword, "enum")) {
            for (int i = d->open + 1; i < d->close; i++) {
                struct symbol *symbol = tokens[i].symbol;
                if (symbol != NULL && symbol->kind == ENUMERATOR && symbol->token == i)
                    symbol->member =
                        print("async_%s_%s_%u", function->name, symbol->name, ++serial);
            }
        }
    }
    for (struct definition *d = definitions; d != NULL; d = d->next) {
        if (!d->scope->awaits)
            continue;
        if (d->keyword == 0) {
            check_bounds(d->declarator);
            const char *type = declared_as(d->symbol, d->symbol->member, false);
            text_print(&outer, "typedef %s;\n", type);
            continue;
        }
        check_lengths(d->keyword + (d->symbol->token != 0), d->open, d->close);
        const char *text = outside(d->open, d->close + 1);
        text_print(&outer, "%s %s %s;\n", spelled(d->keyword), d->symbol->member, text);
        mark(d->open)->hoisted = d->close;
    }
}

void lay_out(struct node *node)
{
    take_parts_of(node);
    function->scope->awaits = true; /* the parameters are members anyhow */
    lay_out_scope(function->scope);
    hoist();
    check_scope(function->scope);
}

/* ---- The struct ---- */

static bool has_members(const struct scope *in)
{
    if (in->members.length != 0)
        return true;
    for (const struct symbol *s = in->symbols; s != NULL; s = s->next) {
        if (s->in_frame && (!s->is_local || s->is_saved || s->declarator->is_parameter))
            return true;
    }
    for (const struct scope *inner = in->inner; inner != NULL; inner = inner->next) {
        if (has_members(inner))
            return true;
    }
    return false;
}

static void print_scope(struct text *out, const struct scope *in)
{
    unsigned inner_count = 0;
    print_members(out, in->symbols);
    if (in->members.length != 0)
        text_add(out, in->members.at, in->members.length);
    for (const struct scope *inner = in->inner; inner != NULL; inner = inner->next)
        inner_count += has_members(inner);
    if (inner_count > 1)
        text_print(out, "union {\n");
    for (const struct scope *inner = in->inner; inner != NULL; inner = inner->next) {
        if (!has_members(inner))
            continue;
        if (inner_count > 1)
            text_print(out, "struct {\n");
        print_scope(out, inner);
        if (inner_count > 1)
            text_print(out, "};\n");
    }
    if (inner_count > 1)
        text_print(out, "};\n");
}

const char *header(void)
{
    return function->value != NULL ? "bide_async_generator generator" : "bide_task task";
}

void print_frame(struct text *out)
{
    text_print(out, "struct async_%s%s {\n%s;\n", function->name,
               function->size != NULL ? "_frame" : "", header());
    if (function->value != NULL)
        text_print(out, "__typeof__(%s) value;\n", function->value);
    if (function->is_created)
        text_print(out, "bide_allocator *bide_allocator;\n");
    if (function->is_created && !function->returns_nothing)
        text_print(out, "%s *bide_result_to;\n", function->result);
    bool has_rest = has_members(function->scope);
    if (!function->returns_nothing && has_rest)
        text_print(out, "union {\n");
    if (!function->returns_nothing)
        text_print(out, "%s result;\n", function->result);
    if (has_rest) {
        if (!function->returns_nothing)
            text_print(out, "struct {\n");
        print_scope(out, function->scope);
        if (!function->returns_nothing)
            text_print(out, "};\n};\n");
    }
    text_print(out, "}%s;\n", function->size != NULL ? " __attribute__((__may_alias__))" : "");
}
