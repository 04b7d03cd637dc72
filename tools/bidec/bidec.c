/*
 * The program: a filter from standard input to standard output, and a wrapper of a compiler.
 *
 *     bidec gcc -O2 -c x.c -o x.o
 *
 * runs `gcc -E` on each C source, translates what comes, and has gcc compile that. A source without
 * an async function is compiled as if bidec were not there. What is made on the way lies in a
 * directory of its own and is removed.
 */
#include "bidec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "bidec: async and await for C, as a wrapper of a compiler\n"
    "\n"
    "usage: bidec COMPILER ARGUMENT...     as the compiler: bidec gcc -c x.c\n"
    "       bidec < preprocessed > plain   as a filter\n"
    "       bidec --emit COMPILER ARGUMENT... FILE.c\n"
    "                                      what becomes of FILE.c, to standard output: as it "
    "stands,\n"
    "                                      with its async functions translated; preprocessed "
    "where\n"
    "                                      that cannot be done\n"
    "       bidec --frames COMPILER ARGUMENT... FILE.c\n"
    "                                      a table of each frame: where its members lie, how "
    "large\n"
    "                                      they are, and on which lines they live; those that "
    "stand\n"
    "                                      further right overlap with each other\n"
    "       bidec --explain LINE COMPILER ARGUMENT... FILE.c\n"
    "                                      what a line of FILE.c has become\n"
    "       bidec --editor < preprocessed  what clang is to be told of the functions that make\n"
    "                                      awaiters, for bide/detail/editor.h\n"
    "\n"
    "With make: CC=\"bidec gcc\". With Meson: CC=\"bidec gcc\" meson setup ... With CMake:\n"
    "-DCMAKE_C_COMPILER_LAUNCHER=bidec. The sources are preprocessed with __BIDEC__ defined, and\n"
    "include bide/async.h.\n";

struct text read_all(int file)
{
    enum { BLOCK = 1 << 16 };
    struct text text = {0};
    struct stat status;
    char *block = take(BLOCK);
    bool is_file = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    text_expect(&text, is_file ? (size_t)status.st_size : BLOCK);
    for (;;) {
        size_t left = text.room - 1 - text.length;
        char *to = left != 0 ? text.at + text.length : block;
        ssize_t n = read(file, to, left != 0 ? left : BLOCK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            perror("bidec: read");
            exit(1);
        }
        if (n == 0) {
            text.at[text.length] = 0;
            return text;
        }
        if (to == block)
            text_add(&text, block, (size_t)n);
        else
            text.length += (size_t)n;
    }
}

static void write_all(int file, const struct text *text)
{
    for (size_t done = 0; done < text->length;) {
        ssize_t n = write(file, text->at + done, text->length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            perror("bidec: write");
            exit(1);
        }
        done += (size_t)n;
    }
}

/* As the source named, where that can be done. */
static bool emit_source(struct text *emitted, const struct text *translated, const char *source)
{
    int file = open(source, O_RDONLY);
    if (file < 0)
        return false;
    struct text text = read_all(file);
    close(file);
    return emit_in_source(emitted, translated, source, &text);
}

/* With the name of the source, what is to be emitted of it; to be read by people, or compiled. */
static void filter(int from, int to, const char *source, bool is_read)
{
    struct text input = read_all(from), out = {0}, other = {0};
    text_expect(&out, input.length * 2);
    lex(input.at, input.length);
    translate(&out, input.at);
    bool is_other = !is_read;
    if (is_other)
        mark_generated_lines(&other, &out);
    else if (source != NULL)
        is_other = emit_source(&other, &out, source);
    write_all(to, is_other ? &other : &out);
}

/* ---- Commands ---- */

struct command {
    const char **words;
    unsigned count, room;
};

static void add(struct command *command, const char *word)
{
    if (command->count + 1 >= command->room) {
        command->room = command->room * 2 + 64;
        command->words = realloc(command->words, command->room * sizeof *command->words);
        if (command->words == NULL) {
            fputs("bidec: no memory\n", stderr);
            exit(1);
        }
    }
    command->words[command->count++] = word;
    command->words[command->count] = NULL;
}

static void be(const struct command *command)
{
    execvp(command->words[0], (char **)command->words);
    fprintf(stderr, "bidec: %s: %s\n", command->words[0], strerror(errno));
    _exit(127);
}

static int wait_for(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static pid_t start(void)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        perror("bidec: fork");
        exit(1);
    }
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
    }
    return child;
}

static int run(const struct command *command)
{
    pid_t child = start();
    if (child == 0)
        be(command);
    return wait_for(child);
}

/* Each in a process of its own: the translator has one input. With a source, what is to be emitted of that. */
static int translate_file(const char *from, const char *to, const char *source, bool is_read)
{
    pid_t child = start();
    if (child == 0) {
        int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (in < 0 || out < 0) {
            perror(in < 0 ? from : to);
            _exit(1);
        }
        filter(in, out, source, is_read);
        _exit(0);
    }
    return wait_for(child);
}

/* Is there an async function? Asked of the text, so that other sources take the shortest way. */
static bool has_async(const char *path)
{
    int file = open(path, O_RDONLY);
    if (file < 0)
        return false;
    struct text text = read_all(file);
    close(file);
    for (const char *p = text.at; (p = strstr(p, "async")) != NULL; p += 5) {
        const char before = *(p == text.at ? " " : p - 1);
        if ((before == '\n' || before == ' ' || before == '\t') &&
            (p[5] == ' ' || p[5] == '\n' || p[5] == '\t' || p[5] == '_'))
            return true;
    }
    return false;
}

/* ---- The compiler's arguments ---- */

static bool starts(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

static bool ends(const char *word, const char *with)
{
    size_t length = strlen(word), tail = strlen(with);
    return length > tail && strcmp(word + length - tail, with) == 0;
}

/* Options whose value is the next word. */
static bool takes_word(const char *word)
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

/* Of interest to the preprocessor alone. */
static bool is_preprocessing(const char *word)
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
        if (starts(word, options[i]))
            return true;
    }
    return false;
}

struct job {
    struct command compiler; /* the words that name it */
    struct command rest;     /* all others */
    struct command sources;  /* the C sources among them */
    const char *output;      /* of -o, or NULL */
    bool only_preprocess, only_assemble, only_compile, only_dependencies;
    bool has_dependencies, names_dependencies, names_target;
    bool saves, saves_beside_output; /* -save-temps, and with =obj */
};

static bool is_source(const char *word)
{
    return word[0] != '-' && ends(word, ".c");
}

static void read_arguments(struct job *job, char **word)
{
    static const char *const launchers[] = {"ccache", "distcc", "sccache", "icecc"};
    bool again = true;
    while (again && *word != NULL) {
        const char *name = strrchr(*word, '/') != NULL ? strrchr(*word, '/') + 1 : *word;
        again = false;
        for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
            again |= strcmp(name, launchers[i]) == 0;
        add(&job->compiler, *word++);
    }
    for (; *word != NULL; word++) {
        job->only_preprocess |= strcmp(*word, "-E") == 0;
        job->only_assemble |= strcmp(*word, "-S") == 0;
        job->only_compile |= strcmp(*word, "-c") == 0;
        job->only_dependencies |= strcmp(*word, "-M") == 0 || strcmp(*word, "-MM") == 0;
        job->has_dependencies |= strcmp(*word, "-MD") == 0 || strcmp(*word, "-MMD") == 0;
        job->names_dependencies |= starts(*word, "-MF");
        job->saves |= starts(*word, "-save-temps") || starts(*word, "--save-temps");
        job->saves_beside_output |= strcmp(*word, "-save-temps=obj") == 0;
        job->names_target |= starts(*word, "-MT") || starts(*word, "-MQ");
        if (starts(*word, "-o") && (*word)[2] != 0 && strcmp(*word, "-objcmt-migration") != 0)
            job->output = *word + 2;
        else if (strcmp(*word, "-o") == 0 && word[1] != NULL)
            job->output = word[1];
        add(&job->rest, *word);
        if (takes_word(*word) && word[1] != NULL)
            add(&job->rest, *++word);
        else if (is_source(*word))
            add(&job->sources, *word);
    }
}

static const char *with_suffix(const char *path, const char *suffix, bool keep_directory)
{
    const char *name = strrchr(path, '/'), *dot = strrchr(path, '.');
    if (!keep_directory && name != NULL)
        path = name + 1;
    if (dot == NULL || (name != NULL && dot < name))
        dot = path + strlen(path);
    return print("%.*s%s", (int)(dot - path), path, suffix);
}

/* Preprocesses `source` into `to`. */
static int preprocess(const struct job *job, const char *source, const char *to)
{
    struct command c = {0};
    for (unsigned i = 0; i < job->compiler.count; i++)
        add(&c, job->compiler.words[i]);
    for (unsigned i = 0; i < job->rest.count; i++) {
        const char *word = job->rest.words[i];
        if (strcmp(word, "-o") == 0) {
            i++;
        } else if (takes_word(word) && i + 1 < job->rest.count) {
            add(&c, word);
            add(&c, job->rest.words[++i]);
        } else if (word[0] == '-' && strcmp(word, "-c") != 0 && strcmp(word, "-S") != 0 &&
                   strcmp(word, "-E") != 0 && !starts(word, "-o") && !starts(word, "-save-temps") &&
                   !starts(word, "-l") && !starts(word, "-Wl,")) {
            add(&c, word);
        }
    }
    if (job->has_dependencies) {
        const char *object = job->output != NULL && (job->only_compile || job->only_assemble)
                                 ? job->output
                                 : with_suffix(source, ".o", false);
        if (!job->names_dependencies) {
            add(&c, "-MF");
            add(&c, with_suffix(object, ".d", true));
        }
        if (!job->names_target) {
            add(&c, "-MQ");
            add(&c, object);
        }
    }
    add(&c, "-D__BIDEC__=1");
    add(&c, "-E");
    add(&c, source);
    add(&c, "-o");
    add(&c, to);
    return run(&c);
}

static const char *temporary; /* the folder of what is made */

/* Compiles, with each source replaced by what it was translated to. */
static int compile(const struct job *job, const struct command *translated, const char *assembly)
{
    struct command c = {0};
    unsigned source = 0;
    for (unsigned i = 0; i < job->compiler.count; i++)
        add(&c, job->compiler.words[i]);
    for (unsigned i = 0; i < job->rest.count; i++) {
        const char *word = job->rest.words[i];
        bool has_value = takes_word(word) && i + 1 < job->rest.count;
        bool is_output =
            starts(word, "-o") || strcmp(word, "-c") == 0 || starts(word, "-save-temps");
        if (assembly != NULL && is_output) {
            i += strcmp(word, "-o") == 0;
            continue;
        }
        if (is_preprocessing(word) && strcmp(word, "-Wp,") != 0) {
            i += has_value;
        } else if (has_value) {
            add(&c, word);
            add(&c, job->rest.words[++i]);
        } else if (is_source(word)) {
            /* one without async functions is preprocessed too: what that was told is not said again */
            bool is_plain = translated->words[source] == job->sources.words[source];
            add(&c, is_plain ? print("%s/%u.in.i", temporary, source) : translated->words[source]);
            source++;
        } else {
            add(&c, word);
        }
    }
    if (assembly != NULL) {
        add(&c, "-S");
        add(&c, "-O0");
        add(&c, "-w");
        add(&c, "-fno-lto");
        add(&c, "-o");
        add(&c, assembly);
    }
    /* what was said in a comment is gone */
    add(&c, "-Wno-implicit-fallthrough");
    if (assembly == NULL && job->output == NULL && (job->only_compile || job->only_assemble) &&
        job->sources.count == 1) {
        add(&c, "-o");
        add(&c, with_suffix(job->sources.words[0], job->only_compile ? ".o" : ".s", false));
    }
    return run(&c);
}

static struct command made; /* the files in it */

static void remove_temporary(void)
{
    for (unsigned i = 0; i < made.count; i++)
        unlink(made.words[i]);
    rmdir(temporary);
}

/* What was made goes when bidec is told to end, too. (Its compiler is told as well, by a terminal.) */
static void end_by_signal(int number)
{
    remove_temporary();
    signal(number, SIG_DFL);
    raise(number);
}

static void mind_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (signal(numbers[i], end_by_signal) == SIG_IGN)
            signal(numbers[i], SIG_IGN);
    }
}

static void print_file(const char *assembly, const char *source)
{
    int file = open(assembly, O_RDONLY);
    if (file >= 0) {
        struct text text = read_all(file);
        close(file);
        print_answers(text.at, source);
    }
}

/* What is asked for in place of compiling. */
static bool emit;
static unsigned explained; /* a line; 0: none */

static int run_job(const struct job *job)
{
    struct command translated = {0};
    const char *base = getenv("TMPDIR");
    char *directory = (char *)print("%s/bidec-XXXXXX", base != NULL ? base : "/tmp");
    int status = 0;
    bool any = false;
    if (mkdtemp(directory) == NULL) {
        perror("bidec: mkdtemp");
        return 1;
    }
    temporary = directory;
    mind_signals();
    for (unsigned i = 0; i < job->sources.count && status == 0; i++) {
        const char *source = job->sources.words[i];
        const char *from = print("%s/%u.in.i", directory, i);
        const char *to = print("%s/%u-%s", directory, i, with_suffix(source, ".i", false));
        add(&made, from);
        if (job->saves) /* the compiler saves the rest under this name */
            to = with_suffix(job->saves_beside_output && job->output != NULL ? job->output : source,
                             ".i", job->saves_beside_output && job->output != NULL);
        else
            add(&made, to);
        status = preprocess(job, source, from);
        if (status != 0)
            break;
        if (!has_async(from)) {
            add(&translated, source);
            continue;
        }
        any = true;
        status = translate_file(from, to, emit ? source : NULL, emit || explained != 0);
        add(&translated, to);
    }
    if (status == 0 && explained != 0) {
        for (unsigned i = 0; i < translated.count; i++) {
            int in = open(translated.words[i], O_RDONLY);
            struct text text = read_all(in);
            close(in);
            if (!explain(&text, job->sources.words[i], explained)) {
                fprintf(stderr, "bidec: %s:%u: nothing has become of this line\n",
                        job->sources.words[i], explained);
                status = 1;
            }
        }
    } else if (status == 0 && (emit || job->only_preprocess)) {
        int to = STDOUT_FILENO;
        if (!emit && job->output != NULL)
            to = open(job->output, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        for (unsigned i = 0; i < translated.count; i++) {
            const char *path = translated.words[i];
            bool is_plain = !emit && path == job->sources.words[i];
            int in = open(is_plain ? print("%s/%u.in.i", directory, i) : path, O_RDONLY);
            struct text text = read_all(in);
            close(in);
            write_all(to, &text);
        }
    } else if (status == 0 && tables) {
        const char *assembly = print("%s/frames.s", directory);
        add(&made, assembly);
        for (unsigned i = 0; i < translated.count && any && status == 0; i++) {
            struct command one = {0};
            if (translated.words[i] == job->sources.words[i])
                continue;
            for (unsigned n = 0; n < translated.count; n++)
                add(&one, translated.words[i]);
            status = compile(job, &one, assembly);
            if (status == 0)
                print_file(assembly, job->sources.words[i]);
        }
    } else if (status == 0 && any) {
        status = compile(job, &translated, NULL);
    }
    remove_temporary();
    if (status == 0 && !any && !emit && explained == 0 && !tables && !job->only_preprocess)
        return -1;
    return status;
}

/* What clang is to be told, of preprocessed text. */
static void filter_for_editors(void)
{
    struct text input = read_all(STDIN_FILENO), out = {0};
    text_add(&out, "", 0);
    lex(input.at, input.length);
    translate(&out, input.at);
    out.length = 0;
    print_for_editors(&out);
    write_all(STDOUT_FILENO, &out);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    int words = 1;
    if (strcmp(word, "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (strcmp(word, "--editor") == 0) {
        filter_for_editors();
        return 0;
    }
    emit = strcmp(word, "--emit") == 0;
    tables = strcmp(word, "--frames") == 0;
    if (strcmp(word, "--explain") == 0 && argc > 2) {
        explained = (unsigned)strtoul(argv[2], NULL, 10);
        words = 2;
    }
    if (emit || tables || explained != 0) {
        argv += words;
        argc -= words;
    }
    if (argc < 2) {
        if (emit || tables || explained != 0) {
            fputs(usage, stderr);
            return 2;
        }
        filter(STDIN_FILENO, STDOUT_FILENO, NULL, false);
        return 0;
    }
    if (argv[1][0] == '-') {
        fprintf(stderr, "bidec: no such option: %s\n%s", argv[1], usage);
        return 2;
    }
    struct job job = {0};
    argv = with_response_files(argv + 1);
    read_arguments(&job, argv);
    if (job.sources.count != 0 && !job.only_dependencies) {
        int status = run_job(&job);
        if (status != -1)
            return status;
    }
    /* nothing to translate: be the compiler */
    struct command c = {0};
    for (; *argv != NULL; argv++)
        add(&c, *argv);
    if (job.sources.count != 0)
        add(&c, "-D__BIDEC__=1");
    be(&c);
}
