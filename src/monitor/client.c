/* Connections of the monitor: parsing of commands, and sending of answers. Used by its thread only. */
#define _GNU_SOURCE
#include "client.h"

#include "bide/platform.h"

#include "task_groups.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CLIENT_TASKS_MAX = 1000,
    CLIENT_TASKS_DEFAULT = 0,
    CLIENT_GROUPS_DEFAULT = 100,
    CLIENT_FRAMES_DEFAULT = 16
};

void bide_monitor_client_start_(monitor_client *client, int fd)
{
    memset(client, 0, sizeof *client);
    client->fd = fd;
}

void bide_monitor_client_stop_(monitor_client *client)
{
    close(client->fd);
    client->fd = -1;
    bide_report_free_(&client->answer);
    bide_executors_free_(&client->before);
}

bool bide_monitor_client_may_request_(const monitor_client *client)
{
    return !client->has_asked && client->answer.length == 0;
}

void bide_monitor_client_reject_(monitor_client *client, const char *why)
{
    bide_report_start_(&client->answer, "error");
    bide_report_text_(&client->answer, "what", why);
    if (!bide_report_end_(&client->answer))
        client->ends = true; /* no memory for the error record */
}

void bide_monitor_client_answered_(monitor_client *client)
{
    monitor_report *answer = &client->answer;
    bool left_out = answer->left_out;
    for (;;) {
        bide_report_start_(answer, "end");
        bide_report_number_(answer, "left_out", left_out);
        if (bide_report_end_(answer) || answer->length == 0)
            break;
        /* drop the last record to make room */
        do
            answer->length--;
        while (answer->length != 0 && answer->bytes[answer->length - 1] != '\n');
        left_out = true;
    }
    if (answer->length == 0) /* no memory for the end record either */
        client->ends = true;
}

/* ---- Commands ---- */

/* Parses `name=NUMBER`, in that base. False: the word is something else. */
static bool client_parse_number(const char *word, const char *name, int base, uint64_t max,
                                uint64_t *to)
{
    size_t length = strlen(name);
    char *end;
    if (strncmp(word, name, length) != 0 || word[length] != '=' ||
        !isxdigit((unsigned char)word[length + 1])) /* strtoull skips blanks and signs */
        return false;
    errno = 0;
    uint64_t number = strtoull(word + length + 1, &end, base);
    if (*end != '\0' || errno != 0)
        return false;
    *to = number < max ? number : max;
    return true;
}

static bool client_parse_option(client_look *look, const char *word)
{
    uint64_t number;
    if (client_parse_number(word, "group", 16, UINT64_MAX, &number))
        look->group = number;
    else if (client_parse_number(word, "groups", 10, TASK_GROUPS_MAX, &number))
        look->groups = (size_t)number;
    else if (client_parse_number(word, "tasks", 10, CLIENT_TASKS_MAX, &number))
        look->tasks = (size_t)number;
    else if (client_parse_number(word, "frames", 10, WALK_SHOWN, &number))
        look->frames = (size_t)number;
    else
        return false;
    return true;
}

static void client_do_look(monitor_client *client, char *rest)
{
    client_look look = {.groups = CLIENT_GROUPS_DEFAULT,
                        .tasks = CLIENT_TASKS_DEFAULT,
                        .frames = CLIENT_FRAMES_DEFAULT};
    char *more = NULL;
    for (char *word = strtok_r(rest, " ", &more); word != NULL; word = strtok_r(NULL, " ", &more)) {
        if (!client_parse_option(&look, word)) {
            bide_monitor_client_reject_(client, "look takes groups=N, group=ID, tasks=N and frames=N");
            return;
        }
    }
    client->look = look;
    client->has_asked = true;
}

static void client_do_turns(monitor_client *client, const char *rest)
{
    if (strcmp(rest, "on") != 0 && strcmp(rest, "off") != 0) {
        bide_monitor_client_reject_(client, "turns takes on or off");
        return;
    }
    client->wants_turns = strcmp(rest, "on") == 0;
    bide_monitor_client_answered_(client);
}

static void client_do_command(monitor_client *client, char *line)
{
    char *rest = line + strcspn(line, " ");
    if (*rest != '\0')
        *rest++ = '\0';
    if (strcmp(line, "look") == 0)
        client_do_look(client, rest);
    else if (strcmp(line, "turns") == 0)
        client_do_turns(client, rest);
    else
        bide_monitor_client_reject_(client, "the commands are: look, turns on, turns off");
}

/* Executes the next complete line. False: there is none. */
static bool client_run_command(monitor_client *client)
{
    char line[CLIENT_LINE_MAX];
    char *end = memchr(client->line, '\n', client->length);
    if (end == NULL) {
        if (client->length == sizeof client->line) {
            client->is_too_long = true;
            client->length = 0;
        }
        return false;
    }
    size_t length = (size_t)(end - client->line);
    memcpy(line, client->line, length);
    line[length] = '\0';
    if (length != 0 && line[length - 1] == '\r')
        line[length - 1] = '\0';
    bide_assert(length + 1 <= client->length);
    client->length -= length + 1;
    memmove(client->line, end + 1, client->length);
    if (client->is_too_long)
        bide_monitor_client_reject_(client, "a command has at most 255 bytes");
    else if (line[0] != '\0')
        client_do_command(client, line);
    client->is_too_long = false;
    return true;
}

bool bide_monitor_client_read_(monitor_client *client)
{
    while (bide_monitor_client_may_request_(client)) {
        if (client_run_command(client))
            continue;
        ssize_t count = recv(client->fd, client->line + client->length,
                             sizeof client->line - client->length, MSG_DONTWAIT);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        client->length += (size_t)count;
    }
    return true;
}

bool bide_monitor_client_send_(monitor_client *client)
{
    monitor_report *answer = &client->answer;
    while (client->sent < answer->length) {
        ssize_t count = send(client->fd, answer->bytes + client->sent,
                             answer->length - client->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        client->sent += (size_t)count;
    }
    bide_assert(client->sent == answer->length);
    client->sent = 0;
    bide_report_free_(answer);
    return !client->ends;
}
