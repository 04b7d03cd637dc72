/*
 * The parts of the wrapper of a compiler: bidec.c runs the compiler twice, as preprocessor and on
 * the translated text, with the user's arguments (arguments.c) as commands (command.c).
 */
#ifndef BIDEC_WRAPPER_H
#define BIDEC_WRAPPER_H

#include "bidec.h"

#include <sys/types.h>

/* ---- command.c ---- */

struct command {
    const char **words;
    unsigned count, room;
};

void command_add(struct command *command, const char *word);
void command_exec(const struct command *command);
int command_run(const struct command *command);
int run_quietly(const struct command *command, const char *said); /* its messages go to that file */
pid_t fork_child(void);
int wait_for(pid_t child);

/* ---- arguments.c ---- */

struct job {
    struct command compiler; /* the words that name the compiler */
    struct command rest;     /* all other words */
    struct command sources;  /* the C sources among them */
    const char *output;      /* the file of -o, or NULL */
    const char *database;    /* the file of -MJ, or NULL */
    bool makes_header;       /* it may precompile a header */
    bool only_preprocess, only_assemble, only_compile, only_dependencies;
    bool has_dependencies, names_dependencies, names_target;
    bool saves, saves_beside_output; /* -save-temps, and with =obj */
    unsigned long frame_limit;       /* of -Wasync-frame-larger-than=; 0: none */
};

bool read_lint(struct job *job, const char *word); /* a warning of bidec's own; job may be NULL */
void read_arguments(struct job *job, char **word);
void begin_compiler(struct command *command, const struct job *job, bool is_strict);
bool has_prefix(const char *word, const char *prefix);
bool is_of_preprocessor(const char *word);

/* A walk over the words of `rest`: for (struct option o = {0}; next_option(job, &o);) */
struct option {
    const char *word,
        *value;       /* the option, and its value if that is a word of its own; else NULL */
    unsigned at, end; /* the words' numbers, the end not included; to skip more, increase `end` */
};
bool next_option(const struct job *job, struct option *option);
void add_option(struct command *command, const struct option *option);
const char *language_of(const char *const *word);
bool is_source(const char *word, const char *language);
const char *with_suffix(const char *path, const char *suffix, bool keep_directory);

/* ---- check.c ---- */

enum check {
    NOT_CHECKED,  /* no warnings are wanted */
    CHECKED,      /* the translated text needs no warnings */
    CHECK_WARNED, /* warnings are errors, and there are some */
    CHECK_FAILED, /* the translated text has the errors too, or the plain reading is wrong */
};

/* The compiler's warnings for the plain reading of each source; its messages are kept if it fails. */
enum check check_plain(const struct job *job, const struct command *sources, bool is_clang,
                       const char *directory);
void print_checked(unsigned count, const char *directory);

/* Compiles the translated text. If that fails too, the messages are those of the plain reading. */
int run_after_failure(const struct command *command, enum check check, unsigned count,
                      const char *directory);

#endif
