/*
 * Executes a fuzz target without libFuzzer: the inputs of a corpus, then mutations of them.
 *
 *     NAME_fuzz [--seconds N] PATH...
 *
 * A path is a file, or a folder of files. Mutations are executed if there is a folder: as many as the target says, or for
 * a number of seconds. BIDE_FUZZ_SECONDS of the environment replaces N. BIDE_SEED is the seed; without it the seed is new
 * with BIDE_FUZZ_SECONDS, and otherwise always the same, so that a test run does not depend on luck. BIDE_ROUNDS multiplies
 * the number of executions (a number, or a fraction such as 1/4). When an execution ends the process, its input is printed in
 * hexadecimal: `xxd -r -p` makes a file of it.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_INPUTS = 1000, MAX_SIZE = 8192, SHORT_SECONDS = 1 };

struct input {
    uint8_t *data;
    size_t size;
};

static struct input corpus[MAX_INPUTS];
static size_t corpus_count;
static struct input current; /* the input that is being executed */
static bool is_executing;
static uint64_t draws;

/* ---- Reports ---- */

static void put_all(const char *text, size_t size)
{
    while (size != 0) {
        ssize_t count = write(STDERR_FILENO, text, size);
        if (count <= 0)
            return;
        text += count;
        size -= (size_t)count;
    }
}

/* (Async-signal-safe.) */
static void print_input(void)
{
    static const char digits[] = "0123456789abcdef", before[] = "the input: ";
    char pair[2];
    if (!is_executing)
        return;
    is_executing = false;
    put_all(before, sizeof before - 1);
    for (size_t i = 0; i < current.size; i++) {
        pair[0] = digits[current.data[i] >> 4];
        pair[1] = digits[current.data[i] & 15];
        put_all(pair, 2);
    }
    put_all("\n", 1);
}

static void on_signal(int number)
{
    print_input();
    signal(number, SIG_DFL);
    raise(number);
}

/* A sanitizer calls this before it ends the process. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch_the_end(void)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    if (__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(print_input);
        signal(SIGABRT, on_signal);
    } else {
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
            signal(signals[i], on_signal);
    }
    atexit(print_input); /* (a failed check of cmocka exits) */
}

/* ---- The corpus ---- */

static void add_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    static uint8_t bytes[MAX_SIZE];
    if (file == NULL || corpus_count == MAX_INPUTS) {
        fprintf(stderr, "%s: cannot be read, or there are too many inputs\n", path);
        exit(2);
    }
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    corpus[corpus_count++] = (struct input){fuzz_copy(bytes, size), size};
}

/* Adds the files of a folder in the order of their names. */
static void add_folder(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char name[4096];
        if (entries[i]->d_name[0] != '.' &&
            snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name) < (int)sizeof name)
            add_file(name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

/* ---- Mutations ---- */

static size_t draw(size_t below)
{
    uint64_t z = (draws += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return below == 0 ? 0 : (size_t)((z ^ (z >> 31)) % below);
}

static uint8_t draw_byte(void)
{
    static const char telling[] = "\r\n :;,\t0193/?#%-+.\0\x01\x7f\x80\xff";
    return draw(2) == 0 ? (uint8_t)telling[draw(sizeof telling - 1)] : (uint8_t)draw(256);
}

/* Replaces `removed` bytes at `at` with `size` others, if there is room. */
static size_t replace(uint8_t *text, size_t length, size_t at, size_t removed, const void *data, size_t size)
{
    if (length - removed + size > MAX_SIZE)
        return length;
    memmove(text + at + size, text + at + removed, length - at - removed);
    if (size != 0)
        memcpy(text + at, data, size);
    return length - removed + size;
}

static size_t mutate(uint8_t *text, size_t length)
{
    uint8_t bytes[64];
    size_t words = 0;
    size_t at = draw(length + 1), rest = length - at;
    size_t count = rest != 0 ? 1 + draw(rest < 16 ? rest : draw(8) == 0 ? rest : 16) : 0;
    while (fuzz_words[words] != NULL)
        words++;
    switch (draw(9)) {
    case 0: /* a bit */
        if (rest != 0)
            text[at] ^= (uint8_t)(1u << draw(8));
        return length;
    case 1: /* a byte */
        if (rest != 0)
            text[at] = draw_byte();
        return length;
    case 2: /* inserts bytes */
        count = 1 + draw(4);
        for (size_t i = 0; i < count; i++)
            bytes[i] = draw_byte();
        return replace(text, length, at, 0, bytes, count);
    case 3: /* removes bytes */
        return replace(text, length, at, count, NULL, 0);
    case 4: { /* repeats bytes */
        if (count > sizeof bytes)
            count = sizeof bytes;
        memcpy(bytes, text + at, count);
        return replace(text, length, draw(2) == 0 ? at : draw(length + 1), 0, bytes, count);
    }
    case 5: /* removes the end */
        return draw(4) == 0 ? at : length;
    case 6: { /* the end of another input */
        const struct input *other = &corpus[draw(corpus_count)];
        size_t from = draw(other->size + 1);
        return draw(2) != 0 ? length : replace(text, length, at, rest, other->data + from, other->size - from);
    }
    case 7: /* a small change of a number */
        if (rest != 0)
            text[at] = (uint8_t)(text[at] + draw(9) - 4);
        return length;
    default: { /* a word */
        if (words == 0)
            return length;
        const char *word = fuzz_words[draw(words)];
        return replace(text, length, at, draw(2) == 0 ? 0 : count, word, strlen(word));
    }
    }
}

/* ---- Executions ---- */

static void execute(const uint8_t *data, size_t size)
{
    current = (struct input){fuzz_copy(data, size), size};
    is_executing = true;
    (void)LLVMFuzzerTestOneInput(current.data, size);
    is_executing = false;
    free(current.data);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t seed_of_environment(void)
{
    const char *given = getenv("BIDE_SEED");
    struct timespec time = {0};
    if (given == NULL && getenv("BIDE_FUZZ_SECONDS") == NULL)
        return 1;
    clock_gettime(CLOCK_REALTIME, &time);
    return given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t executions_of_environment(void)
{
    const char *given = getenv("BIDE_ROUNDS");
    char *rest;
    if (given == NULL)
        return fuzz_executions;
    uint64_t times = strtoull(given, &rest, 10);
    uint64_t share = *rest == '/' ? strtoull(rest + 1, NULL, 10) : 1;
    return fuzz_executions * times / (share != 0 ? share : 1) + 1;
}

int main(int argc, char **argv)
{
    double seconds = 0;
    bool has_folder = false;
    int first = 1;
    if (argc > 3 && strcmp(argv[1], "--seconds") == 0) {
        seconds = atof(argv[2]);
        first = 3;
    }
    if (getenv("BIDE_FUZZ_SECONDS") != NULL)
        seconds = atof(getenv("BIDE_FUZZ_SECONDS"));
    for (int i = first; i < argc; i++) {
        struct stat about;
        if (stat(argv[i], &about) == 0 && S_ISDIR(about.st_mode)) {
            has_folder = true;
            add_folder(argv[i]);
        } else {
            add_file(argv[i]);
        }
    }
    if (corpus_count == 0) {
        fprintf(stderr, "usage: %s [--seconds N] PATH...\n", argv[0]);
        return 2;
    }
    uint64_t seed = seed_of_environment();
    draws = seed;
    printf("BIDE_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    watch_the_end();
    for (size_t i = 0; i < corpus_count; i++)
        execute(corpus[i].data, corpus[i].size);
    uint64_t max = seconds > 0 ? UINT64_MAX : executions_of_environment(), done = 0;
    double end = now() + (seconds > 0 ? seconds : SHORT_SECONDS);
    for (; has_folder && done < max && (done % 64 != 0 || now() < end); done++) {
        static uint8_t text[MAX_SIZE];
        const struct input *from = &corpus[draw(corpus_count)];
        size_t length = from->size;
        memcpy(text, from->data, length);
        for (size_t times = 1 + draw(4); times != 0; times--)
            length = mutate(text, length);
        execute(text, length);
    }
    printf("%zu inputs, %llu mutations", corpus_count, (unsigned long long)done);
    if (fuzz_parses != 0)
        printf(", %llu parses in whole and in pieces", fuzz_parses);
    printf("\n");
    for (size_t i = 0; i < corpus_count; i++)
        free(corpus[i].data);
    return 0;
}
