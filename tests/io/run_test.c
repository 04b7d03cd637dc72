/* A program in one call: its status, both signals at each time, and what is restored afterwards. */
#define _GNU_SOURCE
#include "testing.h"

#include <bide/bide.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum how { RETURNS, WAITS, CLEANS_UP, GOES_ON, IS_ASKED_TWICE };

struct program {
    bide_task task;
    bide_sleep sleep;
    enum how how;
    int raises; /* a signal, or 0 */
    int returns;
    int waited; /* the status of its wait */
    bool has_begun, has_cleaned_up;
    bool was_default; /* the action of both signals, after the stop */
};

static void (*handler_of(int number))(int)
{
    struct sigaction action;
    assert_int_equal(sigaction(number, NULL, &action), 0);
    return action.sa_handler;
}

bide_coroutine(program_body)
{
    bide_begin(program_body, struct program * self);
    self->has_begun = true;
    if (self->raises != 0)
        kill(getpid(), self->raises);
    if (self->how == RETURNS)
        bide_return(self->returns);
    bide_await_status(self->waited, bide_sleep_for(&self->sleep, BIDE_SECONDS(3600)));
    self->was_default = handler_of(SIGINT) == SIG_DFL && handler_of(SIGTERM) == SIG_DFL;
    if (self->how == WAITS)
        bide_return(self->waited);
    if (self->how == IS_ASKED_TWICE)
        raise(SIGTERM);
    self->has_cleaned_up = true;
    bide_return(self->how == GOES_ON ? self->returns : self->waited);
    bide_end();
}

static int run(struct program *program)
{
    return bide_run(bide_task_init(&program->task, &program_body));
}

static void assert_restored(void)
{
    assert_true(handler_of(SIGINT) == SIG_DFL);
    assert_true(handler_of(SIGTERM) == SIG_DFL);
}

static void the_status_is_that_of_the_program(void **state)
{
    (void)state;
    static const int statuses[] = {0, -EIO, -ETIMEDOUT, -ECANCELED};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct program program = {.how = RETURNS, .returns = statuses[i]};
        assert_int_equal(run(&program), statuses[i]);
        assert_restored();
    }
}

static void each_signal_asks_it_to_stop(void **state)
{
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM};
    static const struct {
        enum how how;
        int returns;
    } rows[] = {{WAITS, 0}, {CLEANS_UP, 0}, {GOES_ON, -EIO}, {GOES_ON, 0}};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++) {
            struct program program = {
                .how = rows[j].how, .raises = numbers[i], .returns = rows[j].returns};
            assert_int_equal(run(&program), rows[j].returns);
            assert_int_equal(program.waited, -ECANCELED);
            assert_true(program.was_default);
            assert_int_equal(program.has_cleaned_up, rows[j].how != WAITS);
            assert_restored();
        }
}

/* A signal at the program's end is in time or not; then it must not have its former action, which ends the process. */
static void a_signal_at_the_end_is_taken(void **state)
{
    (void)state;
    struct program program = {.how = RETURNS, .raises = SIGTERM, .returns = -EIO};
    assert_int_equal(run(&program), -EIO);
    assert_restored();
}

static void an_ignored_signal_stays_ignored(void **state)
{
    (void)state;
    signal(SIGINT, SIG_IGN);
    struct program program = {.how = RETURNS, .raises = SIGINT};
    assert_int_equal(run(&program), 0);
    assert_true(handler_of(SIGINT) == SIG_IGN);
    signal(SIGINT, SIG_DFL);
}

static void handle(int number)
{
    (void)number;
}

static void a_program_that_handles_one_itself_is_told(void **state)
{
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < 2; i++) {
        signal(numbers[i], &handle);
        struct program program = {.how = RETURNS};
        assert_int_equal(run(&program), -EBUSY);
        assert_false(program.has_begun);
        assert_true(handler_of(numbers[i]) == &handle);
        signal(numbers[i], SIG_DFL);
        assert_restored();
    }
}

/* Other listeners have each signal too. */
static void other_listeners_have_the_signal(void **state)
{
    (void)state;
    bide_signal other;
    assert_int_equal(bide_signal_listen(&other, SIGTERM), 0);
    struct program program = {.how = CLEANS_UP, .raises = SIGTERM};
    assert_int_equal(run(&program), 0);
    assert_true(bide_signal_try_wait(&other));
    assert_int_equal(bide_signal_destroy(&other), 0);
}

/* ---- A program that never waits ---- */

enum { YIELDS_BY, BY_SCHEDULE = YIELDS_BY, BY_CHANNEL, BY_SLEEP, WAYS_TO_YIELD };

/* It computes for ever, and lets others run in between; or all that it awaits is ready at once. */
struct computation {
    bide_task task;
    int by, raises;
    int status;
    bide_schedule_operation schedule;
    bide_channel(int) channel;
    bide_channel_slot(int) memory[1];
    bide_channel_waiter wait;
    bide_sleep sleep;
    int number;
    uint64_t rounds;
};

bide_coroutine(computation_body)
{
    bide_begin(computation_body, struct computation * self);
    bide_channel_init(&self->channel, self->memory, 1);
    while (self->status == 0) {
        if (self->rounds++ == 100)
            kill(getpid(), self->raises);
        if (self->by == BY_SCHEDULE) {
            bide_await_status(self->status,
                              bide_schedule(&self->schedule, bide_this_context()->scheduler));
        } else if (self->by == BY_SLEEP) {
            bide_await_status(self->status, bide_sleep_for(&self->sleep, 1));
        } else {
            bide_await_status(self->status,
                              bide_channel_send(&self->wait, &self->channel, &self->number));
            if (self->status == 0)
                bide_await_status(self->status,
                                  bide_channel_recv(&self->wait, &self->channel, &self->number));
        }
    }
    bide_return(self->status);
    bide_end();
}

static void a_signal_stops_a_program_that_only_lets_others_run(void **state)
{
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < 2; i++)
        for (int by = YIELDS_BY; by < WAYS_TO_YIELD; by++) {
            static struct computation computation;
            computation = (struct computation){.by = by, .raises = numbers[i]};
            assert_int_equal(bide_run(bide_task_init(&computation.task, &computation_body)), 0);
            assert_int_equal(computation.status, -ECANCELED);
            assert_true(computation.rounds > 100);
            assert_restored();
        }
}

static void a_second_signal_ends_the_process(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct program program = {.how = IS_ASKED_TWICE, .raises = SIGINT};
        _exit(run(&program) == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void what_cannot_be_created_is_reported(void **state)
{
    (void)state;
    const char *before = getenv("BIDE_IO");
    char *kept = before != NULL ? strdup(before) : NULL;
    setenv("BIDE_IO", "nonsense", 1);
    struct program program = {.how = RETURNS};
    assert_int_equal(run(&program), -EINVAL);
    assert_false(program.has_begun);
    if (kept != NULL)
        setenv("BIDE_IO", kept, 1);
    else
        unsetenv("BIDE_IO");
    free(kept);
}

int main(void)
{
    /* (A shell starts programs in the background with SIGINT ignored.) */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_second_signal_ends_the_process), /* first, while there are no other threads */
        cmocka_unit_test(the_status_is_that_of_the_program),
        cmocka_unit_test(each_signal_asks_it_to_stop),
        cmocka_unit_test(a_signal_at_the_end_is_taken),
        cmocka_unit_test(a_signal_stops_a_program_that_only_lets_others_run),
        cmocka_unit_test(an_ignored_signal_stays_ignored),
        cmocka_unit_test(a_program_that_handles_one_itself_is_told),
        cmocka_unit_test(other_listeners_have_the_signal),
        cmocka_unit_test(what_cannot_be_created_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
