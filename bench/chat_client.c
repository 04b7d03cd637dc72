/*
 * Members of a chat room, for bench/chat.sh: chat_client PORT MEMBERS SIZE SECONDS SERVER
 *
 * One member sends 20 lines of SIZE bytes at once; when all members have received them, it sends
 * the next 20. Prints a line: delivered lines per second, and the processor time of the process
 * SERVER for each, in microseconds.
 */
#define _GNU_SOURCE
#include <bide/bide.h>
#include <bide/http.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = 20, ROUNDS_BEFORE = 5 };

struct room;

struct member {
    bide_task task;
    struct room *room;
    bide_branch branch;
    bide_descriptor socket;
    bide_http_client client;
    bide_websocket websocket;
    bide_websocket_recv_operation receive;
    char memory[8192];
    char line[8192]; /* the list of members may be long */
};

struct room {
    bide_task task;
    struct member *members, *at;
    unsigned count, size, ready;
    char last[32]; /* the name of the last member to join */
    double seconds;
    int server;
    bide_address address;
    bide_io_operation connect;
    bide_http_websocket_operation opening;
    bide_websocket_send_operation send;
    bide_scope scope;
    bide_auto_event heard;
    bide_auto_event_waiter wait;
    unsigned i;
    unsigned long rounds, delivered;
    double began, ended;
    long ticks;
    char text[2048];
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The processor time of the server's process, in ticks. */
static long ticks_of(int process)
{
    char path[64], text[1024];
    long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    const char *end = strrchr(text, ')');
    if (end != NULL)
        sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system);
    return user + system;
}

bide_coroutine(member_body)
{
    bide_begin(member_body, struct member * self);
    for (;;) {
        bide_try(bide_websocket_recv(&self->receive, &self->websocket, self->line,
                                        sizeof self->line));
        /* all members have seen the last one join, so nothing else is in transit */
        size_t last = strlen(self->room->last), size = self->receive.count;
        if (memcmp(self->line, "said", 4) != 0 && memcmp(self->line, "who", 3) != 0 &&
            size > last && memcmp(self->line + size - last, self->room->last, last) == 0 &&
            ++self->room->ready == self->room->count)
            bide_auto_event_set(&self->room->heard);
        if (size < 5 || memcmp(self->line, "said\t", 5) != 0)
            continue;
        if (++self->room->delivered % ((unsigned long)WINDOW * self->room->count) == 0)
            bide_auto_event_set(&self->room->heard);
    }
    bide_end();
}

bide_coroutine(room_body)
{
    bide_begin(room_body, struct room * self);
    bide_scope_init(&self->scope, bide_this_frame());
    for (self->i = 0; self->i < self->count; self->i++) {
        self->at = &self->members[self->i];
        bide_try(bide_connect(&self->connect, &self->at->socket, &self->address));
        bide_set_no_delay(&self->at->socket, true);
        bide_http_client_init(&self->at->client, bide_socket_stream(&self->at->socket),
                              self->at->memory, sizeof self->at->memory, NULL);
        bide_try(bide_http_open_websocket(&self->opening, &self->at->client, &self->at->websocket,
                                          &(bide_websocket_options){0}, "/chat", "localhost",
                                          NULL));
        snprintf(self->text, sizeof self->text, "join\troom\tmember %u", self->i);
        bide_try(bide_websocket_send(&self->send, &self->at->websocket, BIDE_WEBSOCKET_TEXT,
                                     self->text, strlen(self->text)));
        self->at->room = self;
        bide_scope_spawn(&self->scope, &self->at->branch,
                         bide_task_init(&self->at->task, &member_body));
    }
    bide_try(bide_auto_event_wait(&self->wait, &self->heard));
    memcpy(self->text, "say\t", 4);
    memset(self->text + 4, 'x', self->size);
    do {
        if (self->rounds == ROUNDS_BEFORE) {
            self->began = now();
            self->ticks = ticks_of(self->server);
        }
        for (self->i = 0; self->i < WINDOW; self->i++)
            bide_try(bide_websocket_put(&self->send, &self->members[0].websocket,
                                        BIDE_WEBSOCKET_TEXT, self->text, self->size + 4));
        bide_try(bide_websocket_flush(&self->send, &self->members[0].websocket));
        bide_try(bide_auto_event_wait(&self->wait, &self->heard));
        self->ended = now();
        self->rounds++;
    } while (self->rounds <= ROUNDS_BEFORE || self->ended - self->began < self->seconds);
    double lines = (double)(self->rounds - ROUNDS_BEFORE) * WINDOW * self->count;
    double used = (double)(ticks_of(self->server) - self->ticks) / (double)sysconf(_SC_CLK_TCK);
    printf("delivered %.0f processor %.3f\n", lines / (self->ended - self->began),
           used / lines * 1e6);
    bide_scope_stop(&self->scope);
    bide_await(bide_scope_join(&self->scope));
    bide_finally();
    for (unsigned i = 0; i < self->count; i++)
        bide_close(&self->members[i].socket);
    bide_end();
}

int main(int count, char **arguments)
{
    static struct room room;
    bide_loop *loop;
    if (count != 6 || bide_loop_create(&loop, NULL) != 0)
        return 2;
    room.count = (unsigned)atoi(arguments[2]);
    room.size = (unsigned)atoi(arguments[3]);
    room.seconds = atof(arguments[4]);
    room.server = atoi(arguments[5]);
    if (room.count == 0 || room.size > 1000)
        return 2;
    snprintf(room.last, sizeof room.last, "\tmember %u", room.count - 1);
    room.members = calloc(room.count, sizeof *room.members);
    if (room.members == NULL)
        return 1;
    for (unsigned i = 0; i < room.count; i++)
        bide_descriptor_init_closed(&room.members[i].socket);
    bide_address_ip(&room.address, "127.0.0.1", (uint16_t)atoi(arguments[1]));
    bide_auto_event_init(&room.heard, false);
    int status = bide_loop_wait(loop, bide_task_init(&room.task, &room_body));
    if (status != 0)
        fprintf(stderr, "chat_client: %s\n", strerror(-status));
    free(room.members);
    bide_loop_destroy(loop);
    return status != 0;
}
