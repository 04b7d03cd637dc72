/*
 * The file: what stands at its outermost level. Async functions are translated; all else is copied,
 * and looked through for the names of types and for functions that make awaiters.
 */
#include "bidec.h"

#include <stdlib.h>
#include <string.h>

/* ---- Names of the file ---- */

enum { BUCKETS = 1 << 14 };

struct name {
    struct name *next;
    const char *at;
    size_t length;
    bool is_type, is_array, is_scalar;
    struct function *function;
};

static struct name *names[BUCKETS];
static struct value *values;
struct function *first_function;
static struct function **last_function = &first_function;

static struct name *find_name(const char *at, size_t length, bool add)
{
    unsigned hash = 5381;
    for (size_t i = 0; i < length; i++)
        hash = hash * 33 ^ (unsigned char)at[i];
    struct name **head = &names[hash % BUCKETS];
    for (struct name *name = *head; name != NULL; name = name->next) {
        if (name->length == length && memcmp(name->at, at, length) == 0)
            return name;
    }
    if (!add)
        return NULL;
    struct name *name = take(sizeof *name);
    name->at = at;
    name->length = length;
    name->next = *head;
    return *head = name;
}

bool is_global_type(int token)
{
    const struct name *name = find_name(tokens[token].at, tokens[token].length, false);
    return name != NULL && name->is_type;
}

/* A type's name that is, or stands for, an array. */
bool is_global_array(int token)
{
    const struct name *name = find_name(tokens[token].at, tokens[token].length, false);
    return is(token, "__builtin_va_list") || (name != NULL && name->is_array);
}

bool is_global_scalar(int token)
{
    const struct name *name = find_name(tokens[token].at, tokens[token].length, false);
    return name != NULL && name->is_type && name->is_scalar;
}

struct function *find_function(const char *text, size_t length)
{
    const struct name *name = find_name(text, length, false);
    return name != NULL ? name->function : NULL;
}

static struct function *add_function(int token)
{
    struct name *name = find_name(tokens[token].at, tokens[token].length, true);
    if (name->function == NULL) {
        name->function = take(sizeof *name->function);
        name->function->name = spelled(token);
        *last_function = name->function;
        last_function = &name->function->next;
    }
    return name->function;
}

struct value *find_value(const char *waiter)
{
    struct value *value = values;
    while (value != NULL && (waiter == NULL || strcmp(value->waiter, waiter) != 0))
        value = value->next;
    return value;
}

/* ---- Functions that make awaiters ---- */

static unsigned stars_between(int first, int end)
{
    unsigned stars = 0;
    for (int i = first; i < end; i++)
        stars += is(i, "*");
    return stars;
}

static bool is_awaiter_pointer(int first, int end)
{
    bool named = false;
    for (int i = first; i < end; i++) {
        if (is(i, "__attribute__") && is(i + 1, "(")) {
            i = closing(i + 1);
            continue;
        }
        if (is(i, "(") || is(i, "["))
            return false;
        named |= is(i, "bide_awaiter");
    }
    return named && stars_between(first, end) == 1;
}

/* The type that the first parameter points at: where an operation keeps itself. */
static const char *waiter_type(int first, int end)
{
    if (stars_between(first, end) != 1)
        return NULL;
    for (int i = first; i < end; i++) {
        if (is(i, "(") || is(i, "[") || is(i, "void") || is(i, "const") || is(i, "char"))
            return NULL;
        if (is(i, "*"))
            return outside(first, i);
    }
    return NULL;
}

static void note_awaiter_maker(struct function *f, int open)
{
    int close = closing(open), first = open + 1;
    f->open = open;
    f->close = close;
    f->makes_awaiter = true;
    f->parameter_count = 0;
    if (is(first, "void") && first + 1 == close)
        return;
    for (int i = first; i <= close && close > open + 1; i++) {
        if (i != close && (is(i, "(") || is(i, "["))) {
            i = closing(i);
            continue;
        }
        if (i != close && !is(i, ","))
            continue;
        if (f->parameter_count == 0)
            f->waiter = is_awaiter_pointer(first, i) ? NULL : waiter_type(first, i);
        if (f->parameter_count < 16)
            f->takes_awaiter[f->parameter_count] = is_awaiter_pointer(first, i);
        f->parameter_count++;
        first = i + 1;
    }
}

/* ---- Copying ---- */

bool (*on_function)(struct text *out, struct specifiers *specifiers, struct declarator *d);

static const char *copied; /* up to here */

struct piece *first_piece;
static struct piece **last_piece = &first_piece;

static void add_piece(int first, int last, size_t begin, size_t end)
{
    struct piece *piece = take(sizeof *piece);
    *piece = (struct piece){NULL, first, last, begin, end};
    *last_piece = piece;
    last_piece = &piece->next;
}

static void copy_to(struct text *out, int token)
{
    text_add(out, copied, (size_t)(tokens[token].at - copied));
}

/* From behind `token`; what stands between it and the next one goes with it. */
static void copy_behind(struct text *out, int token)
{
    const struct token *t = &tokens[token];
    text_print(out, "\n# %u \"%s\"%s\n", t->line, t->file, t->system ? " 3" : "");
    copied = t->at + t->length;
}

/* ---- Async functions ---- */

static void read_async(struct text *out, struct specifiers *specifiers, struct declarator *d)
{
    int name = d->name, first = specifiers->first;
    if (!d->is_function || d->is_pointer)
        refuse(name, "only a function is async");
    struct function *f = add_function(name);
    if (f->has_body)
        refuse(name, "%s is defined already", f->name);
    function = f;
    f->is_async = true;
    f->is_created |= specifiers->is_created;
    if (specifiers->size != 0)
        f->size = outside(specifiers->size, specifiers->size_end);
    if (specifiers->value != 0)
        f->value = outside(specifiers->value, specifiers->value_end);
    if (f->size != NULL && f->is_created)
        refuse(name, "a frame that is created needs no size");
    if (f->value != NULL && f->is_created)
        refuse(name, "the frame of a generator is not created: it is where its values are taken");
    f->is_static |= specifiers->is_static;
    f->name_token = name;
    for (int i = d->first; i < name; i++) {
        if (is(i, "("))
            refuse(i, "an async function that returns a pointer to a function needs a typedef");
    }
    const char *type = plain_specifiers(specifiers, stars_between(d->first, name) == 0);
    if (type[strspn(type, " ")] == 0)
        refuse(name, "an async function says what it returns");
    f->result = print("%s %s", type, outside(d->first, name));
    f->returns_nothing =
        strcmp(type + strspn(type, " "), "void") == 0 && stars_between(d->first, name) == 0;
    f->returns_struct = stars_between(d->first, name) == 0 && !is_scalar(specifiers);
    f->open = d->parameters;
    f->close = closing(d->parameters);
    scope = NULL;
    definitions = NULL;
    last_loop = NULL;
    has_labels = false;
    open_scope();
    f->scope = scope;
    at = f->open;
    f->parameters = parse_parameters();
    f->parameter_count = 0;
    for (struct declarator *p = f->parameters; p != NULL; p = p->next)
        f->parameter_count++;
    skip_attributes();
    copy_to(out, first);
    size_t begin = out->length;
    if (is(at, "{")) {
        for (struct declarator *p = f->parameters; p != NULL; p = p->next) {
            if (p->name == 0)
                refuse(p->first, "a parameter of a function that is defined has a name");
        }
        f->body = parse_block(f->scope);
        f->scope->first = f->body->first;
        f->scope->last = at - 1;
        print_function(out);
        f->defined = f->has_body = true;
    } else {
        expect(";");
        print_declaration(out);
    }
    function = NULL;
    scope = NULL;
    add_piece(first, at - 1, begin, out->length);
    copy_behind(out, at - 1);
}

/* __bide_async_value(waiter, type, expression); */
static void read_value(struct text *out)
{
    struct value *value = take(sizeof *value);
    int first = at, close = closing(at + 1), comma = at + 3;
    copy_to(out, first);
    value->waiter = spelled(at + 2);
    while (!is(comma + 1, ",") && comma < close)
        comma++;
    value->type = outside(at + 4, comma + 1);
    value->expression = outside(comma + 2, close);
    value->next = values;
    values = value;
    at = close + 1;
    expect(";");
    copy_behind(out, at - 1);
}

/* ---- The outermost level ---- */

static void skip_to_end(void)
{
    while (tokens[at].kind != END && !is(at, ";") && !is(at, ",")) {
        if (is(at, "(") || is(at, "[") || is(at, "{"))
            at = closing(at);
        at++;
    }
}

static bool rewrite_function(struct text *out, struct specifiers *specifiers, struct declarator *d)
{
    struct text text = {0};
    text_add(&text, "", 0);
    if (!on_function(&text, specifiers, d))
        return false;
    copy_to(out, specifiers->first);
    text_add(out, text.at, text.length);
    copy_behind(out, at - 1);
    return true;
}

static void read_declarators(struct text *out, struct specifiers *specifiers)
{
    while (tokens[at].kind != END && !is(at, ";")) {
        int start = at;
        struct declarator *d = parse_declarator(specifiers);
        if (d->name != 0 && specifiers->is_typedef) {
            struct name *name = find_name(tokens[d->name].at, tokens[d->name].length, true);
            name->is_type = true;
            name->is_scalar =
                d->is_pointer || (!d->is_array && !d->is_function && is_scalar(specifiers));
            name->is_array = d->is_array || (!d->is_pointer && !d->is_function &&
                                             is_global_array(specifiers->end - 1));
        } else if (d->name != 0 && specifiers->is_async) {
            read_async(out, specifiers, d);
            return;
        } else if (d->name != 0 && d->is_function) {
            struct function *f = add_function(d->name);
            if (!f->is_async && is_awaiter_pointer(specifiers->first, d->name))
                note_awaiter_maker(f, d->parameters);
        }
        if (d->is_function && !is(at, ";") && !is(at, ",") && !is(at, "=")) {
            if (on_function != NULL && is(at, "{") && rewrite_function(out, specifiers, d))
                return;
            /* a body, perhaps behind the declarations of an old style */
            while (tokens[at].kind != END && !is(at, "{"))
                at++;
            if (tokens[at].kind != END)
                at = closing(at) + 1;
            return;
        }
        skip_to_end();
        if (!accept(",") && at == start)
            at++;
    }
    accept(";");
}

void translate(struct text *out, const char *input)
{
    copied = input;
    at = 0;
    while (tokens[at].kind != END) {
        if (tokens[at].kind == PRAGMA || is(at, ";")) {
            at++;
        } else if (is(at, "__bide_async_value")) {
            read_value(out);
        } else if (is(at, "_Static_assert") || is(at, "__asm__") || is(at, "asm")) {
            skip_to_end();
            accept(";");
        } else {
            read_declarators(out, parse_specifiers());
        }
    }
    copy_to(out, at);
    text_add(out, "\n", 1);
}
