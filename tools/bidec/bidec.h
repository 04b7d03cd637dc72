/*
 * bidec: a translator from C with async and await to C.
 *
 *     preprocessed text --lex.c--> tokens --file.c--> what stands between async functions, copied
 *         each async function:
 *             --declaration.c, expression.c, statement.c--> a tree whose names are resolved
 *             --frame.c--> the struct that is its frame
 *             --value.c, step.c--> the function that runs it
 *
 * A node of the tree is a range of tokens and what is known about it. Code without an await is
 * written as its tokens stand; the names of what has moved into the frame are replaced, each at its
 * token. One input a process: all state is global, and memory is given back by exit.
 */
#ifndef BIDEC_H
#define BIDEC_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* ---- Text ---- */

struct text {
    char *at;
    size_t length, room;
};

void *take(size_t size); /* zeroed; ends the program where there is none */
void text_add(struct text *text, const char *at, size_t length);
void text_expect(struct text *text, size_t length); /* makes it, empty, with room for that */
const char *text_kept(struct text *text);           /* what it has become; it is empty afterwards */
__attribute__((format(printf, 2, 3))) void text_print(struct text *text, const char *format, ...);
__attribute__((format(printf, 1, 2))) const char *print(const char *format, ...);

/* ---- Tokens ---- */

enum token_kind { END, NAME, NUMBER, STRING, PUNCTUATOR, PRAGMA };

struct symbol;
struct node;

/* What is written in place of a token, or around it. Few tokens have one. */
struct mark {
    const char *before, *after; /* in the step function */
    const char *instead;        /* there */
    const char *named;          /* in place of it everywhere */
    struct node *replaced;      /* begins here, and has another text outside of a function */
    int hoisted;                /* a { whose struct is defined elsewhere: its } */
};

struct token {
    const char *at;   /* in the input */
    const char *file; /* as in the line marker, with its escapes */

    struct symbol *symbol; /* the local name that it stands for */
    struct mark *mark;     /* NULL: none */

    unsigned length;
    unsigned line;
    unsigned short column; /* its largest value: that, or behind it */
    unsigned char kind;    /* a token_kind */
    bool system;           /* of a system header */
    bool space;            /* space stands before it */
};

extern struct token *tokens;
extern int token_count; /* the last one is END */

/* To write to; and to read, where it may be none. */
struct mark *mark(int token);
const struct mark *mark_of(const struct token *token);

void lex(const char *input, size_t length);

/* What a line marker says: `# 12 "file" 1 3`, or `#line 12 "file"`. */
struct marker {
    unsigned line; /* of what follows */
    const char *file;
    size_t length;
    bool system; /* the 3: it is a header's of the system, or generated */
};

/* What it does not say stays. False: it is none. */
bool read_marker(const char *p, const char *end, struct marker *marker);

/* The token is spelled so, and is no string. */
static inline bool is(int token, const char *text)
{
    const struct token *t = &tokens[token];
    return *t->at == *text && t->kind != STRING && t->length == strlen(text) &&
           memcmp(text, t->at, t->length) == 0;
}

static inline bool is_name(int token, const char *text)
{
    return tokens[token].kind == NAME && is(token, text);
}

const char *spelled(int token);
int closing(int token); /* of a bracket: the one that closes it */
__attribute__((format(printf, 2, 3), noreturn)) void refuse(int token, const char *format, ...);

/* ---- Names and scopes of a body ---- */

enum symbol_kind { VARIABLE, TYPE_NAME, ENUMERATOR, TAG, LABEL };

struct symbol {
    enum symbol_kind kind;
    const char *name;
    struct symbol *next; /* in its scope, the latest first */
    struct scope *scope;
    struct declarator *declarator; /* of a variable or a type name */
    int token;                     /* where it is declared */
    bool in_frame;                 /* a variable: a member of the frame */
    bool is_local;                 /* ... in a local of the step function while that runs */
    bool is_saved;                 /* ... and saved at an await */
    bool needs_memory;             /* its address is taken, or what is deferred names it */
    bool is_written;               /* other than by its initialiser */
    int last_use;                  /* the last token by which it can be used */
    const char *member;            /* its name there; of a type: its name outside of the function */
    bool is_const;                 /* its member is written once and read as a constant */
    const char *probe; /* its declaration's name outside of the function, if asked for */
};

/*
 * What is visible together and lives together. Variables of a scope with an await are members of
 * the frame; those of the others stay what they are. The scopes in a scope overlap. A whole
 * expression with an await is a scope too, for the values that are kept across the await; and so is
 * each thing that is awaited.
 */
struct scope {
    struct scope *up;
    struct scope *inner, *last_inner, *next;
    struct symbol *symbols;
    bool awaits;
    int first, last;     /* its tokens; 0: not known */
    struct text members; /* as lines of a struct */
    unsigned member_count;
    struct cleanup *cleanups; /* the latest first */
};

/* What runs when a scope with an await is left: a deferred statement, or a variable's function. */
struct cleanup {
    struct cleanup *next;     /* in its scope, an earlier one */
    struct cleanup *previous; /* in the function, an earlier one */
    struct scope *scope;
    unsigned number;
    int token;
    struct node *statement;
    const char *text;
};

/* ---- The tree ---- */

enum node_kind {
    /* expressions */
    E_TOKENS, /* only copied: a name, a constant, __builtin_offsetof ... */
    E_CONSTANT,
    E_STRING,
    E_PARENTHESES,
    E_CALL,   /* a(list) */
    E_INDEX,  /* a[b] */
    E_MEMBER, /* a.name, a->name */
    E_POSTFIX,
    E_UNARY,
    E_CAST,
    E_LITERAL, /* (type){list} */
    E_SIZEOF,
    E_BINARY, /* with || and && */
    E_CONDITION,
    E_ASSIGN,
    E_COMMA,
    E_AWAIT,
    E_SPAWN,
    E_BLOCK,       /* ({ ... }) */
    E_INITIALISER, /* {list} */
    E_ELEMENT,     /* designators, then a */
    /* statements */
    S_EXPRESSION,
    S_DECLARATION,
    S_BLOCK,
    S_IF,
    S_WHILE,
    S_DO,
    S_FOR,
    S_SWITCH,
    S_LABEL, /* case and default too */
    S_GOTO,
    S_BREAK,
    S_CONTINUE,
    S_RETURN,
    S_DEFER,
    S_YIELD,
    S_EACH,   /* async_for (declarators, a, b) d */
    S_COPIED, /* asm, pragmas, an empty statement: nothing in it is looked at */
};

struct node {
    enum node_kind kind;
    int first, end; /* tokens, the end not included */
    int sign;       /* its token */
    int type, type_end;
    struct node *a, *b, *c, *d;
    struct node *list, *next;
    struct scope *scope;
    struct declarator *declarators;
    struct specifiers *specifiers;
    bool awaits;
    bool jumps;                 /* a loop: a continue goes to its label */
    unsigned number;            /* of that label, or of what is awaited */
    struct node *around;        /* of break and continue: the loop or switch */
    struct node *previous_loop; /* of a loop: of those of the function */
    const char *member;         /* of a literal that is kept in the frame, or of what is awaited */
};

struct specifiers {
    int first, end;
    bool is_typedef, is_static, is_extern, is_const, is_automatic, is_async, is_struct;
    bool has_body;
    bool is_created;      /* async_created */
    int size, size_end;   /* of async_sized(...): what stands in the parentheses, else 0 */
    int value, value_end; /* of async_generator(...), so too */
};

/* A struct, union or enum that is defined in a body, or a type that is given a name there. */
struct definition {
    struct definition *next;
    struct scope *scope;
    int keyword, open, close;
    struct symbol *symbol;         /* of the tag; made where there is none */
    struct declarator *declarator; /* of a typedef; keyword is 0 */
};

struct declarator {
    struct declarator *next;
    struct specifiers *specifiers;
    int first, name, end; /* name 0: it has none */
    int suffix;           /* the token behind the name and the brackets around it */
    int parameters;       /* of a function: its ( */
    bool is_function, is_array, is_pointer, is_const;
    bool is_parameter;
    int open_bound; /* the [ of an array without a length, else 0 */
    int bound;      /* the [ of an array, else 0 */
    int cleanup;    /* the token that names its cleanup function, else 0 */
    struct symbol *symbol;
    struct node *initialiser;
    int initialiser_first;
};

/* ---- Functions of the file ---- */

struct function {
    struct function *next;
    const char *name;
    bool is_async;

    /* one that makes an awaiter: its first parameter, as text, and how many it has */
    bool makes_awaiter;
    const char *waiter;
    int parameter_count;
    bool takes_awaiter[16];

    /* an async one */
    bool defined;     /* its struct is known, or the size of that */
    bool has_body;    /* it is defined in this file */
    bool is_created;  /* its frames are created; it may await itself */
    const char *size; /* of its struct, if that is declared without its members */
    bool size_declared;
    bool is_static;
    bool returns_nothing;
    bool draws;          /* it has a select */
    bool returns_struct; /* or what may be one: it may have members that are const */
    const char *result;  /* its type, as text */
    const char *value;   /* of a generator: the type of what it yields, else NULL */
    int name_token;
    int open, close; /* of the parameters */
    int specifiers_first, specifiers_end, stars_end;
    struct declarator *parameters;
    struct scope *scope;
    struct node *body;
};

/* What an await of an operation gives in place of its status, by the type of its waiter. */
struct value {
    struct value *next;
    const char *waiter, *type, *expression;
};

/* ---- file.c ---- */

extern struct function *first_function; /* in the order of their first declarations */
struct function *find_function(const char *name, size_t length);
struct value *find_value(const char *waiter);
bool is_global_type(int token);
bool is_global_array(int token);
bool is_global_scalar(int token);
/* For tests: what becomes of a plain function whose body begins where the parser stands. */
extern bool (*on_function)(struct text *out, struct specifiers *specifiers, struct declarator *d);
void translate(struct text *out, const char *input);

/* What an async function has become, or its declaration: tokens of the input, and where it stands. */
struct piece {
    struct piece *next;
    int first, last;
    size_t begin, end;
};
extern struct piece *first_piece; /* in their order */

/* ---- declaration.c ---- */

extern int at; /* the parser stands here */
extern struct scope *scope;
extern struct function *function;      /* whose body is parsed, or NULL */
extern unsigned serial;                /* for names that shall be unique in a function */
extern struct definition *definitions; /* of the function, in their order */
extern bool has_labels;                /* the function has labels of its own */
extern int deferred;                   /* what is parsed is deferred */

void expect(const char *text);
bool accept(const char *text);
struct scope *open_scope(void);
void close_scope(void);
struct symbol *find_symbol(int token);
struct symbol *declare(enum symbol_kind kind, int token, struct declarator *declarator);
bool is_type_start(int token);
int skip_attributes(void); /* the token of a cleanup function, or 0 */
struct specifiers *parse_specifiers(void);
struct declarator *parse_declarator(struct specifiers *specifiers);
struct declarator *parse_parameters(void);
void parse_type_name(void);
struct node *parse_declaration(void);
bool is_scalar(const struct specifiers *specifiers); /* a number, as far as can be seen */
struct node *new_node(enum node_kind kind, int first);
struct node *finish(struct node *node);

/* ---- expression.c, statement.c ---- */

struct node *parse_expression(void);
struct node *parse_assignment(void);
struct node *parse_condition(void);
struct node *parse_initialiser(void);
void awaits_here(void); /* what is declared around is kept in the frame */
struct node *parse_statement(void);
extern struct node *last_loop; /* of the function, and the others behind it */
struct node *parse_block(struct scope *its_scope);

/* ---- frame.c ---- */

const char *outside(int first, int end);      /* tokens as they are written at file scope */
const char *type_of(const struct node *node); /* as a type at file scope, of a value */
const char *member_name(const char *wanted);
void print_locals(struct text *out, const struct scope *of);
void print_saves(struct text *out, const struct scope *from, int first, int await, bool back);
void add_member(struct scope *to, const char *line);
void lay_out(struct node *body);
struct scope *leaf(struct scope *in);
const char *open_bound(const struct node *initialiser); /* the length that braces give an array */
const char *type_of_literal(const struct node *node);
const char *plain_specifiers(const struct specifiers *specifiers, bool drop_const);
const char *member_declaration(const struct declarator *d, const char *name);
const char *header(void); /* of the frame, as a member */
void print_frame(struct text *out);
extern struct text outer; /* what stands before the struct: types and probes */

/* ---- value.c ---- */

void print_tokens(struct text *out, int first, int end);
const char *inside(int first, int end); /* tokens as they are written in the step function */
extern struct text *body;               /* the step function's */
const char *lower(struct node *node);
void lower_to_nothing(struct node *node);
void begin_expression(struct node *node);
void lower_cleanups(struct scope *of);
unsigned point_count(void);
extern struct text point_table;
const char *await_status_of(const struct node *node);
const char *lower_generator(struct node *node, struct scope *slot);
void lower_next(struct node *node, const char *awaiter);
void lower_yield(struct node *node);
struct function *called(const struct node *node); /* by this expression, or NULL */

/* ---- frames.c ---- */

extern bool tables; /* are asked for, behind each function */
void print_questions(struct text *out);
void print_answers(const char *assembly, const char *file);

/* ---- emit.c, explain.c, editor.c ---- */

bool emit_in_source(struct text *out, const struct text *translated, const char *source,
                    const struct text *text);

/*
 * Each line that is generated has the marker of the line that it is for: else the compiler counts
 * on, and a debugger takes it for one of those that follow.
 */
void mark_generated_lines(struct text *out, const struct text *translated);

bool explain(const struct text *translated, const char *source, unsigned line);
void print_for_editors(struct text *out);

/* ---- bidec.c, response.c ---- */

struct text read_all(int file); /* ends the program where it cannot */
char **with_response_files(char **words);

/* ---- step.c ---- */

void print_function(struct text *out);
void print_declaration(struct text *out);
void lower_statement(struct node *node);
void lower_block(struct node *node);
void place(int token);     /* what follows is the user's, of this line */
void generated(int token); /* what follows is not the user's: no warnings */

#endif
