/* The connection to a program's monitor: its greeting, and looks. */
#ifndef TOP_WIRE_H
#define TOP_WIRE_H

#include "picture.h"

#include "bide/bide.h"

enum { MAX_WIRE_LINE = 16384, MAX_WIRE_PROBLEM = 240, PROTOCOL_VERSION = 1 };

/* What is asked for in a look. */
typedef struct wire_request {
    uint64_t group;        /* whose tasks are wanted one by one; 0: of all */
    unsigned tasks;        /* how many; 0: none */
    unsigned groups;       /* how many, at most */
    bool wants_turns;
} wire_request;

typedef struct wire {
    bide_task task;
    const char *path;      /* of the socket */
    wire_request request;
    picture *picture;      /* that is filled */
    void (*raw)(void *argument, const char *line, size_t length); /* told of each record; or NULL */
    void *argument;

    /* why it has failed, as a sentence without its stop; it goes to a terminal */
    char problem[MAX_WIRE_PROBLEM];

    bool has_turns; /* the monitor watches them for this connection */
    bide_descriptor socket;
    bide_address address;
    bide_reader reader;
    bide_io_operation operation;
    bide_reader_operation line;
    bide_with_deadline_operation limited;
    record record;
    char command[100];
    char in[MAX_WIRE_LINE];
} wire;

void wire_init(wire *wire, const char *path);

/*
 * Connects, and reads the greeting, within two seconds. Ends with 0 or a negative errno; -EPROTO: what
 * is there is no monitor, or one that speaks otherwise, or refuses. wire->problem says what.
 */
bide_awaiter *wire_open(wire *wire, picture *picture);

/*
 * Asks for a look, and takes the answer into `picture`. Errors as above; -EPIPE: the program has ended
 * the connection.
 */
bide_awaiter *wire_look(wire *wire, const wire_request *request, picture *picture);

void wire_close(wire *wire);

#endif
