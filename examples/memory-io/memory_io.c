/*
 * A unit test of a small protocol, without a network. Server and clients run in memory, where the
 * seed decides when connections break, how data is split, and how long everything takes.
 *
 * The protocol: a client asks the server to add to a sum. If it gets no answer, it connects and
 * asks again.
 *
 *     client: add 3 40        server: sum 40
 *             (the third request of this client, to add 40)
 *
 * Three servers are tested. The first adds for every request; if its answer is lost, the amount is
 * added twice. That takes a connection that breaks after the request has arrived and before the
 * answer has. The second remembers the number of the last request, and repeats its answer without
 * adding. It is wrong too: an abandoned request may be slow, and arrive after a later one on
 * another connection. The third adds only for requests newer than all before.
 *
 *     memory-io              tests all three
 *     memory-io N            tests number N, and prints how it fails
 */
#include <bide/bide.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, REQUESTS = 4, PATIENCE = 200, CONNECTIONS = 8, SEEDS = 2000 };

static const uint64_t second = 1000000000;

/* ---- The server: as it would be with a network ---- */

enum kind { ADDS_ALL = 1, ADDS_ANOTHER, ADDS_NEWER };

struct ledger {
    bide_server server;
    enum kind kind;
    uint64_t last; /* the last request that was served */
    uint64_t sum;
};

struct session {
    bide_connection connection;
    bide_reader reader;
    bide_writer writer;
    bide_reader_operation line;
    bide_writer_operation write;
    char in[LINE];
    char out[LINE];
    char answer[LINE];
};

static bool is_to_be_added(const struct ledger *ledger, uint64_t number)
{
    return ledger->kind == ADDS_ALL || (ledger->kind == ADDS_ANOTHER && number != ledger->last) ||
           number > ledger->last;
}

/* Returns the length of the answer; 0 if the line is not a request. */
static size_t serve(struct ledger *ledger, char *line, size_t size, char *answer)
{
    uint64_t number, amount;
    char text[LINE];
    memcpy(text, line, size);
    text[size] = '\0';
    if (sscanf(text, "add %" SCNu64 " %" SCNu64, &number, &amount) != 2)
        return 0;
    if (is_to_be_added(ledger, number)) {
        ledger->sum += amount;
        ledger->last = number;
    }
    return (size_t)snprintf(answer, LINE, "sum %" PRIu64 "\n", ledger->sum);
}

bide_coroutine(session_body)
{
    bide_begin(session_body, struct session * self);
    bide_stream stream = bide_socket_stream(&self->connection.socket);
    bide_reader_init(&self->reader, stream, self->in, LINE - 1);
    bide_writer_init(&self->writer, stream, self->out, LINE);
    for (;;) {
        /* (read_until, not read_line: that would return a partial line at the end of input) */
        bide_try(bide_reader_read_until(&self->line, &self->reader, '\n'));
        size_t size = serve(self->connection.server->argument, self->line.data, self->line.count,
                            self->answer);
        if (size == 0)
            bide_return(-EPROTO);
        bide_try(bide_writer_write(&self->write, &self->writer, self->answer, size));
        bide_try(bide_writer_flush(&self->write, &self->writer));
    }
    bide_end();
}

/* ---- The client ---- */

/* One attempt: connects, sends the request, and receives the answer. */
struct ask {
    bide_task task;
    const bide_address *address;
    uint64_t number, amount;
    uint64_t sum; /* the answer */
    bide_descriptor socket;
    bide_io_operation operation;
    bide_reader reader;
    bide_reader_operation line;
    char request[LINE];
    char in[LINE];
};

bide_coroutine(ask_body)
{
    bide_begin(ask_body, struct ask * self);
    bide_descriptor_init_closed(&self->socket);
    bide_try(bide_connect(&self->operation, &self->socket, self->address));
    int size =
        snprintf(self->request, LINE, "add %" PRIu64 " %" PRIu64 "\n", self->number, self->amount);
    bide_try(bide_send(&self->operation, &self->socket, self->request, (size_t)size));
    bide_reader_init(&self->reader, bide_socket_stream(&self->socket), self->in, LINE - 1);
    bide_try(bide_reader_read_until(&self->line, &self->reader, '\n'));
    self->in[self->line.count] = '\0';
    if (sscanf(self->in, "sum %" SCNu64, &self->sum) != 1)
        bide_return(-EPROTO);
    bide_finally();
    bide_close(&self->socket);
    bide_end();
}

/* ---- The test ---- */

struct test {
    bide_task task;
    bide_sim_loop *loop;
    bide_memory_io *io;
    struct ledger ledger;
    struct session sessions[CONNECTIONS];
    bide_address address;
    bide_io_operation listen;
    bide_scope scope;
    bide_branch branch;
    struct ask ask;
    bide_with_deadline_operation limited;
    uint64_t asked; /* the expected sum */
    int tries;
    int status;
};

static const bide_memory_io_options calm;

bide_coroutine(test_body)
{
    bide_begin(test_body, struct test * self);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_try(bide_listen(&self->listen, &self->ledger.server.listener, &self->address, 8));
    bide_scope_spawn(&self->scope, &self->branch, bide_server_run(&self->ledger.server));
    for (self->ask.number = 1; self->ask.number <= REQUESTS; self->ask.number++) {
        self->ask.amount = 1 + bide_sim_loop_draw(self->loop, 100);
        self->asked += self->ask.amount;
        self->tries = 0;
        do { /* (after a while the faults stop, so that the loop terminates) */
            if (++self->tries == PATIENCE)
                bide_memory_io_change(self->io, &calm);
            bide_await_status(self->status,
                              bide_with_timeout(&self->limited, second,
                                                bide_task_init(&self->ask.task, &ask_body)));
        } while (self->status < 0 && self->tries < 2 * PATIENCE);
        if (self->status < 0)
            bide_return(self->status);
        if (self->ask.sum != self->asked)
            bide_return(-EBADMSG);
    }
    bide_server_shut_down(&self->ledger.server, bide_now(bide_this_context()) + second);
    bide_try(bide_scope_join(&self->scope));
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_close(&self->ledger.server.listener);
    bide_end();
}

/* One run. It fails if the sum is wrong, or the simulation has leftovers. */
static int run(bide_sim_loop *loop, void *kind)
{
    static struct test test;
    bide_memory_io_options rough = bide_memory_io_rough();
    bide_memory_io_stats counts;
    test = (struct test){.loop = loop, .ledger.kind = *(const enum kind *)kind};
    bide_address_ip(&test.address, "10.0.0.1", 80);
    bide_server_init(&test.ledger.server, &(bide_server_options){.body = &session_body,
                                                                 .size = sizeof(struct session),
                                                                 .max_connections = CONNECTIONS,
                                                                 .slots = test.sessions});
    test.ledger.server.argument = &test.ledger;
    int status = bide_memory_io_create(&test.io, loop, &rough);
    if (status < 0)
        return status;
    test.ask.address = &test.address;
    status = bide_sim_loop_wait(loop, bide_task_init(&test.task, &test_body));
    bide_memory_io_get_stats(test.io, &counts);
    bide_memory_io_destroy(test.io);
    if (status == 0 && (counts.descriptors != 0 || counts.in_flight != 0))
        status = -EBUSY;
    return status;
}

/* Each of these faults must occur in some run; otherwise the test has tested nothing. */
static const char *const faults[] = {"io: reset", "io: refused", "io: short receive",
                                     "io: short send", NULL};

int main(int argc, char **argv)
{
    static enum kind kind;
    int only = argc == 2 ? atoi(argv[1]) : 0;
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere == NULL)
        return 1;
    for (kind = ADDS_ALL; kind <= ADDS_NEWER; kind++) {
        bide_sim_options options = {.argument = &kind,
                                     .retries = only != 0 ? 2000 : 1,
                                     .out = only != 0 || kind == ADDS_NEWER ? stdout : nowhere,
                                     .faults = kind == ADDS_NEWER ? faults : NULL};
        if (only != 0 && (int)kind != only)
            continue;
        int status = bide_sim_loop_explore_with(run, SEEDS, &options);
        printf("server %d: %s\n", (int)kind, status == 0 ? "nothing found" : strerror(-status));
    }
    fclose(nowhere);
}
