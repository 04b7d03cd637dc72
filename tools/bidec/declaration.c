/*
 * Declarations, and the names that they make.
 *
 * Of a declaration is known: which names it declares, whether each is a function, an array or a
 * pointer, and where its parts stand. What the types are is left to the compiler.
 */
#include "bidec.h"

#include <string.h>

int at;
struct scope *scope;
struct function *function;
unsigned serial;
struct definition *definitions;

bool accept(const char *text)
{
    if (!is(at, text))
        return false;
    at++;
    return true;
}

void expect(const char *text)
{
    if (!accept(text))
        refuse(at, "here should stand '%s', not '%s'", text, spelled(at));
}

struct node *new_node(enum node_kind kind, int first)
{
    struct node *node = take(sizeof *node);
    node->kind = kind;
    node->first = first;
    node->scope = scope;
    return node;
}

struct node *finish(struct node *node)
{
    node->end = at;
    return node;
}

/* ---- Scopes ---- */

struct scope *open_scope(void)
{
    struct scope *inner = take(sizeof *inner);
    inner->up = scope;
    inner->first = inner->last = at;
    if (scope != NULL) {
        if (scope->last_inner != NULL)
            scope->last_inner->next = inner;
        else
            scope->inner = inner;
        scope->last_inner = inner;
    }
    scope = inner;
    return inner;
}

void close_scope(void)
{
    scope->last = at - 1;
    scope = scope->up;
}

static bool same_name(const struct symbol *symbol, int token)
{
    return strlen(symbol->name) == tokens[token].length &&
           memcmp(symbol->name, tokens[token].at, tokens[token].length) == 0;
}

static struct symbol *find(int token, bool tags)
{
    if (tokens[token].kind != NAME)
        return NULL;
    for (struct scope *s = scope; s != NULL; s = s->up) {
        for (struct symbol *symbol = s->symbols; symbol != NULL; symbol = symbol->next) {
            if ((symbol->kind == TAG) == tags && symbol->kind != LABEL && same_name(symbol, token))
                return symbol;
        }
    }
    return NULL;
}

struct symbol *find_symbol(int token)
{
    return find(token, false);
}

struct symbol *declare(enum symbol_kind kind, int token, struct declarator *declarator)
{
    struct symbol *symbol = take(sizeof *symbol);
    symbol->kind = kind;
    symbol->name = token != 0 ? spelled(token) : "";
    symbol->scope = scope;
    symbol->declarator = declarator;
    symbol->token = token;
    symbol->next = scope->symbols;
    scope->symbols = symbol;
    if (token != 0)
        tokens[token].symbol = symbol;
    return symbol;
}

/* ---- Types ---- */

static const char *const type_words[] = {
    "void",        "char",
    "short",       "int",
    "long",        "float",
    "double",      "signed",
    "unsigned",    "_Bool",
    "bool",        "_Complex",
    "__complex__", "__complex",
    "__signed__",  "__int128",
    "__int128_t",  "__uint128_t",
    "_Float16",    "_Float32",
    "_Float64",    "_Float128",
    "_Float32x",   "_Float64x",
    "__float128",  "__builtin_va_list",
    "_Decimal32",  "_Decimal64",
    "_Decimal128", "_Imaginary",
    "__bf16",      NULL,
};

static const char *const other_words[] = {
    "const",         "volatile",   "restrict",      "__const",  "__const__",  "__volatile",
    "__volatile__",  "__restrict", "__restrict__",  "static",   "extern",     "register",
    "auto",          "typedef",    "inline",        "__inline", "__inline__", "_Noreturn",
    "_Thread_local", "__thread",   "__extension__", NULL,
};

static bool is_one_of(int token, const char *const *words)
{
    if (tokens[token].kind != NAME)
        return false;
    for (; *words != NULL; words++) {
        if (is(token, *words))
            return true;
    }
    return false;
}

static bool is_typeof(int token)
{
    return is(token, "typeof") || is(token, "__typeof__") || is(token, "__typeof");
}

static bool is_tag_word(int token)
{
    return is(token, "struct") || is(token, "union") || is(token, "enum");
}

static bool is_attribute(int token)
{
    return is(token, "__attribute__") || is(token, "__attribute") || is(token, "__declspec");
}

static bool is_alignment(int token)
{
    return is(token, "_Alignas") || is(token, "alignas");
}

/* A type's name, if no name of this scope hides it. */
static bool is_type_name(int token)
{
    if (tokens[token].kind != NAME)
        return false;
    struct symbol *symbol = find_symbol(token);
    return symbol != NULL ? symbol->kind == TYPE_NAME : is_global_type(token);
}

bool is_type_start(int token)
{
    if (tokens[token].kind != NAME)
        return false;
    if (is(token, "__extension__"))
        return is_type_start(token + 1);
    return is_one_of(token, type_words) || is_one_of(token, other_words) || is_tag_word(token) ||
           is_typeof(token) || is_attribute(token) || is_alignment(token) ||
           is(token, "__auto_type") || is(token, "_Atomic") || is_type_name(token);
}

/* Passes attributes. In a body they are looked through for a cleanup function. */
int skip_attributes(void)
{
    int cleanup = 0;
    while (is_attribute(at) || is(at, "__asm__") || is(at, "asm") || is(at, "__asm")) {
        int open = at + 1;
        if (!is(open, "("))
            refuse(at, "an attribute has its parentheses behind it");
        int close = closing(open);
        for (int i = open; function != NULL && i < close; i++) {
            if ((is(i, "cleanup") || is(i, "__cleanup__")) && is(i + 1, "("))
                cleanup = i + 2;
        }
        at = close + 1;
    }
    return cleanup;
}

static void parse_fields(void)
{
    while (!is(at, "}")) {
        if (tokens[at].kind == END)
            refuse(at, "the file ends in a struct");
        if (accept(";") || tokens[at].kind == PRAGMA) {
            at += tokens[at].kind == PRAGMA;
            continue;
        }
        if (is(at, "_Static_assert")) {
            at = closing(at + 1) + 1;
            continue;
        }
        struct specifiers *specifiers = parse_specifiers();
        while (!is(at, ";")) {
            if (!is(at, ":"))
                parse_declarator(specifiers);
            if (accept(":"))
                parse_condition();
            skip_attributes();
            if (!accept(","))
                break;
        }
        expect(";");
    }
}

static void parse_enumerators(void)
{
    while (!is(at, "}")) {
        if (tokens[at].kind != NAME)
            refuse(at, "here should stand the name of a constant");
        declare(ENUMERATOR, at++, NULL);
        skip_attributes();
        if (accept("="))
            parse_condition();
        if (!accept(","))
            break;
    }
}

static void parse_tagged(struct specifiers *specifiers)
{
    int keyword = at++, tag = 0;
    skip_attributes();
    if (tokens[at].kind == NAME)
        tag = at++;
    specifiers->is_struct = !is(keyword, "enum");
    if (!is(at, "{")) {
        if (tag == 0)
            refuse(at, "a struct has a tag, or its members in braces");
        if (function != NULL)
            tokens[tag].symbol = find(tag, true);
        return;
    }
    int open = at, close = closing(at);
    if (function == NULL) {
        at = close + 1;
        skip_attributes();
        return;
    }
    struct definition *definition = take(sizeof *definition), **last = &definitions;
    definition->symbol = declare(TAG, tag, NULL);
    if (tag == 0)
        tokens[keyword].symbol = definition->symbol;
    definition->scope = scope;
    definition->keyword = keyword;
    definition->open = open;
    definition->close = close;
    specifiers->has_body = true;
    at++;
    if (is(keyword, "enum"))
        parse_enumerators();
    else
        parse_fields();
    expect("}");
    skip_attributes();
    /* behind those that are defined in it */
    while (*last != NULL)
        last = &(*last)->next;
    *last = definition;
}

/* Passes what stands in parentheses: a type, or an expression. */
static void parse_type_or_expression(void)
{
    expect("(");
    if (function == NULL) {
        at = closing(at - 1) + 1;
        return;
    }
    if (is_type_start(at))
        parse_type_name();
    else
        parse_expression();
    expect(")");
}

struct specifiers *parse_specifiers(void)
{
    struct specifiers *s = take(sizeof *s);
    bool has_type = false;
    s->first = at;
    for (;;) {
        if (is_attribute(at)) {
            skip_attributes();
        } else if (is_one_of(at, other_words)) {
            s->is_typedef |= is(at, "typedef");
            s->is_static |= is(at, "static");
            s->is_extern |= is(at, "extern");
            s->is_const |= is(at, "const") || is(at, "__const") || is(at, "__const__");
            at++;
        } else if (is_one_of(at, type_words)) {
            has_type = true;
            at++;
        } else if (is_tag_word(at)) {
            parse_tagged(s);
            has_type = true;
        } else if (is_typeof(at)) {
            at++;
            parse_type_or_expression();
            has_type = s->is_struct = true;
        } else if (is_alignment(at)) {
            at++;
            parse_type_or_expression();
        } else if (is(at, "__auto_type")) {
            s->is_automatic = has_type = true;
            at++;
        } else if (is(at, "_Atomic")) {
            at++;
            if (is(at, "(")) {
                parse_type_or_expression();
                has_type = true;
            }
        } else if (function == NULL && !has_type && is(at, "async")) {
            s->is_async = true;
            at++;
        } else if (function == NULL && !has_type && is(at, "async_created")) {
            s->is_async = s->is_created = true;
            at++;
        } else if (function == NULL && !has_type && is(at, "async_generator") && is(at + 1, "(")) {
            s->is_async = true;
            s->value = at + 2;
            s->value_end = closing(at + 1);
            at = s->value_end + 1;
        } else if (function == NULL && !has_type && is(at, "async_sized") && is(at + 1, "(")) {
            s->is_async = true;
            s->size = at + 2;
            s->size_end = closing(at + 1);
            at = s->size_end + 1;
        } else if (!has_type && is_type_name(at)) {
            if (function != NULL)
                tokens[at].symbol = find_symbol(at);
            has_type = s->is_struct = true;
            at++;
        } else {
            break;
        }
    }
    s->end = at;
    return s;
}

bool is_scalar(const struct specifiers *specifiers)
{
    for (int i = specifiers->first; i < specifiers->end; i++) {
        if (is(i, "struct") || is(i, "union") || is_typeof(i) || is_attribute(i) ||
            is(i, "_Atomic") || is(i, "volatile") || is(i, "__volatile__") ||
            is(i, "__builtin_va_list") || is(i, "__auto_type") || is_alignment(i))
            return false;
        if (is(i, "async_sized") || is(i, "async_generator"))
            i = closing(i + 1);
        else if (is(i, "async") || is(i, "async_created"))
            continue;
        if (is(i, "enum")) {
            while (i + 1 < specifiers->end && (tokens[i + 1].kind == NAME || is(i + 1, "{"))) {
                i++;
                if (is(i, "{"))
                    i = closing(i);
            }
            continue;
        }
        if (tokens[i].kind == NAME && !is_one_of(i, type_words) && !is_one_of(i, other_words) &&
            !is_global_scalar(i))
            return false;
    }
    return true;
}

struct declarator *parse_parameters(void)
{
    struct declarator *first = NULL, **last = &first;
    expect("(");
    if (is(at, "void") && is(at + 1, ")"))
        at++;
    while (!is(at, ")")) {
        if (is(at, "..."))
            refuse(at, "an async function has no arguments without a name; take a va_list *");
        struct specifiers *specifiers = parse_specifiers();
        if (at == specifiers->first)
            refuse(at, "'%s' is no type that is known here", spelled(at));
        struct declarator *parameter = parse_declarator(specifiers);
        parameter->is_parameter = true;
        parameter->is_pointer |= parameter->is_array || parameter->is_function;
        if (parameter->name != 0)
            parameter->symbol = declare(VARIABLE, parameter->name, parameter);
        *last = parameter;
        last = &parameter->next;
        if (!accept(","))
            break;
    }
    expect(")");
    return first;
}

static void parse_bound(void)
{
    expect("[");
    while (is_one_of(at, other_words))
        at++;
    if (function == NULL) {
        at = closing(at - 1) + 1;
        return;
    }
    if (is(at, "*") && is(at + 1, "]"))
        at++;
    else if (!is(at, "]"))
        parse_assignment();
    expect("]");
}

static void parse_direct(struct declarator *d, bool nested)
{
    if (is(at, "(") && !(is_type_start(at + 1) && !is_attribute(at + 1)) && !is(at + 1, ")")) {
        at++;
        skip_attributes();
        bool is_pointer = false;
        while (is(at, "*") || is(at, "^") || is_one_of(at, other_words)) {
            is_pointer |= is(at, "*");
            d->is_const = is(at, "*") ? false : d->is_const || is(at, "const");
            at++;
        }
        skip_attributes();
        parse_direct(d, true);
        d->is_pointer |= is_pointer;
        expect(")");
        if (d->suffix == 0)
            d->suffix = at;
        nested = nested || is_pointer;
        if (is_pointer)
            nested = true;
    } else if (tokens[at].kind == NAME && !is_one_of(at, other_words)) {
        d->name = at++;
        d->suffix = at;
    } else {
        d->suffix = at;
    }
    bool decided = d->is_pointer || d->is_array || d->is_function;
    while (is(at, "[") || is(at, "(")) {
        if (is(at, "[")) {
            if (!decided) {
                d->is_array = true;
                d->bound = at;
                d->open_bound = is(at + 1, "]") ? at : 0;
            }
            parse_bound();
        } else {
            if (!decided) {
                d->is_function = true;
                d->parameters = at;
            }
            if (function != NULL) {
                open_scope();
                at++;
                while (!is(at, ")")) {
                    if (accept("...") || accept(","))
                        continue;
                    struct specifiers *specifiers = parse_specifiers();
                    if (at == specifiers->first && tokens[at].kind != NAME)
                        refuse(at, "here should stand a parameter");
                    struct declarator *parameter = parse_declarator(specifiers);
                    if (parameter->name != 0)
                        parameter->symbol = declare(VARIABLE, parameter->name, parameter);
                }
                at++;
                close_scope();
            } else {
                at = closing(at) + 1;
            }
        }
        decided = true;
    }
    (void)nested;
}

/* A declarator, with or without a name, and the attributes behind it. */
struct declarator *parse_declarator(struct specifiers *specifiers)
{
    struct declarator *d = take(sizeof *d);
    d->specifiers = specifiers;
    d->first = at;
    bool stars = false;
    while (is(at, "*") || is_one_of(at, other_words) || is_attribute(at)) {
        if (is_attribute(at)) {
            skip_attributes();
            continue;
        }
        stars |= is(at, "*");
        d->is_const = is(at, "*") ? false : d->is_const || is(at, "const");
        at++;
    }
    parse_direct(d, false);
    if (stars && !d->is_array && !d->is_function)
        d->is_pointer = true;
    if (!d->is_pointer || (d->is_array && !stars))
        d->is_const |= specifiers->is_const && !stars;
    d->end = at;
    d->cleanup = skip_attributes();
    return d;
}

void parse_type_name(void)
{
    struct specifiers *specifiers = parse_specifiers();
    if (at == specifiers->first)
        refuse(at, "'%s' is no type that is known here", spelled(at));
    if (!is(at, ")") && !is(at, ",") && !is(at, ":"))
        parse_declarator(specifiers);
}

/* The specifiers may name a cleanup function, too: in front of the declarators. */
static int cleanup_between(int first, int end)
{
    for (int i = first; i < end; i++) {
        if ((is(i, "cleanup") || is(i, "__cleanup__")) && is(i + 1, "("))
            return i + 2;
    }
    return 0;
}

struct node *parse_declaration(void)
{
    struct node *node = new_node(S_DECLARATION, at);
    if (is(at, "_Static_assert")) {
        node->kind = S_COPIED;
        at++;
        expect("(");
        parse_condition();
        at = closing(node->first + 1) + 1;
        expect(";");
        return finish(node);
    }
    struct specifiers *specifiers = parse_specifiers();
    struct declarator **last = &node->declarators;
    node->specifiers = specifiers;
    while (!is(at, ";")) {
        struct declarator *d = parse_declarator(specifiers);
        if (d->name == 0)
            refuse(at, "here should stand a name that is declared, not '%s'", spelled(at));
        if (is(at, "{"))
            refuse(d->name, "a function in a function is nothing that is translated");
        if (d->cleanup == 0)
            d->cleanup = cleanup_between(specifiers->first, specifiers->end);
        d->symbol = declare(specifiers->is_typedef ? TYPE_NAME : VARIABLE, d->name, d);
        if (specifiers->is_typedef) {
            struct definition *definition = take(sizeof *definition), **end = &definitions;
            definition->scope = scope;
            definition->symbol = d->symbol;
            definition->declarator = d;
            while (*end != NULL)
                end = &(*end)->next;
            *end = definition;
        }
        *last = d;
        last = &d->next;
        if (accept("=")) {
            d->initialiser_first = at;
            d->initialiser = parse_initialiser();
            node->awaits |= d->initialiser->awaits;
        }
        if (!accept(","))
            break;
    }
    expect(";");
    return finish(node);
}
