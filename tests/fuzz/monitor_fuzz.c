/*
 * Commands to the monitor: they arrive in whole, byte by byte and in two pieces. A second parser of their lines finds the
 * same commands and errors. Each answer consists of whole records, with one that ends it.
 */
#define _GNU_SOURCE
#include "../../src/inspect/walk.h"
#include "../../src/monitor/client.h"
#include "../../src/monitor/task_groups.h"
#include "uri.h"

#include <sys/socket.h>
#include <unistd.h>

const unsigned fuzz_executions = 1500;
const char *const fuzz_words[] = {"look", "look ", "turns on\n", "turns off\n", "groups=", "group=", "tasks=", "frames=", "\r\n", "\n",
                                  "=", " ", "18446744073709551616", "0x", "ff", "\t", "-", NULL};

enum { MAX_LOG = 8192, DEFAULT_GROUPS = 100, DEFAULT_FRAMES = 16, MAX_TASKS = 1000 };

struct log {
    char text[MAX_LOG];
    size_t size;
};

static void put_look(struct log *log, uint64_t group, uint64_t groups, uint64_t tasks, uint64_t frames)
{
    log->size += (size_t)snprintf(log->text + log->size, MAX_LOG - log->size, "look %llx %llu %llu %llu;",
                                  (unsigned long long)group, (unsigned long long)groups, (unsigned long long)tasks,
                                  (unsigned long long)frames);
    FUZZ_REQUIRE(log->size < MAX_LOG);
}

static void put_word(struct log *log, const char *word)
{
    log->size += (size_t)snprintf(log->text + log->size, MAX_LOG - log->size, "%s;", word);
    FUZZ_REQUIRE(log->size < MAX_LOG);
}

/* ---- The second parser ---- */

static bool parse_number(const char *text, unsigned base, uint64_t max, uint64_t *number)
{
    uint64_t value = 0;
    if (base == 16 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        text += 2;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        int digit = uri_hex(*text);
        if (digit < 0 || (unsigned)digit >= base || value > (UINT64_MAX - (unsigned)digit) / base)
            return false;
        value = value * base + (unsigned)digit;
    }
    *number = value < max ? value : max;
    return true;
}

static bool parse_option(const char *word, uint64_t values[4])
{
    static const struct {
        const char *name;
        unsigned base;
        uint64_t max;
    } options[] = {{"group=", 16, UINT64_MAX}, {"groups=", 10, TASK_GROUPS_MAX}, {"tasks=", 10, MAX_TASKS},
                   {"frames=", 10, WALK_SHOWN}};
    for (int i = 0; i < 4; i++) {
        size_t length = strlen(options[i].name);
        if (strncmp(word, options[i].name, length) == 0)
            return parse_number(word + length, options[i].base, options[i].max, &values[i]);
    }
    return false;
}

static void second_command(struct log *log, const char *line)
{
    uint64_t values[4] = {0, DEFAULT_GROUPS, 0, DEFAULT_FRAMES};
    if (strcmp(line, "turns on") == 0 || strcmp(line, "turns off") == 0) {
        put_word(log, "end");
        return;
    }
    if (strncmp(line, "look", 4) != 0 || (line[4] != '\0' && line[4] != ' ')) {
        put_word(log, "error");
        return;
    }
    for (line += 4; *line != '\0';) {
        char word[256];
        size_t length = strcspn(line, " ");
        memcpy(word, line, length);
        word[length] = '\0';
        if (length != 0 && !parse_option(word, values)) {
            put_word(log, "error");
            return;
        }
        line += length + (line[length] == ' ');
    }
    put_look(log, values[0], values[1], values[2], values[3]);
    put_word(log, "end");
}

static void second_parse(struct log *log, const char *data, size_t size)
{
    log->size = 0;
    for (;;) {
        char line[256] = "";
        const char *end = size != 0 ? memchr(data, '\n', size) : NULL;
        if (end == NULL)
            return;
        size_t length = (size_t)(end - data);
        if (length > 255) {
            put_word(log, "error");
        } else {
            memcpy(line, data, length);
            line[length - (length != 0 && line[length - 1] == '\r')] = '\0';
            if (line[0] != '\0')
                second_command(log, line);
        }
        size -= length + 1;
        data = end + 1;
    }
}

/* ---- The monitor's ---- */

/* Reads an answer: records on lines, the last of which is an error or an end. */
static void read_answer(struct log *log, int peer, size_t size)
{
    char *answer = malloc(size + 1);
    FUZZ_REQUIRE(answer != NULL);
    FUZZ_REQUIRE(recv(peer, answer, size, MSG_DONTWAIT) == (ssize_t)size);
    answer[size] = '\0';
    FUZZ_REQUIRE(size > 2 && answer[0] == '{' && strcmp(answer + size - 2, "}\n") == 0);
    FUZZ_REQUIRE(strchr(answer, '\n') == answer + size - 1 && strlen(answer) == size);
    bool is_error = strncmp(answer, "{\"is\":\"error\",", 14) == 0;
    FUZZ_REQUIRE(is_error || strncmp(answer, "{\"is\":\"end\",", 12) == 0);
    put_word(log, is_error ? "error" : "end");
    free(answer);
}

static void work(struct log *log, monitor_client *client, int peer)
{
    for (;;) {
        FUZZ_REQUIRE(bide_monitor_client_read_(client));
        if (client->has_asked) {
            put_look(log, client->look.group, client->look.groups, client->look.tasks, client->look.frames);
            client->has_asked = false;
            bide_monitor_client_answered_(client);
        }
        size_t length = client->answer.length;
        if (length == 0)
            return;
        FUZZ_REQUIRE(!bide_monitor_client_may_request_(client));
        FUZZ_REQUIRE(bide_monitor_client_send_(client));
        FUZZ_REQUIRE(client->answer.length == 0 && client->sent == 0);
        read_answer(log, peer, length);
    }
}

static void first_parse(struct log *log, const char *data, size_t size, size_t first, size_t step)
{
    static monitor_client client;
    int ends[2];
    FUZZ_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    bide_monitor_client_start_(&client, ends[0]);
    log->size = 0;
    for (size_t at = 0, count = first; at < size; at += count, count = step) {
        if (count > size - at)
            count = size - at;
        if (count == 0)
            continue;
        FUZZ_REQUIRE(send(ends[1], data + at, count, 0) == (ssize_t)count);
        work(log, &client, ends[1]);
    }
    shutdown(ends[1], SHUT_WR);
    FUZZ_REQUIRE(!bide_monitor_client_read_(&client));
    bide_monitor_client_stop_(&client);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct log second, first;
    const char *data = (const char *)input;
    if (size > 1000)
        return 0;
    second_parse(&second, data, size);
    for (size_t way = 0; way < 4; way++) {
        if (way == 1 && size > 100)
            continue;
        first_parse(&first, data, size, way == 0 ? size : way == 1 ? 1 : size * (way - 1) / 3, way == 1 ? 1 : size);
        FUZZ_REQUIRE(first.size == second.size && memcmp(first.text, second.text, first.size) == 0);
    }
    return 0;
}
