#define _GNU_SOURCE
#include "client.h"

#include "crowd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TASKS_MOST = 1000, TASKS_USUALLY = 0, GROUPS_USUALLY = 100, FRAMES_USUALLY = 16 };

void client_begin(client *client, int fd)
{
    memset(client, 0, sizeof *client);
    client->fd = fd;
}

void client_end(client *client)
{
    close(client->fd);
    client->fd = -1;
    report_free(&client->answer);
    runners_free(&client->before);
}

bool client_may_ask(const client *client)
{
    return !client->has_asked && client->answer.length == 0;
}

void client_refuse(client *client, const char *why)
{
    report_begin(&client->answer, "error");
    report_text(&client->answer, "what", why);
    if (!report_end(&client->answer))
        client->ends = true; /* there is no memory to say so */
}

void client_answered(client *client)
{
    report *answer = &client->answer;
    bool left_out = answer->left_out;
    for (;;) {
        report_begin(answer, "end");
        report_number(answer, "left_out", left_out);
        if (report_end(answer) || answer->length == 0)
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
static bool take_number(const char *word, const char *name, int base, uint64_t most, uint64_t *to)
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
    *to = number < most ? number : most;
    return true;
}

static bool take_option(client_look *look, const char *word)
{
    uint64_t number;
    if (take_number(word, "group", 16, UINT64_MAX, &number))
        look->group = number;
    else if (take_number(word, "groups", 10, CROWD_GROUPS_MOST, &number))
        look->groups = (size_t)number;
    else if (take_number(word, "tasks", 10, TASKS_MOST, &number))
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
            client_refuse(client, "look takes groups=N, group=ID, tasks=N and frames=N");
            return;
        }
    }
    client->look = look;
    client->has_asked = true;
}

static void do_turns(client *client, const char *rest)
{
    if (strcmp(rest, "on") != 0 && strcmp(rest, "off") != 0) {
        client_refuse(client, "turns takes on or off");
        return;
    }
    client->wants_turns = strcmp(rest, "on") == 0;
    client_answered(client);
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
        client_refuse(client, "the commands are: look, turns on, turns off");
}

/* Takes a whole line out of what has come, and does it. False: there is none. */
static bool take_command(client *client)
{
    char line[CLIENT_LINE_MOST];
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
        client_refuse(client, "a command has 255 bytes at most");
    else if (line[0] != '\0')
        do_command(client, line);
    client->is_too_long = false;
    return true;
}

bool client_read(client *client)
{
    while (client_may_ask(client)) {
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

bool client_send(client *client)
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
    report_free(answer);
    return !client->ends;
}
