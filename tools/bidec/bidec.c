/*
 * The program: a filter from standard input to standard output, and a wrapper of a compiler.
 *
 *     bidec gcc -O2 -c x.c -o x.o
 *
 * runs `gcc -E` on each C source, translates the preprocessed text, and compiles the result with
 * gcc. A source without an async function is compiled as if bidec were not there. Temporary files
 * are in a directory of their own, which is removed at the end.
 */
#include "wrapper.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "bidec: async and await for C, as a wrapper of a compiler\n"
    "\n"
    "usage: bidec COMPILER ARGUMENT...     as the compiler: bidec gcc -c x.c\n"
    "       bidec < preprocessed > plain   as a filter\n"
    "       bidec --emit COMPILER ARGUMENT... FILE.c\n"
    "                                      write FILE.c with its async functions translated to\n"
    "                                      standard output; preprocessed if only that is possible\n"
    "       bidec --frames COMPILER ARGUMENT... FILE.c\n"
    "                                      print a table of each frame: the offset and size of\n"
    "                                      its members, and the lines where they are live;\n"
    "                                      members that are indented further overlap\n"
    "       bidec --explain LINE COMPILER ARGUMENT... FILE.c\n"
    "                                      print the generated code of a line of FILE.c\n"
    "       bidec --editor < preprocessed  print the declarations of functions that make\n"
    "                                      awaiters for clang: bide/detail/editor.h\n"
    "       bidec --version                print the version\n"
    "\n"
    "Its own warnings, among the ARGUMENTs: -Wasync-frame-larger-than=BYTES (frames of async\n"
    "functions), -Wasync-lock-held (a lock of the thread at an await). -Werror makes them errors.\n"
    "\n"
    "With make: CC=\"bidec gcc\". With Meson: CC=\"bidec gcc\" meson setup ... With CMake:\n"
    "-DCMAKE_C_COMPILER_LAUNCHER=bidec. The sources are preprocessed with __BIDEC__ defined, and\n"
    "include bide/async.h.\n";

struct text read_all(int file)
{
    enum { BLOCK = 1 << 16 };
    struct text text = {0};
    struct stat status;
    char *block = allocate(BLOCK);
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

/* Emits the source itself with its async functions translated. False: that is not possible. */
static bool emit_source(struct text *emitted, const struct text *translated, const char *source)
{
    int file = open(source, O_RDONLY);
    if (file < 0)
        return false;
    struct text text = read_all(file);
    close(file);
    return emit_in_source(emitted, translated, source, &text);
}

/*
 * clang warns of each line marker of the text that it is given, if the user asks for all extensions. The
 * pragma of async.h, at the top, says that these are no one's code.
 */
static void write_pragma(int to, const struct text *input)
{
    static const char pragma[] = "#pragma clang diagnostic ignored \"-Wgnu-line-marker\"\n";
    struct text line = {(char *)pragma, sizeof pragma - 1, 0};
    if (memmem(input->at, input->length, pragma, line.length) != NULL)
        write_all(to, &line);
}

/* Asks for the stack that MAX_NESTING and MAX_DEPTH need. The stack grows up to the limit of this moment. */
static void allow_stack(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < STACK) {
        limit.rlim_cur = limit.rlim_max < STACK ? limit.rlim_max : STACK;
        (void)setrlimit(RLIMIT_STACK, &limit);
    }
}

/* `source` is the file to emit, or NULL; `is_read`: the output is for people, not for a compiler. */
static void translate_stream(int from, int to, int to_plain, const char *source, bool is_read)
{
    allow_stack();
    static struct text plain_text;
    struct text input = read_all(from), out = {0}, other = {0};
    text_expect(&out, input.length * 2);
    if (to_plain >= 0) {
        text_expect(&plain_text, input.length * 2);
        plain = &plain_text;
    }
    emits = source != NULL;
    lex(input.at, input.length);
    translate(&out, input.at);
    finish_lint();
    bool is_other = !is_read;
    if (is_other)
        write_pragma(to, &input);
    if (is_other)
        mark_generated_lines(&other, &out);
    else if (source != NULL)
        is_other = emit_source(&other, &out, source);
    write_all(to, is_other ? &other : &out);
    if (to_plain >= 0)
        write_all(to_plain, plain);
}

/* ---- Commands ---- */

/* Runs translate_stream() in a process of its own, because a process translates one input. */
static int translate_file(const char *from, const char *to, const char *plain_to,
                          const char *source, bool is_read)
{
    pid_t child = fork_child();
    if (child == 0) {
        int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (in < 0 || out < 0) {
            perror(in < 0 ? from : to);
            _exit(1);
        }
        int also = plain_to != NULL ? open(plain_to, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
        translate_stream(in, out, also, source, is_read);
        _exit(0);
    }
    return wait_for(child);
}

static bool is_clang; /* the compiler, found by async.h */

/* True if a word of the text begins with `word`, and one of the characters in `behind` follows. */
static bool text_has_word(const struct text *text, const char *word, const char *behind)
{
    const size_t length = strlen(word);
    for (const char *p = text->at; (p = strstr(p, word)) != NULL; p += length) {
        bool begins = p == text->at || (!isalnum((unsigned char)p[-1]) && p[-1] != '_');
        if (begins && p[length] != 0 && strchr(behind, p[length]) != NULL)
            return true;
    }
    return false;
}

/* False if the text can have no async function; then it is not translated. */
static bool has_async(const char *path)
{
    int file = open(path, O_RDONLY);
    if (file < 0)
        return false;
    struct text text = read_all(file);
    close(file);
    is_clang |= strstr(text.at, "__bide_async_clang") != NULL;
    if (strstr(text.at, "__bide_async_") != NULL)
        return true; /* it includes async.h, whose words are translated */
    if (strstr(text.at, "\"bide: \" \"value ") != NULL &&
        (text_has_word(&text, "await", " (\n") || text_has_word(&text, "yield", " (\n") ||
         text_has_word(&text, "defer", " (\n") || text_has_word(&text, "yield_from", " (\n")))
        return true; /* it includes async.h, and is told what an await in a plain function is */
    return text_has_word(&text, "async", " \n\t_");
}

/*
 * How many words at `i` name a header that is included, or precompiled, in front of the source, by way of
 * -Xclang; 0: none. CMake uses `-Xclang -include-pch -Xclang FILE -Xclang -include -Xclang FILE`.
 */
static unsigned words_of_inner_include(const struct job *job, unsigned i, bool only_precompiled)
{
    const char *const *words = job->rest.words;
    if (i + 3 >= job->rest.count || strcmp(words[i], "-Xclang") != 0 ||
        strcmp(words[i + 2], "-Xclang") != 0)
        return 0;
    bool is_include = strcmp(words[i + 1], "-include-pch") == 0 ||
                      (!only_precompiled && strcmp(words[i + 1], "-include") == 0);
    return is_include ? 4 : 0;
}

/* The options that the preprocessor does not get. */
static bool is_left_out(const char *word)
{
    static const char *const words[] = {"-c", "-S", "-E"};
    static const char *const prefixes[] = {"-o",   "--output=", "-save-temps", "--save-temps", "-l",
                                           "-Wl,", "-MJ",       "-x",          "--language="};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (has_prefix(word, prefixes[i]))
            return true;
    }
    return strcmp(word, "--language") == 0 || strcmp(word, "--output") == 0 ||
           strcmp(word, "-include-pch") == 0;
}

/* The compiler, and the options that the preprocessor gets. */
static void begin_preprocessing(struct command *c, const struct job *job)
{
    begin_compiler(c, job, false);
    for (struct option o = {0}; next_option(job, &o);) {
        unsigned inner = words_of_inner_include(job, o.at, true);
        if (inner != 0)
            o.end = o.at + inner;
        else if (!is_left_out(o.word) && o.word[0] == '-' && o.word[1] != 0)
            add_option(c, &o);
    }
    command_add(c, "-D__BIDEC__=1");
    command_add(c, "-E");
}

/* The source, the last of the preprocessor's words but for its output. */
static void add_preprocessed(struct command *c, const char *source)
{
    if (!is_source(source, NULL)) {
        command_add(c, "-x");
        command_add(c, "c");
    }
    command_add(c, source);
}

/* Preprocesses `source` into `to`. */
static int preprocess_source(const struct job *job, const char *source, const char *to)
{
    struct command c = {0};
    begin_preprocessing(&c, job);
    if (job->has_dependencies) {
        const char *object = job->output != NULL && (job->only_compile || job->only_assemble)
                                 ? job->output
                                 : with_suffix(source, ".o", false);
        if (!job->names_dependencies) {
            command_add(&c, "-MF");
            command_add(&c, with_suffix(object, ".d", true));
        }
        if (!job->names_target) {
            command_add(&c, "-MQ");
            command_add(&c, object);
        }
    }
    add_preprocessed(&c, source);
    command_add(&c, "-o");
    command_add(&c, to);
    return command_run(&c);
}

/*
 * The preprocessor has rejected a source. Without async.h an operation that is called without its waiter, which is a
 * macro, has too few arguments, and the compiler does not say why. So if the preprocessor accepts the source with
 * async.h in front of it, that is what the source lacks.
 */
static void explain_preprocessing(const struct job *job, const char *source, const char *said)
{
    struct command c = {0};
    int file = open(source, O_RDONLY);
    if (file < 0)
        return;
    struct text text = read_all(file);
    close(file);
    if (!text_has_word(&text, "await", " (\n"))
        return;
    begin_preprocessing(&c, job);
    if (job->has_dependencies) { /* (the file of the dependencies is to stay as it is) */
        command_add(&c, "-MF");
        command_add(&c, "/dev/null");
    }
    command_add(&c, "-include");
    command_add(&c, "bide/async.h");
    add_preprocessed(&c, source);
    command_add(&c, "-o");
    command_add(&c, "/dev/null");
    if (run_quietly(&c, said) == 0)
        fprintf(stderr, "bidec: %s uses await without its header: write #include <bide/async.h>\n",
                source);
}

static const char *temporary_directory;
static struct command temporary_files; /* in that directory */

/* Compiles, with each source replaced by its translation. */
static int compile_translated(const struct job *job, const struct command *translated,
                              const char *assembly, enum check check)
{
    struct command c = {0};
    unsigned source = 0;
    const char *language = NULL;
    begin_compiler(&c, job, assembly == NULL);
    for (struct option o = {0}; next_option(job, &o);) {
        unsigned inner = words_of_inner_include(job, o.at, false);
        bool is_output = has_prefix(o.word, "-o") || strcmp(o.word, "-c") == 0 ||
                         has_prefix(o.word, "-save-temps");
        const char *given = language_of(&job->rest.words[o.at]);
        if ((assembly != NULL && is_output) || is_of_preprocessor(o.word)) {
            continue;
        } else if (inner != 0) {
            o.end = o.at + inner;
        } else if (given != NULL) {
            language = given; /* a translated source has a suffix that says what it is */
            command_add(&c, "-x");
            command_add(&c, strcmp(given, "c") == 0 ? "none" : given);
        } else if (o.value == NULL && is_source(o.word, language)) {
            /* a source without async functions is preprocessed too, as the preprocessor's options are
             * left out here */
            bool is_plain = translated->words[source] == job->sources.words[source];
            command_add(&c, is_plain ? format_text("%s/%u.in.i", temporary_directory, source)
                                     : translated->words[source]);
            source++;
        } else {
            add_option(&c, &o);
        }
    }
    if (assembly != NULL) {
        command_add(&c, "-S");
        command_add(&c, "-O0");
        command_add(&c, "-w");
        command_add(&c, "-fno-lto");
        command_add(&c, "-o");
        command_add(&c, assembly);
    }
    if (check == CHECKED || check == CHECK_WARNED)
        command_add(&c, "-w");
    /* the comments that this warning looks for are gone */
    command_add(&c, "-Wno-implicit-fallthrough");
    if (assembly == NULL && job->output == NULL && (job->only_compile || job->only_assemble) &&
        job->sources.count == 1) {
        command_add(&c, "-o");
        command_add(&c, with_suffix(job->sources.words[0], job->only_compile ? ".o" : ".s", false));
    }
    if (check == CHECK_WARNED)
        command_add(&c, "-fsyntax-only"); /* for a sentence of bidec's that says more */
    if (check == CHECK_FAILED || check == CHECK_WARNED)
        return run_after_failure(&c, check, translated->count, temporary_directory);
    return command_run(&c);
}

/* ---- -MJ: the compilation database ---- */

static void print_json(FILE *out, const char *text)
{
    putc('"', out);
    for (const char *p = text; *p != 0; p++) {
        if ((unsigned char)*p < ' ')
            fprintf(out, "\\u%04x", *p);
        else
            fprintf(out, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    }
    putc('"', out);
}

/* Writes what clang would, for the sources as they stand: an entry each, with the user's command. */
static int write_database(const struct job *job)
{
    char *directory = getcwd(NULL, 0);
    FILE *out = fopen(job->database, "w");
    if (directory == NULL || out == NULL) {
        perror(job->database);
        return 1;
    }
    for (unsigned n = 0; n < job->sources.count; n++) {
        const char *source = job->sources.words[n];
        fputs("{ \"directory\": ", out);
        print_json(out, directory);
        fputs(", \"file\": ", out);
        print_json(out, source);
        fputs(", \"output\": ", out);
        print_json(out, job->output != NULL ? job->output : with_suffix(source, ".o", false));
        fputs(", \"arguments\": [", out);
        for (unsigned i = 0; i < job->compiler.count; i++) {
            fputs(i != 0 ? ", " : "", out);
            print_json(out, job->compiler.words[i]);
        }
        for (unsigned i = 0; i < job->rest.count; i++) {
            const char *word = job->rest.words[i];
            if (has_prefix(word, "-MJ")) {
                i += word[3] == 0;
                continue;
            }
            fputs(", ", out);
            print_json(out, word);
        }
        fputs("]},\n", out);
    }
    free(directory);
    if (fclose(out) == 0)
        return 0;
    perror(job->database);
    return 1;
}

static void remove_temporary_files(void)
{
    for (unsigned i = 0; i < temporary_files.count; i++)
        unlink(temporary_files.words[i]);
    rmdir(temporary_directory);
}

/* A terminal sends its signals to the compiler as well. */
static void remove_files_and_die(int number)
{
    remove_temporary_files();
    signal(number, SIG_DFL);
    raise(number);
}

static void handle_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (signal(numbers[i], remove_files_and_die) == SIG_IGN)
            signal(numbers[i], SIG_IGN);
    }
}

static void print_tables_of(const char *assembly, const char *source)
{
    int file = open(assembly, O_RDONLY);
    if (file >= 0) {
        struct text text = read_all(file);
        close(file);
        print_frame_tables(text.at, source);
    }
}

/*
 * Warns of frames that are larger than the limit. Only the compiler knows their sizes, so the source is
 * translated and compiled once more. (What does not compile is left to the compilation itself.) Returns
 * false if a warning is an error.
 */
static bool check_frames(const struct job *job, unsigned source)
{
    const char *to = format_text("%s/frames.i", temporary_directory);
    const char *assembly = format_text("%s/frames.s", temporary_directory);
    struct command one = {0};
    command_add(&temporary_files, to);
    command_add(&temporary_files, assembly);
    for (unsigned n = 0; n < job->sources.count; n++)
        command_add(&one, to);
    pid_t child = fork_child();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO);
        tables = true;
        lints_locks = false;
        _exit(translate_file(format_text("%s/%u.in.i", temporary_directory, source), to, NULL, NULL,
                             false) != 0 ||
              compile_translated(job, &one, assembly, NOT_CHECKED) != 0);
    }
    if (wait_for(child) != 0)
        return true;
    int file = open(assembly, O_RDONLY);
    if (file < 0)
        return true;
    struct text text = read_all(file);
    close(file);
    return !warn_of_frames(text.at, job->sources.words[source], job->frame_limit) ||
           !lints_are_errors;
}

/* The options that replace the compilation. */
static bool emit;
static unsigned explained_line; /* 0: none */

static int run_job(const struct job *job)
{
    struct command translated = {0}, checked = {0};
    bool compiles = !emit && explained_line == 0 && !tables && !job->only_preprocess;
    const char *base = getenv("TMPDIR");
    char *directory = (char *)format_text("%s/bidec-XXXXXX", base != NULL ? base : "/tmp");
    int status = 0;
    bool any = false;
    if (mkdtemp(directory) == NULL) {
        perror("bidec: mkdtemp");
        return 1;
    }
    temporary_directory = directory;
    handle_signals();
    command_add(&temporary_files, format_text("%s/translated.said", directory));
    for (unsigned i = 0; i < job->sources.count; i++) {
        const char *source = job->sources.words[i];
        const char *from = format_text("%s/%u.in.i", directory, i);
        const char *to = format_text("%s/%u-%s", directory, i, with_suffix(source, ".i", false));
        command_add(&temporary_files, from);
        command_add(&temporary_files, format_text("%s/%u.said", directory, i));
        if (job->saves) /* the compiler names the other saved files after this one */
            to = with_suffix(job->saves_beside_output && job->output != NULL ? job->output : source,
                             ".i", job->saves_beside_output && job->output != NULL);
        else
            command_add(&temporary_files, to);
        int failed = preprocess_source(job, source, from);
        if (failed != 0) {
            explain_preprocessing(job, source, format_text("%s/%u.said", directory, i));
            status = failed;
            continue;
        }
        if (!has_async(from)) {
            command_add(&translated, source);
            any |= strcmp(source, "-") == 0; /* it is read already */
            command_add(&checked, from);
            continue;
        }
        any = true;
        const char *plain_to = compiles ? format_text("%s/%u.plain.i", directory, i) : NULL;
        if (compiles) {
            command_add(&temporary_files, plain_to);
            command_add(&checked, plain_to);
        }
        failed =
            translate_file(from, to, plain_to, emit ? source : NULL, emit || explained_line != 0);
        status = failed != 0 ? failed : status;
        command_add(&translated, to);
    }
    if (status == 0 && explained_line != 0) {
        for (unsigned i = 0; i < translated.count; i++) {
            int in = open(translated.words[i], O_RDONLY);
            struct text text = read_all(in);
            close(in);
            if (!explain(&text, job->sources.words[i], explained_line)) {
                fprintf(stderr, "bidec: %s:%u: no generated code belongs to this line\n",
                        job->sources.words[i], explained_line);
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
            int in = open(is_plain ? format_text("%s/%u.in.i", directory, i) : path, O_RDONLY);
            struct text text = read_all(in);
            close(in);
            write_all(to, &text);
        }
    } else if (status == 0 && tables) {
        const char *assembly = format_text("%s/frames.s", directory);
        command_add(&temporary_files, assembly);
        for (unsigned i = 0; i < translated.count && any && status == 0; i++) {
            struct command one = {0};
            if (translated.words[i] == job->sources.words[i])
                continue;
            for (unsigned n = 0; n < translated.count; n++)
                command_add(&one, translated.words[i]);
            status = compile_translated(job, &one, assembly, NOT_CHECKED);
            if (status == 0)
                print_tables_of(assembly, job->sources.words[i]);
        }
    } else if (status == 0 && any) {
        for (unsigned i = 0; i < translated.count && job->frame_limit != 0; i++) {
            if (translated.words[i] != job->sources.words[i] && !check_frames(job, i))
                status = 1;
        }
        enum check check = check_plain(job, &checked, is_clang, directory);
        if (status == 0)
            status = compile_translated(job, &translated, NULL, check);
        if (status == 0 && job->database != NULL)
            status = write_database(job);
    }
    remove_temporary_files();
    if (status == 0 && !any && !emit && explained_line == 0 && !tables && !job->only_preprocess)
        return -1;
    return status;
}

static void print_editor_declarations(void)
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
    if (strcmp(word, "--version") == 0) {
        puts("bidec " BIDEC_VERSION);
        return 0;
    }
    if (strcmp(word, "--editor") == 0) {
        print_editor_declarations();
        return 0;
    }
    emit = strcmp(word, "--emit") == 0;
    tables = strcmp(word, "--frames") == 0;
    if (strcmp(word, "--explain") == 0 && argc > 2) {
        explained_line = (unsigned)strtoul(argv[2], NULL, 10);
        words = 2;
    }
    if (emit || tables || explained_line != 0) {
        argv += words;
        argc -= words;
    }
    if (argc < 2) {
        if (emit || tables || explained_line != 0) {
            fputs(usage, stderr);
            return 2;
        }
        translate_stream(STDIN_FILENO, STDOUT_FILENO, -1, NULL, false);
        return 0;
    }
    if (argv[1][0] == '-') {
        fprintf(stderr, "bidec: no such option: %s\n%s", argv[1], usage);
        return 2;
    }
    if (is_source(argv[1], NULL)) {
        fprintf(stderr, "bidec: the compiler comes first: bidec gcc %s ...\n", argv[1]);
        return 2;
    }
    struct job job = {0};
    argv = expand_response_files(argv + 1);
    read_arguments(&job, argv);
    if (job.sources.count != 0 && !job.only_dependencies) {
        int status = run_job(&job);
        if (status != -1)
            return status;
    }
    /* nothing to translate: become the compiler */
    struct command c = {0};
    for (; *argv != NULL; argv++) {
        if (!read_lint(NULL, *argv))
            command_add(&c, *argv);
    }
    if (job.sources.count != 0 || job.makes_header)
        command_add(&c, "-D__BIDEC__=1");
    command_exec(&c);
}
