/*
 * bidec: a translator from C with async and await to C.
 *
 *     preprocessed text --lex.c--> tokens --file.c--> the text between async functions, copied
 *         each async function (function.c):
 *             --declaration.c, expression.c, statement.c--> a tree with resolved names
 *             --frame.c, type.c, live.c--> the struct that is its frame
 *             --step.c, value.c, await.c, cleanup.c, output.c--> the step function that runs it
 *
 * A node of the tree is a range of tokens and what is known about it. Code without an await is
 * written as its tokens; the names of variables that have moved into the frame are replaced at
 * their tokens. A process translates one input, so all state is global, and exit releases the
 * memory.
 */
#ifndef BIDEC_H
#define BIDEC_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* ---- Text ---- */

struct text {
    char *at;
    size_t length, room;
};

void *allocate(size_t size); /* zeroed; exits if there is no memory */
void text_add(struct text *text, const char *at, size_t length);
void text_expect(struct text *text, size_t length); /* an empty text with room for `length` */
const char *text_finish(struct text *text);         /* returns the text and empties it */
__attribute__((format(printf, 2, 3))) void text_print(struct text *text, const char *format, ...);
__attribute__((format(printf, 1, 2))) const char *format_text(const char *format, ...);

/* ---- Tokens ---- */

enum token_kind { END, NAME, NUMBER, STRING, PUNCTUATOR, PRAGMA };

struct symbol;
struct node;

/* Text that replaces or surrounds a token. Few tokens have a mark. */
struct mark {
    const char *before, *after; /* in the step function: around the token */
    const char *instead;        /* in the step function: in place of the token */
    const char *named;          /* in place of the token everywhere */
    struct node *replaced;      /* a node that begins here and has another text at file scope */
    int hoisted;                /* at the { of a struct that is defined elsewhere: its } */
    const struct definition *definition; /* ... and its definition */
    int unevaluated;                     /* at a sizeof of an await, which is not run: its end */
    struct node *operand;                /* ... and its operand */
    struct function *block;              /* at the word of an async block: its function */
    struct node *probed;                 /* the largest node that begins here and has a probe */
};

struct token {
    const char *at;   /* in the input */
    const char *file; /* as in the line marker, with its escapes */

    struct symbol *symbol; /* the local name that it refers to */
    struct mark *mark;     /* NULL: none */

    unsigned length;
    unsigned line;
    unsigned short column; /* at most USHRT_MAX */
    unsigned char kind;    /* a token_kind */
    bool system;           /* in a system header */
    bool is_outside;       /* in an async block: a name that the block does not declare */
    bool space;            /* preceded by space */
};

extern struct token *tokens;
extern int token_count; /* the last one is END */

struct mark *mark_at(int token);                       /* to write; made if there is none */
const struct mark *mark_of(const struct token *token); /* to read; an empty one if there is none */

void lex(const char *input, size_t length);

/* The contents of a line marker: `# 12 "file" 1 3`, or `#line 12 "file"`. */
struct marker {
    unsigned line; /* of the next line */
    const char *file;
    size_t length;
    bool system; /* the 3: a system header's text, or generated text */
};

/* Returns false if the line is no marker. Members that the marker omits keep their values. */
bool read_marker(const char *p, const char *end, struct marker *marker);

/* Returns whether the token is spelled like `text` and is not a string. */
static inline bool token_is(int token, const char *text)
{
    const struct token *t = &tokens[token];
    return *t->at == *text && t->kind != STRING && t->length == strlen(text) &&
           memcmp(text, t->at, t->length) == 0;
}

static inline bool is_name(int token, const char *text)
{
    return tokens[token].kind == NAME && token_is(token, text);
}

const char *spelling_of(int token);
int closing_bracket(int token); /* the bracket that closes the one at `token` */

/* ---- Errors ---- */

/*
 * An error is printed with its place, its line and a caret. report_at() returns; reject_at() goes to the
 * innermost recovery: the next statement, or the next declaration of the file. After MAX_ERRORS of them the
 * program ends. A function with an error is not written, and translate() ends the program at the end of
 * the file.
 */
enum { MAX_ERRORS = 20 };
struct recovery {
    struct recovery *outer;
    jmp_buf place;
    struct scope *scope;
    int nesting;
};
extern struct recovery *recovery; /* NULL: the program ends */
extern unsigned error_count;
__attribute__((format(printf, 2, 3))) void report_at(int token, const char *format, ...);
__attribute__((format(printf, 2, 3), noreturn)) void reject_at(int token, const char *format, ...);
int find_closing_bracket(int token); /* 0: none */

/* ---- Names and scopes of a body ---- */

enum symbol_kind { VARIABLE, TYPE_NAME, ENUMERATOR, TAG };

struct symbol {
    enum symbol_kind kind;
    const char *name;
    struct symbol *next;  /* in its scope, the newest first */
    struct symbol *older; /* of those that the parser looks up (declaration.c) */
    struct scope *scope;
    struct declarator *declarator; /* of a variable or a type name */
    int token;                     /* where it is declared */
    bool in_frame;                 /* a variable that is a member of the frame */
    bool is_local;      /* in the frame, but in a local of the step function while it runs */
    bool is_saved;      /* a local that is saved at an await */
    bool needs_memory;  /* its address is taken, or a deferred statement names it */
    bool is_written;    /* other than by its initialiser */
    int number;         /* of a local, in the sets of live.c; else 0 */
    const char *member; /* its name in the frame; of a type: its name at file scope */
    bool is_const;      /* its member is written once and read as a constant */
    bool is_kept;       /* a member that shares its memory with no other, to the function's end */
    const char *probe;  /* the name of its probe at file scope (type.c), or NULL */
    bool has_body;      /* a tag that is defined, not only declared */
};

/*
 * Variables with one visibility and one lifetime. The variables of a scope with an await are members
 * of the frame; those of other scopes stay local. The inner scopes of a scope overlap in the frame. A
 * whole expression with an await is a scope too, for the values that are kept across the await, and
 * so is each operation that is awaited.
 */
struct scope {
    struct scope *up;
    struct scope *inner, *last_inner, *next;
    struct symbol *symbols;
    bool awaits;
    bool has_no_braces;  /* of an if, a switch or a loop, or its statement */
    bool is_closed;      /* the parser is behind it */
    int first, last;     /* its tokens; 0: not known */
    unsigned region;     /* its number (poison.c); 0: it has none */
    struct text members; /* as lines of a struct */
    unsigned member_count;
    struct cleanup *cleanups; /* the newest first */
};

/* A deferred statement, or the cleanup function of a variable, in a scope with an await: cleanup.c. */
struct cleanup {
    struct cleanup *next;     /* an earlier one of its scope */
    struct cleanup *previous; /* an earlier one of the function */
    struct scope *scope;
    unsigned number;
    int token;
    struct node *statement;
    const char *text;
    struct text returns;  /* of a statement: the places that run it, as cases of a switch */
    unsigned last_return; /* the number of the last one */
};

/* ---- The tree ---- */

enum node_kind {
    /* expressions */
    E_TOKENS, /* copied: a name, a constant, __builtin_offsetof ... */
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
    S_SELECT, /* async_select (a) { list of S_WHEN } */
    S_WHEN,   /* when (a) b */
    S_COPIED, /* asm, pragmas, an empty statement: not analysed */
};

struct node {
    enum node_kind kind;
    int first, end; /* tokens, the end not included */
    int sign;       /* the token of the operator */
    int depth;      /* of the tree below it */
    int type, type_end;
    struct node *a, *b, *c, *d;
    struct node *list, *next;
    struct scope *scope;
    struct declarator *declarators;
    struct specifiers *specifiers;
    bool awaits;
    bool passes_errors;  /* try await, try async_for */
    bool jumps;          /* a loop with a continue */
    unsigned number;     /* a loop: of the label that its continues go to; 0: none */
    struct node *around; /* break and continue: their loop or switch */
    struct node *target; /* goto: its label; NULL: there is none */
    struct flow *flow;   /* live.c */
    const char *member;  /* of a literal or an awaited operation in the frame */
    struct function *block; /* of an async block, which is the E_CALL of it: its function */
    bool knows_rows;        /* type.c: `rows` is known */
    int rows;
    const char *probe;      /* the name of its probe at file scope (type.c), or NULL */
    const char *called;     /* of an async_call: that of what is returned (pointer.c), or NULL */
    struct node *probed;    /* a smaller node that begins at the same token and has one */
};

struct specifiers {
    int first, end;
    bool is_typedef, is_static, is_extern, is_const, is_automatic, is_async, is_struct;
    bool is_constexpr;
    bool has_body;
    bool is_created;       /* async_created */
    int size, size_end;    /* the tokens in the parentheses of async_sized(...), else 0 */
    int value, value_end;  /* the tokens in the parentheses of async_generator(...), else 0 */
    const char *generator; /* the type of its header, as bide_async_generator; else NULL */
    int kind, kind_end;    /* the tokens in the parentheses of async_kind(...), else 0 */
};

/* A struct, union, enum or typedef that is defined in a body. */
struct definition {
    struct definition *next;
    struct scope *scope;
    int keyword, open, close;      /* open 0: only declared, as `struct tag;` */
    int of;                        /* of an enum with a type: its colon; else `open` */
    int end;                       /* of the attributes after it */
    struct symbol *symbol;         /* of the tag; made if there is no tag */
    struct declarator *declarator; /* of a typedef; keyword is 0 */
};

struct declarator {
    struct declarator *next;
    struct specifiers *specifiers;
    int first, name, end; /* name 0: none */
    int suffix;           /* the token after the name and the brackets around it */
    int parameters;       /* the ( of a function */
    bool is_function, is_array, is_pointer, is_const;
    bool is_parameter;
    int open_bound; /* the [ of an array without a length, else 0 */
    int bound;      /* the [ of an array, else 0 */
    int cleanup;    /* the token that names the cleanup function, else 0 */
    struct symbol *symbol;
    struct node *initialiser;
    int initialiser_first;
};

/* ---- Functions of the file ---- */

struct function {
    struct function *next;
    const char *name;
    bool is_async;

    /* a function that makes an awaiter */
    bool makes_awaiter;
    const char *shown;  /* in messages: without the suffix of its form in debug builds */
    const char *waiter; /* the type that the first parameter points at, as text */
    int parameter_count;
    bool takes_awaiter[16];
    bool
        is_coroutine_scoped; /* the marks of compiler.h: its waiter stays until the function ends */
    bool passes_result;      /* its value is that of the awaiter that it takes */
    const char *kept_for;    /* what needs its waiter afterwards; NULL: nothing */

    /* an async function */
    bool defined;  /* its struct, or the size of its struct, is known */
    bool has_body; /* defined in this file */
    bool has_step; /* its step function is declared above, and can be called directly */
    bool waits; /* the step function has the shared end of awaits that suspend; of calls that do */
    bool pends;
    bool is_wrong; /* its parameters have an error */
    bool is_created;  /* its frames are allocated by async_created; it may await itself */
    const char *size; /* of its struct, if the struct is declared without its members */
    bool size_declared;
    bool is_static;
    bool returns_nothing;
    bool draws;            /* it has a select_any, which draws random numbers */
    bool passes_errors;    /* it has a try, which ends it with an error whatever it returns */
    bool returns_struct;   /* or a type that may be one, with const members */
    const char *result;    /* the result's type, as text */
    const char *value;     /* of a generator: the type of the yielded values, else NULL */
    const char *generator; /* ... and the type of its header, as bide_async_generator */
    const char *kind;      /* the type of its promise (kind.c), or NULL */
    const char *yields;    /* ... and that of its yielded values, or NULL */
    int kind_members, kind_end; /* members of the promise, as tokens; 0: none */
    int name_token;
    int first_declared; /* the token of the first declaration's name */
    bool has_target;    /* what pointers at it point at is written (pointer.c) */
    int open, close;    /* the parentheses of the parameters */
    int specifiers_first, specifiers_end, stars_end;
    struct declarator *parameters;
    struct scope *scope;
    struct scope *kept; /* members that share their memory with no other, to the function's end */
    struct node *body;

    /* an async block (block.c): its parameters are its captures */
    bool is_block;
    int first_statement; /* behind the captures */
    const char *around;  /* the function that it stands in */
    unsigned last_block; /* of a function: the number of the last block in it */
};

/* The value of an await, in place of a status, for the operations with a given type of waiter. */
struct value {
    struct value *next;
    const char *waiter, *type, *expression;
};

/* ---- file.c ---- */

extern struct function *first_function; /* in the order of their first declarations */
struct function *find_function(const char *name, size_t length);
bool is_name_of_file(const char *name);
struct value *find_value(const char *waiter);
bool is_kept_waiter(int token); /* the type of a coroutine-scoped operation's waiter */
bool is_global_name(int token); /* declared in the file: a type, a function */
bool is_global_type(int token);
bool is_global_tag(int token);
void note_global_tags(int first, int end); /* tokens at file scope */
bool is_type_of_file(const char *name);
bool is_global_array(int token);
bool is_global_scalar(int token);
/* For tests: rewrites a plain function, whose body begins at the parser's position. */
extern bool (*on_function)(struct text *out, struct specifiers *specifiers, struct declarator *d);
void translate(struct text *out, const char *input);

/* An async function or its declaration: its tokens, and the range of the output that replaces it. */
struct piece {
    struct piece *next;
    int first, last;
    size_t begin, end;
};
extern struct piece *first_piece; /* in the order of the input */

/* ---- declaration.c ---- */

extern int at; /* the parser's position: a token */
extern struct scope *scope;
extern struct function *function;      /* the function that is parsed, or NULL */
extern unsigned serial;                /* for names that are unique in a function */
extern struct definition *definitions; /* of the function, in their order */
extern int deferred;                   /* the depth of deferred statements around the parser */

/*
 * The parser and the passes recurse. `nesting` counts the parser's functions on the stack. Text that needs more
 * of them than MAX_NESTING is rejected, and so is a tree that is deeper than MAX_DEPTH: an expression of that many
 * operators. The program asks for a stack that is large enough for both.
 */
enum { MAX_NESTING = 20000, MAX_DEPTH = 50000, STACK = 120 << 20 };
extern int nesting;
void nest(void);

void expect(const char *text);
bool accept(const char *text);
struct scope *open_scope(void);
void close_scope(void);
struct symbol *find_symbol(int token);
struct symbol *find_tag(int token);
struct symbol *declare(enum symbol_kind kind, int token, struct declarator *declarator);
bool is_type_start(int token);
const char *generator_word(int token); /* the header's type for such a specifier, or NULL */
bool is_word_with_type(int token);     /* a specifier with parentheses: async_sized(...) ... */
bool is_standard_attribute(int token); /* [[...]] */
bool is_attribute_of_tag(int token);   /* in struct [[...]] tag; it belongs to the definition */
int skip_attributes(void);             /* returns the token of a cleanup function, or 0 */
struct specifiers *parse_specifiers(void);
struct declarator *parse_declarator(struct specifiers *specifiers);
struct declarator *parse_parameters(void);
void parse_type_name(void);
struct node *parse_declaration(void);
bool is_scalar(const struct specifiers *specifiers); /* false if it may be no number */
struct node *new_node(enum node_kind kind, int first);
struct node *finish_node(struct node *node);
void note_outside(int token); /* a name that is not declared in the function */

/* ---- expression.c, statement.c ---- */

struct node *with_part(struct node *node, const struct node *part);
void append_part(struct node *node, struct node *part);
struct node *parse_expression(void);
struct node *parse_assignment(void);
struct node *parse_condition(void);
struct node *parse_initialiser(void);
void note_written(const struct node *node); /* a place that is written */
bool is_try(int token);                     /* the word before an await or an async_for */
void awaits_here(void); /* an await: the scopes around it are kept in the frame */
struct node *parse_statement(void);
struct node *parse_substatement(void); /* of an if, a loop ...: a block, with or without braces */
struct node *parse_block(struct scope *its_scope);

/* ---- block.c ---- */

bool is_async_block(int token);
bool has_blocks(int first, int end);
void read_blocks(struct text *out, struct function *around, int first, int end);
struct node *parse_async_block(void);
bool captures_have_order(const struct node *list);
void check_spawned_block(const struct node *to, const struct node *block);
const char *captures_text(void);

/* ---- type.c ---- */

const char *file_scope_text(int first, int end); /* tokens as they are written at file scope */
const char *type_of(struct node *node);          /* as a type at file scope, of a value */
const char *open_bound(const struct node *initialiser, const char *type); /* an array's length */
const char *type_of_literal(const struct node *node);
bool literal_may_be_shorter(const struct node *node);
bool is_scalar_value(const struct node *node);
bool has_variable_rows(const struct declarator *d); /* a parameter: int a[n][m], int (*a)[n] */
void check_variable_rows(const struct declarator *d);
void check_row_effects(const struct declarator *d);
const char *cast_to_rows(const struct declarator *d);
const char *plain_specifiers(const struct specifiers *specifiers, bool drop_const);
const char *declared_as(const struct symbol *symbol, const char *name, bool as_member);
const char *member_declaration(const struct declarator *d, const char *name);
bool is_gnu_attribute(int token);
bool is_pack(int token);  /* a #pragma pack */
bool file_packs(void);    /* the file has one */
extern struct text outer; /* the types and probes that precede the struct */

/* ---- frame.c ---- */

const char *member_name(const char *wanted);
void print_locals(struct text *out, const struct scope *of);
void add_member(struct scope *to, const char *line);
void lay_out_frame(struct node *body);
struct scope *add_inner_scope(struct scope *in);
const char *frame_tag(void);
const char *frame_header(void); /* the frame's first member */
void print_frame(struct text *out);

/* ---- live.c ---- */

void resolve_gotos(struct node *body);
void find_live_locals(struct node *body);
void print_saves(struct text *out, const struct node *suspension, bool back);

/* ---- poison.c ---- */

extern bool poisons; /* the program is compiled for AddressSanitizer */
extern bool emits;   /* the output is the source file, with its functions translated (emit.c) */
void begin_life(struct scope *of);
void end_life(struct scope *of);
const char *text_of_exit(struct scope *from, const struct scope *stop);
const char *text_of_entry(struct scope *in, const struct scope *outside);
void print_frame_life(struct text *out, const char *frame);
void print_life_functions(struct text *out);

/* ---- output.c ---- */

extern struct text *body; /* the step function's */
void print_tokens(struct text *out, int first, int end);
const char *step_text(int first, int end); /* tokens as they are written in the step function */
void begin_user_text(int token);           /* the next text is the user's, at this token */
void begin_generated_text(int token);      /* the next text is generated: no warnings */

/* ---- value.c ---- */

/* The whole expression that is being decomposed. */
struct whole_expression {
    struct scope *scope;
};
extern struct whole_expression whole;

void begin_whole_expression(struct node *node);
const char *lower_value(struct node *node);
void lower_discarded(struct node *node);
const char *keep_value(struct node *node);
const char *add_local(const char *type);
struct node *last_awaiting(struct node *list);
const char *comma_after(const struct node *node);

/* ---- await.c ---- */

bool is_discarded(const struct node *node); /* a cast to void */

struct function *called_function(const struct node *node); /* by a call, or NULL */
const char *group_of(const struct node *node);             /* "all", "any" ..., or NULL */
bool is_here(const struct node *node);
bool needs_waiter(const struct function *f, const struct node *node);
const char *await_status_of(const struct node *node);
const char *lower_await(struct node *node);
const char *allocator_text(void);              /* of the frames of awaited functions */
bool has_budget(const struct function *f);     /* it can await */
bool is_synchronous(const struct function *f); /* a generator that never suspends its consumer */
/* The header's type of the generator that an async_for iterates, if no await is needed; else NULL. */
const char *synchronous_generator(const struct node *each);
const char *lower_spawn(struct node *node);
const char *lower_generator(struct node *node, struct scope *slot);
void lower_next(struct node *node, const char *awaiter);
void lower_passed_error(const struct node *node, const char *status); /* of a try */
void lower_yield(struct node *node);
const char *select_case(const char *by, struct node *part, struct scope *slot); /* its awaiter */
void reset_points(void);
unsigned point_count(void); /* of the function, so far */
extern struct text point_table;

/* ---- cleanup.c ---- */

extern struct cleanup *last_cleanup; /* of the function; `previous` leads to the others */
void reset_cleanups(void);
void find_cleanups(struct node *node);
struct cleanup *cleanup_at(const struct scope *of, int token);
void print_cleanup(struct text *out, struct cleanup *c);
void lower_cleanups(struct scope *of);
void lower_deferred(struct cleanup *c); /* where the statement was declared */
void print_deferred_ends(struct text *out);
void lower_departures(const struct node *node); /* behind a statement */
void prepare_jumps(struct node *node);
const char *result_begins(void);
const char *result_ends(void);

/* ---- frames.c ---- */

extern bool tables; /* --frames: size queries follow each function */
void print_size_queries(struct text *out);
void print_frame_tables(const char *assembly, const char *file);
bool warn_of_frames(const char *assembly, const char *file, unsigned long limit); /* true: of any */

/* ---- calls.c ---- */

void check_function(void);
void check_plain_body(int function_name, int first, int end);
void check_initialiser(int first, int end);

/* ---- lint.c ---- */

extern bool lints_locks, lints_are_errors; /* -Wasync-lock-held, -Werror */
void lint_function(void);
void finish_lint(void); /* exits if a warning is an error */

/* ---- plain.c ---- */

extern struct text *plain; /* the file as the compiler's warnings need it; NULL: not wanted */
extern bool for_clang;     /* which compiles nothing there */
void print_plain_function(const struct specifiers *specifiers, int end); /* NULL: of a block */

/* ---- emit.c, explain.c, editor.c ---- */

bool emit_in_source(struct text *out, const struct text *translated, const char *source,
                    const struct text *text);

/*
 * Gives each generated line the marker of the source line that it belongs to. Otherwise the compiler
 * would count generated lines, and a debugger would take them for the next lines of the source.
 */
void mark_generated_lines(struct text *out, const struct text *translated);

bool explain(const struct text *translated, const char *source, unsigned line);
void print_for_editors(struct text *out);

/* ---- bidec.c, response.c ---- */

struct text read_all(int file); /* exits if it cannot */
char **expand_response_files(char **words);

/* ---- step.c ---- */

void keep_literals(struct node *node);
void lower_statement(struct node *node);
void lower_block(struct node *node);

/* ---- verify.c ---- */

unsigned verify_tree(void); /* returns how many suspension points the function has */
void verify_translation(unsigned points);

/* ---- kind.c ---- */

void note_hooks(int name, int open); /* a bide_coroutine_type, and the { of its initialiser */
void note_awaited_kind(const char *name);
bool kind_has(const struct function *f, const char *hook); /* false for a function without a kind */
bool kind_transforms(const struct function *f);
void read_kind(struct function *f, const struct specifiers *specifiers);
void check_kind(struct text *out);
void check_kind_awaits(int token); /* `function` awaits there */
void check_kind_yields(int token);
void check_kind_awaited(const struct function *f, int token);
const char *promise_text(void);
void print_kind_return(struct text *out);

/* ---- pointer.c ---- */

void print_pointer_target(struct text *out); /* of `function` */
void check_pointers(void);
bool is_pointer_call(const struct node *node); /* async_call(...) */
void check_pointer_call(const struct node *node);
void check_pointer_drops(const char *by, struct node *node);
/* An expression of its value's type, for file scope. `is_passed`: by what awaits it, which may fail. */
const char *pointer_call_status(struct node *node, bool is_passed);
const char *pointer_awaiter(struct node *node, struct scope *slot);
const char *pointer_value(const struct node *node, bool is_passed);
const char *lower_spawned_pointer(struct node *to, struct node *call);

/* ---- select.c ---- */

struct node *parse_select(void);
void lower_select(struct node *node);

/* ---- main.c ---- */

bool is_main(void); /* the function is the program's main */
void check_main(void);
void print_main(struct text *out);

/* ---- function.c ---- */

void print_function(struct text *out);
void print_declaration(struct text *out);
bool may_be_direct(const struct function *f);

#endif
