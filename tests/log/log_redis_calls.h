/* A Redis server of a test's own, and calls of message logs on it that block. */
#ifndef BIDE_LOG_REDIS_CALLS_H
#define BIDE_LOG_REDIS_CALLS_H

#include "log_redis_server.h"

#include <bide/bide.h>
#include <bide/message_log.h>

#include <errno.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define SOON   (60 * SECOND)

static struct redis_server server;

static inline int try_open(bide_log **log, const struct redis_server *at, const char *rest,
                           bide_log_operation *operation)
{
    static char url[512];
    snprintf(url, sizeof url, "redis://127.0.0.1:%s/%s", at->port, rest);
    return bide_sync_wait(bide_log_open(operation, log, url));
}

static inline bide_log *open_log(const struct redis_server *at, const char *rest)
{
    bide_log *log;
    bide_log_operation operation;
    int status = try_open(&log, at, rest, &operation);
    if (status != 0)
        fail_msg("%s: %d, %s", rest, status, operation.problem);
    return log;
}

static inline void close_log(bide_log *log)
{
    bide_log_close(log);
    bide_log_destroy(log);
}

static inline int publish_one(bide_log *log, const char *text, bool *uncertain)
{
    bide_log_operation operation;
    bide_log_message message = {.data = text, .size = strlen(text)};
    int status = bide_sync_wait(bide_log_publish(&operation, log, &message, 1));
    if (uncertain != NULL)
        *uncertain = operation.uncertain;
    return status;
}

static inline void subscribe(bide_log *log, bide_log_consumer *consumer, const char *group)
{
    bide_log_operation operation;
    const bide_log_consumer_options options = {.group = group};
    assert_int_equal(bide_sync_wait(bide_log_subscribe(&operation, consumer, log, &options)), 0);
}

static inline int read_for(bide_log_consumer *consumer, bide_log_message *messages, uint32_t max,
                           uint64_t patience, uint32_t *count)
{
    bide_log_operation operation;
    bide_with_deadline_operation limited;
    int status = bide_sync_wait(
        bide_with_timeout(&limited, patience, bide_log_read(&operation, consumer, messages, max)));
    *count = operation.count;
    return status;
}

static inline int acknowledge(bide_log_consumer *consumer, const bide_log_message *messages,
                              uint32_t count)
{
    bide_log_operation operation;
    return bide_sync_wait(bide_log_acknowledge(&operation, consumer, messages, count));
}

/* Reads one message, which is `text`. */
static inline bide_log_message expect(bide_log_consumer *consumer, const char *text)
{
    bide_log_message message;
    uint32_t count = 0;
    assert_int_equal(read_for(consumer, &message, 1, SOON, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(message.size, strlen(text));
    assert_memory_equal(message.data, text, message.size);
    return message;
}

#endif
