/*
 * A client of the monitor for its tests: connects, sends requests, and examines the records. Each test has
 * a directory of its own.
 */
#ifndef MONITOR_PEER_H
#define MONITOR_PEER_H

#include "testing.h"

#include "bide/bide.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char directory_path[64];
static char path[96];

static inline int make_directory(void **state)
{
    (void)state;
    unsetenv("BIDE_MONITOR");
    strcpy(directory_path, "/tmp/bide-monitor-test-XXXXXX");
    if (mkdtemp(directory_path) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/socket", directory_path);
    return 0;
}

static inline int remove_directory(void **state)
{
    (void)state;
    bide_monitor_stop();
    unlink(path);
    return rmdir(directory_path); /* nothing else is left in it */
}

static inline void start(void)
{
    assert_int_equal(bide_monitor_start(&(bide_monitor_options){.path = path, .name = "a test"}),
                     0);
}

/* Returns the descriptor, or a negative errno. */
static inline int try_to_connect(const char *to)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", to);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

typedef struct peer {
    int fd;
    FILE *file;
    char line[8192];
} peer;

/* Returns the next record, or "" at the end. */
static inline const char *next_record(peer *peer)
{
    if (fgets(peer->line, sizeof peer->line, peer->file) == NULL)
        peer->line[0] = '\0';
    return peer->line;
}

static inline void join(peer *peer)
{
    peer->fd = try_to_connect(path);
    assert_true(peer->fd >= 0);
    peer->file = fdopen(peer->fd, "r+");
    assert_non_null(peer->file);
    setvbuf(peer->file, NULL, _IOLBF, 4096);
    assert_non_null(strstr(next_record(peer), "{\"is\":\"hello\",\"protocol\":\"bide-monitor\","
                                              "\"version\":1,"));
}

static inline void leave(peer *peer)
{
    fclose(peer->file);
}

static inline void say(const peer *peer, const char *text)
{
    assert_int_equal(send(peer->fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Returns all records of one answer as a text. The caller frees it. */
static inline char *answer(peer *peer)
{
    char *text = NULL;
    size_t length = 0;
    FILE *all = open_memstream(&text, &length);
    assert_non_null(all);
    while (next_record(peer)[0] != '\0') {
        fputs(peer->line, all);
        if (strncmp(peer->line, "{\"is\":\"end\"", 11) == 0 ||
            strncmp(peer->line, "{\"is\":\"error\"", 13) == 0)
            break;
    }
    fclose(all);
    return text;
}

static inline char *ask(peer *peer, const char *command)
{
    say(peer, command);
    return answer(peer);
}

static inline void assert_has(const char *text, const char *expected)
{
    if (strstr(text, expected) == NULL) {
        printf("# expected: %s\n# in:\n%s", expected, text);
        fail();
    }
}

/* Copies the record that contains `mark` to `record`. */
static inline void find_record(const char *text, const char *mark, char *record, size_t size)
{
    assert_has(text, mark);
    while (strstr(text, mark) >= text + strcspn(text, "\n"))
        text += strcspn(text, "\n") + 1;
    snprintf(record, size, "%.*s", (int)strcspn(text, "\n"), text);
}

/* The number of a record with that name. */
static inline uint64_t number_of(const char *record, const char *name)
{
    char mark[64];
    snprintf(mark, sizeof mark, "\"%s\":", name);
    const char *at = strstr(record, mark);
    if (at == NULL)
        fail_msg("no %s in %s", name, record);
    return at != NULL ? strtoull(at + strlen(mark), NULL, 10) : 0;
}

#define MONITOR_TEST(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

#endif
