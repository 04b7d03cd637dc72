/* One connection of the monitor: its pending command, and the answer that is being sent. */
#ifndef BIDE_IO_MONITOR_CLIENT_H
#define BIDE_IO_MONITOR_CLIENT_H

#include "report.h"
#include "executors.h"

enum { CLIENT_LINE_MAX = 256 };

/* The parameters of a `look` command. */
typedef struct client_look {
    uint64_t group; /* whose tasks are listed; 0: those of all groups */
    size_t groups;  /* the maximum number of groups */
    size_t tasks;   /* the maximum number of tasks of that group */
    size_t frames;  /* the maximum number of frames of each task */
} client_look;

typedef struct monitor_client {
    int fd; /* -1: unused */
    char line[CLIENT_LINE_MAX];
    size_t length;
    bool is_too_long; /* the rest of the line is ignored */

    monitor_report answer;
    size_t sent;
    bool ends; /* close it after the answer is sent */

    bool has_asked; /* a `look` is pending, until the monitor has rested */
    client_look look;
    bool wants_turns;
    executors before; /* as its last look found them */
} monitor_client;

void bide_monitor_client_start_(monitor_client *client, int fd);
void bide_monitor_client_stop_(monitor_client *client);

/* True if the next command may be read: no answer is pending or being sent. */
bool bide_monitor_client_may_request_(const monitor_client *client);

/* Reads commands up to the first that has an answer. False: the peer has closed the connection. */
bool bide_monitor_client_read_(monitor_client *client);

/* Sends as much as the socket takes. False: the connection is closed, or got its last answer. */
bool bide_monitor_client_send_(monitor_client *client);

/* Adds an error record as the answer. */
void bide_monitor_client_reject_(monitor_client *client, const char *why);

/* Adds the record that ends an answer. */
void bide_monitor_client_answered_(monitor_client *client);

#endif
