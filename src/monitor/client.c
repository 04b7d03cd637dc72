#define _GNU_SOURCE
#include "client.h"

#include "task_groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_TASKS = 1000, TASKS_USUALLY = 0, GROUPS_USUALLY = 100, FRAMES_USUALLY = 16 };

void bide_http_client_begin_(client *client, int fd)
{
    memset(client, 0, sizeof *client);
    client->fd = fd;
}

void bide_http_client_end_(client *client)
{
    close(client->fd);
    client->fd = -1;
    bide_report_free_(&client->answer);
    bide_executors_free_(&client->before);
}

bool bide_http_client_may_ask_(const client *client)
{
    return !client->has_asked && client->answer.length == 0;
}

void bide_http_client_reject_(client *client, const char *why)
{
    bide_report_begin_(&client->answer, "error");
    bide_report_text_(&client->answer, "what", why);
    if (!bide_report_end_(&client->answer))
        client->ends = true; /* there is no memory to say so */
}

void bide_http_client_answered_(client *client)
{
    report *answer = &client->answer;
    bool left_out = answer->left_out;
    for (;;) {
        bide_report_begin_(answer, "end");
        bide_report_number_(answer, "left_out", left_out);
        if (bide_report_end_(answer) || answer->length == 0)
            break;
        /* the last record makes room */
        do
            answer->length--;
        while (answer->length != 0 && answer->bytes[answer->length - 1] != '\n');
        left_out = true;
    }
    if (answer->length == 0) /* there is no memory */
        client->ends = true;
}

/* ---- Commands ---- */

/* The number behind `name=`, in that base. False: the word is another, or says no number. */
static bool take_number(const char *word, const char *name, int base, uint64_t max, uint64_t *to)
{
    size_t length = strlen(name);
    char *end;
    if (strncmp(word, name, length) != 0 || word[length] != '=' || word[length + 1] == '\0' ||
        strchr("+- ", word[length + 1]) != NULL)
        return false;
    errno = 0;
    uint64_t number = strtoull(word + length + 1, &end, base);
    if (*end != '\0' || errno != 0)
        return false;
    *to = number < max ? number : max;
    return true;
}

static bool take_option(client_look *look, const char *word)
{
    uint64_t number;
    if (take_number(word, "group", 16, UINT64_MAX, &number))
        look->group = number;
    else if (take_number(word, "groups", 10, MAX_CROWD_GROUPS, &number))
        look->groups = (size_t)number;
    else if (take_number(word, "tasks", 10, MAX_TASKS, &number))
        look->tasks = (size_t)number;
    else if (take_number(word, "frames", 10, WALK_SHOWN, &number))
        look->frames = (size_t)number;
    else
        return false;
    return true;
}

static void do_look(client *client, char *rest)
{
    client_look look = {.groups = GROUPS_USUALLY, .tasks = TASKS_USUALLY, .frames = FRAMES_USUALLY};
    char *more = NULL;
    for (char *word = strtok_r(rest, " ", &more); word != NULL; word = strtok_r(NULL, " ", &more)) {
        if (!take_option(&look, word)) {
            bide_http_client_reject_(client, "look takes groups=N, group=ID, tasks=N and frames=N");
            return;
        }
    }
    client->look = look;
    client->has_asked = true;
}

static void do_turns(client *client, const char *rest)
{
    if (strcmp(rest, "on") != 0 && strcmp(rest, "off") != 0) {
        bide_http_client_reject_(client, "turns takes on or off");
        return;
    }
    client->wants_turns = strcmp(rest, "on") == 0;
    bide_http_client_answered_(client);
}

static void do_command(client *client, char *line)
{
    char *rest = line + strcspn(line, " ");
    if (*rest != '\0')
        *rest++ = '\0';
    if (strcmp(line, "look") == 0)
        do_look(client, rest);
    else if (strcmp(line, "turns") == 0)
        do_turns(client, rest);
    else
        bide_http_client_reject_(client, "the commands are: look, turns on, turns off");
}

/* Takes a whole line out of what has come, and does it. False: there is none. */
static bool take_command(client *client)
{
    char line[MAX_CLIENT_LINE];
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
    client->length -= length + 1;
    memmove(client->line, end + 1, client->length);
    if (client->is_too_long)
        bide_http_client_reject_(client, "a command has 255 bytes at most");
    else if (line[0] != '\0')
        do_command(client, line);
    client->is_too_long = false;
    return true;
}

bool bide_http_client_read_(client *client)
{
    while (bide_http_client_may_ask_(client)) {
        if (take_command(client))
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

bool bide_http_client_send_(client *client)
{
    report *answer = &client->answer;
    while (client->sent < answer->length) {
        ssize_t count = send(client->fd, answer->bytes + client->sent, answer->length - client->sent,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        client->sent += (size_t)count;
    }
    client->sent = 0;
    bide_report_free_(answer);
    return !client->ends;
}
