/* Files, pipes and polls in each world. */
#define _GNU_SOURCE
#include "runner.h"

#include "misuse.h"

#include "bide/process.h"
#include "bide/select.h"
#include "bide/splice.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* ---- Files ---- */

static char directory_path[] = "/tmp/bide-files-XXXXXX";
static char path[64], other[64];

static int make_directory(void **state)
{
    (void)state;
    if (mkdtemp(directory_path) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/one", directory_path);
    snprintf(other, sizeof other, "%s/other", directory_path);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(directory_path);
}

/* The world of a test, with the directory. */
static world *world_with_directory(void **state)
{
    world *w = world_of(state);
    world_make_directory(w, directory_path);
    return w;
}

static void open_new(world *w, bide_descriptor *file)
{
    bide_file_operation operation;
    assert_int_equal(
        world_wait(w, bide_open(&operation, file, path, O_RDWR | O_CREAT | O_TRUNC, 0600)), 0);
}

static void written_data_is_read(void **state)
{
    world *w = world_with_directory(state);
    bide_file_operation operation;
    bide_descriptor file;
    char buffer[16] = "";
    open_new(w, &file);
    assert_int_equal(world_wait(w, bide_write_at(&operation, &file, "0123456789", 10, 0)), 0);
    assert_int_equal(operation.operation.count, 10);
    assert_int_equal(world_wait(w, bide_write_at(&operation, &file, "xy", 2, 4)), 0);
    assert_int_equal(world_wait(w, bide_read_at(&operation, &file, buffer, sizeof buffer, 0)), 0);
    assert_int_equal(operation.operation.count, 10);
    assert_memory_equal(buffer, "0123xy6789", 10);
    assert_int_equal(world_wait(w, bide_read_at(&operation, &file, buffer, sizeof buffer, 10)), 0);
    assert_int_equal(operation.operation.count, 0);
    /* the file's own offset has not changed */
    assert_int_equal(world_wait(w, bide_read(&operation, &file, buffer, 3)), 0);
    assert_int_equal(world_wait(w, bide_read(&operation, &file, buffer + 3, 3)), 0);
    assert_memory_equal(buffer, "0123xy", 6);
    assert_int_equal(world_wait(w, bide_write(&operation, &file, "AB", 2)), 0);
    assert_int_equal(world_wait(w, bide_read_at(&operation, &file, buffer, sizeof buffer, 0)), 0);
    assert_memory_equal(buffer, "0123xyAB89", 10);
    assert_int_equal(bide_close(&file), 0);
}

static void buffers_are_gathered_and_scattered(void **state)
{
    world *w = world_with_directory(state);
    bide_file_operation operation;
    bide_descriptor file;
    char one[4] = "", two[4] = "";
    struct iovec out[] = {{"abc", 3}, {"", 0}, {"defg", 4}};
    struct iovec in[] = {{one, 3}, {two, 3}};
    open_new(w, &file);
    assert_int_equal(world_wait(w, bide_writev(&operation, &file, out, 3, 1)), 0);
    assert_int_equal(operation.operation.count, 7);
    assert_int_equal(world_wait(w, bide_readv(&operation, &file, in, 2, 1)), 0);
    assert_int_equal(operation.operation.count, 6);
    assert_string_equal(one, "abc");
    assert_string_equal(two, "def");
    bide_close(&file);
}

static void files_are_made_measured_and_removed(void **state)
{
    world *w = world_with_directory(state);
    bide_file_operation operation;
    bide_descriptor file;
    struct stat about;
    open_new(w, &file);
    assert_int_equal(world_wait(w, bide_truncate(&operation, &file, 5000)), 0);
    assert_int_equal(world_wait(w, bide_stat(&operation, &file, &about)), 0);
    assert_int_equal(about.st_size, 5000);
    assert_int_equal(world_wait(w, bide_allocate(&operation, &file, 0, 0, 8192)), 0);
    assert_int_equal(world_wait(w, bide_sync(&operation, &file, BIDE_SYNC_ALL)), 0);
    assert_int_equal(world_wait(w, bide_sync(&operation, &file, BIDE_SYNC_DATA)), 0);
    bide_close(&file);
    assert_int_equal(world_wait(w, bide_rename(&operation, path, other)), 0);
    assert_int_equal(world_wait(w, bide_stat_path(&operation, other, &about, 0)), 0);
    assert_int_equal(about.st_size, 8192);
    assert_int_equal(world_wait(w, bide_stat_path(&operation, path, &about, 0)), -ENOENT);
    assert_int_equal(world_wait(w, bide_unlink(&operation, other, 0)), 0);
    assert_int_equal(world_wait(w, bide_unlink(&operation, other, 0)), -ENOENT);
    assert_int_equal(world_wait(w, bide_make_directory(&operation, other, 0700)), 0);
    assert_int_equal(world_wait(w, bide_make_directory(&operation, other, 0700)), -EEXIST);
    assert_int_equal(world_wait(w, bide_unlink(&operation, other, AT_REMOVEDIR)), 0);
}

static void errors_are_those_of_the_system(void **state)
{
    world *w = world_with_directory(state);
    bide_file_operation operation;
    bide_descriptor file, again;
    char byte;
    assert_int_equal(world_wait(w, bide_open(&operation, &file, "/none/there", O_RDONLY, 0)),
                     -ENOENT);
    assert_false(bide_descriptor_is_open(&file));
    assert_int_equal(world_wait(w, bide_open(&operation, &file, directory_path, O_RDONLY, 0)), 0);
    assert_int_equal(world_wait(w, bide_read(&operation, &file, &byte, 1)), -EISDIR);
    world_lack_descriptors(w, true);
    int status = world_wait(w, bide_open(&operation, &again, "/dev/null", O_RDONLY, 0));
    world_lack_descriptors(w, false);
    assert_int_equal(status, -EMFILE);
    bide_close(&file);
}

/* Many operations on one file at once, each at its own offset. */
static void reads_at_offsets_run_side_by_side(void **state)
{
    enum { MANY = 64, SIZE = 4096 };
    static struct runner runners[MANY];
    static bide_file_operation operations[MANY];
    static char blocks[MANY][SIZE];
    world *w = world_with_directory(state);
    bide_file_operation operation;
    bide_descriptor file;
    open_new(w, &file);
    for (int i = 0; i < MANY; i++) {
        memset(blocks[i], 'a' + i, SIZE);
        begin(w, &runners[i], bide_write_at(&operations[i], &file, blocks[i], SIZE, i * SIZE));
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(end(w, &runners[i]), 0);
    for (int i = 0; i < MANY; i++)
        begin(w, &runners[i],
              bide_read_at(&operations[i], &file, blocks[MANY - 1 - i], SIZE, i * SIZE));
    for (int i = 0; i < MANY; i++)
        assert_int_equal(end(w, &runners[i]), 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(operations[i].operation.count, SIZE);
        assert_int_equal((unsigned char)blocks[MANY - 1 - i][SIZE - 1], 'a' + i);
    }
    (void)operation;
    bide_close(&file);
}

/* A coroutine that opens a file is destroyed at each point: the file is closed. */
static void an_open_whose_coroutine_is_destroyed_leaves_nothing(void **state)
{
    world *w = world_with_directory(state);
    static struct runner runner;
    static bide_file_operation operation;
    static bide_descriptor file;
    open_new(w, &file);
    bide_close(&file);
    int before = 0; /* (the first open starts the pool for blocking calls) */
    for (int i = 0; i < 200; i++) {
        start(w, &runner, bide_open(&operation, &file, path, O_RDONLY, 0));
        if (i % 4 == 0)
            usleep(100); /* (so that it is also destroyed after the open has completed) */
        if (i % 2 == 0)
            turn(w);
        destroy(w, &runner);
        if (runner.has_ended)
            bide_close(&file);
        assert_false(bide_descriptor_is_open(&file));
        if (i == 0)
            before = count_descriptors();
    }
    assert_int_equal(count_descriptors(), before);
}

/* ---- Pipes ---- */

struct ends {
    bide_descriptor input, output;
};

static void close_pipe(struct ends *ends)
{
    bide_close(&ends->input);
    bide_close(&ends->output);
}

static const int modes[] = {0, O_NONBLOCK};

/* ---- A call that is done when its file is closed ---- */

static _Atomic(unsigned) synced;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    int result = __real_fsync(fd);
    synced++;
    return result;
}

struct closing {
    struct runner runner;
    bide_descriptor file;
};

/* On the loop, which does not learn in between that the call has returned. */
static void sync_and_close(void *closing)
{
    struct closing *it = closing;
    unsigned before = synced;
    start_inside(&it->runner);
    while (synced == before)
        sched_yield();
    assert_int_equal(bide_close(&it->file), 0);
}

/* As on a ring, where the kernel reports the result. */
static void a_call_that_is_done_keeps_its_result_when_its_file_is_closed(void **state)
{
    world *w = world_with_directory(state);
    static struct closing it;
    static bide_file_operation operation;
    if (!world_is_by_readiness()) {
        printf("# not here: no thread makes the call\n");
        skip();
    }
    for (int i = 0; i < 4; i++) {
        open_new(w, &it.file);
        it.runner = (struct runner){.awaiter = bide_sync(&operation, &it.file, BIDE_SYNC_ALL),
                                    .context = *w->context};
        call_inside(w, sync_and_close, &it);
        turn(w);
        assert_true(it.runner.has_ended);
        assert_int_equal(it.runner.status, 0);
    }
}

static void a_read_of_a_pipe_waits(void **state)
{
    world *w = world_of(state);
    for (size_t m = 0; m < 2; m++) {
        struct ends pipe;
        struct runner runner;
        bide_file_operation read, write;
        char buffer[8] = "";
        world_pipe_with(w, &pipe.input, &pipe.output, modes[m]);
        begin(w, &runner, bide_read(&read, &pipe.input, buffer, sizeof buffer));
        turn(w);
        assert_false(runner.has_ended);
        assert_int_equal(world_wait(w, bide_write(&write, &pipe.output, "hello", 5)), 0);
        assert_int_equal(end(w, &runner), 0);
        assert_int_equal(read.operation.count, 5);
        assert_string_equal(buffer, "hello");
        bide_close(&pipe.output);
        assert_int_equal(world_wait(w, bide_read(&read, &pipe.input, buffer, sizeof buffer)), 0);
        assert_int_equal(read.operation.count, 0);
        close_pipe(&pipe);
    }
}

static void a_read_of_a_pipe_ends_early(void **state)
{
    world *w = world_of(state);
    for (size_t m = 0; m < 2; m++) {
        for (int how = 0; how < 2; how++) {
            struct ends pipe;
            struct runner runner;
            bide_file_operation read, write;
            char buffer[8] = "";
            world_pipe_with(w, &pipe.input, &pipe.output, modes[m]);
            begin(w, &runner, bide_read(&read, &pipe.input, buffer, sizeof buffer));
            turn(w);
            if (how == 0)
                bide_stop_request(&runner.stop);
            else
                bide_close(&pipe.input);
            assert_int_equal(end(w, &runner), how == 0 ? -ECANCELED : -EPIPE);
            assert_int_equal(read.operation.count, 0);
            if (how == 0) {
                assert_int_equal(world_wait(w, bide_write(&write, &pipe.output, "hello", 5)), 0);
                assert_int_equal(world_wait(w, bide_read(&read, &pipe.input, buffer, 8)), 0);
                assert_int_equal(read.operation.count, 5);
            }
            close_pipe(&pipe);
        }
    }
}

static void a_write_of_more_than_a_pipe_holds_waits(void **state)
{
    enum { SIZE = 300000 };
    static char data[SIZE], got[SIZE];
    world *w = world_of(state);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i % 251);
    for (size_t m = 0; m < 2; m++) {
        for (int vectors = 0; vectors < 2; vectors++) {
            struct ends pipe;
            struct runner runner;
            bide_file_operation read, write;
            struct iovec pieces[] = {{data, 1000}, {data + 1000, 200000}, {data + 201000, 99000}};
            size_t total = 0;
            world_pipe_with(w, &pipe.input, &pipe.output, modes[m]);
            begin(w, &runner,
                  vectors ? bide_writev(&write, &pipe.output, pieces, 3, -1)
                          : bide_write(&write, &pipe.output, data, SIZE));
            turn(w);
            assert_false(runner.has_ended);
            while (total < SIZE) {
                assert_int_equal(
                    world_wait(w, bide_read(&read, &pipe.input, got + total, SIZE - total)), 0);
                total += read.operation.count;
            }
            assert_int_equal(end(w, &runner), 0);
            assert_int_equal(write.operation.count, SIZE);
            assert_memory_equal(got, data, SIZE);
            close_pipe(&pipe);
        }
    }
}

static void a_poll_reports_readiness(void **state)
{
    world *w = world_of(state);
    struct ends pipe;
    struct runner runner;
    bide_io_operation poll;
    bide_file_operation file;
    world_pipe(w, &pipe.input, &pipe.output);
    assert_int_equal(world_wait(w, bide_poll(&poll, &pipe.output, POLLOUT)), 0);
    assert_true((poll.arguments.poll.found & POLLOUT) != 0);
    begin(w, &runner, bide_poll(&poll, &pipe.input, POLLIN));
    turn(w);
    assert_false(runner.has_ended);
    assert_int_equal(world_wait(w, bide_write(&file, &pipe.output, "x", 1)), 0);
    assert_int_equal(end(w, &runner), 0);
    assert_true((poll.arguments.poll.found & POLLIN) != 0);
    /* the poll had no effect */
    assert_int_equal(world_wait(w, bide_poll(&poll, &pipe.input, POLLIN)), 0);
    char byte;
    assert_int_equal(world_wait(w, bide_read(&file, &pipe.input, &byte, 1)), 0);
    begin(w, &runner, bide_poll(&poll, &pipe.input, POLLIN));
    turn(w);
    assert_false(runner.has_ended);
    bide_stop_request(&runner.stop);
    assert_int_equal(end(w, &runner), -ECANCELED);
    begin(w, &runner, bide_poll(&poll, &pipe.input, POLLIN));
    turn(w);
    bide_close(&pipe.output);
    assert_int_equal(end(w, &runner), 0);
    assert_true((poll.arguments.poll.found & POLLHUP) != 0);
    close_pipe(&pipe);
}

/* The byte stays in the pipe, whichever case wins; the read that follows the poll takes it. */
static void a_poll_is_a_case_of_a_select(void **state)
{
    world *w = world_of(state);
    for (int round = 0; round < 6; round++) {
        struct ends pipe;
        struct runner runner;
        bide_io_operation poll;
        bide_file_operation file;
        bide_event_waiter wait;
        bide_event event;
        bide_select_of(2) select;
        char byte;
        world_pipe(w, &pipe.input, &pipe.output);
        bide_event_init(&event, false);
        select.random = (uint64_t)round;
        begin(w, &runner,
              bide_select_any_of(&select, bide_poll(&poll, &pipe.input, POLLIN),
                                 bide_event_wait(&wait, &event)));
        turn(w);
        assert_false(runner.has_ended);
        if (round % 3 != 0)
            bide_event_set(&event);
        assert_int_equal(world_wait(w, bide_write(&file, &pipe.output, "x", 1)), 0);
        assert_int_equal(end(w, &runner), 0);
        assert_true(bide_select_winner(&select.any) == 1 ||
                    (poll.arguments.poll.found & POLLIN) != 0);
        assert_true(bide_select_winner(&select.any) < (size_t)(round % 3 != 0 ? 2 : 1));
        assert_int_equal(world_wait(w, bide_read(&file, &pipe.input, &byte, 1)), 0);
        assert_int_equal(byte, 'x');
        bide_event_destroy(&event);
        close_pipe(&pipe);
    }
}

static void elsewhere_there_is_no_input_and_output(void **state)
{
    bide_file_operation operation;
    bide_descriptor file;
    (void)state;
    assert_int_equal(bide_sync_wait(bide_open(&operation, &file, "/dev/null", O_RDONLY, 0)),
                     -ENOTSUP);
}

#if BIDE_DEBUG
struct astray {
    bide_task task;
    bide_descriptor file;
    bide_file_operation operation;
    bide_splice_operation splice;
    bide_process process;
    bide_process_wait_operation wait;
};

bide_coroutine(astray_body)
{
    bide_begin(astray_body, struct astray * self);
    bide_try(bide_open(&self->operation, &self->file, "/dev/null", O_RDONLY, 0));
    bide_end();
}

/* Ends by a signal, as misuse does, if the status is right. */
static void go_astray_twice(void)
{
    struct astray astray;
    for (int i = 0; i < 2; i++) {
        if (bide_sync_wait(bide_task_init(&astray.task, &astray_body)) != -ENOTSUP)
            _exit(1);
    }
    abort();
}

static void go_astray_outside_coroutines(void)
{
    bide_descriptor file;
    bide_file_operation operation;
    if (bide_sync_wait(bide_open(&operation, &file, "/dev/null", O_RDONLY, 0)) != -ENOTSUP)
        _exit(1);
    abort();
}

bide_coroutine(astray_splice_body)
{
    bide_begin(astray_splice_body, struct astray * self);
    bide_try(bide_splice(&self->splice, &self->file, &self->file, 1));
    bide_end();
}

/* (an operation that is a coroutine itself) */
static void go_astray_in_a_splice(void)
{
    struct astray astray;
    bide_descriptor_init(&astray.file, -1);
    if (bide_sync_wait(bide_task_init(&astray.task, &astray_splice_body)) != -ENOTSUP)
        _exit(1);
    abort();
}

bide_coroutine(astray_wait_body)
{
    bide_begin(astray_wait_body, struct astray * self);
    bide_try(bide_process_wait(&self->wait, &self->process));
    bide_end();
}

static void go_astray_in_a_wait(void)
{
    struct astray astray;
    memset(&astray.process, 0, sizeof astray.process);
    bide_descriptor_init(&astray.process.handle, -1);
    if (bide_sync_wait(bide_task_init(&astray.task, &astray_wait_body)) != -ENOTSUP)
        _exit(1);
    abort();
}

static void what_is_missing_is_said_on_stderr(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(go_astray_twice, "bide: astray_body (", "files_test.c:"));
    assert_true(misuse_aborts_naming(go_astray_twice, "needs a loop", "bide_loop_wait"));
    assert_true(misuse_aborts_naming(go_astray_outside_coroutines,
                                     "bide: an operation outside coroutines: needs a loop", "bide_run"));
    assert_true(misuse_aborts_naming(go_astray_in_a_splice, "bide: splice_body (",
                                     "), awaited by astray_splice_body ("));
    assert_true(misuse_aborts_naming(go_astray_in_a_wait, "bide: process_wait_signal_body (",
                                     "), awaited by astray_wait_body ("));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if BIDE_DEBUG
        cmocka_unit_test(what_is_missing_is_said_on_stderr), /* before others use it up */
#endif
        world_test(written_data_is_read),
        world_test(buffers_are_gathered_and_scattered),
        world_test(files_are_made_measured_and_removed),
        world_test(errors_are_those_of_the_system),
        world_test(reads_at_offsets_run_side_by_side),
        world_test(an_open_whose_coroutine_is_destroyed_leaves_nothing),
        world_test(a_call_that_is_done_keeps_its_result_when_its_file_is_closed),
        world_test(a_read_of_a_pipe_waits),
        world_test(a_read_of_a_pipe_ends_early),
        world_test(a_write_of_more_than_a_pipe_holds_waits),
        world_test(a_poll_reports_readiness),
        world_test(a_poll_is_a_case_of_a_select),
        world_test(elsewhere_there_is_no_input_and_output),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
