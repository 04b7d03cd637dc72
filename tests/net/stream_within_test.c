/*
 * Reads and writes within bounds: over sockets and over memory. A read goes on until enough has come, the
 * deadline, a pause that is too long, or the end of the budget; what has moved is counted in every case.
 */
#define _GNU_SOURCE
#include "../io/world.h"

#include <bide/stream.h>

enum { PIPE = 64, MUCH = 100000 };

static char much[MUCH];

typedef struct fixture {
    world *world;
    bide_descriptor sockets[2];
    bide_memory_pipe pipe;
    char memory[PIPE];
    bide_memory_end from, to;
    bide_stream input, output;
    bide_stream_within_operation within;
    bide_stream_operation plain;
    char text[256];
} fixture;

static void open_fixture(fixture *f, void **state, bool of_sockets)
{
    memset(f, 0, sizeof *f);
    f->world = world_of(state);
    bide_descriptor_init_closed(&f->sockets[0]);
    bide_descriptor_init_closed(&f->sockets[1]);
    bide_memory_pipe_init(&f->pipe, f->memory, PIPE);
    f->from = (bide_memory_end){&f->pipe, NULL};
    f->to = (bide_memory_end){NULL, &f->pipe};
    f->input = bide_memory_stream(&f->from);
    f->output = bide_memory_stream(&f->to);
    if (of_sockets) {
        bide_io_operation pair;
        assert_int_equal(world_wait(f->world, bide_socket_pair(&pair, &f->sockets[0], &f->sockets[1])), 0);
        f->input = bide_socket_stream(&f->sockets[0]);
        f->output = bide_socket_stream(&f->sockets[1]);
    }
}

static void close_fixture(fixture *f)
{
    bide_close(&f->sockets[0]);
    bide_close(&f->sockets[1]);
}

static int read_within(fixture *f, size_t size, const bide_stream_bounds *bounds)
{
    return world_wait(f->world, bide_stream_read_within(&f->within, f->input, f->text, size, bounds));
}

static void put(fixture *f, const char *text)
{
    assert_int_equal(world_wait(f->world, bide_stream_write(&f->plain, f->output, text, strlen(text))), 0);
    assert_int_equal(bide_stream_count(&f->plain, f->output), strlen(text));
}

static void put_end(fixture *f)
{
    assert_int_equal(world_wait(f->world, bide_stream_shutdown_output(&f->plain, f->output)), 0);
}

/* Writes a text in pieces, with a turn of the loop in between. */
struct slow {
    bide_task task;
    fixture *fixture;
    const char *text;
    size_t done;
    bide_sleep sleep;
    bide_stream_operation write;
    bide_spawned spawned;
};

bide_coroutine(slow_body)
{
    bide_begin(slow_body, struct slow * self);
    for (; self->text[self->done] != '\0'; self->done++) {
        bide_try(bide_sleep_for(&self->sleep, 1000));
        bide_try(bide_stream_write(&self->write, self->fixture->output, self->text + self->done, 1));
    }
    bide_end();
}

static void a_read_goes_on_until_enough_has_come(void **state)
{
    for (int of_sockets = 0; of_sockets < 2; of_sockets++) {
        fixture f;
        open_fixture(&f, state, of_sockets);
        struct slow slow = {.fixture = &f, .text = "abcdefgh"};
        bide_spawn(&slow.spawned, f.world->context, bide_task_init(&slow.task, &slow_body));
        const bide_stream_bounds bounds = {.min = 6};
        assert_int_equal(read_within(&f, 8, &bounds), 0);
        assert_in_range(f.within.count, 6, 8);
        assert_memory_equal(f.text, "abcdefgh", f.within.count);
        bide_event_waiter wait;
        assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &slow.spawned.ended)), 0);
        put_end(&f);
        size_t rest = 8 - f.within.count;
        assert_int_equal(read_within(&f, 8, &bounds), 0); /* the end comes first */
        assert_int_equal(f.within.count, rest);
        assert_int_equal(read_within(&f, 8, &bounds), 0);
        assert_int_equal(f.within.count, 0);
        close_fixture(&f);
    }
}

static void a_deadline_and_a_pause_leave_what_came(void **state)
{
    for (int of_sockets = 0; of_sockets < 2; of_sockets++) {
        for (int by_pause = 0; by_pause < 2; by_pause++) {
            fixture f;
            open_fixture(&f, state, of_sockets);
            put(&f, "abc");
            bide_stream_bounds bounds = {.min = 8};
            if (by_pause)
                bounds.pause = BIDE_MILLISECONDS(2);
            else
                bounds.deadline = world_now(f.world) + BIDE_MILLISECONDS(2);
            assert_int_equal(read_within(&f, 8, &bounds), -ETIMEDOUT);
            assert_in_range(f.within.count, 0, 3); /* (on a slow machine the time may have come before) */
            size_t count = f.within.count;
            assert_memory_equal(f.text, "abc", count);
            if (count != 3) {
                bounds = (bide_stream_bounds){.min = 3 - count};
                assert_int_equal(read_within(&f, 3 - count, &bounds), 0);
            }
            put(&f, "def"); /* nothing was lost */
            bounds = (bide_stream_bounds){.min = 3, .pause = BIDE_FOREVER};
            assert_int_equal(read_within(&f, 3, &bounds), 0);
            assert_memory_equal(f.text, "def", 3);
            close_fixture(&f);
        }
    }
}

static void a_budget_tells_the_end_from_too_much(void **state)
{
    for (int of_sockets = 0; of_sockets < 2; of_sockets++) {
        for (int has_more = 0; has_more < 2; has_more++) {
            fixture f;
            open_fixture(&f, state, of_sockets);
            uint64_t budget = 5;
            const bide_stream_bounds bounds = {.budget = &budget};
            put(&f, has_more ? "12345678" : "12345");
            put_end(&f);
            size_t count = 0;
            while (budget != 0) {
                assert_int_equal(read_within(&f, 3, &bounds), 0);
                assert_in_range(f.within.count, 1, 3);
                count += f.within.count;
            }
            assert_int_equal(count, 5);
            assert_int_equal(read_within(&f, 3, &bounds), has_more ? -EMSGSIZE : 0);
            assert_int_equal(f.within.count, 0);
            close_fixture(&f);
        }
    }
}

static void a_write_of_more_than_the_budget_writes_nothing(void **state)
{
    fixture f;
    open_fixture(&f, state, false);
    uint64_t budget = 5;
    const bide_stream_bounds bounds = {.budget = &budget, .pause = BIDE_SECONDS(1000)};
    assert_int_equal(world_wait(f.world, bide_stream_write_within(&f.within, f.output, "123456", 6, &bounds)), -EMSGSIZE);
    assert_int_equal(f.within.count, 0);
    assert_int_equal(budget, 5);
    assert_int_equal(world_wait(f.world, bide_stream_write_within(&f.within, f.output, "1234", 4, &bounds)), 0);
    assert_int_equal(f.within.count, 4);
    assert_int_equal(budget, 1);
    const bide_stream_bounds none = {.min = 0};
    assert_int_equal(read_within(&f, 64, &none), 0);
    assert_int_equal(f.within.count, 4);
    close_fixture(&f);
}

static void a_write_that_nobody_reads_is_timed_out_by_its_count(void **state)
{
    fixture f;
    open_fixture(&f, state, false);
    const bide_stream_bounds bounds = {.pause = BIDE_MILLISECONDS(1)};
    assert_int_equal(world_wait(f.world, bide_stream_write_within(&f.within, f.output, much, MUCH, &bounds)), -ETIMEDOUT);
    assert_in_range(f.within.count, 0, PIPE);
    size_t there = f.within.count;
    if (there != 0) {
        const bide_stream_bounds all = {.min = there};
        assert_int_equal(read_within(&f, there, &all), 0);
    }
    put(&f, "x");
    const bide_stream_bounds none = {.min = 0};
    assert_int_equal(read_within(&f, 64, &none), 0);
    assert_int_equal(f.within.count, 1);
    close_fixture(&f);
}

struct holder {
    bide_task task;
    fixture *fixture;
    bide_stream_bounds bounds;
    bide_stream_within_operation read;
};

bide_coroutine(holder_body)
{
    bide_begin(holder_body, struct holder * self);
    bide_try(bide_stream_read_within(&self->read, self->fixture->input, self->fixture->text, 8, &self->bounds));
    bide_end();
}

/* What was read before the coroutine is destroyed is in the count, and in the budget. */
static void a_destroyed_read_has_counted(void **state)
{
    fixture f;
    open_fixture(&f, state, false);
    uint64_t budget = 100;
    struct holder holder = {.fixture = &f,
                            .bounds = {.min = 8, .budget = &budget, .pause = BIDE_SECONDS(1000)}};
    put(&f, "abc");
    bide_start(&holder.task.frame, &holder_body, f.world->context);
    bide_resume(&holder.task.frame); /* reads, and waits */
    bide_destroy(&holder.task.frame);
    assert_int_equal(holder.read.count, 3);
    assert_int_equal(budget, 97);
    put(&f, "de");
    const bide_stream_bounds none = {.min = 0};
    assert_int_equal(read_within(&f, 8, &none), 0);
    assert_int_equal(f.within.count, 2);
    close_fixture(&f);
}

/* A read or a write that runs beside the test. */
struct mover {
    bide_task task;
    fixture *fixture;
    bide_stream_bounds bounds;
    size_t size;
    bool is_write;
    int status;
    bide_stream_within_operation within;
    bide_stop_source stop;
    bide_context context;
    bide_spawned spawned;
};

bide_coroutine(mover_body)
{
    bide_begin(mover_body, struct mover * self);
    fixture *f = self->fixture;
    bide_await_status(
        self->status,
        self->is_write
            ? bide_stream_write_within(&self->within, f->output, much, self->size, &self->bounds)
            : bide_stream_read_within(&self->within, f->input, f->text, self->size, &self->bounds));
    bide_end();
}

static void turn(fixture *f)
{
    bide_sleep sleep;
    assert_int_equal(world_wait(f->world, bide_sleep_for(&sleep, 20000)), 0);
}

/* Until it waits. */
static void move(struct mover *mover)
{
    bide_stop_source_init(&mover->stop);
    mover->context = *mover->fixture->world->context;
    mover->context.stop = &mover->stop;
    bide_spawn(&mover->spawned, &mover->context, bide_task_init(&mover->task, &mover_body));
    turn(mover->fixture);
}

static int status_of(struct mover *mover)
{
    bide_event_waiter wait;
    assert_int_equal(
        world_wait(mover->fixture->world, bide_event_wait(&wait, &mover->spawned.ended)), 0);
    return mover->status;
}

static void two_reads_at_once_share_a_budget(void **state)
{
    for (int of_sockets = 0; of_sockets < 2; of_sockets++) {
        fixture f, g;
        open_fixture(&f, state, of_sockets);
        open_fixture(&g, state, of_sockets);
        uint64_t budget = 10;
        const bide_stream_bounds bounds = {.min = 8, .budget = &budget};
        struct mover one = {.fixture = &f, .bounds = bounds, .size = 8};
        struct mover other = {.fixture = &g, .bounds = bounds, .size = 8};
        move(&one);
        move(&other);
        assert_int_equal(budget, 0);
        put(&f, "12345678");
        put(&g, "12345678");
        assert_int_equal(status_of(&one), 0);
        assert_int_equal(one.within.count, 8);
        assert_int_equal(status_of(&other), -EMSGSIZE);
        assert_int_equal(other.within.count, 2);
        assert_int_equal(budget, 0);
        close_fixture(&f);
        close_fixture(&g);
    }
}

/* The budget was out when the read began, and another read has given it back before a byte came. */
static void a_read_has_what_another_gave_back(void **state)
{
    for (int of_sockets = 0; of_sockets < 2; of_sockets++) {
        fixture f, g;
        open_fixture(&f, state, of_sockets);
        open_fixture(&g, state, of_sockets);
        uint64_t budget = 10;
        const bide_stream_bounds bounds = {.min = 3, .budget = &budget};
        struct mover one = {.fixture = &f, .bounds = bounds, .size = 10};
        struct mover other = {.fixture = &g, .bounds = bounds, .size = 8};
        move(&one);
        move(&other);
        bide_stop_request(&one.stop);
        assert_int_equal(status_of(&one), -ECANCELED);
        assert_int_equal(budget, 10);
        put(&g, "123");
        assert_int_equal(status_of(&other), 0);
        assert_int_equal(other.within.count, 3);
        assert_memory_equal(g.text, "123", 3);
        assert_int_equal(budget, 7);
        close_fixture(&f);
        close_fixture(&g);
    }
}

/* The first goes in pieces. The second would use up what the first has not written yet. */
static void two_writes_at_once_share_a_budget(void **state)
{
    static char large[MUCH], into[MUCH];
    enum { SIZE = 30000 };
    fixture f, g;
    open_fixture(&f, state, false);
    open_fixture(&g, state, false);
    bide_memory_pipe_init(&g.pipe, large, MUCH);
    uint64_t budget = 40000;
    const bide_stream_bounds bounds = {.budget = &budget, .pause = BIDE_SECONDS(1000)};
    struct mover one = {.fixture = &f, .bounds = bounds, .size = SIZE, .is_write = true};
    move(&one);
    assert_int_equal(
        world_wait(g.world, bide_stream_write_within(&g.within, g.output, much, SIZE, &bounds)),
        -EMSGSIZE);
    assert_int_equal(g.within.count, 0);
    assert_int_equal(
        world_wait(g.world, bide_stream_write_within(&g.within, g.output, much, 10000, &bounds)),
        0);
    assert_int_equal(budget, 0);
    const bide_stream_bounds all = {.min = SIZE};
    assert_int_equal(
        world_wait(f.world, bide_stream_read_within(&f.within, f.input, into, SIZE, &all)), 0);
    assert_int_equal(status_of(&one), 0);
    assert_int_equal(one.within.count, SIZE);
    assert_int_equal(budget, 0);
    close_fixture(&f);
    close_fixture(&g);
}

enum { COMPLETED, CANCELLED, TIMED_OUT, CLOSED, ENDINGS };

static void end_mover(struct mover *mover, int ending)
{
    fixture *f = mover->fixture;
    const bide_stream_bounds all = {.min = mover->size};
    if (ending == CANCELLED)
        bide_stop_request(&mover->stop);
    else if (ending == CLOSED)
        assert_int_equal(bide_stream_close(mover->is_write ? f->output : f->input), 0);
    else if (ending == COMPLETED && mover->is_write)
        assert_int_equal(read_within(f, mover->size, &all), 0);
    else if (ending == COMPLETED)
        assert_int_equal(
            world_wait(f->world, bide_stream_write(&f->plain, f->output, much, mover->size - 3)),
            0);
}

/* It moves 3 bytes, or a pipe full, and waits with the rest out of the budget. */
static void what_has_not_moved_goes_back_to_the_budget(void **state)
{
    static const int statuses[ENDINGS] = {0, -ECANCELED, -ETIMEDOUT, -EPIPE};
    for (int is_write = 0; is_write < 2; is_write++) {
        for (int ending = 0; ending < ENDINGS; ending++) {
            fixture f;
            open_fixture(&f, state, false);
            uint64_t budget = 250;
            struct mover mover = {.fixture = &f,
                                  .bounds = {.min = 100, .budget = &budget},
                                  .size = 100,
                                  .is_write = is_write};
            if (ending == TIMED_OUT)
                mover.bounds.deadline = world_now(f.world) + BIDE_MILLISECONDS(2);
            if (!is_write)
                put(&f, "abc");
            move(&mover);
            if (ending != TIMED_OUT) /* (on a slow machine the time may have come before) */
                assert_int_equal(budget, 150);
            end_mover(&mover, ending);
            assert_int_equal(status_of(&mover), statuses[ending]);
            assert_int_equal(budget, 250 - mover.within.count);
            if (ending != TIMED_OUT)
                assert_int_equal(mover.within.count, ending == COMPLETED ? 100
                                                     : is_write          ? PIPE
                                                                         : 3);
            close_fixture(&f);
        }
    }
}

/* The same of a coroutine that is destroyed. */
static void a_destroyed_write_gives_back(void **state)
{
    fixture f;
    open_fixture(&f, state, false);
    uint64_t budget = 250;
    struct mover mover = {
        .fixture = &f, .bounds = {.budget = &budget}, .size = 100, .is_write = true};
    bide_start(&mover.task.frame, &mover_body, f.world->context);
    bide_resume(&mover.task.frame); /* writes, and waits */
    assert_int_equal(budget, 150);
    bide_destroy(&mover.task.frame);
    assert_int_equal(mover.within.count, PIPE);
    assert_int_equal(budget, 250 - PIPE);
    close_fixture(&f);
}

static void impossible_bounds_are_refused(void **state)
{
    fixture f;
    open_fixture(&f, state, false);
    const bide_stream_bounds bounds = {.min = 9};
    assert_int_equal(read_within(&f, 8, &bounds), -EINVAL);
    assert_int_equal(read_within(&f, 0, &bounds), -EINVAL);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_read_goes_on_until_enough_has_come),
        world_test(a_deadline_and_a_pause_leave_what_came),
        world_test(a_budget_tells_the_end_from_too_much),
        world_test(a_write_of_more_than_the_budget_writes_nothing),
        world_test(a_write_that_nobody_reads_is_timed_out_by_its_count),
        world_test(a_destroyed_read_has_counted),
        world_test(two_reads_at_once_share_a_budget),
        world_test(a_read_has_what_another_gave_back),
        world_test(two_writes_at_once_share_a_budget),
        world_test(what_has_not_moved_goes_back_to_the_budget),
        world_test(a_destroyed_write_gives_back),
        world_test(impossible_bounds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
