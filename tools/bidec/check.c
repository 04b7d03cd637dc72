/*
 * The compiler's warnings: they are asked for the plain reading of each source (plain.c), in which
 * lines and columns are the user's. Where that has no error, the translated text is compiled without
 * warnings. An error there that the translated text does not have would be a fault of the reading:
 * then it is the translated text that is warned about.
 */
#include "wrapper.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* gcc finds the return without a value, the uninitialised variable and the like as it compiles. */
static bool asks_for_warnings(const struct job *job)
{
    for (unsigned i = 0; i < job->rest.count; i++) {
        const char *word = job->rest.words[i];
        if (has_prefix(word, "-pedantic") ||
            (has_prefix(word, "-W") && strchr("lpa", word[2]) == NULL &&
             !has_prefix(word, "-Wno-")) ||
            strcmp(word, "-Wall") == 0 || has_prefix(word, "-Warray"))
            return true;
    }
    return false;
}

static bool has_word(const struct job *job, const char *prefix)
{
    for (unsigned i = 0; i < job->rest.count; i++) {
        if (has_prefix(job->rest.words[i], prefix))
            return true;
    }
    return false;
}

/* Words that make files or link. */
static bool is_of_output(const char *word)
{
    static const char *const options[] = {"-o",
                                          "-c",
                                          "-S",
                                          "-save-temps",
                                          "--save-temps",
                                          "-Wl,",
                                          "-l",
                                          "-L",
                                          "-fdump-",
                                          "-fstack-usage",
                                          "-fcallgraph-info",
                                          "--coverage",
                                          "-ftest-coverage",
                                          "-fprofile",
                                          "-pipe"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (has_prefix(word, options[i]))
            return true;
    }
    return word[0] != '-'; /* an object, a library, another source */
}

static void build_check(struct command *c, const struct job *job, const char *source, bool is_clang,
                        bool is_tolerant)
{
    begin_compiler(c, job, !is_tolerant);
    for (struct option o = {0}; next_option(job, &o);) {
        if (!is_of_preprocessor(o.word) && !is_of_output(o.word) &&
            !(is_tolerant && has_prefix(o.word, "-Werror")))
            add_option(c, &o);
    }
    if (isatty(STDERR_FILENO) && !has_word(job, "-fdiagnostics-color"))
        command_add(c, "-fdiagnostics-color=always");
    if (is_clang) {
        command_add(c, "-fsyntax-only");
        command_add(c, "-Qunused-arguments");
        command_add(c, "-Wno-unknown-warning-option"); /* of the next one, in older versions */
        command_add(c, "-Wno-gnu-line-marker");
    } else if (asks_for_warnings(job)) {
        static const char *const options[] = {"-S",  "-o",       "/dev/null",
                                              "-g0", "-fno-lto", "-fno-sanitize=all"};
        for (size_t i = 0; i < sizeof options / sizeof *options; i++)
            command_add(c, options[i]);
    } else {
        command_add(c, "-fsyntax-only");
    }
    command_add(c, "-Wno-implicit-fallthrough"); /* the comments that it looks for are gone */
    command_add(c, source);
}

/* Runs it with its messages in a file. */
int run_quietly(const struct command *command, const char *said)
{
    pid_t child = fork_child();
    if (child == 0) {
        int file = open(said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (file >= 0)
            dup2(file, STDERR_FILENO);
        command_exec(command);
    }
    return wait_for(child);
}

static void print_said(const char *said)
{
    int file = open(said, O_RDONLY);
    if (file < 0)
        return;
    struct text text = read_all(file);
    close(file);
    fwrite(text.at, 1, text.length, stderr);
}

static const char *said_of(const char *directory, unsigned source)
{
    return format_text("%s/%u.said", directory, source);
}

enum check check_plain(const struct job *job, const struct command *sources, bool is_clang,
                       const char *directory)
{
    bool failed = false, only_warnings_failed = false;
    if (has_word(job, "-w"))
        return NOT_CHECKED;
    for (unsigned i = 0; i < sources->count; i++) {
        struct command c = {0}, tolerant = {0};
        build_check(&c, job, sources->words[i], is_clang, false);
        if (run_quietly(&c, said_of(directory, i)) == 0)
            continue;
        failed = true;
        build_check(&tolerant, job, sources->words[i], is_clang, true);
        only_warnings_failed |= run_quietly(&tolerant, "/dev/null") == 0;
    }
    if (!failed)
        print_checked(sources->count, directory);
    return only_warnings_failed ? CHECK_WARNED : failed ? CHECK_FAILED : CHECKED;
}

void print_checked(unsigned count, const char *directory)
{
    for (unsigned i = 0; i < count; i++)
        print_said(said_of(directory, i));
}

/* A sentence of bidec's own, which the compiler has found to be needed. */
static bool has_sentence(const char *said)
{
    int file = open(said, O_RDONLY);
    if (file < 0)
        return false;
    struct text text = read_all(file);
    close(file);
    return strstr(text.at, "static assertion failed") != NULL ||
           strstr(text.at, "static_assert") != NULL || strstr(text.at, " is async: ") != NULL ||
           strstr(text.at, " is a generator: ") != NULL ||
           strstr(text.at, "_needs_this_size") != NULL;
}

int run_after_failure(const struct command *command, enum check check, unsigned count,
                      const char *directory)
{
    const char *said = format_text("%s/translated.said", directory);
    int status = run_quietly(command, said);
    if ((status == 0 && check == CHECK_FAILED) || has_sentence(said))
        print_said(said);
    else
        print_checked(count, directory);
    return check == CHECK_WARNED ? 1 : status;
}
