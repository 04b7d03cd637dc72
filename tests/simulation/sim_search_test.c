/*
 * Exploring by several processes: the report is that of one. The corpus of seeds that have failed, and the line that shows
 * how far an exploration is.
 */
#define _GNU_SOURCE
#include "testing.h"

#include "bide/schedule.h"
#include "bide/sim_loop.h"
#include "bide/task.h"
#include "bide/when.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Runs ---- */

/* What a seed does: by the numbers that it draws, a few of a thousand fail. */
static int fail_now_and_then(bide_sim_loop *loop, void *argument)
{
    const unsigned *one_in = argument;
    if (bide_maybe("a fault") && bide_maybe("a second fault"))
        (void)bide_sim_loop_draw(loop, 10);
    uint32_t number = bide_sim_loop_draw_named(loop, "number", *one_in);
    /* the lower ones take longer, so the higher ones are found first */
    for (volatile unsigned i = 0; i < 2000 && loop->seed < 600; i++)
        continue;
    (void)bide_sim_loop_draw(loop, 10);
    return number == 7 ? -EINVAL : number == 8 ? -EIO : 0;
}

static int crash_now_and_then(bide_sim_loop *loop, void *argument)
{
    if (bide_sim_loop_draw_named(loop, "number", 300) == 7) {
        fprintf(stderr, "a run says goodbye\n");
        raise(SIGKILL);
    }
    (void)argument;
    return 0;
}

static int pass(bide_sim_loop *loop, void *argument)
{
    (void)loop;
    (void)argument;
    return 0;
}

struct adder {
    bide_task task;
    int *sum;
    int seen;
    bide_schedule_operation yield;
};

bide_coroutine(adder_body)
{
    bide_begin(adder_body, struct adder * self);
    self->seen = *self->sum;
    bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    *self->sum = self->seen + 1;
    bide_end();
}

/* Fails by the order of three tasks, one of which may be held back: it can be made simpler. */
static int add_up(bide_sim_loop *loop, void *argument)
{
    int sum = 0;
    struct adder adders[2] = {{.sum = &sum}, {.sum = &sum}};
    bide_when_of(2) both;
    (void)argument;
    uint32_t noise = bide_sim_loop_draw_named(loop, "noise", 50);
    int status = bide_sim_loop_wait(
        loop, bide_when_all_of(&both, bide_task_init(&adders[0].task, &adder_body),
                               bide_task_init(&adders[1].task, &adder_body)));
    return status < 0 ? status : sum == 2 || noise != 11 ? 0 : -EINVAL;
}

/* ---- Their reports ---- */

typedef struct report {
    int status;
    bide_sim_result result;
    char said[20000];
} report;

static report explore(bide_sim_body *body, uint64_t seeds, bide_sim_options options)
{
    static report r;
    FILE *out = tmpfile();
    memset(&r, 0, sizeof r);
    options.out = out;
    options.result = &r.result;
    options.as_found |= body == fail_now_and_then;
    options.retries = 40;
    options.simplify_seconds = 3600; /* a limit that is reached would not be the same twice */
    r.status = bide_sim_loop_explore_with(body, seeds, &options);
    rewind(out);
    r.said[fread(r.said, 1, sizeof r.said - 1, out)] = '\0';
    fclose(out);
    return r;
}

static void assert_same(const report *a, const report *b)
{
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->result.failure, b->result.failure);
    assert_int_equal(a->result.seed, b->result.seed);
    assert_int_equal(a->result.status, b->result.status);
    assert_int_equal(a->result.runs, b->result.runs);
    assert_int_equal(a->result.draws_left, b->result.draws_left);
    assert_int_equal(a->result.faults_count, b->result.faults_count);
    for (size_t i = 0; i < a->result.faults_count; i++) {
        assert_string_equal(a->result.faults[i].name, b->result.faults[i].name);
        assert_int_equal(a->result.faults[i].asked, b->result.faults[i].asked);
        assert_int_equal(a->result.faults[i].fired, b->result.faults[i].fired);
    }
    assert_string_equal(a->said, b->said);
}

static const unsigned job_counts[] = {2, 3, 1000};
enum { JOB_COUNTS = sizeof job_counts / sizeof *job_counts };

/* ---- Jobs ---- */

static void several_jobs_report_the_lowest_failing_seed(void **state)
{
    static const unsigned one_in[] = {50, 700};
    (void)state;
    for (size_t i = 0; i < sizeof one_in / sizeof *one_in; i++) {
        unsigned rate = one_in[i];
        bide_sim_options options = {.argument = &rate};
        report alone = explore(fail_now_and_then, 1500, options);
        for (size_t j = 0; j < JOB_COUNTS; j++) {
            options.jobs = job_counts[j];
            report several = explore(fail_now_and_then, 1500, options);
            assert_same(&alone, &several);
        }
    }
}

static void all_seeds_are_run_once(void **state)
{
    static const uint64_t seeds[] = {0, 1, 256, 257, 1000};
    unsigned never = 9;
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        for (size_t j = 0; j < JOB_COUNTS; j++) {
            report r = explore(pass, seeds[i],
                               (bide_sim_options){.argument = &never, .jobs = job_counts[j]});
            assert_int_equal(r.status, 0);
            assert_int_equal(r.result.runs, seeds[i]);
            assert_string_equal(r.said, "");
        }
    }
}

static void isolated_runs_share_the_jobs(void **state)
{
    unsigned rate = 12;
    bide_sim_options options = {.argument = &rate, .isolated = true};
    (void)state;
    report alone = explore(fail_now_and_then, 20, options);
    assert_int_not_equal(alone.status, 0);
    for (size_t j = 0; j < 2; j++) {
        options.jobs = job_counts[j];
        report several = explore(fail_now_and_then, 20, options);
        assert_same(&alone, &several);
    }
}

static void the_simplest_run_is_that_of_one_job(void **state)
{
    bide_sim_options options = {.jobs = 1};
    (void)state;
    report alone = explore(add_up, 5000, options);
    assert_int_equal(alone.status, -EINVAL);
    options.jobs = 4;
    report several = explore(add_up, 5000, options);
    assert_same(&alone, &several);
}

static void a_crash_is_a_failure_and_no_process_is_left(void **state)
{
    (void)state;
    report alone = explore(crash_now_and_then, 1000, (bide_sim_options){.jobs = 1});
    assert_int_equal(alone.status, -EFAULT);
    assert_int_equal(alone.result.failure, BIDE_SIM_CRASH);
    assert_int_equal(alone.result.status, SIGKILL);
    for (size_t j = 0; j < JOB_COUNTS; j++) {
        report several =
            explore(crash_now_and_then, 1000, (bide_sim_options){.jobs = job_counts[j]});
        assert_same(&alone, &several);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
    }
}

/* What the failing run prints is seen, as with one job, and nothing of the others. */
static void only_the_failing_run_is_seen(void **state)
{
    (void)state;
    for (unsigned jobs = 1; jobs <= 3; jobs += 2) {
        char seen[4096] = "";
        FILE *file = tmpfile();
        fflush(NULL);
        int kept = dup(STDERR_FILENO);
        dup2(fileno(file), STDERR_FILENO);
        report r = explore(crash_now_and_then, 1000, (bide_sim_options){.jobs = jobs});
        fflush(NULL);
        dup2(kept, STDERR_FILENO);
        close(kept);
        assert_int_equal(r.status, -EFAULT);
        rewind(file);
        seen[fread(seen, 1, sizeof seen - 1, file)] = '\0';
        fclose(file);
        /* (once where it failed, and once in the simplest run) */
        assert_string_equal(seen, "a run says goodbye\na run says goodbye\n");
    }
}

static void the_environment_says_how_many_jobs(void **state)
{
    static const char *const texts[] = {"1", "3", "all", "0", "many", ""};
    unsigned rate = 400;
    (void)state;
    report alone =
        explore(fail_now_and_then, 1500, (bide_sim_options){.argument = &rate, .jobs = 1});
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        setenv("BIDE_TEST_JOBS", texts[i], 1);
        report r = explore(fail_now_and_then, 1500, (bide_sim_options){.argument = &rate});
        unsetenv("BIDE_TEST_JOBS");
        assert_same(&alone, &r);
    }
    report all = explore(fail_now_and_then, 1500,
                         (bide_sim_options){.argument = &rate, .jobs = BIDE_SIM_ALL_PROCESSORS});
    assert_same(&alone, &all);
}

/* ---- Progress ---- */

static void a_file_for_progress_gets_a_last_line(void **state)
{
    unsigned rate = 400;
    (void)state;
    for (unsigned jobs = 1; jobs <= 4; jobs += 3) {
        char text[4096] = "";
        FILE *progress = tmpfile();
        report r = explore(pass, 700, (bide_sim_options){.jobs = jobs, .progress = progress});
        assert_string_equal(r.said, "");
        rewind(progress);
        text[fread(text, 1, sizeof text - 1, progress)] = '\0';
        assert_non_null(strstr(text, "bide: 700 of 700 seeds passed, "));
        assert_int_equal(text[strlen(text) - 1], '\n');
        r = explore(fail_now_and_then, 1500,
                    (bide_sim_options){.argument = &rate, .jobs = jobs, .progress = progress});
        rewind(progress);
        text[fread(text, 1, sizeof text - 1, progress)] = '\0';
        char expected[100];
        snprintf(expected, sizeof expected, "bide: %d of 1500 seeds passed, ", (int)r.result.runs);
        assert_non_null(strstr(text, expected));
        assert_null(strstr(r.said, "seeds passed, "));
        fclose(progress);
    }
}

/* Nothing stays on a terminal: the line is written over. */
static void a_terminal_has_no_line_left(void **state)
{
    char text[4096] = "";
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal), 0);
    assert_int_equal(unlockpt(terminal), 0);
    int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(other >= 0);
    FILE *progress = fdopen(other, "w");
    report r = explore(pass, 5000, (bide_sim_options){.jobs = 2, .progress = progress});
    assert_int_equal(r.status, 0);
    fputs(".", progress); /* so that there is something to read */
    fflush(progress);
    ssize_t count = read(terminal, text, sizeof text - 1);
    assert_true(count >= 1);
    assert_null(memchr(text, '\n', (size_t)count));
    fclose(progress);
    close(terminal);
}

/* ---- The corpus ---- */

static char path[] = "/tmp/bide_sim_search_XXXXXX";

static void write_corpus(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char *read_corpus(void)
{
    static char text[4096];
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    if (file == NULL)
        return text;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void a_seed_that_failed_runs_first_from_then_on(void **state)
{
    (void)state;
    unlink(path);
    report first = explore(add_up, 5000, (bide_sim_options){.corpus = path});
    assert_int_equal(first.status, -EINVAL);
    assert_non_null(strstr(first.said, "added to "));
    char line[200];
    snprintf(line, sizeof line, "%d ", (int)first.result.seed);
    assert_memory_equal(read_corpus(), line, strlen(line));

    /* the next time it fails before any other, and is not added again */
    char before[4096];
    strcpy(before, read_corpus());
    for (unsigned jobs = 1; jobs <= 3; jobs++) {
        report second = explore(add_up, 5000, (bide_sim_options){.corpus = path, .jobs = jobs});
        assert_int_equal(second.status, -EINVAL);
        assert_int_equal(second.result.seed, first.result.seed);
        assert_int_equal(second.result.runs, 0);
        assert_int_equal(second.result.draws_left, first.result.draws_left);
        assert_string_equal(read_corpus(), before);
    }

    /* once it passes, the others run */
    report mended = explore(pass, 100, (bide_sim_options){.corpus = path});
    assert_int_equal(mended.status, 0);
    assert_int_equal(mended.result.runs, 100);
    assert_int_equal(mended.result.replayed, 2);
    assert_string_equal(read_corpus(), before);
}

/* A number that is drawn decides: the seed finds it by its own draws, another seed by given ones. */
static int fail_by_a_draw(bide_sim_loop *loop, void *argument)
{
    (void)argument;
    return bide_sim_loop_draw(loop, 60000) == 12345 ? -EINVAL : 0;
}

static void draws_of_the_corpus_are_run_too(void **state)
{
    (void)state;
    write_corpus("# seeds that failed\n\n  4\t\n5 own.0:12344 # near\n6\towN\n");
    report r = explore(fail_by_a_draw, 10, (bide_sim_options){.corpus = path});
    assert_int_equal(r.status, -EINVAL);
    assert_non_null(strstr(r.said, ":5: this is no seed"));
    write_corpus("# seeds that failed\n\n  4\t\n5 own.0:12344 # near\n6 own.0:12345\n7");
    for (int as_found = 0; as_found < 2; as_found++) {
        r = explore(fail_by_a_draw, 10,
                    (bide_sim_options){.corpus = path, .as_found = as_found != 0});
        assert_int_equal(r.status, -EINVAL);
        assert_int_equal(r.result.failure, BIDE_SIM_STATUS);
        assert_int_equal(r.result.seed, 6);
        assert_int_equal(r.result.replayed, 4); /* seed 4; seed 5 twice; seed 6 without draws */
        assert_non_null(strstr(r.said, "BIDE_TEST_SEED=6 BIDE_TEST_DRAWS=own.0:12345\n"));
        assert_null(strstr(r.said, "BIDE_TEST_SEED=6\n")); /* alone it passes */
    }
}

static void a_wrong_line_of_the_corpus_is_named(void **state)
{
    static const char *const lines[] = {"x",      "-1",  "1x",
                                        "1 turn", "1 2", "99999999999999999999999"};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[100], expected[100];
        snprintf(text, sizeof text, "1\n%s\n", lines[i]);
        write_corpus(text);
        report r = explore(pass, 10, (bide_sim_options){.corpus = path});
        assert_int_equal(r.status, -EINVAL);
        snprintf(expected, sizeof expected, "bide: %s:2: this is no seed", path);
        assert_memory_equal(r.said, expected, strlen(expected));
        assert_string_equal(read_corpus(), text);
    }
}

static void a_corpus_that_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    report r = explore(pass, 10, (bide_sim_options){.corpus = "/dev/null/corpus"});
    assert_int_equal(r.status, -ENOTDIR);
    assert_non_null(strstr(r.said, "/dev/null/corpus: Not a directory"));
    r = explore(fail_by_a_draw, 10, (bide_sim_options){.corpus = "/nowhere/corpus"});
    assert_int_equal(r.status, 0);
    r = explore(add_up, 5000, (bide_sim_options){.corpus = "/nowhere/corpus"});
    assert_int_equal(r.status, -EINVAL);
    assert_non_null(strstr(r.said, "/nowhere/corpus: the seed is not added: No such file"));
}

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_jobs_report_the_lowest_failing_seed),
        cmocka_unit_test(all_seeds_are_run_once),
        cmocka_unit_test(isolated_runs_share_the_jobs),
        cmocka_unit_test(the_simplest_run_is_that_of_one_job),
        cmocka_unit_test(a_crash_is_a_failure_and_no_process_is_left),
        cmocka_unit_test(only_the_failing_run_is_seen),
        cmocka_unit_test(the_environment_says_how_many_jobs),
        cmocka_unit_test(a_file_for_progress_gets_a_last_line),
        cmocka_unit_test(a_terminal_has_no_line_left),
        cmocka_unit_test(a_seed_that_failed_runs_first_from_then_on),
        cmocka_unit_test(draws_of_the_corpus_are_run_too),
        cmocka_unit_test(a_wrong_line_of_the_corpus_is_named),
        cmocka_unit_test(a_corpus_that_cannot_be_read_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
