/*
 * The file scope. Async functions are translated. Everything else is copied, and searched for the
 * names of types and for functions that make awaiters.
 */
#include "bidec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names of the file ---- */

enum { BUCKETS = 1 << 14 };

struct name {
    struct name *next;
    const char *at;
    size_t length;
    bool is_type, is_array, is_scalar, is_void, is_tag, is_kept_waiter;
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
    struct name *name = allocate(sizeof *name);
    name->at = at;
    name->length = length;
    name->next = *head;
    return *head = name;
}

bool is_global_name(int token)
{
    return find_name(tokens[token].at, tokens[token].length, false) != NULL;
}

bool is_global_type(int token)
{
    const struct name *name = find_name(tokens[token].at, tokens[token].length, false);
    return name != NULL && name->is_type;
}

bool is_global_tag(int token)
{
    const struct name *name = find_name(tokens[token].at, tokens[token].length, false);
    return name != NULL && name->is_tag;
}

void note_global_tags(int first, int end)
{
    for (int i = first; i + 1 < end; i++) {
        bool is_word = token_is(i, "struct") || token_is(i, "union") || token_is(i, "enum");
        while (is_word && is_gnu_attribute(i + 1) && i + 2 < end)
            i = closing_bracket(i + 2);
        if (is_word && tokens[i + 1].kind == NAME)
            find_name(tokens[i + 1].at, tokens[i + 1].length, true)->is_tag = true;
    }
}

bool is_type_of_file(const char *text)
{
    const struct name *name = find_name(text, strlen(text), false);
    return name != NULL && name->is_type;
}

/* A typedef of an array. */
bool is_global_array(int token)
{
    const struct name *name = find_name(tokens[token].at, tokens[token].length, false);
    return token_is(token, "__builtin_va_list") || (name != NULL && name->is_array);
}

bool is_global_scalar(int token)
{
    const struct name *name = find_name(tokens[token].at, tokens[token].length, false);
    return name != NULL && name->is_type && name->is_scalar;
}

/* Returns whether the specifiers name void, or a typedef of it. */
static bool is_void_type(int first, int end)
{
    bool is_void = false;
    for (int i = first; i < end; i++) {
        if (token_is(i, "(")) {
            i = closing_bracket(i);
            continue;
        }
        const struct name *name = find_name(tokens[i].at, tokens[i].length, false);
        is_void |= token_is(i, "void") || (name != NULL && name->is_type && name->is_void);
    }
    return is_void;
}

bool is_kept_waiter(int token)
{
    const struct name *name = find_name(tokens[token].at, tokens[token].length, false);
    return name != NULL && name->is_kept_waiter;
}

struct function *find_function(const char *text, size_t length)
{
    const struct name *name = find_name(text, length, false);
    return name != NULL ? name->function : NULL;
}

bool is_name_of_file(const char *name)
{
    return find_name(name, strlen(name), false) != NULL;
}

static struct function *add_function(int token)
{
    struct name *name = find_name(tokens[token].at, tokens[token].length, true);
    if (name->function == NULL) {
        name->function = allocate(sizeof *name->function);
        name->function->name = spelling_of(token);
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

/* The marks in front of a declaration. */
static struct {
    bool is_coroutine_scoped, passes_result;
    const char *kept_for;
} marks;

static unsigned stars_between(int first, int end)
{
    unsigned stars = 0;
    for (int i = first; i < end; i++)
        stars += token_is(i, "*");
    return stars;
}

static bool is_awaiter_pointer(int first, int end)
{
    bool named = false;
    for (int i = first; i < end; i++) {
        if (token_is(i, "__attribute__") && token_is(i + 1, "(")) {
            i = closing_bracket(i + 1);
            continue;
        }
        if (token_is(i, "(") || token_is(i, "["))
            return false;
        named |= token_is(i, "bide_awaiter");
    }
    return named && stars_between(first, end) == 1;
}

static bool is_type_qualifier(int i)
{
    static const char *const words[] = {"const",    "__const",    "__const__",
                                        "volatile", "__volatile", "__volatile__",
                                        "restrict", "__restrict", "__restrict__"};
    for (size_t n = 0; n < sizeof words / sizeof *words; n++) {
        if (token_is(i, words[n]))
            return true;
    }
    return false;
}

/* The stars of a result with their qualifiers, but those of the result itself: it is assigned to. Without attributes. */
static const char *stars_text(int first, int end)
{
    struct text text = {0};
    int last = first;
    for (int i = first; i < end; i++)
        last = token_is(i, "*") ? i : last;
    text_add(&text, "", 0);
    for (int i = first; i < end; i++) {
        if (is_gnu_attribute(i))
            i = closing_bracket(i + 1);
        else if (i <= last || !is_type_qualifier(i))
            text_print(&text, "%s ", spelling_of(i));
    }
    return text_finish(&text);
}

/* Returns the type that the first parameter, the operation's waiter, points at; or NULL. */
static const char *waiter_type(int first, int end)
{
    if (stars_between(first, end) != 1)
        return NULL;
    for (int i = first; i < end; i++) {
        if (token_is(i, "(") || token_is(i, "[") || token_is(i, "void") || token_is(i, "const") ||
            token_is(i, "char"))
            return NULL;
        if (token_is(i, "*"))
            return file_scope_text(first, i);
    }
    return NULL;
}

/* In debug builds a macro calls another form of an operation, of which the same holds. */
static void note_checked_form(struct function *f)
{
    static const char suffix[] = "_checked_";
    size_t length = strlen(f->name), end = sizeof suffix - 1;
    f->shown = f->name;
    if (length <= end || strcmp(f->name + length - end, suffix) != 0)
        return;
    f->shown = format_text("%.*s", (int)(length - end), f->name);
    const struct function *plain_form = find_function(f->name, length - end);
    if (plain_form == NULL)
        return;
    f->is_coroutine_scoped |= plain_form->is_coroutine_scoped;
    f->passes_result |= plain_form->passes_result;
    if (f->kept_for == NULL)
        f->kept_for = plain_form->kept_for;
}

static void note_awaiter_maker(struct function *f, int open)
{
    int close = closing_bracket(open), first = open + 1;
    f->open = open;
    f->close = close;
    f->makes_awaiter = true;
    f->is_coroutine_scoped |= marks.is_coroutine_scoped;
    f->passes_result |= marks.passes_result;
    if (marks.kept_for != NULL)
        f->kept_for = marks.kept_for;
    note_checked_form(f);
    f->parameter_count = 0;
    if (token_is(first, "void") && first + 1 == close)
        return;
    for (int i = first; i <= close && close > open + 1; i++) {
        if (i != close && (token_is(i, "(") || token_is(i, "["))) {
            i = closing_bracket(i);
            continue;
        }
        if (i != close && !token_is(i, ","))
            continue;
        if (f->parameter_count == 0)
            f->waiter = is_awaiter_pointer(first, i) ? NULL : waiter_type(first, i);
        if (f->parameter_count == 0 && f->is_coroutine_scoped && f->waiter != NULL) {
            for (int type = first; type < i && !token_is(type, "*"); type++)
                find_name(tokens[type].at, tokens[type].length, true)->is_kept_waiter =
                    !is_name(type, "struct");
        }
        if (f->parameter_count < 16)
            f->takes_awaiter[f->parameter_count] = is_awaiter_pointer(first, i);
        f->parameter_count++;
        first = i + 1;
    }
}

/* ---- Copying ---- */

bool (*on_function)(struct text *out, struct specifiers *specifiers, struct declarator *d);

static const char *copied; /* the end of the input that has been copied */

struct piece *first_piece;
static struct piece **last_piece = &first_piece;

static void add_piece(int first, int last, size_t begin, size_t end)
{
    struct piece *piece = allocate(sizeof *piece);
    *piece = (struct piece){NULL, first, last, begin, end};
    *last_piece = piece;
    last_piece = &piece->next;
}

static void copy_to(struct text *out, int token)
{
    text_add(out, copied, (size_t)(tokens[token].at - copied));
    if (plain != NULL)
        text_add(plain, copied, (size_t)(tokens[token].at - copied));
}

/* Resumes copying after `token`. */
static void copy_after(struct text *out, int token)
{
    const struct token *t = &tokens[token];
    const char *marker = format_text("\n# %u \"%s\"%s\n", t->line, t->file, t->system ? " 3" : "");
    text_add(out, marker, strlen(marker));
    if (plain != NULL)
        text_add(plain, marker, strlen(marker));
    copied = t->at + t->length;
}

/* ---- Async functions ---- */

/* async_NAME_created creates a frame of NAME, and is the init function of NAME_created. */
static void check_created_name(const struct function *f)
{
    size_t length = strlen(f->name), tail = strlen("_created");
    const char *longer = format_text("%s_created", f->name);
    const struct function *other = find_function(longer, strlen(longer));
    bool both = f->is_created && other != NULL && other->is_async;
    if (length > tail && strcmp(f->name + length - tail, "_created") == 0) {
        const struct function *shorter = find_function(f->name, length - tail);
        if (!both && shorter != NULL && shorter->is_async && shorter->is_created) {
            other = shorter;
            both = true;
        }
    }
    if (both && other != NULL)
        reject_at(f->name_token,
                  "async_%s_created would have two meanings: rename this function, or the "
                  "async_created one of almost the same name",
                  f->is_created && strlen(other->name) > length ? f->name : other->name);
}

static void read_parameters(struct function *f)
{
    function = f;
    scope = NULL;
    definitions = NULL;
    open_scope();
    f->scope = scope;
    at = f->open;
    f->parameters = parse_parameters();
    f->parameter_count = 0;
    for (struct declarator *p = f->parameters; p != NULL; p = p->next)
        f->parameter_count++;
    skip_attributes();
}

static void read_async(struct text *out, struct specifiers *specifiers, struct declarator *d)
{
    int name = d->name, first = specifiers->first;
    if (!d->is_function || d->is_pointer)
        reject_at(name, "only a function can be async");
    struct function *f = add_function(name);
    if (f->has_body)
        reject_at(name, "redefinition of '%s'", f->name);
    function = f;
    f->is_async = true;
    f->is_created |= specifiers->is_created;
    if (specifiers->size != 0)
        f->size = file_scope_text(specifiers->size, specifiers->size_end);
    if (specifiers->value != 0)
        f->value = file_scope_text(specifiers->value, specifiers->value_end);
    if (specifiers->generator != NULL)
        f->generator = specifiers->generator;
    if (f->size != NULL && f->is_created)
        reject_at(name, "async_created and async_sized cannot be combined");
    if (f->value != NULL && f->is_created && strcmp(f->generator, "bide_recursive_generator") != 0)
        reject_at(name,
                  "a generator cannot be async_created: its frame is a member of its consumer's");
    f->is_static |= specifiers->is_static;
    f->name_token = name;
    f->first_declared = f->first_declared != 0 ? f->first_declared : name;
    if (specifiers->kind != 0)
        read_kind(f, specifiers);
    else if (f->kind != NULL)
        reject_at(name, "%s was declared with the kind %s", f->name, f->kind);
    check_created_name(f);
    for (int i = d->first; i < name; i++) {
        if (is_gnu_attribute(i))
            i = closing_bracket(i + 1);
        else if (token_is(i, "("))
            reject_at(i, "an async function that returns a pointer to a function needs a typedef");
    }
    const char *type = plain_specifiers(specifiers, stars_between(d->first, name) == 0);
    if (type[strspn(type, " ")] == 0)
        reject_at(name, "an async function needs a return type");
    f->result = format_text("%s %s", type, stars_text(d->first, name));
    f->returns_nothing =
        stars_between(d->first, name) == 0 && is_void_type(specifiers->first, specifiers->end);
    f->returns_struct = stars_between(d->first, name) == 0 && !is_scalar(specifiers);
    f->open = d->parameters;
    f->close = closing_bracket(d->parameters);
    read_parameters(f);
    copy_to(out, first);
    copied = tokens[first].at;
    size_t begin = out->length;
    if (token_is(at, "{") && find_closing_bracket(at) != 0 &&
        has_blocks(at, find_closing_bracket(at))) {
        const int open = at;
        if (f->is_created)
            print_declaration(out); /* the blocks may await it */
        read_blocks(out, f, open, closing_bracket(open));
        read_parameters(f);
    }
    if (is_main())
        check_main();
    if (token_is(at, "{")) {
        const unsigned errors = error_count;
        if (find_closing_bracket(at) == 0)
            reject_at(at, "this block is not closed");
        f->body = parse_block(f->scope);
        f->scope->first = f->body->first;
        f->scope->last = at - 1;
        if (error_count == errors) {
            check_function();
            lint_function();
            print_function(out);
        }
        f->defined = f->has_body = true;
    } else {
        expect(";");
        print_declaration(out);
    }
    if (plain != NULL && error_count == 0)
        print_plain_function(specifiers, at);
    function = NULL;
    scope = NULL;
    add_piece(first, at - 1, begin, out->length);
    copy_after(out, at - 1);
}

/* ---- Marks ---- */

static void read_value(const char *text)
{
    struct value *value = allocate(sizeof *value);
    char waiter[256], type[256], expression[256];
    if (sscanf(text, "%255s %255s %255s", waiter, type, expression) != 3)
        reject_at(at, "this mark is incomplete: %s", text);
    value->waiter = format_text("%s", waiter);
    value->type = format_text("%s", type);
    value->expression = format_text("%s", expression);
    value->next = values;
    values = value;
}

/*
 * Reads a mark: _Static_assert(1, "bide: ..."), which a macro of compiler.h has made. It is copied, as
 * it is C. Returns false if there is none.
 */
static bool read_mark(void)
{
    int start = at;
    if (token_is(start, "__extension__"))
        start++;
    if (!token_is(start, "_Static_assert"))
        return false;
    for (int i = start + 1; i < start + 4; i++) {
        if (tokens[i].kind == END)
            return false;
    }
    if (tokens[start + 4].kind != STRING || strncmp(tokens[start + 4].at, "\"bide: ", 7) != 0)
        return false;
    struct text words = {0};
    text_add(&words, "", 0);
    int token = start + 4;
    for (; tokens[token].kind == STRING; token++)
        text_add(&words, tokens[token].at + 1, tokens[token].length - 2);
    const char *text = words.at + strlen("bide: ");
    static const char key[] = "key-scoped ", value[] = "value ", awaited[] = "awaited ";
    if (strcmp(text, "coroutine-scoped") == 0)
        marks.is_coroutine_scoped = true;
    else if (strcmp(text, "passes-result") == 0)
        marks.passes_result = true;
    else if (strncmp(text, key, sizeof key - 1) == 0)
        marks.kept_for = format_text("%s", text + sizeof key - 1);
    else if (strncmp(text, value, sizeof value - 1) == 0)
        read_value(text + sizeof value - 1);
    else if (strncmp(text, awaited, sizeof awaited - 1) == 0)
        note_awaited_kind(format_text("%s", text + sizeof awaited - 1));
    free(words.at);
    at = token;
    expect(")");
    expect(";");
    return true;
}

/* ---- The outermost level ---- */

static void skip_to_end(void)
{
    while (tokens[at].kind != END && !token_is(at, ";") && !token_is(at, ",")) {
        if (token_is(at, "(") || token_is(at, "[") || token_is(at, "{"))
            at = closing_bracket(at);
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
    copy_after(out, at - 1);
    return true;
}

/* Of a coroutine's hooks: kind.c. */
static bool names_hooks(const struct specifiers *specifiers)
{
    bool is_type = false;
    for (int i = specifiers->first; i < specifiers->end; i++)
        is_type |= is_name(i, "bide_coroutine_type");
    return is_type;
}

static void read_declarators(struct text *out, struct specifiers *specifiers)
{
    while (tokens[at].kind != END && !token_is(at, ";")) {
        int start = at;
        struct declarator *d = parse_declarator(specifiers);
        if (d->name != 0 && specifiers->is_typedef) {
            struct name *name = find_name(tokens[d->name].at, tokens[d->name].length, true);
            name->is_type = true;
            name->is_void = !d->is_pointer && !d->is_array && !d->is_function &&
                            is_void_type(specifiers->first, specifiers->end);
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
        if (d->is_function && !token_is(at, ";") && !token_is(at, ",") && !token_is(at, "=")) {
            if (on_function != NULL && token_is(at, "{") && rewrite_function(out, specifiers, d))
                return;
            /* a body, perhaps after the parameter declarations of an old-style definition */
            while (tokens[at].kind != END && !token_is(at, "{"))
                at++;
            if (tokens[at].kind != END) {
                int first = at;
                at = closing_bracket(at) + 1;
                if (d->name != 0 && on_function == NULL)
                    check_plain_body(d->name, first, at);
            }
            return;
        }
        if (d->name != 0 && !d->is_pointer && token_is(at, "=") && token_is(at + 1, "{") &&
            names_hooks(specifiers))
            note_hooks(d->name, at + 1);
        const int initialiser = token_is(at, "=") ? at + 1 : 0;
        skip_to_end();
        if (initialiser != 0 && on_function == NULL)
            check_initialiser(initialiser, at);
        if (!accept(",") && at == start)
            at++;
    }
    accept(";");
}

/* What async.h says about the compiler, as a declaration, which a header that is precompiled keeps. */
static bool is_said(const char *what)
{
    return token_is(at, "struct") && token_is(at + 1, what);
}

static void leave_out_said(struct text *out)
{
    at += 3;
    copy_after(out, at - 1);
}

static void read_next(struct text *out)
{
    if (tokens[at].kind == PRAGMA || token_is(at, ";")) {
        at++;
    } else if (read_mark()) {
        return;
    } else if (is_said("__bide_async_clang")) {
        copy_to(out, at);
        for_clang = true;
        leave_out_said(out);
    } else if (is_said("__bide_async_asan")) {
        copy_to(out, at);
        poisons = true;
        print_life_functions(out);
        leave_out_said(out);
    } else if (token_is(at, "_Static_assert") || token_is(at, "__asm__") || token_is(at, "asm")) {
        skip_to_end();
        accept(";");
    } else {
        read_declarators(out, parse_specifiers());
        memset(&marks, 0, sizeof marks);
    }
}

/* The token behind the declaration at `start`, which has an error. */
static int end_of_wrong_declaration(int start)
{
    int i = start;
    for (; tokens[i].kind != END && !token_is(i, ";") && !token_is(i, "}"); i++) {
        bool is_body = token_is(i, "{");
        int close = is_body || token_is(i, "(") || token_is(i, "[") ? find_closing_bracket(i) : i;
        if (is_body && close == 0)
            return token_count - 1; /* what follows is inside of it */
        if (close != 0)
            i = close;
        if (is_body && !token_is(i + 1, ";") && !token_is(i + 1, ",") && !token_is(i + 1, ")"))
            return i + 1;
    }
    return tokens[i].kind == END ? i : i + 1;
}

static void read_or_recover(struct text *out)
{
    const int start = at;
    struct recovery here = {.outer = recovery};
    if (setjmp(here.place) != 0) {
        if (function != NULL) /* not to add errors of those that await it */
            function->defined = function->has_body = function->is_wrong = true;
        function = NULL;
        scope = NULL;
        nesting = 0;
        memset(&whole, 0, sizeof whole);
        memset(&marks, 0, sizeof marks);
        at = end_of_wrong_declaration(start);
    } else {
        recovery = &here;
        read_next(out);
    }
    recovery = here.outer;
}

void translate(struct text *out, const char *input)
{
    copied = input;
    at = 0;
    while (tokens[at].kind != END)
        read_or_recover(out);
    check_pointers();
    if (error_count != 0)
        exit(1);
    copy_to(out, at);
    text_add(out, "\n", 1);
    if (plain != NULL)
        text_add(plain, "\n", 1);
}
