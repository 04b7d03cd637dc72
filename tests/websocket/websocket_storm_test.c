/*
 * Both ends of a WebSocket send at once, in all ways, while waits of the receivers are ended early at random.
 * Each message names its sender and its number, so the test can check that the messages of each sender
 * arrive complete, once and in order.
 */
#include "websocket_ends.h"
#include "bide/http.h"

enum { SENDERS = 3, SMALL = 600 };

static size_t drawn(fixture *f, size_t from, size_t to)
{
    return from + (size_t)(testing_random(&f->random) % (to - from + 1));
}
/* ---- Self-describing messages ---- */

/* A sender, a number, and bytes that follow from both: ASCII, with other characters in between. */
static void write_message(char *data, size_t size, unsigned sender, unsigned number)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (char)('a' + (i * 7 + number * 13 + sender) % 26);
    for (size_t i = 20; i + 3 < size; i += 50)
        memcpy(data + i, "\xe2\x82\xac", 3);
    if (size >= 8) {
        char head[9];
        snprintf(head, sizeof head, "%02u%06u", sender, number % 1000000);
        memcpy(data, head, 8);
    }
}

struct sender {
    bide_task task;
    fixture *fixture;
    end_point *point;
    unsigned number, sent, max;
    size_t size, at, piece;
    bool has_begun;
    char *data;
    int status;
    bide_websocket_send_operation send, ping;
    bide_spawned spawned;
};

static size_t draw_size(fixture *f)
{
    return drawn(f, 0, 20) == 0 ? drawn(f, 8, LARGE) : drawn(f, 8, SMALL);
}

static bide_websocket_kind kind_of(unsigned sent)
{
    return sent % 3 == 0 ? BIDE_WEBSOCKET_BINARY : BIDE_WEBSOCKET_TEXT;
}

/* Sends its messages: whole, in fragments, or into the buffer; and an occasional ping. */
bide_coroutine(sender_body)
{
    bide_begin(sender_body, struct sender * self);
    for (self->sent = 0; self->sent < self->max; self->sent++) {
        self->size = draw_size(self->fixture);
        write_message(self->data, self->size, self->number, self->sent);
        switch (drawn(self->fixture, 0, 3)) {
        case 0:
            self->has_begun = false;
            for (self->at = 0; self->at < self->size || !self->has_begun; self->at += self->piece) {
                self->piece = drawn(self->fixture, 0, self->size - self->at);
                if (drawn(self->fixture, 0, 3) == 0)
                    self->piece = self->size - self->at;
                bide_try(bide_websocket_send_fragment(
                    &self->send, &self->point->websocket,
                    self->has_begun ? BIDE_WEBSOCKET_CONTINUATION : kind_of(self->sent),
                    self->data + self->at, self->piece, self->at + self->piece == self->size));
                self->has_begun = true;
                if (drawn(self->fixture, 0, 3) == 0)
                    bide_try(bide_websocket_send_ping(&self->ping, &self->point->websocket,
                                                      "between", 7));
            }
            break;
        case 1:
            bide_try(bide_websocket_put(&self->send, &self->point->websocket, kind_of(self->sent),
                                        self->data, self->size));
            break;
        default:
            bide_try(bide_websocket_send(&self->send, &self->point->websocket, kind_of(self->sent),
                                         self->data, self->size));
            assert_int_equal(self->send.count, self->size);
        }
    }
    bide_try(bide_websocket_flush(&self->send, &self->point->websocket));
    bide_end();
}

/* ---- A receiver whose waits end early ---- */

typedef struct receiver {
    fixture *fixture;
    end_point *point;
    struct runner runner;
    bide_websocket_recv_operation receive;
    size_t count;
    unsigned next[SENDERS]; /* the next message of each sender */
    unsigned received, expected;
    bool in_pieces, is_under_way;
    int how;
} receiver;

static void check_message(receiver *r)
{
    char *expected = malloc(LARGE);
    unsigned sender =
        (unsigned)(r->point->memory[0] - '0') * 10 + (unsigned)(r->point->memory[1] - '0');
    assert_non_null(expected);
    assert_in_range(sender, 0, SENDERS - 1);
    write_message(expected, r->count, sender, r->next[sender]);
    assert_memory_equal(r->point->memory, expected, r->count);
    assert_int_equal(r->receive.kind, kind_of(r->next[sender]));
    r->next[sender]++;
    r->received++;
    r->count = 0;
    free(expected);
}

static void note(receiver *r)
{
    r->is_under_way = false;
    if (r->runner.status == -ECANCELED || r->runner.status == -ETIMEDOUT)
        return;
    assert_int_equal(r->runner.status, 0);
    if (r->in_pieces) {
        assert_true(r->count + r->receive.count <= LARGE);
        memcpy(r->point->memory + r->count, r->receive.data, r->receive.count);
        r->count += r->receive.count;
    } else {
        r->count = r->receive.count;
    }
    if (r->receive.is_last) {
        r->in_pieces = drawn(r->fixture, 0, 1);
        check_message(r);
    }
}

/* Starts a receive, or handles the end of the current one. */
static void go_on(receiver *r)
{
    world *world = r->fixture->world;
    if (r->is_under_way) {
        bool cut = drawn(r->fixture, 0, 2) == 0;
        if (!r->runner.has_ended && cut && r->how == DESTROY) {
            destroy(world, &r->runner);
            if (r->runner.has_ended) /* meanwhile */
                note(r);
            r->is_under_way = false;
            return;
        }
        if (!r->runner.has_ended && cut && r->how == STOP)
            call_inside(world, stop, &r->runner);
        if (!r->runner.has_ended)
            return;
        if (r->how != DESTROY)
            end(world, &r->runner);
        note(r);
        return;
    }
    if (r->received == r->expected)
        return;
    bide_awaiter *awaiter =
        r->in_pieces
            ? bide_websocket_recv_piece(&r->receive, &r->point->websocket)
            : bide_websocket_recv(&r->receive, &r->point->websocket, r->point->memory, LARGE);
    r->how = (int)drawn(r->fixture, 0, 3);
    r->how = r->how == 0 ? DESTROY : r->how == 1 ? TIME_OUT : STOP;
    r->is_under_way = true;
    if (r->how == TIME_OUT) {
        begin(world, &r->runner,
              bide_with_deadline(&r->runner.limited,
                                 world_now(world) + drawn(r->fixture, 0, 100000), awaiter));
    } else {
        begin_by(world, &r->runner, awaiter, r->how);
    }
}

static void short_turn(world *world)
{
    bide_sleep sleep;
    assert_int_equal(world_wait(world, bide_sleep_for(&sleep, 20000)), 0);
}
static void exchange(fixture *f, unsigned max)
{
    struct sender *senders = calloc(2 * SENDERS, sizeof *senders);
    receiver receivers[2];
    memset(receivers, 0, sizeof receivers);
    for (int i = 0; i < 2; i++) {
        open_end(&f->points[i], i == 0 ? BIDE_WEBSOCKET_SERVER : BIDE_WEBSOCKET_CLIENT, NULL);
        receivers[i].fixture = f;
        receivers[i].point = &f->points[i];
        receivers[i].expected = max * SENDERS;
    }
    for (unsigned i = 0; i < 2 * SENDERS; i++) {
        struct sender *sender = &senders[i];
        sender->fixture = f;
        sender->point = &f->points[i % 2];
        sender->number = i / 2;
        sender->max = max;
        sender->data = malloc(LARGE);
        spawn(f->world, &sender->spawned, bide_task_init(&sender->task, &sender_body));
    }
    while (receivers[0].received + receivers[1].received < 2 * SENDERS * max ||
           receivers[0].is_under_way || receivers[1].is_under_way) {
        go_on(&receivers[0]);
        go_on(&receivers[1]);
        if (drawn(f, 0, 3) == 0)
            short_turn(f->world);
    }
    for (unsigned i = 0; i < 2 * SENDERS; i++) {
        assert_int_equal(join(f->world, &senders[i].spawned), 0);
        free(senders[i].data);
    }
    free(senders);
    /* one of them, or both at once */
    struct closer closers[2] = {
        {.point = &f->points[0], .code = BIDE_WEBSOCKET_NORMAL, .reason = "done"},
        {.point = &f->points[1], .code = BIDE_WEBSOCKET_NORMAL, .reason = "done"}};
    for (int i = 0; i < 2; i++)
        spawn(f->world, &closers[i].spawned, bide_task_init(&closers[i].task, &closer_body));
    for (int i = 0; i < 2; i++) {
        const bide_websocket_destroy *end = &f->points[i].websocket.end;
        assert_int_equal(join(f->world, &closers[i].spawned), 0);
        assert_int_equal(end->code, BIDE_WEBSOCKET_NORMAL);
        assert_int_equal(end->sent, BIDE_WEBSOCKET_NORMAL);
        assert_true(end->is_clean);
    }
}

static void messages_arrive_whole_and_in_each_senders_order(void **state)
{
    uint64_t random = testing_seed();
    for (uint32_t round = 0; round < rounds_of(6); round++) {
        fixture *f = open_fixture(state);
        f->random = testing_random(&random);
        if (round % 2 == 1)
            world_roughen(f->world, f->random);
        kinds[round % KINDS](f);
        exchange(f, 40);
        drop_fixture(f);
    }
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(messages_arrive_whole_and_in_each_senders_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
