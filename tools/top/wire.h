/* The connection to a program's monitor: the greeting, and looks. */
#ifndef TOP_WIRE_H
#define TOP_WIRE_H

#include "picture.h"

#include "bide/bide.h"

enum { WIRE_LINE_SIZE = 16384, WIRE_PROBLEM_SIZE = 240, PROTOCOL_VERSION = 1 };

/* The parameters of a look. */
typedef struct wire_request {
    uint64_t group;  /* the group whose tasks are wanted; 0: all */
    unsigned tasks;  /* the maximum number of tasks; 0: none */
    unsigned groups; /* the maximum number of groups */
    bool wants_turns;
} wire_request;

typedef struct wire {
    bide_task task;
    const char *path; /* of the socket */
    wire_request request;
    picture *picture; /* filled by a look */
    void (*raw)(void *argument, const char *line,
                size_t length); /* called for each line; or NULL */
    void *argument;

    /* the error as a sentence without its full stop, printable on a terminal */
    char problem[WIRE_PROBLEM_SIZE];

    bool has_turns; /* the monitor times turns for this connection */
    bide_descriptor socket;
    bide_address address;
    bide_reader reader;
    bide_io_operation operation;
    bide_reader_operation line;
    bide_with_deadline_operation limited;
    record record;
    char command[100];
    char in[WIRE_LINE_SIZE];
} wire;

void wire_init(wire *wire, const char *path);

/*
 * Connects, and reads the greeting, within two seconds. Completes with 0 or a negative errno; -EPROTO:
 * the peer is not a monitor, speaks another version, or rejects the connection. wire->problem
 * describes the error.
 */
bide_awaiter *wire_open(wire *wire, picture *picture);

/*
 * Requests a look, and adds the answer to `picture`. Errors as above; -EPIPE: the program has closed
 * the connection.
 */
bide_awaiter *wire_look(wire *wire, const wire_request *request, picture *picture);

void wire_close(wire *wire);

#endif
