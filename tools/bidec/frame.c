/*
 * The frame: which variables are its members, which of them are locals of the step function while
 * it runs, and the struct itself.
 */
#include "bidec.h"

#include <string.h>

/* ---- The names of the members ---- */

struct taken {
    struct taken *next;
    const char *name;
    unsigned number; /* the last that was appended to the name */
};

enum { TAKEN_BUCKETS = 1 << 10 };
static struct taken *taken[TAKEN_BUCKETS];

static struct taken **bucket_of(const char *name)
{
    unsigned hash = 5381;
    for (const char *p = name; *p != 0; p++)
        hash = hash * 33 ^ (unsigned char)*p;
    return &taken[hash % TAKEN_BUCKETS];
}

static struct taken *find_taken(const char *name)
{
    struct taken *found = *bucket_of(name);
    while (found != NULL && strcmp(found->name, name) != 0)
        found = found->next;
    return found;
}

static const char *take(const char *name)
{
    struct taken *new_one = allocate(sizeof *new_one), **bucket = bucket_of(name);
    *new_one = (struct taken){*bucket, name, 1};
    *bucket = new_one;
    return name;
}

/* Returns `wanted`, with a number appended if the frame has a member of that name. */
const char *member_name(const char *wanted)
{
    if (function->scope->member_count == 0) {
        static const char *const own[] = {"task", "result", "generator", "value"};
        memset(taken, 0, sizeof taken);
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            take(own[i]);
        function->scope->member_count = 1;
    }
    struct taken *other = find_taken(wanted);
    const char *name = wanted;
    while (find_taken(name) != NULL)
        name = format_text("%s_%u", wanted, ++other->number);
    return take(name);
}

void add_member(struct scope *to, const char *line)
{
    text_print(&to->members, "%s\n", line);
}

struct scope *add_inner_scope(struct scope *in)
{
    struct scope *keep = scope;
    scope = in;
    struct scope *inner = open_scope();
    inner->awaits = true;
    scope = keep;
    return inner;
}

/* ---- Variables that stay until the function ends ---- */

/* The variable that an expression is, points into, or is a part of; or NULL. */
static struct symbol *root_of(const struct node *node)
{
    while (node->kind == E_PARENTHESES || node->kind == E_UNARY || node->kind == E_MEMBER ||
           node->kind == E_INDEX || node->kind == E_BINARY || node->kind == E_CAST)
        node = node->a;
    if (node->kind != E_TOKENS)
        return NULL;
    struct symbol *symbol = tokens[node->first].symbol;
    return symbol != NULL && symbol->kind == VARIABLE && !symbol->declarator->is_pointer ? symbol
                                                                                         : NULL;
}

static void find_kept(struct node *node)
{
    if (node == NULL)
        return;
    const struct function *f = called_function(node);
    if (f != NULL && f->is_coroutine_scoped && node->list != NULL) {
        struct symbol *symbol = root_of(node->list);
        if (symbol != NULL)
            symbol->is_kept = true;
    }
    for (struct declarator *d = node->declarators; d != NULL; d = d->next)
        find_kept(d->initialiser);
    find_kept(node->a);
    find_kept(node->b);
    find_kept(node->c);
    find_kept(node->d);
    for (struct node *part = node->list; part != NULL; part = part->next)
        find_kept(part);
}

/* True if a variable is the waiter of a coroutine-scoped operation, or an array of them. */
static bool has_kept_type(const struct declarator *d)
{
    if (d->is_pointer || d->is_function)
        return false;
    for (int i = d->specifiers->first; i < d->specifiers->end; i++) {
        if (tokens[i].kind == NAME && is_kept_waiter(i))
            return true;
    }
    return false;
}

/* ---- Which variables are members ---- */

/*
 * A whole expression with an await is decomposed, and so are the blocks in it: their variables are
 * members even if the block itself does not await.
 */
static bool decompose_node(struct node *node)
{
    bool found = false;
    if (node == NULL)
        return false;
    if (node->kind == E_BLOCK) {
        node->a->scope->awaits = true;
        return node->awaits = true;
    }
    if (node->kind >= S_EXPRESSION)
        return false;
    found |= decompose_node(node->a);
    found |= decompose_node(node->b);
    found |= decompose_node(node->c);
    for (struct node *part = node->list; part != NULL; part = part->next)
        found |= decompose_node(part);
    return node->awaits |= found;
}

static void decompose_parts(struct node *node);

static void decompose_expression(struct node *node)
{
    if (node == NULL)
        return;
    if (node->awaits)
        decompose_node(node);
    decompose_parts(node);
}

/* Finds whole expressions, in statements and in the blocks of expressions. */
static void decompose_parts(struct node *node)
{
    if (node == NULL)
        return;
    if (node->kind == S_DECLARATION) {
        for (struct declarator *d = node->declarators; d != NULL; d = d->next)
            decompose_expression(d->initialiser);
        return;
    }
    struct node *parts[] = {node->a, node->b, node->c, node->d};
    for (int i = 0; i < 4; i++) {
        if (parts[i] == NULL)
            continue;
        if (node->kind >= S_EXPRESSION && parts[i]->kind < S_EXPRESSION)
            decompose_expression(parts[i]);
        else
            decompose_parts(parts[i]);
    }
    for (struct node *part = node->list; part != NULL; part = part->next)
        decompose_parts(part);
}

/* The names of the file that are used in the function's body: tokens, in a table with room for twice as many. */
static int *used_names;
static size_t used_room;

static int *used_place(const char *name, size_t length)
{
    unsigned hash = 5381;
    for (size_t i = 0; i < length; i++)
        hash = hash * 33 ^ (unsigned char)name[i];
    size_t place = hash % used_room;
    while (used_names[place] != 0 && (tokens[used_names[place]].length != length ||
                                      memcmp(tokens[used_names[place]].at, name, length) != 0))
        place = (place + 1) % used_room;
    return &used_names[place];
}

static void find_used_names(void)
{
    const int first = function->body->first, end = function->body->end;
    size_t count = 0;
    for (int i = first; i < end; i++)
        count += tokens[i].kind == NAME && tokens[i].symbol == NULL;
    used_room = count * 2 + 1;
    used_names = allocate(used_room * sizeof *used_names);
    for (int i = first; i < end; i++) {
        if (tokens[i].kind == NAME && tokens[i].symbol == NULL)
            *used_place(tokens[i].at, tokens[i].length) = i;
    }
}

/* True if no name of the file is used in the function under the variable's name in the step function. */
static bool is_free(const char *name)
{
    return *used_place(name, strlen(name)) == 0;
}

/*
 * A number or a pointer whose address is not taken is a local of the step function while that runs.
 * It is saved when the function suspends, if it is used later.
 */
static bool may_be_local(const struct symbol *symbol)
{
    const struct declarator *d = symbol->declarator;
    bool stars = false;
    for (int i = d->first; i < d->name; i++) {
        if (token_is(i, "volatile") || token_is(i, "__volatile__"))
            return false;
        stars |= token_is(i, "*");
    }
    if (has_variable_rows(d))
        return false;
    if (symbol->needs_memory || d->cleanup != 0 || is_gnu_attribute(d->end))
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
    symbol->is_kept |= has_kept_type(d);
    symbol->is_const = d->is_const;
    symbol->member = member_name(symbol->name);
    symbol->is_local = may_be_local(symbol);
}

/* The last token of the operand of a sizeof, which is constant whatever it names. */
static int end_of_sizeof(int token)
{
    int i = token + 1;
    while (token_is(i, "*") || token_is(i, "&") || token_is(i, "sizeof"))
        i++;
    if (token_is(i, "("))
        i = closing_bracket(i);
    for (;;) {
        if (token_is(i + 1, "[") || token_is(i + 1, "("))
            i = closing_bracket(i + 1);
        else if (token_is(i + 1, ".") || token_is(i + 1, "->"))
            i += 2;
        else
            return i;
    }
}

/* Rejects the length of an array if it depends on a variable of the function. */
static void check_lengths(int name, int first, int end)
{
    unsigned depth = 0;
    for (int i = first; i < end; i++) {
        const struct symbol *symbol = tokens[i].symbol;
        if (symbol != NULL && symbol->kind == VARIABLE && has_variable_rows(symbol->declarator)) {
            report_at(name, "the type of '%s' depends on a length that is not constant",
                      spelling_of(name));
            return;
        }
    }
    for (int i = first; i < end; i++) {
        if (token_is(i, "sizeof") || token_is(i, "_Alignof") || token_is(i, "__alignof__"))
            i = end_of_sizeof(i);
        else if ((token_is(i, "__typeof__") || token_is(i, "typeof")) && token_is(i + 1, "("))
            i = closing_bracket(i + 1);
        else if (token_is(i, "["))
            depth++;
        else if (token_is(i, "]"))
            depth--;
        else if (depth != 0 && tokens[i].symbol != NULL && tokens[i].symbol->kind == VARIABLE) {
            report_at(name,
                      "the length of '%s' is not constant, so it cannot be kept across an await: "
                      "give it a constant length, or allocate it",
                      spelling_of(name));
            return;
        }
    }
}

static void check_bounds(const struct declarator *d)
{
    if (has_variable_rows(d))
        check_variable_rows(d);
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

static bool is_member(const struct symbol *symbol)
{
    return symbol->in_frame &&
           (!symbol->is_local || symbol->is_saved || symbol->declarator->is_parameter);
}

static void print_members(struct text *out, const struct symbol *symbol, bool kept)
{
    if (symbol == NULL)
        return;
    print_members(out, symbol->next, kept);
    if (!is_member(symbol) || symbol->is_kept != kept)
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

/*
 * Repeats each #pragma pack between the function's { and a type. Returns false if there is none, else
 * the caller ends it with pack(pop, bide_outer).
 */
static bool begin_packing(struct text *out, int type)
{
    bool packs = false;
    for (int i = function->body->first; i < type; i++) {
        if (!is_pack(i))
            continue;
        if (!packs)
            text_print(out, "#pragma pack(push, bide_outer)\n");
        packs = true;
        text_print(out, "%s\n", spelling_of(i));
    }
    return packs;
}

/* Types that are defined in scopes with an await are defined before the struct. */
static void hoist_types(void)
{
    for (struct definition *d = definitions; d != NULL; d = d->next) {
        if (!d->scope->awaits || d->symbol->member != NULL)
            continue;
        d->symbol->member = format_text("async_%s_%s_%u", function->name,
                                        d->symbol->token != 0 ? d->symbol->name : "type", ++serial);
        if (d->keyword != 0 && token_is(d->keyword, "enum")) {
            for (int i = d->open + 1; i < d->close; i++) {
                struct symbol *symbol = tokens[i].symbol;
                if (symbol != NULL && symbol->kind == ENUMERATOR && symbol->token == i)
                    symbol->member =
                        format_text("async_%s_%s_%u", function->name, symbol->name, ++serial);
            }
        }
    }
    for (struct definition *d = definitions; d != NULL; d = d->next) {
        if (!d->scope->awaits)
            continue;
        if (d->keyword == 0) {
            check_bounds(d->declarator);
            const char *type = declared_as(d->symbol, d->symbol->member, false);
            if (d->declarator->specifiers->is_constexpr)
                text_print(&outer, "static constexpr %s = %s;\n", type,
                           file_scope_text(d->declarator->initialiser_first,
                                           d->declarator->initialiser->end));
            else
                text_print(&outer, "typedef %s;\n", type);
            continue;
        }
        if (d->open == 0) {
            text_print(&outer, "%s %s;\n", spelling_of(d->keyword), d->symbol->member);
            continue;
        }
        int tag = d->keyword + 1;
        while (is_gnu_attribute(tag))
            tag = closing_bracket(tag + 1) + 1;
        check_lengths(d->symbol->token != 0 ? tag : d->keyword, d->open, d->close);
        const char *attributes = file_scope_text(d->keyword + 1, tag);
        const char *text = file_scope_text(d->open, d->end);
        bool packs = begin_packing(&outer, d->keyword);
        text_print(&outer, "%s %s %s %s %s;\n", spelling_of(d->keyword), attributes,
                   d->symbol->member, file_scope_text(d->of, d->open), text);
        if (packs)
            text_print(&outer, "#pragma pack(pop, bide_outer)\n");
        mark_at(d->open)->hoisted = d->end - 1;
        mark_at(d->open)->definition = d;
        if (tag != d->keyword + 1)
            mark_at(d->keyword + 1)->hoisted = tag - 1;
    }
}

void lay_out_frame(struct node *node)
{
    function->kept = allocate(sizeof *function->kept);
    decompose_parts(node);
    find_kept(node);
    function->scope->awaits = true; /* the parameters are always members */
    find_used_names();
    lay_out_scope(function->scope);
    resolve_gotos(node);
    find_live_locals(node);
    hoist_types();
    check_scope(function->scope);
}

/* ---- The struct ---- */

static bool has_members(const struct scope *in)
{
    if (in->members.length != 0 || in->region != 0)
        return true;
    for (const struct symbol *s = in->symbols; s != NULL; s = s->next) {
        if (is_member(s) && !s->is_kept)
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
    if (in->region != 0)
        text_print(out, "char bide_begin_%u[0];\n", in->region);
    print_members(out, in->symbols, false);
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
    if (in->region != 0)
        text_print(out, "char bide_end_%u[0];\n", in->region);
}

/* The members that stay until the function ends: behind the others, and clear of the result. */
static void print_kept(struct text *out, const struct scope *in)
{
    print_members(out, in->symbols, true);
    for (const struct scope *inner = in->inner; inner != NULL; inner = inner->next)
        print_kept(out, inner);
}

/* The tag of the struct with all members, which is not the one that users see if that has a given size. */
const char *frame_tag(void)
{
    return function->size != NULL ? format_text("bide_async_%s_frame_", function->name)
                                  : format_text("async_%s", function->name);
}

const char *frame_header(void)
{
    return function->kind != NULL    ? format_text("%s promise", function->kind)
           : function->value != NULL ? format_text("%s generator", function->generator)
                                     : "bide_task task";
}

void print_frame(struct text *out)
{
    if (file_packs())
        text_print(out, "#pragma pack(push)\n#pragma pack()\n");
    text_print(out, "struct %s {\n%s;\n", frame_tag(), frame_header());
    if (function->value != NULL)
        text_print(out, "__typeof__(%s) value;\n", function->value);
    if (function->yields != NULL)
        text_print(out, "%s value;\n", function->yields);
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
    print_kept(out, function->scope);
    if (function->kept->members.length != 0)
        text_add(out, function->kept->members.at, function->kept->members.length);
    text_print(out, "}%s;\n", function->size != NULL ? " __attribute__((__may_alias__))" : "");
    if (file_packs())
        text_print(out, "#pragma pack(pop)\n");
}
