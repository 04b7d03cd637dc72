/* Bytes are moved in the kernel; each is told of once, where it is, whatever ends the operation. */
#define _GNU_SOURCE
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct fixture {
    world *world;
    bide_descriptor one, one_end, other, other_end; /* two pairs of sockets */
    bide_descriptor input, output;                  /* a pipe */
    bide_splice_operation splice;
    bide_between copy;
    struct runner runner;
};

static struct fixture *set_up(void **state)
{
    static struct fixture only;
    bide_io_operation operation;
    only.world = world_of_the_system(state, "it does not splice");
    assert_int_equal(world_wait(only.world, bide_socket_pair(&operation, &only.one_end, &only.one)),
                     0);
    assert_int_equal(
        world_wait(only.world, bide_socket_pair(&operation, &only.other, &only.other_end)), 0);
    world_pipe(only.world, &only.input, &only.output);
    return &only;
}

static void close_all(void *fixture)
{
    struct fixture *f = fixture;
    bide_descriptor *all[] = {&f->one,       &f->one_end, &f->other,
                              &f->other_end, &f->input,   &f->output};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        bide_close(all[i]);
}

static void tear_down(struct fixture *f)
{
    call_inside(f->world, close_all, f);
}

static void bytes_are_moved_by_way_of_a_pipe(void **state)
{
    struct fixture *f = set_up(state);
    world *w = f->world;
    char buffer[8];
    begin(w, &f->runner, bide_splice(&f->splice, &f->one, &f->output, 100));
    turn(w);
    assert_false(f->runner.has_ended);
    assert_int_equal(write(f->one_end.fd, "hello", 5), 5);
    assert_int_equal(end(w, &f->runner), 0);
    assert_int_equal(f->splice.count, 5);
    assert_int_equal(world_wait(w, bide_splice(&f->splice, &f->input, &f->other, 3)), 0);
    assert_int_equal(f->splice.count, 3);
    assert_int_equal(read(f->other_end.fd, buffer, 8), 3);
    assert_memory_equal(buffer, "hel", 3);
    assert_int_equal(world_wait(w, bide_splice(&f->splice, &f->one, &f->other, 3)), -EINVAL);
    bide_close(&f->other_end);
    assert_int_equal(world_wait(w, bide_splice(&f->splice, &f->input, &f->other, 3)), -EPIPE);
    assert_int_equal(f->splice.count, 0);
    bide_close(&f->one_end);
    assert_int_equal(world_wait(w, bide_splice(&f->splice, &f->one, &f->output, 3)), 0);
    assert_int_equal(f->splice.count, 0);
    bide_close(&f->one);
    assert_int_equal(world_wait(w, bide_splice(&f->splice, &f->one, &f->output, 3)), -EBADF);
    tear_down(f);
}

static void a_splice_that_is_cut_short_has_moved_nothing(void **state)
{
    for (int how = 0; how < WAYS; how++) {
        struct fixture *f = set_up(state);
        begin_by(f->world, &f->runner, bide_splice(&f->splice, &f->one, &f->output, 100), how);
        turn(f->world);
        end_by(f->world, &f->runner, &f->one, how);
        assert_int_equal(f->splice.count, 0);
        if (how != CLOSE) {
            assert_int_equal(write(f->one_end.fd, "hello", 5), 5);
            assert_int_equal(world_wait(f->world, bide_splice(&f->splice, &f->one, &f->output, 9)),
                             0);
            assert_int_equal(f->splice.count, 5);
        }
        tear_down(f);
    }
}

/* The other end does not read: no more is taken than fits, and where each byte is is told. */
static void a_copy_that_is_cut_short_loses_nothing(void **state)
{
    enum { LARGE = 8 << 20 };
    static char data[65536];
    for (int how = 0; how < WAYS; how++) {
        struct fixture *f = set_up(state);
        size_t sent = 0, got = 0;
        ssize_t count;
        assert_int_equal(bide_copy_between_init(&f->copy, &f->one, &f->other), 0);
        begin_by(f->world, &f->runner, bide_copy_between(&f->copy), how);
        for (int quiet = 0; quiet < 3 && sent < LARGE;) {
            for (size_t i = 0; i < sizeof data; i++)
                data[i] = (char)((sent + i) % 251);
            count = write(f->one_end.fd, data, sizeof data);
            quiet = count > 0 ? 0 : quiet + 1;
            sent += count > 0 ? (size_t)count : 0;
            if (how == TIME_OUT && quiet == 0 && sent > sizeof data)
                break;
            turn(f->world);
            if (f->runner.has_ended)
                break;
        }
        assert_true(sent < LARGE);
        end_by(f->world, &f->runner, &f->other, how);
        if (how != CLOSE) { /* it goes on */
            start(f->world, &f->runner, bide_copy_between(&f->copy));
            call_inside(f->world, close_it, &f->one_end);
        }
        size_t all = how == CLOSE ? (size_t)f->copy.count : sent;
        while (got < all) {
            count = read(f->other_end.fd, data, sizeof data);
            if (count < 0) {
                turn(f->world);
                continue;
            }
            for (ssize_t i = 0; i < count; i++)
                assert_int_equal(data[i], (char)((got + (size_t)i) % 251));
            got += (size_t)count;
        }
        if (how == CLOSE) { /* the rest is in the pipe */
            while (f->copy.held != 0 && (count = read(f->copy.input.fd, data, sizeof data)) > 0) {
                assert_int_equal(data[0], (char)(got % 251));
                got += (size_t)count;
            }
            assert_int_equal(got, f->copy.count + f->copy.held);
        } else {
            while (!f->runner.has_ended)
                turn(f->world);
            assert_int_equal(f->runner.status, 0);
            assert_int_equal(f->copy.count, sent);
            assert_int_equal(f->copy.held, 0);
        }
        bide_copy_between_end(&f->copy);
        bide_copy_between_end(&f->copy);
        tear_down(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(bytes_are_moved_by_way_of_a_pipe),
        world_test(a_splice_that_is_cut_short_has_moved_nothing),
        world_test(a_copy_that_is_cut_short_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
