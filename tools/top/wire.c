/*
 * The client side of the monitor's protocol: docs/monitor-protocol.md.
 */
#include "wire.h"

#include "places.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define SECOND UINT64_C(1000000000)

/* The monitor delays a look while it rests. */
enum { GREETING_SECONDS = 2, ANSWER_SECONDS = 60 };

void wire_init(wire *wire, const char *path)
{
    memset(wire, 0, sizeof *wire);
    wire->path = path;
    bide_descriptor_init_closed(&wire->socket);
}

void wire_close(wire *wire)
{
    bide_close(&wire->socket);
}

static void set_problem(wire *wire, const char *problem)
{
    (void)snprintf(wire->problem, sizeof wire->problem, "%s", problem);
}

static int protocol_error(wire *wire, const char *problem)
{
    set_problem(wire, problem);
    return -EPROTO;
}

/* Handles the line that was received. Returns 0, or -EPROTO. */
static int receive_record(wire *wire)
{
    if (wire->raw != NULL)
        wire->raw(wire->argument, wire->line.data, wire->line.count);
    if (wire->line.count >= WIRE_LINE_SIZE - 1 ||
        !record_read(&wire->record, wire->line.data, wire->line.count))
        return protocol_error(wire, "the peer is no monitor of bide");
    if (record_is(&wire->record, "error")) {
        (void)snprintf(wire->problem, sizeof wire->problem, "it says: %.200s",
                       record_text(&wire->record, "what"));
        return -EPROTO;
    }
    picture_add(wire->picture, &wire->record);
    return 0;
}

/* ---- Opening ---- */

/* Another user's socket could be in the place of a monitor. Returns 0, or -EPERM. */
static int check_owner(wire *wire)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(bide_descriptor_fd(&wire->socket), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
        places_trust(wire->path, peer.uid))
        return 0;
    set_problem(wire, "the socket is another user's");
    return -EPERM;
}

static int check_greeting(wire *wire)
{
    int error = receive_record(wire);
    if (error != 0)
        return error;
    if (!record_is(&wire->record, "hello") ||
        strcmp(record_text(&wire->record, "protocol"), "bide-monitor") != 0)
        return protocol_error(wire, "the peer is no monitor of bide");
    uint64_t version = record_number(&wire->record, "version");
    if (version == PROTOCOL_VERSION)
        return 0;
    (void)snprintf(wire->problem, sizeof wire->problem,
                   "it speaks version %" PRIu64 " of the protocol, and this bide-top version %d",
                   version, PROTOCOL_VERSION);
    return -EPROTO;
}

static int describe_failure(wire *wire, int status)
{
    if (wire->problem[0] != '\0' || status >= 0)
        return status;
    if (status == -ETIMEDOUT)
        set_problem(wire, "it does not answer");
    else if (status == -EPIPE || status == -ENODATA || status == -ECONNRESET)
        set_problem(wire, "the program has ended");
    else if (status == -EMSGSIZE)
        set_problem(wire, "the peer is no monitor of bide");
    else
        set_problem(wire, strerror(-status));
    return status;
}

bide_coroutine(open_body)
{
    bide_begin(open_body, wire * self);
    uint64_t deadline;
    int status;
    deadline = bide_now(bide_this_context()) + GREETING_SECONDS * SECOND;
    status = bide_address_unix(&self->address, self->path);
    if (status < 0)
        bide_return(describe_failure(self, status));
    bide_await_status(
        status, bide_with_deadline(&self->limited, deadline,
                                   bide_connect(&self->operation, &self->socket, &self->address)));
    if (status == 0)
        status = check_owner(self);
    if (status < 0)
        bide_return(describe_failure(self, status));
    bide_reader_init(&self->reader, bide_socket_stream(&self->socket), self->in, sizeof self->in);
    deadline = bide_now(bide_this_context()) + GREETING_SECONDS * SECOND;
    bide_await_status(status,
                      bide_with_deadline(&self->limited, deadline,
                                         bide_reader_read_line(&self->line, &self->reader)));
    if (status == 0)
        status = check_greeting(self);
    bide_return(describe_failure(self, status));
    bide_end();
}

bide_awaiter *wire_open(wire *wire, picture *picture)
{
    wire->picture = picture;
    wire->problem[0] = '\0';
    return bide_task_init(&wire->task, &open_body);
}

/* ---- Looks ---- */

static size_t write_command(wire *wire)
{
    const wire_request *request = &wire->request;
    int length;
    if (request->wants_turns != wire->has_turns) {
        wire->has_turns = request->wants_turns;
        length = snprintf(wire->command, sizeof wire->command, "turns %s\n",
                          request->wants_turns ? "on" : "off");
    } else if (request->tasks != 0) {
        length = snprintf(wire->command, sizeof wire->command,
                          "look groups=%u group=%" PRIx64 " tasks=%u\n", request->groups,
                          request->group, request->tasks);
    } else {
        length = snprintf(wire->command, sizeof wire->command, "look groups=%u\n", request->groups);
    }
    return (size_t)length;
}

bide_coroutine(look_body)
{
    bide_begin(look_body, wire * self);
    int status;
    bool is_look;
    do {
        bide_await_status(
            status, bide_send(&self->operation, &self->socket, self->command, write_command(self)));
        while (status == 0) {
            bide_await_status(
                status, bide_with_deadline(&self->limited,
                                           bide_now(bide_this_context()) + ANSWER_SECONDS * SECOND,
                                           bide_reader_read_line(&self->line, &self->reader)));
            if (status == 0)
                status = receive_record(self);
            if (status == 0 && record_is(&self->record, "end"))
                break;
        }
        is_look = self->command[0] == 'l';
    } while (status == 0 && !is_look);
    bide_return(describe_failure(self, status));
    bide_end();
}

bide_awaiter *wire_look(wire *wire, const wire_request *request, picture *picture)
{
    wire->request = *request;
    wire->picture = picture;
    wire->problem[0] = '\0';
    return bide_task_init(&wire->task, &look_body);
}
