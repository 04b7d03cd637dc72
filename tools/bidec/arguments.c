/*
 * The arguments of the compiler, as far as the wrapper needs to know them.
 */
#include "wrapper.h"

#include <stdlib.h>
#include <string.h>

/*
 * The compiler's own words, and, in front of the user's options, that a call of a function that is not declared is
 * an error: it would be an int.
 */
void begin_compiler(struct command *command, const struct job *job, bool is_strict)
{
    for (unsigned i = 0; i < job->compiler.count; i++)
        command_add(command, job->compiler.words[i]);
    if (is_strict)
        command_add(command, "-Werror=implicit-function-declaration");
}

bool has_prefix(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

static bool has_suffix(const char *word, const char *with)
{
    size_t length = strlen(word), tail = strlen(with);
    return length > tail && strcmp(word + length - tail, with) == 0;
}

/* Returns whether the list has the word. */
static bool is_in(const char *const list[], size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, list[i]) == 0)
            return true;
    }
    return false;
}

#define IS_IN(list, word) is_in((list), sizeof(list) / sizeof *(list), (word))

/* The options of gcc and clang whose value is the next word. */
static bool takes_word(const char *word)
{
    static const char *const options[] = {
        /* of the driver */
        "-o", "-x", "-B", "-specs", "-wrapper", "-arch", "-target", "-gcc-toolchain",
        "-ccc-install-dir", "-dumpbase", "-dumpbase-ext", "-dumpdir", "-aux-info", "--param",
        "-resource-dir", "-working-directory", "-serialize-diagnostics", "--serialize-diagnostics",
        "-fplugin-arg", "--output", "--language", "--prefix", "--target", "--config",
        /* of the preprocessor */
        "-I", "-D", "-U", "-A", "-F", "-MF", "-MT", "-MQ", "-MJ", "-include", "-imacros",
        "-isystem", "-isystem-after", "-iquote", "-idirafter", "-iprefix", "-iwithprefix",
        "-iwithprefixbefore", "-isysroot", "-imultilib", "-iframework", "-iframeworkwithsysroot",
        "-iwithsysroot", "-include-pch", "-ivfsoverlay", "-cxx-isystem", "--sysroot", "--include",
        "--imacros", "--include-directory", "--include-directory-after", "--include-prefix",
        "--include-with-prefix", "--include-with-prefix-after", "--include-with-prefix-before",
        "--define-macro", "--undefine-macro", "--assert",
        /* of the linker and the assembler */
        "-L", "-l", "-T", "-u", "-z", "-e", "-R", "-G", "-Tbss", "-Tdata", "-Ttext", "-rpath",
        "-framework", "--library-directory", "--force-link", "--entry", "-Xlinker", "-Xassembler",
        "-Xpreprocessor", "-Xclang", "-Xanalyzer", "-Xarch_host", "-Xopenmp-target", "-mllvm",
        "-mthread-model", "--for-linker", "--for-assembler"};
    return IS_IN(options, word);
}

/* The options that only the preprocessor uses. */
static bool is_preprocessing(const char *word)
{
    static const char *const prefixes[] = {"-I",
                                           "-D",
                                           "-U",
                                           "-A",
                                           "-M",
                                           "-Wp,",
                                           "-include",
                                           "-imacros",
                                           "-isystem",
                                           "-iquote",
                                           "-idirafter",
                                           "-iprefix",
                                           "-iwithprefix",
                                           "-Xpreprocessor",
                                           "--include",
                                           "--imacros",
                                           "--define-macro",
                                           "--undefine-macro",
                                           "--assert"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (has_prefix(word, prefixes[i]))
            return true;
    }
    return false;
}

bool is_of_preprocessor(const char *word)
{
    return is_preprocessing(word) && strcmp(word, "-Wp,") != 0;
}

bool next_option(const struct job *job, struct option *option)
{
    option->at = option->end;
    if (option->at >= job->rest.count)
        return false;
    option->word = job->rest.words[option->at];
    const bool has_value = takes_word(option->word) && option->at + 1 < job->rest.count;
    option->value = has_value ? job->rest.words[option->at + 1] : NULL;
    option->end = option->at + 1 + has_value;
    return true;
}

void add_option(struct command *command, const struct option *option)
{
    command_add(command, option->word);
    if (option->value != NULL)
        command_add(command, option->value);
}

/* The language that -x gives in one word or two, at `word`; or NULL. */
const char *language_of(const char *const *word)
{
    if (strcmp(*word, "-x") == 0 || strcmp(*word, "--language") == 0)
        return word[1];
    if (has_prefix(*word, "--language="))
        return *word + strlen("--language=");
    return has_prefix(*word, "-x") ? *word + 2 : NULL;
}

/* Returns whether a word is a C source, if `language` is that of the latest -x, or NULL. */
bool is_source(const char *word, const char *language)
{
    if (word[0] == '-' && word[1] != 0)
        return false;
    if (language != NULL && strcmp(language, "none") != 0)
        return strcmp(language, "c") == 0;
    return has_suffix(word, ".c");
}

bool read_lint(struct job *job, const char *word)
{
    static const char limit[] = "-Wasync-frame-larger-than=";
    bool is_limit = has_prefix(word, limit), is_on = strcmp(word, "-Wasync-lock-held") == 0,
         is_off = strcmp(word, "-Wno-async-lock-held") == 0,
         has_no_limit = strcmp(word, "-Wno-async-frame-larger-than") == 0;
    if (job != NULL && is_limit)
        job->frame_limit = strtoul(word + sizeof limit - 1, NULL, 10);
    if (job != NULL && has_no_limit)
        job->frame_limit = 0;
    if (job != NULL && (is_on || is_off))
        lints_locks = is_on;
    return is_limit || has_no_limit || is_on || is_off;
}

void read_arguments(struct job *job, char **word)
{
    static const char *const launchers[] = {"ccache", "distcc", "sccache", "icecc"};
    bool again = true;
    const char *language = NULL;
    while (again && *word != NULL) {
        const char *name = strrchr(*word, '/') != NULL ? strrchr(*word, '/') + 1 : *word;
        again = false;
        for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
            again |= strcmp(name, launchers[i]) == 0;
        command_add(&job->compiler, *word++);
    }
    for (; *word != NULL; word++) {
        if (read_lint(job, *word))
            continue;
        lints_are_errors |= strcmp(*word, "-Werror") == 0;
        job->only_preprocess |= strcmp(*word, "-E") == 0;
        job->only_assemble |= strcmp(*word, "-S") == 0;
        job->only_compile |= strcmp(*word, "-c") == 0;
        job->only_dependencies |= strcmp(*word, "-M") == 0 || strcmp(*word, "-MM") == 0;
        job->has_dependencies |= strcmp(*word, "-MD") == 0 || strcmp(*word, "-MMD") == 0;
        job->names_dependencies |= has_prefix(*word, "-MF");
        job->saves |= has_prefix(*word, "-save-temps") || has_prefix(*word, "--save-temps");
        job->saves_beside_output |= strcmp(*word, "-save-temps=obj") == 0;
        job->names_target |= has_prefix(*word, "-MT") || has_prefix(*word, "-MQ");
        if (has_prefix(*word, "-o") && (*word)[2] != 0 && strcmp(*word, "-objcmt-migration") != 0)
            job->output = *word + 2;
        else if (strcmp(*word, "-o") == 0 && word[1] != NULL)
            job->output = word[1];
        if (language_of((const char *const *)word) != NULL)
            language = language_of((const char *const *)word);
        job->makes_header |=
            (language != NULL && strcmp(language, "c-header") == 0) || has_suffix(*word, ".h");
        if (has_prefix(*word, "-MJ"))
            job->database = (*word)[3] != 0 ? *word + 3 : word[1];
        command_add(&job->rest, *word);
        if (takes_word(*word) && word[1] != NULL)
            command_add(&job->rest, *++word);
        else if (is_source(*word, language))
            command_add(&job->sources, *word);
    }
}

const char *with_suffix(const char *path, const char *suffix, bool keep_directory)
{
    const char *name = strrchr(path, '/'), *dot = strrchr(path, '.');
    if (!keep_directory && name != NULL)
        path = name + 1;
    if (dot == NULL || (name != NULL && dot < name))
        dot = path + strlen(path);
    return format_text("%.*s%s", (int)(dot - path), path, suffix);
}
