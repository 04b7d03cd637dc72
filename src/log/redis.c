/*
 * The engine "redis": handles, and publishing. redis.h has the rest.
 *
 * Publishes wait in a batch, which one of them sends for all, on a thread for blocking calls: one
 * commit runs at a time (state->is_flushing). It alone uses the link `publishing`. A batch is sent
 * as a whole before its replies are read; the server answers each XADD with the message's ID.
 */
#define _GNU_SOURCE
#include "redis.h"

#include "../coroutine/lock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    REDIS_THREADS = 4, /* a commit, and other calls */
    REDIS_CHUNK = 256 * 1024
};

/* At the head of each message of a batch; then its fields, as bulk strings. */
struct redis_record {
    uint32_t size;
    uint32_t fields; /* and values */
};

struct log_redis *bide_redis_of_(bide_log *log)
{
    return bide_container_of(log, struct log_redis, log);
}

/* ---- Open and detach ---- */

static bool redis_copy(char *to, size_t room, const char *from, size_t size)
{
    if (size >= room)
        return false;
    memcpy(to, from, size);
    to[size] = '\0';
    return true;
}

/* "[USER:PASSWORD@]HOST[:PORT]", of that size. */
static bool redis_parse_server(struct log_redis *redis, const char *text, size_t size)
{
    const char *end = text + size, *at = memrchr(text, '@', size);
    if (at != NULL) {
        const char *colon = memchr(text, ':', (size_t)(at - text));
        if (colon == NULL || colon + 1 == at ||
            !redis_copy(redis->user, REDIS_TEXT, text, (size_t)(colon - text)) ||
            !redis_copy(redis->password, REDIS_TEXT, colon + 1, (size_t)(at - colon) - 1))
            return false;
        text = at + 1;
    }
    const char *host_end = end, *port = NULL;
    if (text < end && *text == '[') { /* an IPv6 address */
        text++;
        const char *bracket = memchr(text, ']', (size_t)(end - text));
        if (bracket == NULL || (bracket + 1 < end && bracket[1] != ':'))
            return false;
        host_end = bracket;
        port = bracket + 1 < end ? bracket + 2 : NULL;
    } else {
        const char *colon = memchr(text, ':', (size_t)(end - text));
        host_end = colon != NULL ? colon : end;
        port = colon != NULL ? colon + 1 : NULL;
    }
    if (!redis_copy(redis->host, REDIS_TEXT, text, (size_t)(host_end - text)) ||
        redis->host[0] == '\0')
        return false;
    if (port == NULL)
        return redis_copy(redis->port, sizeof redis->port, "6379", 4);
    unsigned long number = 0;
    for (const char *digit = port; digit < end; digit++) {
        if (*digit < '0' || *digit > '9' || number > 65535)
            return false;
        number = number * 10 + (unsigned long)(*digit - '0');
    }
    return number - 1 < 65535 &&
           redis_copy(redis->port, sizeof redis->port, port, (size_t)(end - port));
}

static bool redis_parse(struct log_redis *redis, const char *name)
{
    if (strncmp(name, "//", 2) != 0)
        return false;
    name += 2;
    const char *slash = strchr(name, '/');
    return slash != NULL && slash[1] != '\0' &&
           redis_copy(redis->stream, REDIS_TEXT, slash + 1, strlen(slash + 1)) &&
           redis_parse_server(redis, name, (size_t)(slash - name));
}

static void redis_name_consumer(struct log_redis *redis)
{
    uint64_t number = 0;
    char host[32] = "";
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = bide_platform.now();
    (void)gethostname(host, sizeof host - 1);
    snprintf(redis->consumer, sizeof redis->consumer, "%s-%ld-%08" PRIx32, host, (long)getpid(),
             (uint32_t)number);
}

/* A majority of the server and its replicas has a message when so many replicas have it. */
static uint32_t redis_majority(const bide_log *log)
{
    return (log->replicas + 1) / 2;
}

/* The server has enough replicas now. */
static int redis_check_replicas(struct log_redis *redis, char *problem)
{
    struct redis_link *link = &redis->reading;
    char role[16] = "";
    int64_t count = 0, replicas = 0;
    bool is_nil = false;
    bide_redis_command_(link, 1, "ROLE");
    int status = bide_redis_flush_(link);
    if (status == 0)
        status = bide_redis_read_array_(link, &count);
    if (status == 0 && count == 3)
        status = bide_redis_read_text_(link, role, sizeof role, &is_nil);
    if (status == 0 && strcmp(role, "master") == 0)
        status = bide_redis_skip_(link);
    if (status == 0 && strcmp(role, "master") == 0)
        status = bide_redis_read_array_(link, &replicas);
    bide_redis_link_close_(link); /* the rest is not read */
    if (status == 0 && replicas < (int64_t)redis_majority(&redis->log)) {
        snprintf(problem, BIDE_LOG_PROBLEM_TEXT,
                 "redis://%.40s/%.40s: level=majority needs %u connected replicas, it has %d",
                 redis->host, redis->stream, (unsigned)redis_majority(&redis->log), (int)replicas);
        status = -ENOTSUP;
    }
    return status;
}

static int redis_check_level(struct log_redis *redis, char *problem)
{
    if (redis->log.level != BIDE_LOG_MAJORITY)
        return 0;
    if (redis->log.replicas != 0)
        return redis_check_replicas(redis, problem);
    snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "redis://%.40s/%.40s: level=majority needs replicas=N",
             redis->host, redis->stream);
    return -ENOTSUP;
}

static void redis_release(struct log_redis *redis)
{
    if (redis->log.threads != NULL)
        bide_blocking_destroy(redis->log.threads);
    while (redis->groups != NULL) {
        struct redis_group *group = redis->groups;
        redis->groups = group->following;
        bide_redis_group_destroy_(group);
    }
    bide_redis_link_destroy_(&redis->publishing);
    bide_redis_link_destroy_(&redis->reading);
    bide_redis_link_destroy_(&redis->watching);
    if (redis->wake >= 0)
        close(redis->wake);
    if (redis->interrupt >= 0)
        close(redis->interrupt);
    pthread_mutex_destroy(&redis->io);
    bide_log_state_destroy_(&redis->state);
    explicit_bzero(redis->password, sizeof redis->password);
}

static int redis_open_parts(struct log_redis *redis)
{
    const bide_blocking_options options = {.name = "bide-redis", .max_threads = REDIS_THREADS};
    redis->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    redis->interrupt = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (redis->wake < 0 || redis->interrupt < 0)
        return -errno;
    bide_redis_link_init_(&redis->watching, redis, redis->interrupt);
    int status = bide_blocking_create_with(&redis->log.threads, &options);
    return status < 0 ? status : bide_redis_thread_start_(redis);
}

static int log_redis_open(bide_log *log, const char *name, char *problem)
{
    struct log_redis *redis = bide_redis_of_(log);
    if (!redis_parse(redis, name)) {
        snprintf(problem, BIDE_LOG_PROBLEM_TEXT,
                 "redis: not redis://[USER:PASSWORD@]HOST[:PORT]/STREAM");
        return -EINVAL;
    }
    redis->lease = (uint64_t)log->redeliver * 1000000000u;
    redis->timeout = (uint64_t)log->timeout * 1000000000u;
    redis_name_consumer(redis);
    bide_log_state_init_(&redis->state, log->window, false);
    pthread_mutex_init(&redis->io, NULL);
    redis->wake = redis->interrupt = -1;
    bide_redis_link_init_(&redis->publishing, redis, -1);
    bide_redis_link_init_(&redis->reading, redis, -1);
    bide_redis_link_init_(&redis->watching, redis, -1);
    int status = bide_redis_begin_(&redis->reading);
    if (status == 0)
        status = redis_check_level(redis, problem);
    if (status == 0)
        status = redis_open_parts(redis);
    if (status == 0) {
        log->state = &redis->state;
        return 0;
    }
    if (problem[0] == '\0')
        snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "redis://%.40s:%s/%.30s: %.60s", redis->host,
                 redis->port, redis->stream,
                 redis->reading.text[0] != '\0' ? redis->reading.text : strerror(-status));
    redis_release(redis);
    return status;
}

static void log_redis_detach(bide_log *log)
{
    struct log_redis *redis = bide_redis_of_(log);
    bide_redis_thread_end_(redis);
    redis_release(redis);
}

/* ---- Publishing ---- */

static int redis_batch_reserve(struct bide_log_batch_ *batch, size_t more, uint32_t count)
{
    if (more > batch->capacity - batch->size) {
        size_t capacity = (batch->size + more) * 2;
        uint8_t *grown = capacity / 2 < more ? NULL : realloc(batch->bytes, capacity);
        if (grown == NULL)
            return -ENOMEM;
        batch->bytes = grown;
        batch->capacity = capacity;
    }
    bide_log_position *positions =
        realloc(batch->positions, (batch->count + (size_t)count) * sizeof *positions);
    if (positions == NULL)
        return -ENOMEM;
    batch->positions = positions;
    return 0;
}

static uint8_t *redis_put(uint8_t *at, const void *bytes, size_t size)
{
    if (size != 0)
        memcpy(at, bytes, size);
    return at + size;
}

/* A bulk string, of two parts. */
static uint8_t *redis_put_bulk(uint8_t *at, const char *prefix, const void *bytes, size_t size)
{
    size_t before = strlen(prefix);
    at += snprintf((char *)at, 24, "$%zu\r\n", before + size); /* within redis_message_bound */
    at = redis_put(at, prefix, before);
    at = redis_put(at, bytes, size);
    return redis_put(at, "\r\n", 2);
}

static uint8_t *redis_put_message(uint8_t *out, const bide_log_message *message)
{
    uint8_t *at = out + sizeof(struct redis_record);
    uint32_t fields = 2;
    at = redis_put_bulk(at, "data", NULL, 0);
    at = redis_put_bulk(at, "", message->data, message->size);
    if (message->key != NULL && message->key_size != 0) {
        at = redis_put_bulk(at, "key", NULL, 0);
        at = redis_put_bulk(at, "", message->key, message->key_size);
        fields += 2;
    }
    for (size_t i = 0; i < message->header_count; i++, fields += 2) {
        at = redis_put_bulk(at, "h:", message->headers[i].name, message->headers[i].name_size);
        at = redis_put_bulk(at, "", message->headers[i].value, message->headers[i].value_size);
    }
    bide_log_header header;
    for (size_t next = 0; bide_log_next_header(message, &next, &header); fields += 2) {
        at = redis_put_bulk(at, "h:", header.name, header.name_size);
        at = redis_put_bulk(at, "", header.value, header.value_size);
    }
    const struct redis_record record = {(uint32_t)((size_t)(at - out) - sizeof record), fields};
    memcpy(out, &record, sizeof record);
    return at;
}

/* Headers have 5 bytes more than their names and values when they are encoded (encode.c). */
static size_t redis_message_bound(const bide_log_message *message)
{
    enum { BULK = 24 }; /* "$", a size, "\r\n" twice, and a prefix */
    size_t headers = bide_log_headers_size_(message);
    return sizeof(struct redis_record) + 6 * (size_t)BULK + message->size + message->key_size +
           headers + headers / 5 * 2 * BULK;
}

static int log_redis_encode(bide_log *log, struct bide_log_batch_ *batch,
                            const bide_log_message *messages, uint32_t count)
{
    (void)log;
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += redis_message_bound(&messages[i]);
    int status = redis_batch_reserve(batch, size, count);
    if (status < 0)
        return status;
    for (uint32_t i = 0; i < count; i++)
        batch->size =
            (size_t)(redis_put_message(batch->bytes + batch->size, &messages[i]) - batch->bytes);
    batch->count += count;
    return 0;
}

static int redis_send(struct log_redis *redis, struct bide_log_batch_ *batch)
{
    struct redis_link *link = &redis->publishing;
    struct redis_record record;
    int status = 0;
    for (size_t at = 0; status == 0 && at < batch->size; at += sizeof record + record.size) {
        memcpy(&record, batch->bytes + at, sizeof record);
        bide_redis_array_(link, 3 + (size_t)record.fields);
        bide_redis_text_(link, "XADD");
        bide_redis_text_(link, redis->stream);
        bide_redis_text_(link, "*");
        bide_redis_raw_(link, batch->bytes + at + sizeof record, record.size);
        if (link->out_size >= REDIS_CHUNK) {
            batch->is_uncertain = true;
            status = bide_redis_flush_(link);
        }
    }
    return status;
}

/* Commands behind the messages: removal of what is not kept, and the wait for replicas. */
static void redis_send_rest(struct log_redis *redis)
{
    struct redis_link *link = &redis->publishing;
    const bide_log *log = &redis->log;
    if (log->has_keep) {
        bide_redis_array_(link, 5);
        bide_redis_text_(link, "XTRIM");
        bide_redis_text_(link, redis->stream);
        bide_redis_text_(link, "MAXLEN");
        bide_redis_text_(link, "~");
        bide_redis_number_(link, log->keep);
    }
    if (log->has_keep_for) {
        uint64_t now = 0;
        (void)bide_log_time_(&now);
        bide_redis_array_(link, 5);
        bide_redis_text_(link, "XTRIM");
        bide_redis_text_(link, redis->stream);
        bide_redis_text_(link, "MINID");
        bide_redis_text_(link, "~");
        bide_redis_number_(link, (now > log->keep_for ? now - log->keep_for : 0) / 1000000);
    }
    if (log->level == BIDE_LOG_MAJORITY) {
        bide_redis_array_(link, 3);
        bide_redis_text_(link, "WAIT");
        bide_redis_number_(link, redis_majority(log));
        bide_redis_number_(link, redis->timeout / 1000000);
    }
}

/* Reads the IDs. A server that refuses one, because it is out of memory, may have others of the batch. */
static int redis_receive(struct log_redis *redis, struct bide_log_batch_ *batch)
{
    struct redis_link *link = &redis->publishing;
    int failed = 0;
    uint32_t stored = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        bool is_nil;
        int status = bide_redis_read_id_(link, &batch->positions[i], &is_nil);
        if (status < 0 && link->descriptor < 0)
            return status;
        if (status == 0 && !is_nil)
            stored++;
        else if (failed == 0)
            failed = status < 0 ? status : -EREMOTEIO;
    }
    for (int i = 0; i < redis->log.has_keep + redis->log.has_keep_for; i++) {
        int status = bide_redis_skip_(link); /* the next batch tries again */
        if (status < 0)
            return status;
    }
    batch->is_uncertain = stored != 0;
    if (redis->log.level == BIDE_LOG_MAJORITY) {
        int64_t replicas = 0;
        link->deadline += redis->timeout;
        int status = bide_redis_read_number_(link, &replicas);
        if (failed == 0 && status == 0 && replicas < (int64_t)redis_majority(&redis->log))
            status = -ECONNABORTED;
        failed = failed == 0 ? status : failed;
    }
    return failed;
}

static int redis_publish(struct log_redis *redis, struct bide_log_batch_ *batch)
{
    struct redis_link *link = &redis->publishing;
    int status = bide_redis_begin_(link);
    if (status < 0)
        return status;
    status = redis_send(redis, batch);
    if (status < 0)
        return status;
    redis_send_rest(redis);
    batch->is_uncertain = !link->out_of_memory || batch->is_uncertain;
    status = bide_redis_flush_(link);
    return status < 0 ? status : redis_receive(redis, batch);
}

static void log_redis_commit(bide_log *log)
{
    struct log_redis *redis = bide_redis_of_(log);
    struct log_state *state = &redis->state;
    lock_take(&state->lock);
    struct bide_log_batch_ *batch = state->pending;
    state->pending = NULL;
    if (batch != NULL) {
        batch->is_taken = true;
        batch->members++;
    }
    lock_free(&state->lock);
    if (batch == NULL)
        return;
    int status = redis_publish(redis, batch);
    lock_take(&state->lock);
    batch->status = status;
    batch->is_uncertain = batch->is_uncertain && status < 0;
    batch->is_done = true;
    bide_log_batch_settle_(state, batch);
    batch = bide_log_batch_leave_(state, batch);
    lock_free(&state->lock);
    bide_log_batch_free_(batch);
}

const struct log_engine bide_log_redis_engine_ = {
    .scheme = "redis",
    .levels = 1u << BIDE_LOG_SENT | 1u << BIDE_LOG_STORED | 1u << BIDE_LOG_MAJORITY |
              1u << BIDE_LOG_SYNCED,
    .best = BIDE_LOG_STORED,
    .handle_size = sizeof(struct log_redis),
    .is_server = true,
    .open = log_redis_open,
    .detach = log_redis_detach,
    .encode = log_redis_encode,
    .commit = log_redis_commit,
    .subscribe = bide_redis_subscribe_,
    .read = bide_redis_read_messages_,
    .acknowledge = bide_redis_acknowledge_,
    .reject = bide_redis_reject_messages_,
    .unsubscribe = bide_redis_unsubscribe_,
    .lag = bide_redis_lag_,
    .remove_group = bide_redis_remove_group_,
};
