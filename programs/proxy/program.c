/*
 * The proxy's own coroutine: start, reload, stop.
 *
 *  1. Signals are handled by this coroutine (server_signals.h), so one request at a time.
 *  2. A reload opens the new listeners first. If one fails, they are closed again and nothing
 *     changes. Only after that do the common listeners get the new configuration, and the others are
 *     shut down.
 *     A common listener also gets a new limit of connections (bide_server_set_max_connections). An HTTP
 *     connection of the old configuration closes after its next response (session_is_outdated), or when it was
 *     idle for too long.
 *  3. A connection holds a reference to its configuration. A listener's memory stays until its
 *     server has finished, which is after its connections. Connections of older configurations use the HTTP servers
 *     of these, so all of them are drained when the listener is shut down.
 *  4. After a handover the sockets, and the files of Unix sockets, are the successor's. So they are at a stop during one.
 *
 * All of it runs on the program's loop.
 */
#define _GNU_SOURCE
#include "program.h"
#include "../common/listening.h"
#include "../common/monitoring.h"
#include "balance.h"
#include "budget.h"
#include "confinement.h"
#include "statistics.h"
#include "forward.h"
#include "health.h"
#include "reading.h"
#include "scratch.h"
#include "session.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BACKLOG = 4096, MAX_BUFFERS = 32768 };

/* ---- Listeners ---- */

static void set_configuration(struct listener *listener, struct configuration *configuration,
                              struct listen *listen)
{
    configuration_retain(configuration);
    if (listener->configuration != NULL)
        configuration_release(listener->configuration);
    listener->configuration = configuration;
    listener->listen = listen;
    if (listen->rate != 0)
        (void)bide_token_bucket_init(&listener->bucket, listen->rate, UINT64_C(1000000000),
                                     listen->burst);
    if (listen->client_rate != 0 && listener->clients == NULL) {
        listener->clients = clients_create();
        if (listener->clients == NULL) { /* (as reading_allocate) */
            fputs("proxy: out of memory\n", stderr);
            exit(1);
        }
    }
}

/* Without those whose socket is closed, because accepting has failed. */
static struct listener *find_listener(struct program *program, const char *name)
{
    struct listener *listener = program->listeners;
    while (listener != NULL &&
           (listener->is_shutting_down || !bide_descriptor_is_open(&listener->server.listener) ||
            strcmp(listener->listen->name, name) != 0))
        listener = listener->next;
    return listener;
}

static struct listener *create_listener(struct program *program, struct listen *listen)
{
    struct listener *listener = reading_allocate(sizeof *listener);
    listener->program = program;
    listener->next = program->listeners;
    program->listeners = listener;
    set_configuration(listener, program->next, listen);
    listener->path = listen->path;
    listen->path = NULL;
    if (bide_server_init(&listener->server,
                         &(bide_server_options){.body = &session_body,
                                                .size = sizeof(struct session),
                                                .max_connections = listen->max_connections,
                                                .allocator = &bide_heap}) != 0)
        abort(); /* the options above are valid */
    listener->server.argument = listener;
    return listener;
}

static void free_listener(struct listener *listener)
{
    struct listener **link = &listener->program->listeners;
    while (*link != listener)
        link = &(*link)->next;
    *link = listener->next;
    bide_close(&listener->server.listener);
    if (listener->path != NULL)
        bide_listen_path_remove(listener->path);
    free(listener->path);
    configuration_release(listener->configuration);
    free(listener->clients);
    free(listener);
}

static void listener_ended(bide_branch *branch)
{
    struct listener *listener = bide_container_of(branch, struct listener, branch);
    struct program *program = listener->program;
    if (branch->status < 0 && branch->status != -ECANCELED)
        fprintf(stderr, "proxy: %s: %s\n", listener->listen->name, strerror(-branch->status));
    free_listener(listener);
    bide_auto_event_set(&program->signals.wakeup);
}

static void print_listener(const struct program *program, const struct listener *listener)
{
    char text[BIDE_ADDRESS_TEXT];
    bide_address address;
    if (bide_local_address(&listener->server.listener, &address) != 0)
        return;
    bide_address_print(&address, text, sizeof text);
    const char *what = listener->listen->mode == MODE_STATUS ? "status" : "listening";
    if (address.any.generic.sa_family == AF_UNIX)
        printf("%s (%s) on %s\n", what, bide_loop_backend(program->loop).name, text);
    else
        printf("%s (%s) on %s, port %u\n", what, bide_loop_backend(program->loop).name, text,
               (unsigned)bide_address_port(&address));
    fflush(stdout);
}

static void start_listener(struct program *program, struct listener *listener)
{
    /* accepted sockets inherit the option */
    (void)bide_set_no_delay(&listener->server.listener, true);
    print_listener(program, listener);
    bide_scope_spawn_in(&program->serving, &listener->branch, bide_loop_context(program->loop),
                        bide_server_run(&listener->server), listener_ended);
}

/* Idle HTTP connections end, too: also those of older configurations, which have HTTP servers of their own. */
static void shut_down_listener(struct listener *listener, uint64_t deadline)
{
    listener->is_shutting_down = true;
    for (struct configuration *used = listener->program->used; used != NULL; used = used->older) {
        struct listen *listen = configuration_listen(used, listener->listen->name);
        if (listen != NULL)
            http_drain(listen);
    }
    bide_server_shut_down(&listener->server, deadline);
}

/* ---- Applying a configuration: 2 ---- */

/* The next listener to open; NULL: no more. */
static struct listen *next_to_open(struct program *program)
{
    struct listen *listen =
        program->opening == NULL ? program->next->listens : program->opening->next;
    while (listen != NULL && find_listener(program, listen->name) != NULL)
        listen = listen->next;
    return program->opening = listen;
}

/* Returns false if the predecessor has no such socket. */
static bool use_passed_socket(struct program *program, struct listener *listener)
{
    int fd = handover_use(&program->handover, listener->listen->name);
    if (fd < 0)
        return false;
    bide_descriptor_init(&listener->server.listener, fd);
    listener->is_passed = true;
    return true;
}

/* In place of a killed server's socket. */
static int open_listener_at_path(struct listener *listener)
{
    int fd = bide_listen_path_open(listener->path, 0777, BACKLOG);
    if (fd >= 0)
        bide_descriptor_init(&listener->server.listener, fd);
    return fd < 0 ? fd : 0;
}

static bide_awaiter *open_listener(struct program *program)
{
    return bide_listen(&program->listen, &program->opened->server.listener,
                       &program->opening->address, BACKLOG);
}

static bool is_new_listener(const struct program *program, const struct listener *listener)
{
    return listener->configuration == program->next;
}

/* Closes the listeners opened for the failed reload, and gives their shares back. */
static void abort_reload(struct program *program)
{
    struct listener *next;
    fprintf(stderr, "proxy: %s: %s\n", program->opening->name, strerror(-program->status));
    for (struct listener *listener = program->listeners; listener != NULL; listener = next) {
        next = listener->next;
        if (is_new_listener(program, listener))
            free_listener(listener);
    }
    configuration_release(program->next);
    program->next = NULL;
    if (program->configuration != NULL) /* (it may have been divided meanwhile) */
        budget_divide(program);
}

/* The files of Unix sockets that were passed are this process's now. */
static void adopt_paths(struct program *program)
{
    for (struct listener *at = program->listeners; at != NULL; at = at->next)
        if (at->is_passed && at->path != NULL)
            (void)bide_listen_path_adopt(at->path); /* (otherwise the file stays at the end) */
}

/* Starts the new listeners in the order of the file; the list has another order. */
static void start_new_listeners(struct program *program)
{
    for (struct listen *listen = program->next->listens; listen != NULL; listen = listen->next) {
        struct listener *listener = find_listener(program, listen->name);
        if (listener != NULL && is_new_listener(program, listener))
            start_listener(program, listener);
    }
}

static void apply_configuration(struct program *program)
{
    struct configuration *old = program->configuration;
    if (old != NULL)
        balance_inherit(program->next, old);
    start_new_listeners(program);
    for (struct listener *listener = program->listeners; listener != NULL;
         listener = listener->next) {
        if (is_new_listener(program, listener) || listener->is_shutting_down)
            continue;
        struct listen *listen = configuration_listen(program->next, listener->listen->name);
        if (listen == NULL) {
            shut_down_listener(listener, BIDE_FOREVER);
        } else if (bide_descriptor_is_open(&listener->server.listener)) {
            set_configuration(listener, program->next, listen);
        } else { /* accepting has failed, and a new one has its address */
            listener->is_shutting_down = true;
            bide_server_shut_down(&listener->server, BIDE_FOREVER);
        }
    }
    configuration_enlist(program->next, &program->used);
    log_open(&program->log, program->next->log);
    program->configuration = program->next;
    program->next = NULL;
    if (old != NULL) {
        log_line(&program->log, "the configuration was reloaded");
        bide_stop_request(&old->checks);
        configuration_release(old); /* (its idle connections to servers end) */
    }
    budget_divide(program);
    budget_report(program);
    health_start(program, program->configuration);
}

/*
 * Opens the directories of Unix sockets, before the confinement if possible. An error is that of opening the listener:
 * paths of configurations fit.
 */
static void open_paths(struct configuration *configuration)
{
    for (struct listen *listen = configuration->listens; listen != NULL; listen = listen->next) {
        const char *file = listen_file(listen);
        if (file == NULL)
            continue;
        listen->path = reading_allocate(sizeof *listen->path);
        if (bide_listen_path_init(listen->path, file) != 0) {
            free(listen->path);
            listen->path = NULL;
        }
    }
}

/* Reads the file again. Returns false after an error, which is reported. */
static bool reload_configuration(struct program *program)
{
    char error_text[512];
    FILE *file = program->file != NULL ? fopen(program->file, "re") : NULL;
    if (file == NULL) {
        fprintf(stderr, "proxy: %s: %s\n", program->file != NULL ? program->file : "reload",
                program->file != NULL ? strerror(errno) : "no configuration file");
        return false;
    }
    program->next = configuration_read(file, program->file, program->configuration, error_text,
                                       sizeof error_text);
    fclose(file);
    if (program->next == NULL) {
        fprintf(stderr, "proxy: %s\n", error_text);
        return false;
    }
    if (!budget_has_room(program, program->next)) {
        configuration_release(program->next);
        program->next = NULL;
        return false;
    }
    open_paths(program->next);
    return true;
}

/* ---- The coroutine: 1 ---- */

/* 4 */
static void leave_path(struct listener *listener)
{
    if (listener->path != NULL)
        bide_listen_path_destroy(listener->path);
}

/* Stops the listeners after the shutdown timeout; the second time at once. */
static void stop_listeners(struct program *program, uint64_t now)
{
    uint64_t deadline = program->is_stopping ? 0 : now + program->configuration->shutdown_timeout;
    program->is_stopping = true;
    for (struct listener *listener = program->listeners; listener != NULL;
         listener = listener->next) {
        if (program->handover.is_passing)
            leave_path(listener);
        shut_down_listener(listener, deadline);
    }
    handover_stop(&program->handover);
}

/*
 * A successor accepts on the same sockets. Idle connections are not closed at once, as requests may be on their way: they
 * are after their next response, or at the end of the shutdown timeout. 4
 */
static void leave_to_successor(struct program *program, uint64_t now)
{
    uint64_t deadline = now + program->configuration->shutdown_timeout;
    program->is_stopping = true;
    for (struct listener *listener = program->listeners; listener != NULL;
         listener = listener->next) {
        listener->is_shutting_down = true;
        leave_path(listener);
        bide_server_shut_down(&listener->server, deadline);
    }
    puts("handed over");
    fflush(stdout);
}

/* The first time, also begins to serve successors: none may take over from a process that is not ready. */
static void become_ready(struct program *program)
{
    handover_ready(&program->handover);
    if (program->handover.path != NULL && program->handover.program == NULL)
        bide_scope_spawn(&program->watching, &program->handover.branch,
                         handover_run(&program->handover, program));
}

static void stop_background(struct program *program)
{
    if (program->configuration != NULL)
        bide_stop_request(&program->configuration->checks);
    bide_scope_stop(&program->watching);
    log_stop(&program->log);
}

static void program_finish(struct program *program)
{
    struct configuration *last = program->configuration;
    server_signals_stop(&program->signals);
    program->configuration = NULL;
    if (last != NULL)
        configuration_release(last);
    scratch_free_all(program);
}

bide_coroutine(program_body)
{
    bide_begin(program_body, struct program * self);
    bide_scope_init(&self->serving, bide_this_frame());
    bide_scope_init(&self->watching, bide_this_frame());
    bide_scope_spawn(&self->serving, &self->log_branch, log_run(&self->log));
    self->status = server_signals_listen(&self->signals);
    if (self->status == 0)
        server_signals_spawn(&self->signals, &self->watching);
    while (self->status == 0) {
        if (self->next != NULL) {
            self->opening = NULL;
            while (self->status == 0 && next_to_open(self) != NULL) {
                self->opened = create_listener(self, self->opening);
                if (use_passed_socket(self, self->opened))
                    continue;
                /* (again while the address is still that of a killed server) */
                for (self->tries = 0; self->tries < LISTEN_TRIES; self->tries++) {
                    if (self->tries != 0)
                        bide_await(bide_sleep_for(&self->pause, LISTEN_PAUSE));
                    if (self->opened->path != NULL)
                        self->status = open_listener_at_path(self->opened);
                    else
                        bide_await_status(self->status, open_listener(self));
                    if (self->status != -EADDRINUSE)
                        break;
                }
            }
            if (self->status == 0 && self->configuration == NULL) {
                adopt_paths(self); /* (as their owner, which another user may not be) */
                confinement_start(self);
            }
            if (self->status == 0) {
                apply_configuration(self);
                become_ready(self);
            } else
                abort_reload(self);
            if (self->configuration == NULL)
                break; /* startup failed */
            self->status = 0;
        }
        /* (behind a reload that was asked for at the same time) */
        if (server_signals_consume(&self->signals, SERVER_STATISTICS))
            statistics_print(self);
        if (self->is_stopping && self->listeners == NULL)
            break;
        bide_await_status(self->status, bide_auto_event_wait(&self->wait, &self->signals.wakeup));
        /* (before a stop, which leaves idle connections no time) */
        if (self->handover.is_passed && !self->is_stopping)
            leave_to_successor(self, bide_now(bide_this_context()));
        if (server_signals_consume(&self->signals, SERVER_STOP))
            stop_listeners(self, bide_now(bide_this_context()));
        if (server_signals_consume(&self->signals, SERVER_RELOAD) && !self->is_stopping)
            (void)reload_configuration(self);
    }
    stop_background(self);
    bide_await(bide_scope_join(&self->watching));
    bide_await(bide_scope_join(&self->serving));
    bide_return(self->status);
    bide_finally();
    program_finish(self);
    bide_end();
}

/* ---- Running it ---- */

/*
 * Two buffers for each possible connection. Memory of unused buffers is never touched, so the
 * system does not allocate it.
 */
static int create_buffers(struct program *program)
{
    size_t count = 0;
    for (struct listen *listen = program->next->listens; listen != NULL; listen = listen->next)
        count += 2 * listen->max_connections;
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

int program_run(struct program *program, struct configuration *configuration, const char *file,
                struct confine *confine, const char *monitor, const char *handover)
{
    memset(program, 0, offsetof(struct program, log));
    program->next = configuration;
    program->file = file;
    program->confine = confine;
    program->monitor = monitor;
    server_signals_init(&program->signals);
    program->is_stopping = false;
    log_init(&program->log);
    handover_init(&program->handover, handover);
    descriptors_init(&program->descriptors);
    program->descriptors.divide = budget_divide_again;
    if (!budget_has_room(program, program->next)) {
        configuration_release(program->next);
        return -EMFILE;
    }
    open_paths(program->next);
    int status = handover_begin(&program->handover);
    if (status < 0) {
        handover_end(&program->handover);
        configuration_release(program->next);
        return status;
    }
    confinement_limit_files(program);
    status = create_buffers(program);
    if (status == 0)
        status = bide_loop_create(&program->loop, NULL);
    if (status == 0)
        status = bide_names_create(&program->names, NULL);
    if (status == 0)
        status = bide_loop_wait(program->loop, bide_task_init(&program->task, &program_body));
    handover_end(&program->handover);
    monitoring_stop(monitor);
    if (program->names != NULL)
        bide_names_destroy(program->names);
    bide_buffer_pool_destroy(&program->buffers);
    if (program->loop != NULL)
        bide_loop_destroy(program->loop);
    munmap(program->memory, program->memory_size);
    return status;
}
