/*
 * A side of a TLS connection is ended at each operation of the stream below: cancelled, timed out, destroyed
 * or closed. A handshake then fails, for both sides. An operation after the handshake resumes where it was,
 * and nothing is lost.
 */
#include "tls_pair.h"

#include "../../src/tls/internal.h"

static pair p;

enum { TEXT = 60000 }; /* less than the capacity of a pipe, because both sides write first */

/* ---- A stream whose nth operation does not end ---- */

static struct trap {
    bide_stream under;
    unsigned left; /* operations until then; 0: none is held */
    bool holds;
    bide_memory_pipe empty, full;
    char bytes[2];
    bide_memory_end end;
} trap;

static bool is_held(void)
{
    if (trap.left == 0 || --trap.left != 0)
        return false;
    trap.holds = true;
    return true;
}

static bide_awaiter *trap_read(bide_stream stream, bide_stream_operation *operation, void *data,
                               size_t size)
{
    (void)stream;
    return bide_stream_read(operation, is_held() ? bide_memory_stream(&trap.end) : trap.under,
                            data, size);
}

static bide_awaiter *trap_write(bide_stream stream, bide_stream_operation *operation,
                                const void *data, size_t size)
{
    (void)stream;
    return bide_stream_write(operation, is_held() ? bide_memory_stream(&trap.end) : trap.under,
                             data, size);
}

static size_t trap_count(const bide_stream_operation *operation)
{
    return bide_stream_count(operation, trap.under);
}

static bide_awaiter *trap_end_output(bide_stream stream, bide_stream_operation *operation)
{
    (void)stream;
    return bide_stream_shutdown_output(operation, trap.under);
}

static int trap_close(bide_stream stream)
{
    (void)stream;
    bide_stream_close(bide_memory_stream(&trap.end));
    return bide_stream_close(trap.under);
}

static bide_stream set_trap(world *world, bide_stream under, unsigned nth)
{
    static const bide_stream_table table = {.name = "trap",
                                            .read = trap_read,
                                            .write = trap_write,
                                            .count = trap_count,
                                            .shutdown_output = trap_end_output,
                                            .close = trap_close};
    bide_stream_operation operation;
    trap.under = under;
    trap.left = nth;
    trap.holds = false;
    bide_memory_pipe_init(&trap.empty, &trap.bytes[0], 1);
    bide_memory_pipe_init(&trap.full, &trap.bytes[1], 1);
    trap.end = (bide_memory_end){.input = &trap.empty, .output = &trap.full};
    assert_int_equal(
        world_wait(world, bide_stream_write(&operation, bide_memory_stream(&trap.end), "x", 1)),
        0);
    return (bide_stream){&table, &trap};
}

/* ---- The script of a side ---- */

struct script {
    bide_task task;
    side *side;
    bide_tls_config *config;
    bool is_client, has_greeted, has_ended_output, has_all;
    bool is_writing, is_reading;
    size_t sent, received;
    bide_stream_operation operation;
    char *got;
    const char *text;
};

static void count(struct script *self)
{
    size_t moved = bide_stream_count(&self->operation, self->side->stream);
    if (self->is_writing)
        self->sent += moved;
    if (self->is_reading)
        self->received += moved;
    self->is_writing = false;
    self->is_reading = false;
}

static bide_awaiter *greet(struct script *self)
{
    side *s = self->side;
    return self->is_client
               ? bide_tls_connect(&s->handshake, &s->tls, self->config, s->below, "server.test")
               : bide_tls_accept(&s->handshake, &s->tls, self->config, s->below);
}

/* Continues at its current step. */
bide_coroutine(script_body)
{
    bide_begin(script_body, struct script * self);
    if (!self->has_greeted)
        bide_try(greet(self));
    self->has_greeted = true;
    while (self->sent != TEXT) {
        self->is_writing = true;
        bide_try(bide_stream_write(&self->operation, self->side->stream, self->text + self->sent,
                                   TEXT - self->sent));
        count(self);
    }
    if (!self->has_ended_output)
        bide_try(bide_stream_shutdown_output(&self->operation, self->side->stream));
    self->has_ended_output = true;
    while (!self->has_all) {
        self->is_reading = true;
        bide_try(bide_stream_read(&self->operation, self->side->stream, self->got + self->received,
                                  TEXT + 1 - self->received));
        self->has_all = bide_stream_count(&self->operation, self->side->stream) == 0;
        count(self);
    }
    bide_finally();
    count(self);
    bide_end();
}

static void begin_script(struct script *script, side *side, bide_tls_config *config, bool is_client,
                         char *got, const char *text)
{
    *script = (struct script){
        .side = side, .config = config, .is_client = is_client, .got = got, .text = text};
}

/* ---- Early ends ---- */

static void end_connection(void *side)
{
    close_side(side);
}

/* Returns whether it was ended early. */
static bool cut_at(world *world, bool is_client, int how, unsigned nth, bide_tls_config *client,
                   bide_tls_config *server)
{
    static const int statuses[] = {-ECANCELED, -ECANCELED, -ETIMEDOUT, 0, -EPIPE};
    static char text[2][TEXT], got[2][TEXT + 1];
    static struct script scripts[2];
    struct script *subject = &scripts[is_client ? 0 : 1], *other = &scripts[is_client ? 1 : 0];
    side *sides[2] = {&p.client, &p.server};
    struct runner runner, others;
    uint64_t seed = nth;
    for (size_t i = 0; i < TEXT; i++) {
        text[0][i] = (char)testing_random(&seed);
        text[1][i] = (char)(text[0][i] + 1);
    }
    pair_open(&p, world, PIPES);
    side *its = sides[is_client ? 0 : 1], *others_side = sides[is_client ? 1 : 0];
    its->below = set_trap(world, its->below, nth);
    for (int i = 0; i < 2; i++)
        begin_script(&scripts[i], sides[i], i == 0 ? client : server, i == 0, got[i], text[i]);
    begin(world, &others, bide_task_init(&other->task, &script_body));
    begin_by(world, &runner, bide_task_init(&subject->task, &script_body), how);
    while (!trap.holds && !runner.has_ended)
        turn(world);
    bool is_cut = !runner.has_ended;
    if (how == STOP)
        call_inside(world, stop, &runner);
    else if (how == STOP_OUTSIDE)
        stop(&runner);
    else if (how == DESTROY)
        destroy(world, &runner);
    else if (how == CLOSE && is_cut)
        call_inside(world, end_connection, its);
    if (how != DESTROY) {
        int status = end(world, &runner);
        if (how == TIME_OUT)
            is_cut = status != 0; /* (perhaps before the trap) */
        assert_int_equal(status, is_cut ? statuses[how] : 0);
    } else if (!is_cut) {
        assert_int_equal(runner.status, 0);
    }
    assert_int_equal(its->tls.roles, 0);
    trap.left = 0;
    if (is_cut && subject->has_greeted && how != CLOSE)
        assert_int_equal(world_wait(world, bide_task_init(&subject->task, &script_body)), 0);
    else if (is_cut)
        call_inside(world, end_connection, its);
    int status = end(world, &others);
    if (subject->has_all) {
        assert_int_equal(status, 0);
        assert_int_equal(scripts[0].received, TEXT);
        assert_int_equal(scripts[1].received, TEXT);
        assert_memory_equal(got[0], text[1], TEXT);
        assert_memory_equal(got[1], text[0], TEXT);
    } else {
        assert_true(is_cut);
        assert_true(status == -ECONNABORTED || status == -EPIPE || (status == 0 && other->has_all));
    }
    call_inside(world, end_connection, others_side);
    call_inside(world, end_connection, its);
    assert_null(p.client.tls.ssl);
    assert_null(p.server.tls.ssl);
    return is_cut;
}

static void cut_everywhere(void **state, int how)
{
    world *world = world_of(state);
    bide_tls_config *client = usual_client();
    bide_tls_config *server = usual_server();
    for (int is_client = 0; is_client < 2; is_client++) {
        unsigned nth = 1;
        while (cut_at(world, is_client, how, nth, client, server))
            nth++;
        assert_in_range(nth, 7, 100);
    }
    bide_tls_config_release(client);
    bide_tls_config_release(server);
}

static void stopped_at_each_await(void **state)
{
    cut_everywhere(state, STOP);
}

static void stopped_from_outside_at_each_await(void **state)
{
    cut_everywhere(state, STOP_OUTSIDE);
}

static void timed_out_at_each_await(void **state)
{
    cut_everywhere(state, TIME_OUT);
}

static void destroyed_at_each_await(void **state)
{
    cut_everywhere(state, DESTROY);
}

static void closed_at_each_await(void **state)
{
    cut_everywhere(state, CLOSE);
}

/* ---- Earlier stop requests ---- */

static void a_handshake_has_a_deadline(void **state)
{
    world *world = world_of(state);
    bide_tls_config *client = usual_client();
    for (below kind = 0; kind < BELOWS; kind++) {
        bide_with_deadline_operation limited;
        pair_open(&p, world, kind);
        assert_int_equal(
            world_wait(world,
                       bide_with_deadline(&limited, world_now(world) + 1000000,
                                          bide_tls_connect(&p.client.handshake, &p.client.tls,
                                                           client, p.client.below, "server.test"))),
            -ETIMEDOUT);
        pair_close(&p);
    }
    bide_tls_config_release(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(stopped_at_each_await),   world_test(stopped_from_outside_at_each_await),
        world_test(timed_out_at_each_await), world_test(destroyed_at_each_await),
        world_test(closed_at_each_await),    world_test(a_handshake_has_a_deadline),
    };
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}
