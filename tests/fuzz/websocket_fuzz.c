/*
 * Frames of WebSockets: a second reader, written from RFC 6455, finds the same messages and the same end as a WebSocket
 * that receives the bytes in whole, in two pieces, or one by one, as messages or in pieces of them. The first byte of the
 * input says who receives: a server, if it is odd, or a client.
 */
#include "fuzz.h"

#include "bide/bide.h"
#include "bide/http.h"

#include <errno.h>

const unsigned fuzz_executions = 3000;
const char *const fuzz_words[] = {"\x81\x80\x01\x02\x03\x04", "\x82\x81\x01\x02\x03\x04x", "\x88\x82\x01\x02\x03\x04\x02\xea",
                                  "\x81\x7e", "\x02\x01x", "\x80\x01y", "\x89\x01z", "\x8a", "\xf0\x9f\x98\x80", "\xed\xa0",
                                  "\xc2", "\xe2\x82\xac", "\x88\x02\x03\xe8", "\x88\x02\x03\xed", NULL};

enum { MAX_MESSAGE = 200, MAX_FRAGMENTS = 4, MAX_LOG = 4096, PIPE = 8192 };

/* What was received, as text: kinds, bytes, and the end. */
struct log {
    char text[MAX_LOG];
    size_t size;
};

static void put(struct log *log, const void *data, size_t size)
{
    FUZZ_REQUIRE(log->size + size <= MAX_LOG);
    if (size != 0)
        memcpy(log->text + log->size, data, size);
    log->size += size;
}

static void put_message(struct log *log, bool is_text, const void *data, size_t size)
{
    char head[32];
    put(log, head, (size_t)snprintf(head, sizeof head, "%c%zu:", is_text ? 't' : 'b', size));
    put(log, data, size);
}

static void put_end(struct log *log, int status, unsigned code, const char *reason, size_t size, unsigned long long pings,
                    unsigned long long pongs)
{
    char text[128];
    put(log, text, (size_t)snprintf(text, sizeof text, "end %d %u %llu %llu ", status, code, pings, pongs));
    put(log, reason, size);
}

/* ---- The second reader ---- */

/*
 * The smallest and the largest number that a character beginning with these bytes can have, if all that is missing is
 * the smallest or the largest; and whether any is a character that may be written in so many bytes.
 */
static bool may_begin_character(const uint8_t *bytes, size_t count, size_t *wanted)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *wanted = bytes[0] < 0x80 ? 1 : bytes[0] >> 5 == 6 ? 2 : bytes[0] >> 4 == 14 ? 3 : bytes[0] >> 3 == 30 ? 4 : 0;
    if (*wanted == 0 || count > *wanted)
        return false;
    uint32_t low = *wanted == 1 ? bytes[0] : bytes[0] & (0x7fu >> *wanted), high = low;
    for (size_t i = 1; i < *wanted; i++) {
        if (i < count && bytes[i] >> 6 != 2)
            return false;
        low = low << 6 | (i < count ? bytes[i] & 0x3fu : 0);
        high = high << 6 | (i < count ? bytes[i] & 0x3fu : 0x3f);
    }
    if (low < least[*wanted])
        low = least[*wanted];
    if (high > 0x10ffff)
        high = 0x10ffff;
    return low <= high && !(low >= 0xd800 && high <= 0xdfff);
}

/* 0: valid so far; 1: it ends within a character; -1: not UTF-8. */
static int check_text(const uint8_t *text, size_t size)
{
    size_t wanted;
    for (size_t i = 0; i < size; i += wanted) {
        size_t count = 1;
        for (;; count++) {
            if (!may_begin_character(text + i, count, &wanted))
                return -1;
            if (count == wanted)
                break;
            if (i + count == size)
                return 1;
        }
    }
    return 0;
}

static bool is_close_code(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

static void second_receive(struct log *log, const uint8_t *data, size_t size, bool is_server)
{
    uint8_t message[MAX_MESSAGE + 1], payload[MAX_MESSAGE + 1];
    size_t length = 0, fragments = 0, at = 0;
    unsigned long long pings = 0, pongs = 0;
    bool is_in_message = false, is_text = false;
    int status = -ENODATA;
    unsigned code = 1006;
    log->size = 0;
    for (;;) {
        if (size - at < 2)
            break;
        bool is_final = data[at] & 0x80, is_masked = data[at + 1] & 0x80;
        unsigned opcode = data[at] & 15, lengthwise = data[at + 1] & 127;
        bool is_control = opcode >= 8;
        status = -EPROTO;
        if ((data[at] & 0x70) != 0 || is_masked != is_server || opcode > 10 || (opcode > 2 && opcode < 8) ||
            (is_control && (!is_final || lengthwise > 125)))
            break;
        status = -ENODATA;
        size_t extra = lengthwise == 126 ? 2 : lengthwise == 127 ? 8 : 0;
        size_t head = 2 + extra + (is_masked ? 4 : 0);
        if (size - at < head)
            break;
        uint64_t count = extra == 0 ? lengthwise : 0;
        for (size_t i = 0; i < extra; i++)
            count = count << 8 | data[at + 2 + i];
        status = -EPROTO;
        if ((extra == 2 && count < 126) || (extra == 8 && (count < 65536 || count >> 63 != 0)))
            break;
        if (!is_control && (opcode == 0) != is_in_message)
            break;
        if (!is_control && opcode != 0) {
            length = fragments = 0;
            is_text = opcode == 1;
            is_in_message = true;
        }
        status = -EMSGSIZE;
        if (!is_control && (count > MAX_MESSAGE - length || ++fragments > MAX_FRAGMENTS))
            break;
        status = -ENODATA;
        size_t there = size - at - head < count ? size - at - head : (size_t)count;
        for (size_t i = 0; i < there; i++)
            payload[i] = data[at + head + i] ^ (is_masked ? data[at + head - 4 + i % 4] : 0);
        if (is_control && there < count)
            break;
        at += head + there;
        if (opcode == 9) {
            pings++;
        } else if (opcode == 10) {
            pongs++;
        } else if (opcode == 8) {
            code = count >= 2 ? (unsigned)payload[0] << 8 | payload[1] : 1005;
            bool is_bad_code = count == 1 || (count >= 2 && !is_close_code(code));
            bool is_bad_text = count > 2 && check_text(payload + 2, (size_t)count - 2) != 0;
            status = is_bad_code ? -EPROTO : is_bad_text ? -EILSEQ : -EPIPE;
            if (status == -EPIPE) {
                put_end(log, status, code, (const char *)payload + 2, count > 2 ? (size_t)count - 2 : 0, pings, pongs);
                return;
            }
            code = 1006;
            break;
        } else {
            memcpy(message + length, payload, there);
            length += there;
            bool is_end = is_final && there == count;
            int check = is_text ? check_text(message, length) : 0;
            if (check < 0 || (is_end && check != 0)) {
                status = -EILSEQ;
                break;
            }
            if (there < count)
                break;
            if (is_end) {
                put_message(log, is_text, message, length);
                is_in_message = false;
            }
        }
    }
    put_end(log, status, code, NULL, 0, pings, pongs);
}

/* ---- The library's ---- */

static struct fixture {
    bide_memory_pipe there, back;
    bide_memory_end ours, theirs;
    char there_memory[PIPE], back_memory[PIPE];
    bide_websocket websocket;
    char in[BIDE_WEBSOCKET_BUFFER_MIN], out[BIDE_WEBSOCKET_BUFFER_MIN];
    struct log log;
} f;

struct receiver {
    bide_task task;
    bool in_pieces;
    bide_websocket_recv_operation receive;
    bide_spawned spawned;
    size_t count;
    int status;
    char message[MAX_MESSAGE];
};

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct receiver * self);
    for (;;) {
        bide_await_status(self->status, self->in_pieces
                                            ? bide_websocket_recv_piece(&self->receive, &f.websocket)
                                            : bide_websocket_recv(&self->receive, &f.websocket, self->message, MAX_MESSAGE));
        if (self->status != 0)
            break;
        if (self->in_pieces && self->receive.count != 0)
            memcpy(self->message + self->count, self->receive.data, self->receive.count);
        self->count += self->receive.count;
        if (!self->receive.is_last)
            continue;
        put_message(&f.log, self->receive.kind == BIDE_WEBSOCKET_TEXT, self->message, self->count);
        self->count = 0;
    }
    bide_end();
}

static void write_some(const uint8_t *data, size_t size)
{
    bide_stream_operation operation;
    if (size == 0)
        return;
    uint8_t *copy = fuzz_copy(data, size);
    FUZZ_REQUIRE(bide_sync_wait(bide_stream_write(&operation, bide_memory_stream(&f.theirs), copy, size)) == 0);
    free(copy);
}

/* `first` bytes, then `step` at once, then the end. */
static void receive(const uint8_t *data, size_t size, bool is_server, bool in_pieces, size_t first, size_t step)
{
    bide_websocket_options options = {.role = is_server ? BIDE_WEBSOCKET_SERVER : BIDE_WEBSOCKET_CLIENT,
                                      .read_buffer = f.in,
                                      .read_buffer_size = sizeof f.in,
                                      .write_buffer = f.out,
                                      .write_buffer_size = sizeof f.out,
                                      .max_message = MAX_MESSAGE,
                                      .max_fragments = MAX_FRAGMENTS};
    struct receiver receiver = {.in_pieces = in_pieces};
    bide_event_waiter wait;
    fuzz_parses++;
    bide_memory_pipe_init(&f.there, f.there_memory, PIPE);
    bide_memory_pipe_init(&f.back, f.back_memory, PIPE);
    f.ours = (bide_memory_end){&f.there, &f.back};
    f.theirs = (bide_memory_end){&f.back, &f.there};
    f.log.size = 0;
    FUZZ_REQUIRE(bide_websocket_init(&f.websocket, bide_memory_stream(&f.ours), &options) == 0);
    write_some(data, first);
    bide_spawn(&receiver.spawned, &bide_default_context, bide_task_init(&receiver.task, &receiver_body));
    for (size_t at = first; at < size; at += step)
        write_some(data + at, size - at < step ? size - at : step);
    bide_memory_pipe_destroy(&f.there);
    FUZZ_REQUIRE(bide_sync_wait(bide_event_wait(&wait, &receiver.spawned.ended)) == 0);
    const bide_websocket_destroy *end = &f.websocket.end;
    FUZZ_REQUIRE(receiver.status == f.websocket.status && end->is_clean == (receiver.status == -EPIPE));
    unsigned sent = receiver.status == -EPIPE     ? end->code == 1005 ? 1005 : end->code
                    : receiver.status == -EPROTO   ? 1002
                    : receiver.status == -EILSEQ   ? 1007
                    : receiver.status == -EMSGSIZE ? 1009
                                                   : 0;
    FUZZ_REQUIRE(end->sent == sent);
    put_end(&f.log, receiver.status, end->code, end->reason, end->size, f.websocket.pings, f.websocket.pongs);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct log second;
    if (size == 0 || size > 1000)
        return 0;
    bool is_server = input[0] & 1;
    const uint8_t *data = input + 1;
    size--;
    second_receive(&second, data, size, is_server);
    for (int way = 0; way < 8; way++) {
        size_t cut = way / 2 == 0 ? size : way / 2 == 1 ? 0 : size * (size_t)(way / 2 - 1) / 3;
        receive(data, size, is_server, way % 2 != 0, cut, way / 2 == 1 ? 1 : size + 1);
        FUZZ_REQUIRE(f.log.size == second.size && memcmp(f.log.text, second.text, second.size) == 0);
    }
    return 0;
}
