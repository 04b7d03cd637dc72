/*
 * Correct alone, and correct inside each other: the product of awaitable operations, wrappers around them, ends, and
 * schedulers (composition/composition.h). Each table is a setting. Pairs of wrappers follow, and wrappers inside
 * themselves a thousand times on a small stack, both drawn by seed: BIDE_ROUNDS times as many.
 *
 *     composition_test                  all: a line for each table, and then the failures, grouped
 *     composition_test TEXT...          the cells of one wrapper whose names contain all the texts
 *     composition_test pairs TEXT...    the same of the pairs that are drawn; or `deep`, or `long`
 *     composition_test TABLE:NUMBER     that cell alone, in this process
 *
 * (BIDE_ALL_FAILURES=1: and each cell that fails)
 *
 * Cells run in a child process, one after another, until one fails, which may be by a crash or by never ending; then
 * another child continues behind it.
 */
#define _GNU_SOURCE
#include "composition/composition.h"

#include "small_stack.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* (so that a race ends the child; check.sh says the same) */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "halt_on_error=1";
}

enum { SECONDS = 30 /* without an end: a cell hangs */, REASONS = 24 };

/* ---- Tables ---- */

typedef enum table_kind { ONE, PAIRS, DEEP, LONG, TABLE_KINDS } table_kind;

typedef struct table {
    char name[64];
    size_t setting; /* of all of its cells */
    table_kind kind;
    size_t count; /* how many cells it could have */
} table;

enum { DEPTH = 1000, ROUNDS = 2000, DEEP_ROWS = 2 };

static const char *const deep_rows[DEEP_ROWS] = {"event", "mutex"};

static size_t row_named(const char *name)
{
    size_t row = 0;
    while (strcmp(row_at(row).primitive->name, name) != 0)
        row++;
    return row;
}

static size_t wrappers_of(const table *t)
{
    return t->kind == PAIRS ? (WRAPPERS - 1) * (WRAPPERS - 1) : WRAPPERS;
}

static size_t product_of(const table *t)
{
    if (t->kind == LONG)
        return wrappers_of(t); /* an event that is set, all the time */
    bool on_test_loop = settings[t->setting].home->kind == PLACE_TEST;
    return (t->kind == DEEP ? DEEP_ROWS : rows_count(on_test_loop)) * ends_count * wrappers_of(t);
}

static cell_name cell_at(const table *t, size_t number)
{
    cell_name name = {.setting = t->setting};
    size_t wrapper = number % wrappers_of(t);
    number /= wrappers_of(t);
    name.end = number % ends_count;
    name.row = number / ends_count;
    if (t->kind == DEEP) {
        name.row = row_named(deep_rows[name.row]);
        name.repeats = DEPTH;
    }
    if (t->kind == LONG) {
        name.row = row_named(deep_rows[0]);
        name.rounds = ROUNDS;
    }
    if (t->kind == PAIRS) {
        name.wrappers[0] = (wrapper_kind)(1 + wrapper / (WRAPPERS - 1));
        name.wrappers[1] = (wrapper_kind)(1 + wrapper % (WRAPPERS - 1));
    } else {
        name.wrappers[0] = (wrapper_kind)wrapper;
    }
    return name;
}

/* ---- What a child tells ---- */

typedef struct report {
    bide_atomic(size_t) at; /* the cell that runs: how many of the list are done */
    size_t passed;
    size_t excluded;
    struct {
        char text[96];
        size_t count;
    } reasons[REASONS];
    char failure[300];
} report;

static report *shared;

static void count_reason(const char *reason)
{
    for (int i = 0; i < REASONS; i++) {
        if (shared->reasons[i].count == 0)
            snprintf(shared->reasons[i].text, sizeof shared->reasons[i].text, "%.90s", reason);
        if (strncmp(shared->reasons[i].text, reason, 90) == 0) {
            shared->reasons[i].count++;
            return;
        }
    }
}

/* The cells of `numbers`, from the position in `shared` on. */
static void run_cells(const table *t, const size_t *numbers, size_t count)
{
    char reason[sizeof shared->failure];
    for (size_t i = bide_atomic_load(&shared->at, relaxed); i < count; i++) {
        cell_name name = cell_at(t, numbers[i]);
        bide_atomic_store(&shared->at, i, release);
        switch (cell_run(&name, reason, sizeof reason)) {
        case CELL_PASSED:
            shared->passed++;
            break;
        case CELL_EXCLUDED:
            shared->excluded++;
            count_reason(reason);
            break;
        case CELL_FAILED:
        default:
            snprintf(shared->failure, sizeof shared->failure, "%s", reason);
            _exit(1);
        }
    }
    _exit(0);
}

/* ---- The parent ---- */

static size_t failures;
static size_t tables_run;

/* Similar failures, of one wrapper with one outcome, are reported by the first of them. */
enum { ALIKE = 1000 };

static struct alike {
    char wrappers[64];
    char what[300];
    char first[400];
    size_t count;
} alike[ALIKE];

static void tell(const table *t, size_t number, const char *what)
{
    cell_name name = cell_at(t, number);
    char text[300], wrappers[64];
    cell_print_name(&name, text, sizeof text);
    if (getenv("BIDE_ALL_FAILURES") != NULL)
        printf("# FAILS %s:%zu %s: %s\n", t->name, number, text, what);
    snprintf(wrappers, sizeof wrappers, "%d %d", (int)name.wrappers[0], (int)name.wrappers[1]);
    for (int i = 0; i < ALIKE; i++) {
        if (alike[i].count == 0) {
            snprintf(alike[i].wrappers, sizeof alike[i].wrappers, "%s", wrappers);
            snprintf(alike[i].what, sizeof alike[i].what, "%s", what);
            snprintf(alike[i].first, sizeof alike[i].first, "%.60s:%zu %s", t->name, number, text);
        }
        if (strcmp(alike[i].wrappers, wrappers) == 0 && strcmp(alike[i].what, what) == 0) {
            alike[i].count++;
            return;
        }
    }
}

static void tell_all(void)
{
    for (int i = 0; i < ALIKE && alike[i].count != 0; i++)
        printf("# %zu FAIL like %s: %s\n", alike[i].count, alike[i].first, alike[i].what);
}

static int said; /* what children write to stderr */

static void read_what_was_said(char *text, size_t size)
{
    static const char *const marks[] = {"ERROR: ", "WARNING: ", "runtime error: ", "bide: "};
    char all[4096];
    ssize_t length = pread(said, all, sizeof all - 1, 0);
    all[length > 0 ? length : 0] = '\0';
    const char *line = all;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0] && line == all; i++) {
        const char *found = strstr(all, marks[i]);
        line = found != NULL ? found : all;
    }
    snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
}

/* Waits for the child's end; kills it when a cell takes too long. True: it hung. */
static bool await_child(pid_t child, int *status)
{
    size_t at = SIZE_MAX;
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    for (;;) {
        struct timespec max = {SECONDS, 0};
        if (waitpid(child, status, WNOHANG) == child)
            return false;
        if (sigtimedwait(&ended, NULL, &max) < 0 && errno == EAGAIN) {
            size_t now = bide_atomic_load(&shared->at, relaxed);
            if (now == at) {
                kill(child, SIGKILL);
                waitpid(child, status, 0);
                return true;
            }
            at = now;
        }
    }
}

static void describe(char *text, size_t size, int status, bool hung)
{
    char line[200];
    read_what_was_said(line, sizeof line);
    if (hung)
        snprintf(text, size, "hangs");
    else if (shared->failure[0] != '\0')
        snprintf(text, size, "%s", shared->failure);
    else if (WIFSIGNALED(status))
        snprintf(text, size, "signal %d: %s", WTERMSIG(status), line);
    else
        snprintf(text, size, "exit %d: %s", WEXITSTATUS(status), line);
}

/* Runs cells of a table, each once. Returns how many did not fail. */
static void run_table(const table *t, const size_t *numbers, size_t count)
{
    size_t failed = 0;
    memset(shared, 0, sizeof *shared);
    for (;;) {
        int status;
        shared->failure[0] = '\0';
        if (ftruncate(said, 0) != 0 || lseek(said, 0, SEEK_SET) != 0)
            abort();
        fflush(stdout);
        pid_t child = fork();
        if (child < 0)
            abort();
        if (child == 0) {
            sigset_t none;
            sigemptyset(&none);
            sigprocmask(SIG_SETMASK, &none, NULL);
            dup2(said, STDERR_FILENO);
            run_cells(t, numbers, count);
        }
        bool hung = await_child(child, &status);
        if (!hung && WIFEXITED(status) && WEXITSTATUS(status) == 0)
            break;
        size_t at = bide_atomic_load(&shared->at, relaxed);
        char what[300];
        describe(what, sizeof what, status, hung);
        tell(t, numbers[at], what);
        failed++;
        bide_atomic_store(&shared->at, at + 1, relaxed);
        if (at + 1 == count)
            break;
    }
    failures += failed;
    printf("%s %zu - %s: %zu cells, %zu failed, %zu excluded\n", failed == 0 ? "ok" : "not ok",
           ++tables_run, t->name, shared->passed + failed, failed, shared->excluded);
}

/* ---- Which cells ---- */

static bool is_with_pool(const setting *s)
{
    return s->home->kind == PLACE_POOL || s->away->kind == PLACE_POOL;
}

static table tables[128];
static size_t tables_count;
static size_t possible; /* cells of all tables, of which some are drawn */

static const char *const kinds[TABLE_KINDS] = {"", "pairs, ", "deep, ", "long, "};

/* (what is deep or long is for one thread, which has the small stack) */
static void make_tables(void)
{
    for (table_kind kind = ONE; kind < TABLE_KINDS; kind++) {
        for (size_t i = 0; i < settings_count; i++) {
            if (kind >= DEEP && is_with_pool(&settings[i]))
                continue;
            table *t = &tables[tables_count++];
            snprintf(t->name, sizeof t->name, "%s%s", kinds[kind], settings[i].name);
            t->setting = i;
            t->kind = kind;
            t->count = product_of(t);
            possible += t->count;
        }
    }
}

static bool contains_all(const char *text, char **parts, int count)
{
    for (int i = 0; i < count; i++) {
        if (strstr(text, parts[i]) == NULL)
            return false;
    }
    return true;
}

static size_t total;
static size_t excluded[REASONS];
static char reasons[REASONS][96];

static void add_up(void)
{
    total += shared->passed;
    for (int i = 0; i < REASONS; i++) {
        for (int j = 0; j < REASONS && shared->reasons[i].count != 0; j++) {
            if (excluded[j] == 0)
                memcpy(reasons[j], shared->reasons[i].text, sizeof reasons[j]);
            if (strcmp(reasons[j], shared->reasons[i].text) == 0) {
                excluded[j] += shared->reasons[i].count;
                break;
            }
        }
    }
}

/*
 * How many of a table's cells are run: where all is done by one thread all of one wrapper; of others so many, drawn.
 * BIDE_ROUNDS times as many; under a sanitizer, or Valgrind, a tenth.
 */
static bool is_slow(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return SANITIZED || (preloaded != NULL && strstr(preloaded, "vgpreload") != NULL);
}

static size_t max_of(const table *t)
{
    static const uint32_t max_of_kind[TABLE_KINDS] = {30000, 2000, 100, 100};
    static const uint32_t max_with_pool[TABLE_KINDS] = {1250, 150, 0, 0};
    bool with_pool = is_with_pool(&settings[t->setting]);
    uint32_t usual = (with_pool ? max_with_pool : max_of_kind)[t->kind];
    size_t max = rounds_of(is_slow() ? usual / 10 : usual);
    return max < t->count ? max : t->count;
}

static bool is_chosen(const table *t, size_t number, char **parts, int count)
{
    char text[300];
    cell_name name = cell_at(t, number);
    if (count == 0)
        return true;
    cell_print_name(&name, text, sizeof text);
    return contains_all(text, parts, count);
}

/* Of one wrapper, all whose names contain the texts, if there are any; or of pairs. */
static void run_all(char **parts, int count, uint64_t *random)
{
    table_kind only = ONE;
    bool all = count == 0;
    for (table_kind kind = PAIRS; kind < TABLE_KINDS && count != 0; kind++) {
        if (strncmp(parts[0], kinds[kind], strlen(parts[0])) == 0) {
            only = kind;
            parts++;
            count--;
        }
    }
    for (size_t i = 0; i < tables_count; i++) {
        const table *t = &tables[i];
        size_t chosen = 0;
        size_t max = all || only != ONE ? max_of(t) : t->count;
        if (!all && t->kind != only)
            continue;
        size_t *numbers = calloc(max, sizeof *numbers);
        if (numbers == NULL)
            abort();
        for (size_t j = 0; j < max; j++) {
            size_t number = max == t->count ? j : (size_t)(testing_random(random) % t->count);
            if (is_chosen(t, number, parts, count))
                numbers[chosen++] = number;
        }
        if (chosen != 0) {
            run_table(t, numbers, chosen);
            add_up();
        }
        free(numbers);
    }
}

static int run_one(const char *text)
{
    const char *colon = strrchr(text, ':');
    for (size_t i = 0; i < tables_count && colon != NULL; i++) {
        const table *t = &tables[i];
        if (strlen(t->name) != (size_t)(colon - text) ||
            strncmp(t->name, text, (size_t)(colon - text)) != 0)
            continue;
        cell_name name = cell_at(t, strtoull(colon + 1, NULL, 10));
        char what[300];
        cell_print_name(&name, what, sizeof what);
        printf("# %s\n", what);
        fflush(stdout);
        verdict v = cell_run(&name, what, sizeof what);
        printf("%s\n", v == CELL_PASSED ? "passed" : what);
        return v == CELL_FAILED;
    }
    return 2;
}

int main(int argc, char **argv)
{
    make_tables();
    if (argc == 2 && strchr(argv[1], ':') != NULL)
        return run_one(argv[1]);
    uint64_t random = testing_seed();
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, NULL);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    said = memfd_create("stderr", 0);
    if (shared == MAP_FAILED || said < 0)
        abort();
    run_all(argv + 1, argc - 1, &random);
    for (int i = 0; i < REASONS && excluded[i] != 0; i++)
        printf("# excluded, %s: %zu\n", reasons[i], excluded[i]);
    printf("1..%zu\n", tables_run);
    tell_all();
    if (failures != 0)
        printf("# %zu cells fail\n", failures);
    printf("%zu cells, of %zu combinations\n", total + failures, possible);
    return failures != 0;
}
