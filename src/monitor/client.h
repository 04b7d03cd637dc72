/* One connection of a monitor: what it has asked for, and what is on its way to it. */
#ifndef BIDE_IO_MONITOR_CLIENT_H
#define BIDE_IO_MONITOR_CLIENT_H

#include "report.h"
#include "executors.h"

enum { MAX_CLIENT_LINE = 256 };

/* A look that it asks for. */
typedef struct client_look {
    uint64_t group; /* whose tasks are shown one by one; 0: of all */
    size_t groups;  /* how many groups, at most */
    size_t tasks;   /* how many tasks, of that group */
    size_t frames;  /* how many frames of each */
} client_look;

typedef struct client {
    int fd; /* -1: this place is free */
    char line[MAX_CLIENT_LINE];
    size_t length;
    bool is_too_long; /* the rest of the line is not taken */

    report answer;
    size_t sent;
    bool ends; /* once what there is of an answer is sent */

    bool has_asked; /* for `look`, which is put off until it may be */
    client_look look;
    bool wants_turns;
    runners before; /* as its last look found them */
} client;

void bide_http_client_begin_(client *client, int fd);
void bide_http_client_end_(client *client);

/* Is it to be read? Not while it has an answer to take, or to come. */
bool bide_http_client_may_ask_(const client *client);

/* Reads what has come, up to the first command that is to be answered. False: it is gone. */
bool bide_http_client_read_(client *client);

/* Sends what goes. False: it is gone, or has had its last answer. */
bool bide_http_client_send_(client *client);

/* An answer that says why there is none. */
void bide_http_client_reject_(client *client, const char *why);

/* The end of an answer. */
void bide_http_client_answered_(client *client);

#endif
