/*
 * Each row of frames is received as a server and as a client: in one piece, split in two at every byte, and
 * byte by byte; and with waits that are cancelled or destroyed at every byte.
 */
#define _GNU_SOURCE
#include "websocket_rows.h"

#include "testing.h"

#include <bide/bide.h>
#include <bide/http.h>

#include <errno.h>

enum { PIPE = 1 << 18, LOG = 4096, MESSAGE = 70000 };

/* ---- Receiving a row ---- */

typedef struct fixture {
    bide_memory_pipe there, back;
    bide_memory_end ours, theirs;
    char *there_memory, *back_memory;
    bide_websocket websocket;
    char in[BIDE_WEBSOCKET_BUFFER_MIN], out[BIDE_WEBSOCKET_BUFFER_MIN];
    char log[LOG];
    size_t logged;
    char *sent; /* according to the row */
    size_t size;
} fixture;

static void say(fixture *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(fixture *f, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    f->logged += (size_t)vsnprintf(f->log + f->logged, LOG - f->logged, format, arguments);
    va_end(arguments);
    assert_true(f->logged < LOG);
}

/* "name(bytes)", or, for long bytes, "name[size]". */
static void say_bytes(fixture *f, const char *name, const char *data, size_t size)
{
    if (size > 124) {
        say(f, "%s[%zu]", name, size);
        return;
    }
    say(f, "%s(", name);
    for (size_t i = 0; i < size; i++)
        say(f, data[i] >= ' ' && data[i] <= '~' ? "%c" : "\\%02x", (unsigned char)data[i]);
    say(f, ")");
}

static const char *error_name(int status)
{
    switch (-status) {
    case EPIPE:
        return "EPIPE";
    case ENODATA:
        return "ENODATA";
    case EPROTO:
        return "EPROTO";
    case EILSEQ:
        return "EILSEQ";
    case EMSGSIZE:
        return "EMSGSIZE";
    default:
        return "another";
    }
}

struct receiver {
    bide_task task;
    fixture *fixture;
    bool in_pieces;
    bide_websocket_recv_operation receive;
    bide_spawned spawned;
    size_t count;
    int status;
    bool has_stopped;
    char *message;
};

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct receiver * self);
    for (;;) {
        bide_websocket *websocket = &self->fixture->websocket;
        bide_await_status(self->status,
                          self->in_pieces ? bide_websocket_recv_piece(&self->receive, websocket)
                                          : bide_websocket_recv(&self->receive, websocket,
                                                                   self->message, MESSAGE));
        if (self->status != 0)
            break;
        if (self->in_pieces) {
            assert_int_equal(self->receive.is_first, self->count == 0);
            assert_true(self->receive.count != 0 || self->receive.is_last);
            memcpy(self->message + self->count, self->receive.data, self->receive.count);
        }
        self->count += self->receive.count;
        if (!self->receive.is_last) {
            self->count += self->count == 0;
            continue;
        }
        say_bytes(self->fixture, self->receive.kind == BIDE_WEBSOCKET_TEXT ? "t" : "b",
                  self->message, self->count);
        say(self->fixture, " ");
        self->count = 0;
    }
    const bide_websocket_destroy *end = &self->fixture->websocket.end;
    self->has_stopped = true;
    if (self->status == -ECANCELED)
        bide_return(0);
    say(self->fixture, "%s %u", error_name(self->status), end->code);
    assert_int_equal(end->is_clean, self->status == -EPIPE);
    if (end->size != 0)
        say(self->fixture, " '%s'", end->reason);
    bide_end();
}

/* Composes the bytes of the row, masked or not. */
static void lay_out(fixture *f, const row *row, bool is_masked)
{
    uint8_t key[4] = {0x37, 0xfa, 0x21, 0x3d};
    uint8_t *at = (uint8_t *)f->sent;
    for (const frame *frame = row->frames; frame->data != NULL; frame++) {
        bool is_empty_often = frame->size == 0 && frame->repeated != 0;
        for (size_t times = is_empty_often ? frame->repeated : 1; times != 0; times--) {
            size_t size = frame->size * (frame->repeated != 0 ? frame->repeated : 1);
            *at++ = (uint8_t)frame->first;
            *at++ = (uint8_t)((is_masked ? 0x80 : 0) | (size < 126     ? size
                                                        : size < 65536 ? 126
                                                                       : 127));
            for (int byte = size < 126 ? 0 : size < 65536 ? 2 : 8; byte-- > 0;)
                *at++ = (uint8_t)((uint64_t)size >> (8 * byte));
            if (is_masked) {
                memcpy(at, key, 4);
                at += 4;
            }
            for (size_t i = 0; i < size; i++)
                *at++ = (uint8_t)frame->data[i % frame->size] ^ (is_masked ? key[i % 4] : 0);
        }
    }
    f->size = (size_t)((char *)at - f->sent);
}

/* Logs the frames that were sent to the other side. */
static void say_answers(fixture *f, bool is_masked)
{
    static char answers[PIPE];
    bide_stream_operation operation;
    bide_stream stream = bide_memory_stream(&f->theirs);
    size_t size = 0;
    bide_stream_close(bide_memory_stream(&f->ours));
    for (;;) {
        bide_sync_wait(bide_stream_read(&operation, stream, answers + size, PIPE - size));
        if (bide_stream_count(&operation, stream) == 0)
            break;
        size += bide_stream_count(&operation, stream);
    }
    for (size_t at = 0; at < size;) {
        uint8_t *frame = (uint8_t *)answers + at;
        size_t length = frame[1] & 0x7f, header = is_masked ? 6 : 2;
        assert_int_equal(frame[1] >> 7, is_masked);
        assert_true(length <= 125 && at + header + length <= size);
        for (size_t i = 0; is_masked && i < length; i++)
            frame[header + i] ^= frame[2 + i % 4];
        if (frame[0] == 0x88 && length != 0)
            say(f, " >close(%u)", (unsigned)frame[header] << 8 | frame[header + 1]);
        else
            say_bytes(f,
                      frame[0] == 0x88   ? " >close"
                      : frame[0] == 0x8a ? " >pong"
                                         : " >unknown",
                      (char *)frame + header, length);
        at += header + length;
    }
}

static int make_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->there_memory = malloc(PIPE);
    f->back_memory = malloc(PIPE);
    f->sent = malloc(PIPE);
    *state = f;
    return 0;
}

static int drop_fixture(void **state)
{
    fixture *f = *state;
    free(f->there_memory);
    free(f->back_memory);
    free(f->sent);
    free(f);
    return 0;
}

static void write_some(fixture *f, size_t from, size_t to)
{
    bide_stream_operation operation;
    if (to > from)
        assert_int_equal(
            bide_sync_wait(bide_stream_write(&operation, bide_memory_stream(&f->theirs),
                                             f->sent + from, to - from)),
            0);
}

static const bide_websocket_options plain = {.max_message = MESSAGE, .max_fragments = 8};

static void open_websocket(fixture *f, const bide_websocket_options *options,
                           bide_websocket_role role)
{
    bide_websocket_options own = *options;
    bide_memory_pipe_init(&f->there, f->there_memory, PIPE);
    bide_memory_pipe_init(&f->back, f->back_memory, PIPE);
    f->ours = (bide_memory_end){&f->there, &f->back};
    f->theirs = (bide_memory_end){&f->back, &f->there};
    own.role = role;
    own.read_buffer = f->in;
    own.read_buffer_size = sizeof f->in;
    own.write_buffer = f->out;
    own.write_buffer_size = sizeof f->out;
    assert_int_equal(bide_websocket_init(&f->websocket, bide_memory_stream(&f->ours), &own), 0);
    f->logged = 0;
    f->log[0] = '\0';
}

/* Feeds the first `cut` bytes, then the others in steps of `step`, then the end. */
static void receive_row(fixture *f, const row *row, bide_websocket_role role, bool in_pieces,
                        size_t cut, size_t step)
{
    struct receiver receiver = {
        .fixture = f, .in_pieces = in_pieces, .message = malloc(MESSAGE + 1)};
    bide_event_waiter wait;
    open_websocket(f, &plain, role);
    write_some(f, 0, cut);
    bide_spawn(&receiver.spawned, &bide_default_context,
               bide_task_init(&receiver.task, &receiver_body));
    for (size_t at = cut; at < f->size; at += step)
        write_some(f, at, at + step < f->size ? at + step : f->size);
    bide_memory_pipe_destroy(&f->there);
    assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &receiver.spawned.ended)), 0);
    free(receiver.message);
    say_answers(f, role == BIDE_WEBSOCKET_CLIENT);
    if (strcmp(f->log, row->expected) != 0)
        fail_msg("%s, as a %s, %s, cut at %zu by %zu: %s", row->name,
                 role == BIDE_WEBSOCKET_SERVER ? "server" : "client",
                 in_pieces ? "in pieces" : "in whole", cut, step, f->log);
}

/*
 * After each byte the receive is cancelled or destroyed, and then started again with the same
 * memory.
 */
static void receive_again_and_again(fixture *f, const row *row, bide_websocket_role role,
                                    bool in_pieces, bool is_destroyed)
{
    struct receiver receiver = {
        .fixture = f, .in_pieces = in_pieces, .message = malloc(MESSAGE + 1)};
    bide_websocket *websocket = &f->websocket;
    open_websocket(f, &plain, role);
    for (size_t at = 0; at <= f->size; at++) {
        bide_stop_source stop;
        bide_context context = bide_default_context;
        bide_stop_source_init(&stop);
        context.stop = &stop;
        receiver.has_stopped = false;
        if (is_destroyed) {
            bide_start(&receiver.task.frame, &receiver_body, &context);
            bide_resume(&receiver.task.frame);
        } else {
            bide_spawn(&receiver.spawned, &context, bide_task_init(&receiver.task, &receiver_body));
        }
        write_some(f, at, at < f->size ? at + 1 : at);
        if (at == f->size)
            bide_memory_pipe_destroy(&f->there);
        if (receiver.has_stopped)
            break;
        if (is_destroyed)
            bide_destroy(&receiver.task.frame);
        else
            bide_stop_request(&stop);
        assert_int_equal(receiver.has_stopped, !is_destroyed);
        assert_int_equal(websocket->status, 0);
    }
    free(receiver.message);
    say_answers(f, role == BIDE_WEBSOCKET_CLIENT);
    if (strcmp(f->log, row->expected) != 0)
        fail_msg("%s, as a %s, %s, %s: %s", row->name,
                 role == BIDE_WEBSOCKET_SERVER ? "server" : "client",
                 in_pieces ? "in pieces" : "in whole", is_destroyed ? "destroyed" : "stopped",
                 f->log);
}

static void a_receive_that_ends_early_or_is_destroyed_loses_nothing(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strstr(rows[i].name, "many") != NULL || strstr(rows[i].name, "5.19") != NULL)
            continue;
        for (int way = 0; way < 8; way++) {
            bide_websocket_role role = way & 1 ? BIDE_WEBSOCKET_CLIENT : BIDE_WEBSOCKET_SERVER;
            lay_out(f, &rows[i], role == BIDE_WEBSOCKET_SERVER);
            if (f->size < 1000)
                receive_again_and_again(f, &rows[i], role, way & 2, way & 4);
        }
    }
}

/* For long rows not every byte: the bytes around headers, and some others. */
static size_t next_cut(const fixture *f, size_t cut)
{
    return cut < 300 || cut + 60 > f->size ? cut + 1 : cut + (f->size - cut > 4000 ? 3989 : 59);
}

static void each_row_has_the_same_result_however_it_is_split(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* (if more arrive at once, only the last ping is answered) */
        bool has_pings =
            strstr(rows[i].name, "many") != NULL || strstr(rows[i].name, "5.19") != NULL;
        for (int way = 0; way < 4; way++) {
            bide_websocket_role role = way & 1 ? BIDE_WEBSOCKET_CLIENT : BIDE_WEBSOCKET_SERVER;
            lay_out(f, &rows[i], role == BIDE_WEBSOCKET_SERVER);
            receive_row(f, &rows[i], role, way & 2, f->size, 1);
            if (has_pings)
                continue;
            for (size_t cut = 0; cut < f->size; cut = next_cut(f, cut))
                receive_row(f, &rows[i], role, way & 2, cut, f->size);
            if (f->size < 1000)
                receive_row(f, &rows[i], role, way & 2, 0, 1);
            receive_row(f, &rows[i], role, way & 2, 0, 1009);
        }
    }
}

/* ---- Cases beyond the rows ---- */

static void expect(fixture *f, const char *name, const char *bytes, size_t size,
                   bide_websocket_role role, const char *expected)
{
    row row = {name, expected, {{0}}};
    memcpy(f->sent, bytes, size);
    f->size = size;
    receive_row(f, &row, role, false, size, 1);
    receive_row(f, &row, role, true, 0, 1);
}

#define EXPECT(role, bytes, expected) \
    expect(f, #bytes, bytes, sizeof(bytes) - 1, BIDE_WEBSOCKET_##role, expected)

static void a_server_wants_masks_and_a_client_none(void **state)
{
    fixture *f = *state;
    EXPECT(SERVER, "\x81\x05hello", "EPROTO 1006 >close(1002)");
    EXPECT(CLIENT, "\x81\x85\0\0\0\0hello", "EPROTO 1006 >close(1002)");
    EXPECT(SERVER, "\x88\0", "EPROTO 1006 >close(1002)");
    EXPECT(SERVER, "\x81\x85\0\0\0\0hello", "t(hello) ENODATA 1006");
    EXPECT(CLIENT, "\x81\x05hello", "t(hello) ENODATA 1006");
}

static void a_size_is_written_in_as_few_bytes_as_it_can_be(void **state)
{
    fixture *f = *state;
    EXPECT(CLIENT, "\x81\x7e\0\x05hello", "EPROTO 1006 >close(1002)");
    EXPECT(CLIENT, "\x81\x7e\0\x7d", "EPROTO 1006 >close(1002)");
    EXPECT(CLIENT, "\x82\x7f\0\0\0\0\0\0\xff\xff", "EPROTO 1006 >close(1002)");
    EXPECT(CLIENT, "\x82\x7f\x80\0\0\0\0\1\0\0", "EPROTO 1006 >close(1002)");
    EXPECT(CLIENT, "\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", "EMSGSIZE 1006 >close(1009)");
    EXPECT(CLIENT, "\x82\x7f\0\0\0\1\0\0\0\0", "EMSGSIZE 1006 >close(1009)");
}

static void the_end_within_a_frame_is_no_close(void **state)
{
    fixture *f = *state;
    EXPECT(CLIENT, "\x81", "ENODATA 1006");
    EXPECT(CLIENT, "\x81\x05hell", "ENODATA 1006");
    EXPECT(CLIENT, "\x88\x02\x03", "ENODATA 1006");
    EXPECT(SERVER, "\x81\x85\0\0\0", "ENODATA 1006");
}

/* Any bytes lead to one of the defined ends. */
static void any_input_leads_to_an_end(void **state)
{
    fixture *f = *state;
    uint64_t random = testing_seed();
    static const char firsts[] = "\x81\x82\x01\x02\x00\x80\x89\x8a\x88\x81\x01\x00";
    for (uint32_t round = 0; round < rounds_of(20000); round++) {
        struct receiver receiver = {.fixture = f, .message = malloc(MESSAGE + 1)};
        bide_event_waiter wait;
        uint64_t drawn = testing_random(&random);
        bide_websocket_role role = drawn & 1 ? BIDE_WEBSOCKET_CLIENT : BIDE_WEBSOCKET_SERVER;
        receiver.in_pieces = drawn & 2;
        f->size = 1 + (drawn >> 8) % 600;
        for (size_t i = 0; i < f->size; i++)
            f->sent[i] = (char)testing_random(&random);
        /* mostly frames, with occasional errors */
        for (size_t i = 0; drawn % 8 != 4 && i + 2 < f->size;) {
            size_t size = testing_random(&random) % 40;
            bool is_wrong = testing_random(&random) % 50 == 0;
            if (!is_wrong) {
                f->sent[i] = firsts[testing_random(&random) % (sizeof firsts - 1)];
                f->sent[i + 1] = (char)(size | (role == BIDE_WEBSOCKET_SERVER ? 0x80 : 0));
            }
            for (size_t j = i + 2; j < f->size && j < i + 6 + size; j++)
                f->sent[j] &= 0x7f;
            i += 2 + size + (role == BIDE_WEBSOCKET_SERVER ? 4 : 0);
        }
        open_websocket(f, &plain, role);
        bide_spawn(&receiver.spawned, &bide_default_context,
                   bide_task_init(&receiver.task, &receiver_body));
        for (size_t at = 0; at < f->size;) {
            size_t step = 1 + testing_random(&random) % 60;
            step = step < f->size - at ? step : f->size - at;
            write_some(f, at, at + step);
            at += step;
        }
        bide_memory_pipe_destroy(&f->there);
        assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &receiver.spawned.ended)), 0);
        assert_string_not_equal(error_name(receiver.status), "another");
        assert_int_equal(receiver.status, f->websocket.status);
        f->logged = 0;
        say_answers(f, role == BIDE_WEBSOCKET_CLIENT);
        assert_null(strstr(f->log, ">unknown"));
        assert_true((strstr(f->log, ">close") != NULL) == (receiver.status != -ENODATA));
        free(receiver.message);
    }
}

static void data_behind_the_handshake_is_received_first(void **state)
{
    fixture *f = *state;
    struct receiver receiver = {.fixture = f, .message = malloc(MESSAGE)};
    bide_event_waiter wait;
    open_websocket(f, &plain, BIDE_WEBSOCKET_CLIENT);
    bide_websocket_options options = plain;
    options.role = BIDE_WEBSOCKET_CLIENT;
    options.read_buffer = f->in;
    options.read_buffer_size = sizeof f->in;
    options.write_buffer = f->out;
    options.write_buffer_size = sizeof f->out;
    memcpy(f->in + 100, "\x81\x05hello\x81\x03yo", 11);
    options.initial = f->in + 100;
    options.initial_size = sizeof f->in + 1;
    assert_int_equal(bide_websocket_init(&f->websocket, bide_memory_stream(&f->ours), &options),
                     -EMSGSIZE);
    options.initial_size = 11;
    assert_int_equal(bide_websocket_init(&f->websocket, bide_memory_stream(&f->ours), &options),
                     0);
    bide_spawn(&receiver.spawned, &bide_default_context,
               bide_task_init(&receiver.task, &receiver_body));
    assert_string_equal(f->log, "t(hello) ");
    memcpy(f->sent, "u", 1);
    write_some(f, 0, 1);
    bide_memory_pipe_destroy(&f->there);
    assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &receiver.spawned.ended)), 0);
    assert_string_equal(f->log, "t(hello) t(you) ENODATA 1006");
    options.read_buffer_size = BIDE_WEBSOCKET_BUFFER_MIN - 1;
    assert_int_equal(bide_websocket_init(&f->websocket, bide_memory_stream(&f->ours), &options),
                     -EINVAL);
    free(receiver.message);
}

/* ---- The handshake ---- */

static bide_websocket_value value(const char *text)
{
    bide_websocket_value value = {text, text != NULL ? strlen(text) : 0};
    return value;
}

static void a_request_is_checked_and_answered(void **state)
{
    (void)state;
    char accept[BIDE_WEBSOCKET_ACCEPT + 1];
    bide_websocket_headers good = {.upgrade = value("websocket"),
                                   .connection = value("Upgrade"),
                                   .version = value("13"),
                                   .key = value("dGhlIHNhbXBsZSBub25jZQ==")};
    bide_websocket_headers it = good;
    assert_int_equal(bide_websocket_check_request(&it, accept), 0);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    it.upgrade = value("h2c, WebSocket");
    it.connection = value("keep-alive,\tUPGRADE ");
    assert_int_equal(bide_websocket_check_request(&it, accept), 0);
    it.connection = value("keep-alive, upgraded");
    assert_int_equal(bide_websocket_check_request(&it, accept), -EINVAL);
    it = good;
    it.upgrade = value(NULL);
    assert_int_equal(bide_websocket_check_request(&it, accept), -EINVAL);
    it = good;
    it.version = value("8");
    assert_int_equal(bide_websocket_check_request(&it, accept), -EPROTONOSUPPORT);
    it.version = value(NULL);
    assert_int_equal(bide_websocket_check_request(&it, accept), -EINVAL);
    it = good;
    static const char *const keys[] = {NULL,
                                       "",
                                       "dGhlIHNhbXBsZSBub25jZQ=",
                                       "dGhlIHNhbXBsZSBub25jZR==",
                                       "dGhlIHNhbXBsZSBub25jZQ===",
                                       "dGhlIHNhbXBsZSBub25jZQ=a",
                                       "dGhlIHNhbXBsZSBub25j*Q=="};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        it.key = value(keys[i]);
        assert_int_equal(bide_websocket_check_request(&it, accept), -EINVAL);
    }
}

static void an_answer_is_checked(void **state)
{
    (void)state;
    const char key[] = "dGhlIHNhbXBsZSBub25jZQ==";
    bide_websocket_headers good = {.upgrade = value("WebSocket"),
                                   .connection = value("upgrade"),
                                   .accept = value("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")};
    bide_websocket_headers it = good;
    assert_int_equal(bide_websocket_check_answer(101, &it, key, NULL), 0);
    assert_int_equal(bide_websocket_check_answer(200, &it, key, NULL), -ECONNREFUSED);
    it.accept = value("s3pPLMBiTxaQ9kYGzzhZRbK+xOO=");
    assert_int_equal(bide_websocket_check_answer(101, &it, key, NULL), -EPROTO);
    it = good;
    it.connection = value("close");
    assert_int_equal(bide_websocket_check_answer(101, &it, key, NULL), -EPROTO);
    it = good;
    it.extensions = value("permessage-deflate"); /* that the client did not offer */
    assert_int_equal(bide_websocket_check_answer(101, &it, key, NULL), -EPROTO);
    it = good;
    it.protocol = value("chat");
    assert_int_equal(bide_websocket_check_answer(101, &it, key, NULL), -EPROTO);
    assert_int_equal(bide_websocket_check_answer(101, &it, key, "superchat"), -EPROTO);
    assert_int_equal(bide_websocket_check_answer(101, &it, key, "superchat, chat"), 0);
}

static void keys_are_unique_and_accepted(void **state)
{
    (void)state;
    char keys[2][BIDE_WEBSOCKET_KEY + 1], accept[BIDE_WEBSOCKET_ACCEPT + 1];
    assert_int_equal(bide_websocket_make_key(keys[0]), 0);
    assert_int_equal(bide_websocket_make_key(keys[1]), 0);
    assert_string_not_equal(keys[0], keys[1]);
    bide_websocket_headers request = {.upgrade = value("websocket"),
                                      .connection = value("Upgrade"),
                                      .version = value("13"),
                                      .key = value(keys[0])};
    assert_int_equal(bide_websocket_check_request(&request, accept), 0);
    bide_websocket_headers answer = {
        .upgrade = value("websocket"), .connection = value("Upgrade"), .accept = value(accept)};
    assert_int_equal(bide_websocket_check_answer(101, &answer, keys[0], NULL), 0);
    assert_int_equal(bide_websocket_check_answer(101, &answer, keys[1], NULL), -EPROTO);
}

static void the_first_protocol_of_ours_that_is_offered_is_chosen(void **state)
{
    (void)state;
    bide_websocket_value chosen =
        bide_websocket_select_protocol(value("a, chat ,b"), "log, b, chat");
    assert_int_equal(chosen.size, 1);
    assert_memory_equal(chosen.data, "b", 1);
    assert_null(bide_websocket_select_protocol(value("Chat"), "chat").data);
    assert_null(bide_websocket_select_protocol(value(NULL), "chat").data);
    assert_null(bide_websocket_select_protocol(value(""), "").data);
}

#define test(function) cmocka_unit_test_setup_teardown(function, make_fixture, drop_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(each_row_has_the_same_result_however_it_is_split),
        test(a_receive_that_ends_early_or_is_destroyed_loses_nothing),
        test(a_server_wants_masks_and_a_client_none),
        test(a_size_is_written_in_as_few_bytes_as_it_can_be),
        test(the_end_within_a_frame_is_no_close),
        test(any_input_leads_to_an_end),
        test(data_behind_the_handshake_is_received_first),
        cmocka_unit_test(a_request_is_checked_and_answered),
        cmocka_unit_test(an_answer_is_checked),
        cmocka_unit_test(keys_are_unique_and_accepted),
        cmocka_unit_test(the_first_protocol_of_ours_that_is_offered_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
