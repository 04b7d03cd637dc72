/*
 * The proxy as a whole.
 *
 * 1. What signals ask for is done by the program's coroutine (wishes.h).
 * 2. A reload opens what is new first. If that fails it is closed again, and everything stays as it
 *    was. Only then the listeners that stay have the new configuration, and the others are shut down.
 * 3. A connection has a reference to its configuration, and a listener's memory stays until its server
 *    has ended, which is after its connections.
 */
#define _GNU_SOURCE
#include "program.h"
#include "balance.h"
#include "figures.h"
#include "forward.h"
#include "health.h"
#include "reading.h"
#include "session.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BACKLOG = 4096, MAX_BUFFERS = 32768 };

/* ---- Listeners ---- */

static void use_configuration(struct listener *listener, struct configuration *configuration,
                              struct listen *listen)
{
    configuration_keep(configuration);
    if (listener->configuration != NULL)
        configuration_release(listener->configuration);
    listener->configuration = configuration;
    listener->listen = listen;
    if (listen->rate != 0)
        (void)bide_token_bucket_init(&listener->bucket, listen->rate, UINT64_C(1000000000),
                                     listen->burst);
}

static struct listener *find_listener(struct program *program, const char *name)
{
    struct listener *listener = program->listeners;
    while (listener != NULL && (listener->is_leaving || strcmp(listener->listen->name, name) != 0))
        listener = listener->next;
    return listener;
}

static struct listener *make_listener(struct program *program, struct listen *listen)
{
    struct listener *listener = reading_allocate(sizeof *listener);
    listener->program = program;
    listener->next = program->listeners;
    program->listeners = listener;
    use_configuration(listener, program->next, listen);
    if (bide_server_init(&listener->server, &(bide_server_options){.body = &session_body,
                                                                   .size = sizeof(struct session),
                                                                   .max_connections = listen->max,
                                                                   .allocator = &bide_heap}) != 0)
        abort(); /* the options are these */
    listener->server.argument = listener;
    return listener;
}

static void free_listener(struct listener *listener)
{
    struct listener **place = &listener->program->listeners;
    while (*place != listener)
        place = &(*place)->next;
    *place = listener->next;
    bide_close(&listener->server.listener);
    configuration_release(listener->configuration);
    free(listener);
}

static void listener_ended(bide_branch *branch)
{
    struct listener *listener = bide_container_of(branch, struct listener, branch);
    struct program *program = listener->program;
    if (branch->status < 0 && branch->status != -ECANCELED)
        fprintf(stderr, "proxy: %s: %s\n", listener->listen->name, strerror(-branch->status));
    free_listener(listener);
    bide_auto_event_set(&program->wishes.news);
}

static void print_listener(const struct program *program, const struct listener *listener)
{
    char text[BIDE_ADDRESS_TEXT];
    bide_address address;
    if (bide_local_address(&listener->server.listener, &address) != 0)
        return;
    bide_address_print(&address, text, sizeof text);
    if (address.any.generic.sa_family == AF_UNIX)
        printf("listening (%s) on %s\n", bide_loop_backend(program->loop).name, text);
    else
        printf("listening (%s) on %s, port %u\n", bide_loop_backend(program->loop).name, text,
               (unsigned)bide_address_port(&address));
    fflush(stdout);
}

static void begin_listener(struct program *program, struct listener *listener)
{
    /* what is accepted has it too */
    (void)bide_set_no_delay(&listener->server.listener, true);
    print_listener(program, listener);
    bide_scope_spawn_in(&program->serving, &listener->branch, bide_loop_context(program->loop),
                        bide_server_run(&listener->server), listener_ended);
}

static void leave_listener(struct listener *listener, uint64_t deadline)
{
    listener->is_leaving = true;
    http_retire(listener->listen);
    bide_server_shut_down(&listener->server, deadline);
}

/* ---- A configuration takes effect: 2 ---- */

/* The next that is to be opened; NULL: there is none. */
static struct listen *next_to_open(struct program *program)
{
    struct listen *listen = program->opening == NULL ? program->next->listens
                                                     : program->opening->next;
    while (listen != NULL && find_listener(program, listen->name) != NULL)
        listen = listen->next;
    return program->opening = listen;
}

static bide_awaiter *open_listener(struct program *program)
{
    program->opened = make_listener(program, program->opening);
    return bide_listen(&program->listen, &program->opened->server.listener,
                       &program->opening->address, BACKLOG);
}

static bool is_new(const struct program *program, const struct listener *listener)
{
    return listener->configuration == program->next;
}

/* Closes what was opened. */
static void give_up(struct program *program)
{
    struct listener *next;
    fprintf(stderr, "proxy: %s: %s\n", program->opening->name, strerror(-program->status));
    for (struct listener *listener = program->listeners; listener != NULL; listener = next) {
        next = listener->next;
        if (is_new(program, listener))
            free_listener(listener);
    }
    configuration_release(program->next);
    program->next = NULL;
}

/* In the order of the file, which is not that of the list. */
static void begin_new(struct program *program)
{
    for (struct listen *listen = program->next->listens; listen != NULL; listen = listen->next) {
        struct listener *listener = find_listener(program, listen->name);
        if (is_new(program, listener))
            begin_listener(program, listener);
    }
}

static void take_over(struct program *program)
{
    struct configuration *old = program->configuration;
    if (old != NULL)
        balance_inherit(program->next, old);
    begin_new(program);
    for (struct listener *listener = program->listeners; listener != NULL;
         listener = listener->next) {
        if (is_new(program, listener) || listener->is_leaving)
            continue;
        struct listen *listen = configuration_listen(program->next, listener->listen->name);
        if (listen != NULL)
            use_configuration(listener, program->next, listen);
        else
            leave_listener(listener, BIDE_FOREVER);
    }
    log_open(&program->log, program->next->log);
    program->configuration = program->next;
    program->next = NULL;
    health_begin(program, program->configuration);
    if (old != NULL) {
        log_line(&program->log, "the configuration was read again");
        bide_stop_request(&old->checks);
        configuration_release(old);
    }
}

/* Reads the file again; false: it is no good, which is told. */
static bool read_again(struct program *program)
{
    char complaint[512];
    FILE *file = program->file != NULL ? fopen(program->file, "re") : NULL;
    if (file == NULL) {
        fprintf(stderr, "proxy: %s: %s\n", program->file != NULL ? program->file : "reload",
                program->file != NULL ? strerror(errno) : "there is no configuration file");
        return false;
    }
    program->next = configuration_read(file, program->file, program->configuration,
                                       complaint, sizeof complaint);
    fclose(file);
    if (program->next == NULL)
        fprintf(stderr, "proxy: %s\n", complaint);
    return program->next != NULL;
}

/* ---- The program: 1 ---- */

/* The second time: at once. */
static void stop(struct program *program, uint64_t now)
{
    uint64_t deadline = program->is_stopping ? 0 : now + program->configuration->shutdown_timeout;
    program->is_stopping = true;
    for (struct listener *listener = program->listeners; listener != NULL; listener = listener->next)
        leave_listener(listener, deadline);
}

static void end_watching(struct program *program)
{
    if (program->configuration != NULL)
        bide_stop_request(&program->configuration->checks);
    bide_scope_stop(&program->watching);
    log_end(&program->log);
}

static void end(struct program *program)
{
    wishes_end(&program->wishes);
    if (program->configuration != NULL)
        configuration_release(program->configuration);
    program->configuration = NULL;
    forward_free(program);
}

bide_coroutine(program_body)
{
    bide_begin(program_body, struct program * self);
    bide_scope_init(&self->serving, bide_this_frame());
    bide_scope_init(&self->watching, bide_this_frame());
    bide_scope_spawn(&self->serving, &self->log_branch, log_run(&self->log));
    self->status = wishes_listen(&self->wishes);
    if (self->status == 0)
        wishes_watch(&self->wishes, &self->watching);
    while (self->status == 0) {
        if (self->next != NULL) {
            self->opening = NULL;
            while (self->status == 0 && next_to_open(self) != NULL)
                bide_await_status(self->status, open_listener(self));
            if (self->status == 0)
                take_over(self);
            else
                give_up(self);
            if (self->configuration == NULL)
                break; /* it has not begun */
            self->status = 0;
        }
        if (self->is_stopping && self->listeners == NULL)
            break;
        bide_await_status(self->status, bide_auto_event_wait(&self->wait, &self->wishes.news));
        if (wishes_take(&self->wishes, WISH_FIGURES))
            figures_print(self);
        if (wishes_take(&self->wishes, WISH_STOP))
            stop(self, bide_now(bide_this_context()));
        if (wishes_take(&self->wishes, WISH_RELOAD) && !self->is_stopping)
            (void)read_again(self);
    }
    end_watching(self);
    bide_await(bide_scope_join(&self->watching));
    bide_await(bide_scope_join(&self->serving));
    bide_return(self->status);
    bide_finally();
    end(self);
    bide_end();
}

/* ---- Around it ---- */

/* Two for each connection that there may be: what they do not use is not there. */
static int make_buffers(struct program *program)
{
    size_t count = 0;
    for (struct listen *listen = program->next->listens; listen != NULL; listen = listen->next)
        count += 2 * listen->max;
    if (count > MAX_BUFFERS)
        count = MAX_BUFFERS;
    program->memory_size = count * RELAY_PIECE;
    program->memory = mmap(NULL, program->memory_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (program->memory == MAP_FAILED)
        return -errno;
    bide_buffer_pool_init(&program->buffers, program->memory, RELAY_PIECE, (unsigned)count);
    return 0;
}

int program_run(struct program *program, struct configuration *configuration, const char *file)
{
    memset(program, 0, offsetof(struct program, log));
    program->next = configuration;
    program->file = file;
    wishes_init(&program->wishes);
    program->is_stopping = false;
    log_init(&program->log);
    int status = make_buffers(program);
    if (status == 0)
        status = bide_loop_create(&program->loop, NULL);
    if (status == 0)
        status = bide_names_create(&program->names, NULL);
    if (status == 0)
        status = bide_loop_wait(program->loop, bide_task_init(&program->task, &program_body));
    if (program->names != NULL)
        bide_names_destroy(program->names);
    bide_buffer_pool_destroy(&program->buffers);
    if (program->loop != NULL)
        bide_loop_destroy(program->loop);
    munmap(program->memory, program->memory_size);
    return status;
}
