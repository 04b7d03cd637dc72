/*
 * Declarations and scopes.
 *
 * bidec knows which names a declaration declares, whether each of them is a function, an array or a
 * pointer, and the tokens of its parts. The types themselves are left to the compiler.
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
    if (!token_is(at, text))
        return false;
    at++;
    return true;
}

void expect(const char *text)
{
    if (!accept(text))
        reject_at(at, "expected '%s', not '%s'", text, spelling_of(at));
}

struct node *new_node(enum node_kind kind, int first)
{
    struct node *node = allocate(sizeof *node);
    node->kind = kind;
    node->first = first;
    node->scope = scope;
    return node;
}

struct node *finish_node(struct node *node)
{
    node->end = at;
    return node;
}

/* ---- Scopes ---- */

/* The symbols of the function that is parsed, the newest first in their bucket. */
enum { SYMBOL_BUCKETS = 1 << 10 };
static struct symbol *symbols[SYMBOL_BUCKETS];

static struct symbol **bucket_of(int token)
{
    unsigned hash = 5381;
    for (unsigned i = 0; i < tokens[token].length; i++)
        hash = hash * 33 ^ (unsigned char)tokens[token].at[i];
    return &symbols[hash % SYMBOL_BUCKETS];
}

struct scope *open_scope(void)
{
    struct scope *inner = allocate(sizeof *inner);
    if (scope == NULL)
        memset(symbols, 0, sizeof symbols);
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
    scope->is_closed = true;
    scope = scope->up;
}

/* The scopes that are open are those around the parser, so the newest symbol is the innermost. */
static struct symbol *find_in_scopes(int token, bool tags)
{
    if (tokens[token].kind != NAME)
        return NULL;
    struct symbol **head = bucket_of(token);
    while (*head != NULL && (*head)->scope->is_closed)
        *head = (*head)->older;
    for (struct symbol *symbol = *head; symbol != NULL; symbol = symbol->older) {
        if (!symbol->scope->is_closed && (symbol->kind == TAG) == tags &&
            tokens[symbol->token].length == tokens[token].length &&
            memcmp(symbol->name, tokens[token].at, tokens[token].length) == 0)
            return symbol;
    }
    return NULL;
}

static struct symbol *find_tag_here(int tag)
{
    struct symbol *symbol = find_in_scopes(tag, true);
    return symbol != NULL && symbol->scope == scope ? symbol : NULL;
}

struct symbol *find_symbol(int token)
{
    return find_in_scopes(token, false);
}

struct symbol *find_tag(int token)
{
    return find_in_scopes(token, true);
}

void note_outside(int token)
{
    tokens[token].is_outside = function != NULL && function->is_block;
}

struct symbol *declare(enum symbol_kind kind, int token, struct declarator *declarator)
{
    struct symbol *symbol = allocate(sizeof *symbol);
    symbol->kind = kind;
    symbol->name = token != 0 ? spelling_of(token) : "";
    symbol->scope = scope;
    symbol->declarator = declarator;
    symbol->token = token;
    symbol->next = scope->symbols;
    scope->symbols = symbol;
    if (token != 0) {
        tokens[token].symbol = symbol;
        symbol->older = *bucket_of(token);
        *bucket_of(token) = symbol;
    }
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
    "const",         "volatile",   "restrict",      "__const",      "__const__",  "__volatile",
    "__volatile__",  "__restrict", "__restrict__",  "static",       "extern",     "register",
    "auto",          "typedef",    "inline",        "__inline",     "__inline__", "_Noreturn",
    "_Thread_local", "__thread",   "__extension__", "thread_local", "constexpr",  "_Nullable",
    "_Nonnull",      NULL,
};

static bool is_one_of(int token, const char *const *words)
{
    if (tokens[token].kind != NAME)
        return false;
    for (; *words != NULL; words++) {
        if (token_is(token, *words))
            return true;
    }
    return false;
}

static bool is_typeof(int token)
{
    return token_is(token, "typeof") || token_is(token, "__typeof__") ||
           token_is(token, "__typeof") || token_is(token, "typeof_unqual") ||
           token_is(token, "__typeof_unqual__") || token_is(token, "__typeof_unqual");
}

static bool is_tag_word(int token)
{
    return token_is(token, "struct") || token_is(token, "union") || token_is(token, "enum");
}

static bool is_attribute(int token)
{
    return token_is(token, "__attribute__") || token_is(token, "__attribute") ||
           token_is(token, "__declspec") || is_standard_attribute(token);
}

bool is_standard_attribute(int token)
{
    return token_is(token, "[") && token_is(token + 1, "[");
}

bool is_attribute_of_tag(int token)
{
    return is_standard_attribute(token) && token > 0 && is_tag_word(token - 1);
}

/* The token behind an attribute. */
static int end_of_attribute(int token)
{
    return closing_bracket(is_standard_attribute(token) ? token : token + 1) + 1;
}

static bool is_bit_int(int token)
{
    return (token_is(token, "_BitInt") || token_is(token, "_ExtInt")) && token_is(token + 1, "(");
}

static bool is_alignment(int token)
{
    return token_is(token, "_Alignas") || token_is(token, "alignas");
}

/* A local name hides a type of the file. */
static bool is_type_name(int token)
{
    if (tokens[token].kind != NAME)
        return false;
    struct symbol *symbol = find_symbol(token);
    return symbol != NULL ? symbol->kind == TYPE_NAME : is_global_type(token);
}

bool is_type_start(int token)
{
    if (is_standard_attribute(token))
        return true;
    if (tokens[token].kind != NAME)
        return false;
    if (token_is(token, "__extension__"))
        return is_type_start(token + 1);
    return is_one_of(token, type_words) || is_one_of(token, other_words) || is_tag_word(token) ||
           is_typeof(token) || is_attribute(token) || is_alignment(token) ||
           token_is(token, "__auto_type") || token_is(token, "_Atomic") || is_bit_int(token) ||
           is_type_name(token);
}

/* In a body, the attributes are searched for a cleanup function. */
int skip_attributes(void)
{
    int cleanup = 0;
    while (is_attribute(at) || token_is(at, "__asm__") || token_is(at, "asm") ||
           token_is(at, "__asm")) {
        bool standard = is_standard_attribute(at);
        int open = standard ? at : at + 1;
        if (!standard && !token_is(open, "("))
            reject_at(at, "expected '(' after '%s'", spelling_of(at));
        int close = closing_bracket(open);
        for (int i = open; function != NULL && i < close; i++) {
            if ((token_is(i, "cleanup") || token_is(i, "__cleanup__")) && token_is(i + 1, "("))
                cleanup = i + 2;
        }
        at = close + 1;
    }
    return cleanup;
}

static void parse_fields(void)
{
    while (!token_is(at, "}")) {
        if (tokens[at].kind == END)
            reject_at(at, "expected '}' before the end of the file");
        if (accept(";") || tokens[at].kind == PRAGMA) {
            at += tokens[at].kind == PRAGMA;
            continue;
        }
        if (token_is(at, "_Static_assert")) {
            int open = ++at;
            expect("(");
            parse_condition(); /* it may name variables */
            at = closing_bracket(open) + 1;
            continue;
        }
        struct specifiers *specifiers = parse_specifiers();
        while (!token_is(at, ";")) {
            if (!token_is(at, ":"))
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
    while (!token_is(at, "}")) {
        if (tokens[at].kind != NAME)
            reject_at(at, "expected the name of a constant, not '%s'", spelling_of(at));
        declare(ENUMERATOR, at++, NULL);
        skip_attributes();
        if (accept("="))
            parse_condition();
        if (!accept(","))
            break;
    }
}

/* Adds a definition after those of the types that are defined in it. */
static void add_definition(struct definition *definition)
{
    struct definition **last = &definitions;
    while (*last != NULL)
        last = &(*last)->next;
    *last = definition;
}

/* Declares a tag in the scope, as `struct tag;` does. */
static struct symbol *declare_tag(int keyword, int tag)
{
    struct definition *definition = allocate(sizeof *definition);
    definition->symbol = declare(TAG, tag, NULL);
    definition->scope = scope;
    definition->keyword = keyword;
    add_definition(definition);
    return definition->symbol;
}

/* True if the tag is defined behind the token, perhaps in another scope. */
static bool is_defined_behind(int tag)
{
    for (int i = tag + 1; tokens[i].kind != END; i++) {
        if (token_is(i, "{") && tokens[i - 1].kind == NAME &&
            tokens[i - 1].length == tokens[tag].length &&
            memcmp(tokens[i - 1].at, tokens[tag].at, tokens[tag].length) == 0)
            return true;
    }
    return false;
}

/* A tag without a body in a function. */
static struct symbol *refer_to_tag(int keyword, int tag, bool alone)
{
    struct symbol *known = find_in_scopes(tag, true);
    if (token_is(keyword, "enum") || tag < function->close)
        return known;
    if (alone)
        known = find_tag_here(tag);
    else if (known == NULL && (is_global_tag(tag) || !is_defined_behind(tag)))
        return NULL;
    return known != NULL ? known : declare_tag(keyword, tag);
}

/* enum tag : type { ... }. What follows the colon may be the width of a bit-field instead. */
static bool tag_has_type(int tag)
{
    return token_is(at, ":") && is_type_start(at + 1) && (tag == 0 || tag == at - 1);
}

static void parse_tagged(struct specifiers *specifiers)
{
    int keyword = at++, tag = 0;
    bool is_first = keyword == specifiers->first;
    skip_attributes();
    if (tokens[at].kind == NAME)
        tag = at++;
    specifiers->is_struct = !token_is(keyword, "enum");
    if (function == NULL)
        note_global_tags(keyword, at);
    int of = at;
    if (token_is(keyword, "enum") && tag_has_type(tag)) {
        at++;
        parse_specifiers();
    }
    if (!token_is(at, "{")) {
        if (tag == 0)
            reject_at(at, "expected a tag or '{', not '%s'", spelling_of(at));
        if (function != NULL)
            tokens[tag].symbol = refer_to_tag(keyword, tag, is_first && token_is(at, ";"));
        if (tokens[tag].symbol == NULL)
            note_outside(tag);
        return;
    }
    int open = at, close = closing_bracket(at);
    if (function == NULL) {
        note_global_tags(open, close);
        at = close + 1;
        skip_attributes();
        return;
    }
    int behind = close + 1;
    while (is_attribute(behind))
        behind = end_of_attribute(behind);
    if (tag == 0 && token_is(behind, ";") && !token_is(keyword, "enum")) {
        specifiers->has_body = true; /* an anonymous member: part of the struct around it */
        at++;
        parse_fields();
        expect("}");
        skip_attributes();
        return;
    }
    struct definition *definition = allocate(sizeof *definition);
    struct symbol *declared = tag != 0 ? find_tag_here(tag) : NULL;
    definition->symbol =
        declared != NULL && !declared->has_body ? declared : declare(TAG, tag, NULL);
    definition->symbol->has_body = true;
    tokens[tag != 0 ? tag : keyword].symbol = definition->symbol;
    definition->scope = scope;
    definition->keyword = keyword;
    definition->of = of;
    definition->open = open;
    definition->close = close;
    specifiers->has_body = true;
    at++;
    if (token_is(keyword, "enum"))
        parse_enumerators();
    else
        parse_fields();
    expect("}");
    skip_attributes();
    definition->end = at;
    add_definition(definition);
}

/* Parses a type or an expression in parentheses. */
static void parse_type_or_expression(void)
{
    expect("(");
    if (function == NULL) {
        at = closing_bracket(at - 1) + 1;
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
    struct specifiers *s = allocate(sizeof *s);
    bool has_type = false, has_auto = false;
    s->first = at;
    for (;;) {
        if (is_attribute(at)) {
            skip_attributes();
        } else if (is_one_of(at, other_words)) {
            s->is_typedef |= token_is(at, "typedef");
            s->is_static |= token_is(at, "static");
            s->is_extern |= token_is(at, "extern");
            s->is_constexpr |= token_is(at, "constexpr");
            has_auto |= token_is(at, "auto");
            s->is_const |=
                token_is(at, "const") || token_is(at, "__const") || token_is(at, "__const__");
            at++;
        } else if (is_one_of(at, type_words)) {
            has_type = true;
            at++;
        } else if (is_tag_word(at)) {
            nest();
            parse_tagged(s);
            nesting--;
            has_type = true;
        } else if (is_typeof(at)) {
            at++;
            parse_type_or_expression();
            has_type = s->is_struct = true;
        } else if (is_alignment(at)) {
            at++;
            parse_type_or_expression();
        } else if (is_bit_int(at)) {
            at++;
            parse_type_or_expression();
            has_type = true;
        } else if (token_is(at, "__auto_type")) {
            s->is_automatic = has_type = true;
            at++;
        } else if (token_is(at, "_Atomic")) {
            at++;
            if (token_is(at, "(")) {
                parse_type_or_expression();
                has_type = true;
            }
        } else if (function == NULL && !has_type && token_is(at, "async")) {
            s->is_async = true;
            at++;
        } else if (function == NULL && !has_type && token_is(at, "async_created")) {
            s->is_async = s->is_created = true;
            at++;
        } else if (function == NULL && !has_type && generator_word(at) != NULL) {
            s->is_async = true;
            s->generator = generator_word(at);
            s->value = at + 2;
            s->value_end = closing_bracket(at + 1);
            at = s->value_end + 1;
        } else if (function == NULL && !has_type && token_is(at, "async_kind") &&
                   token_is(at + 1, "(")) {
            s->is_async = true;
            s->kind = at + 2;
            s->kind_end = closing_bracket(at + 1);
            at = s->kind_end + 1;
        } else if (function == NULL && !has_type && token_is(at, "async_sized") &&
                   token_is(at + 1, "(")) {
            s->is_async = true;
            s->size = at + 2;
            s->size_end = closing_bracket(at + 1);
            at = s->size_end + 1;
        } else if (!has_type && is_type_name(at)) {
            if (function != NULL)
                tokens[at].symbol = find_symbol(at);
            if (tokens[at].symbol == NULL)
                note_outside(at);
            has_type = s->is_struct = true;
            at++;
        } else {
            break;
        }
    }
    s->is_automatic |= has_auto && !has_type;
    s->end = at;
    return s;
}

/*
 * async_generator(type), and generator(type) or recursive_generator(type) before a name: these are
 * names of other programs too.
 */
const char *generator_word(int token)
{
    if (tokens[token].kind != NAME || !token_is(token + 1, "("))
        return NULL;
    if (token_is(token, "async_generator"))
        return "bide_async_generator";
    bool is_recursive = token_is(token, "recursive_generator");
    if ((!is_recursive && !token_is(token, "generator")) || is_global_name(token) ||
        !is_type_start(token + 2) || tokens[closing_bracket(token + 1) + 1].kind != NAME)
        return NULL;
    return is_recursive ? "bide_recursive_generator" : "bide_generator";
}

bool is_word_with_type(int token)
{
    return ((is_name(token, "async_sized") || is_name(token, "async_kind")) &&
            token_is(token + 1, "(")) ||
           generator_word(token) != NULL;
}

bool is_scalar(const struct specifiers *specifiers)
{
    for (int i = specifiers->first; i < specifiers->end; i++) {
        if (token_is(i, "struct") || token_is(i, "union") || is_typeof(i) || is_attribute(i) ||
            token_is(i, "_Atomic") || token_is(i, "volatile") || token_is(i, "__volatile__") ||
            token_is(i, "__builtin_va_list") || token_is(i, "__auto_type") || is_alignment(i))
            return false;
        if (is_word_with_type(i))
            i = closing_bracket(i + 1);
        else if (token_is(i, "async") || token_is(i, "async_created"))
            continue;
        if (token_is(i, "enum")) {
            while (i + 1 < specifiers->end &&
                   (tokens[i + 1].kind == NAME || token_is(i + 1, "{"))) {
                i++;
                if (token_is(i, "{"))
                    i = closing_bracket(i);
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
    if (token_is(at, "void") && token_is(at + 1, ")"))
        at++;
    while (!token_is(at, ")")) {
        if (token_is(at, "..."))
            reject_at(at, "an async function cannot be variadic; take a va_list *");
        struct specifiers *specifiers = parse_specifiers();
        if (at == specifiers->first)
            reject_at(at, "unknown type name '%s'", spelling_of(at));
        struct declarator *parameter = parse_declarator(specifiers);
        parameter->is_parameter = true;
        parameter->is_pointer |= parameter->is_array || parameter->is_function;
        if (parameter->name != 0)
            parameter->symbol = declare(VARIABLE, parameter->name, parameter);
        for (int i = parameter->first; has_variable_rows(parameter) && i < parameter->end; i++) {
            if (tokens[i].symbol != NULL)
                tokens[i].symbol->needs_memory = true; /* read where the parameter is */
        }
        if (function != NULL)
            check_row_effects(parameter);
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
        at = closing_bracket(at - 1) + 1;
        return;
    }
    if (token_is(at, "*") && token_is(at + 1, "]"))
        at++;
    else if (!token_is(at, "]"))
        parse_assignment();
    expect("]");
}

static void parse_direct(struct declarator *d, bool nested)
{
    if (token_is(at, "(") && !(is_type_start(at + 1) && !is_attribute(at + 1)) &&
        !token_is(at + 1, ")")) {
        at++;
        skip_attributes();
        bool is_pointer = false;
        while (token_is(at, "*") || token_is(at, "^") || is_one_of(at, other_words)) {
            is_pointer |= token_is(at, "*");
            d->is_const = token_is(at, "*") ? false : d->is_const || token_is(at, "const");
            at++;
        }
        skip_attributes();
        nest();
        parse_direct(d, true);
        nesting--;
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
        while (is_standard_attribute(at))
            skip_attributes();
    } else {
        d->suffix = at;
    }
    bool decided = d->is_pointer || d->is_array || d->is_function;
    while ((token_is(at, "[") && !is_standard_attribute(at)) || token_is(at, "(")) {
        if (token_is(at, "[")) {
            if (!decided) {
                d->is_array = true;
                d->bound = at;
                d->open_bound = token_is(at + 1, "]") ? at : 0;
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
                while (!token_is(at, ")")) {
                    if (accept("...") || accept(","))
                        continue;
                    struct specifiers *specifiers = parse_specifiers();
                    if (at == specifiers->first && tokens[at].kind != NAME)
                        reject_at(at, "expected a parameter, not '%s'", spelling_of(at));
                    struct declarator *parameter = parse_declarator(specifiers);
                    if (parameter->name != 0)
                        parameter->symbol = declare(VARIABLE, parameter->name, parameter);
                }
                at++;
                close_scope();
            } else {
                int open = at;
                at = closing_bracket(at) + 1;
                note_global_tags(open, at);
            }
        }
        decided = true;
    }
    (void)nested;
}

/* Parses a declarator, with or without a name, and the attributes after it. */
struct declarator *parse_declarator(struct specifiers *specifiers)
{
    struct declarator *d = allocate(sizeof *d);
    d->specifiers = specifiers;
    d->first = at;
    bool stars = false;
    while (token_is(at, "*") || is_one_of(at, other_words) || is_attribute(at)) {
        if (is_attribute(at)) {
            skip_attributes();
            continue;
        }
        stars |= token_is(at, "*");
        d->is_const = token_is(at, "*") ? false : d->is_const || token_is(at, "const");
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
        reject_at(at, "unknown type name '%s'", spelling_of(at));
    if (!token_is(at, ")") && !token_is(at, ",") && !token_is(at, ":"))
        parse_declarator(specifiers);
}

/* The specifiers, too, may name a cleanup function. */
static int cleanup_between(int first, int end)
{
    for (int i = first; i < end; i++) {
        if ((token_is(i, "cleanup") || token_is(i, "__cleanup__")) && token_is(i + 1, "("))
            return i + 2;
    }
    return 0;
}

struct node *parse_declaration(void)
{
    struct node *node = new_node(S_DECLARATION, at);
    if (token_is(at, "_Static_assert")) {
        node->kind = S_COPIED;
        at++;
        expect("(");
        parse_condition();
        at = closing_bracket(node->first + 1) + 1;
        expect(";");
        return finish_node(node);
    }
    struct specifiers *specifiers = parse_specifiers();
    struct declarator **last = &node->declarators;
    node->specifiers = specifiers;
    while (!token_is(at, ";")) {
        struct declarator *d = parse_declarator(specifiers);
        if (d->name == 0)
            reject_at(at, "expected the name of a declaration, not '%s'", spelling_of(at));
        if (token_is(at, "{"))
            reject_at(d->name, "nested functions are not supported");
        if (d->cleanup == 0)
            d->cleanup = cleanup_between(specifiers->first, specifiers->end);
        d->symbol = declare(specifiers->is_typedef     ? TYPE_NAME
                            : specifiers->is_constexpr ? ENUMERATOR
                                                       : VARIABLE,
                            d->name, d);
        if (specifiers->is_typedef || specifiers->is_constexpr) {
            struct definition *definition = allocate(sizeof *definition), **end = &definitions;
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
            with_part(node, d->initialiser);
        }
        if (!accept(","))
            break;
    }
    expect(";");
    return finish_node(node);
}
