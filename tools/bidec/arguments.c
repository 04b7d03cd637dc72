/*
 * The arguments of the compiler, as far as the wrapper needs to know them.
 */
#include "wrapper.h"

#include <string.h>

bool has_prefix(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

static bool has_suffix(const char *word, const char *with)
{
    size_t length = strlen(word), tail = strlen(with);
    return length > tail && strcmp(word + length - tail, with) == 0;
}

/* The options whose value is the next word. */
bool takes_word(const char *word)
{
    static const char *const options[] = {"-o",
                                          "-x",
                                          "-I",
                                          "-D",
                                          "-U",
                                          "-L",
                                          "-l",
                                          "-T",
                                          "-u",
                                          "-z",
                                          "-e",
                                          "-include",
                                          "-imacros",
                                          "-isystem",
                                          "-iquote",
                                          "-idirafter",
                                          "-iprefix",
                                          "-iwithprefix",
                                          "-iwithprefixbefore",
                                          "-isysroot",
                                          "-MF",
                                          "-MT",
                                          "-MQ",
                                          "-Xlinker",
                                          "-Xassembler",
                                          "-Xpreprocessor",
                                          "-Xclang",
                                          "-arch",
                                          "-target",
                                          "-aux-info",
                                          "-dumpbase",
                                          "-dumpdir",
                                          "--param",
                                          "-A",
                                          "-mllvm"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(word, options[i]) == 0)
            return true;
    }
    return false;
}

/* The options that only the preprocessor uses. */
bool is_preprocessing(const char *word)
{
    static const char *const options[] = {"-I",
                                          "-D",
                                          "-U",
                                          "-include",
                                          "-imacros",
                                          "-isystem",
                                          "-iquote",
                                          "-idirafter",
                                          "-iprefix",
                                          "-iwithprefix",
                                          "-M",
                                          "-Wp,",
                                          "-Xpreprocessor",
                                          "-A"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (has_prefix(word, options[i]))
            return true;
    }
    return false;
}

bool is_source(const char *word)
{
    return word[0] != '-' && has_suffix(word, ".c");
}

void read_arguments(struct job *job, char **word)
{
    static const char *const launchers[] = {"ccache", "distcc", "sccache", "icecc"};
    bool again = true;
    while (again && *word != NULL) {
        const char *name = strrchr(*word, '/') != NULL ? strrchr(*word, '/') + 1 : *word;
        again = false;
        for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
            again |= strcmp(name, launchers[i]) == 0;
        command_add(&job->compiler, *word++);
    }
    for (; *word != NULL; word++) {
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
        command_add(&job->rest, *word);
        if (takes_word(*word) && word[1] != NULL)
            command_add(&job->rest, *++word);
        else if (is_source(*word))
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
