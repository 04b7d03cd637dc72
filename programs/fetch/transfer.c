/*
 * One transfer. In async C.
 *
 * What comes is written into a part beside the file, which gets the file's name when it is whole. Each
 * try goes on where the last has ended, if the server has said which version that was of (ETag or
 * Last-Modified) and still has that version (If-Range).
 */
#include "tasks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_REDIRECTS = 10, MAX_DRAINED = 65536 };

static const uint64_t second = UINT64_C(1000000000);
static const uint64_t max_pause = 30 * UINT64_C(1000000000);
static const uint64_t max_after = 120 * UINT64_C(1000000000);

/* ---- What went wrong ---- */

__attribute__((format(printf, 2, 3))) static void tell(struct transfer *transfer,
                                                       const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(transfer->problem, sizeof transfer->problem, format, arguments);
    va_end(arguments);
}

/* Ends a try, after which there is no other. */
__attribute__((format(printf, 3, 4))) static int give_up(struct working *working,
                                                         struct transfer *transfer,
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(transfer->problem, sizeof transfer->problem, format, arguments);
    va_end(arguments);
    working->is_final = true;
    return -EIO;
}

static int file_failed(struct working *working, struct transfer *transfer, int status)
{
    if (status == -ECANCELED)
        return status;
    return give_up(working, transfer, "%s: %s", working->place.part, strerror(-status));
}

static void tell_status(struct transfer *transfer, int status, const char *reason)
{
    if (reason != NULL && reason[0] != 0)
        tell(transfer, "%s", reason);
    else if (status == -ETIMEDOUT)
        tell(transfer, "nothing came for too long");
    else if (status == -ENOENT)
        tell(transfer, "there is no such host");
    else if (status == -ENODATA || status == -EPIPE || status == -ECONNABORTED)
        tell(transfer, "the connection ended too early");
    else if (status == -EBADMSG)
        tell(transfer, "the response is not HTTP");
    else
        tell(transfer, "%s", strerror(-status));
}

static bool is_hopeless(int status)
{
    return status == -ENOENT || status == -EKEYEXPIRED || status == -EKEYREVOKED ||
           status == -EKEYREJECTED || status == -EPROTONOSUPPORT || status == -EINVAL ||
           status == -ENAMETOOLONG || status == -EMSGSIZE;
}

/* ---- Heads ---- */

static uint64_t until(const struct fetch *fetch)
{
    return bide_now(bide_loop_context(fetch->loop)) + fetch->options.timeout;
}

/* Takes a number at the beginning of a text. */
static bool take_number(bide_slice *text, uint64_t *number)
{
    size_t i = 0;
    *number = 0;
    for (; i < text->size && text->data[i] >= '0' && text->data[i] <= '9'; i++) {
        uint64_t next = *number * 10 + (uint64_t)(text->data[i] - '0');
        if (i == 18)
            return false;
        *number = next;
    }
    text->data += i;
    text->size -= i;
    return i > 0;
}

static bool take(bide_slice *text, const char *word)
{
    size_t size = strlen(word);
    if (text->size < size || strncmp(text->data, word, size) != 0)
        return false;
    text->data += size;
    text->size -= size;
    return true;
}

/* "bytes FIRST-LAST/SIZE" and "bytes * /SIZE"; `size` is unknown if it is "*". */
static bool read_range(bide_slice text, bool is_satisfied, uint64_t *first, uint64_t *last,
                       uint64_t *size)
{
    *size = BIDE_HTTP_UNKNOWN;
    if (text.data == NULL || !take(&text, "bytes "))
        return false;
    if (!is_satisfied)
        return take(&text, "*/") && take_number(&text, size) && text.size == 0;
    if (!take_number(&text, first) || !take(&text, "-") || !take_number(&text, last) ||
        !take(&text, "/") || *last < *first)
        return false;
    if (take(&text, "*"))
        return text.size == 0;
    return take_number(&text, size) && text.size == 0 && *last < *size;
}

/* What says which version a response is of: a strong ETag, or else when it was last modified. */
static void read_validator(const bide_http_client *client, char *validator, size_t room)
{
    bide_slice text = bide_http_client_field(client, "ETag");
    bool is_strong = text.data != NULL && text.size >= 2 && text.data[0] == '"';
    if (!is_strong)
        text = bide_http_client_field(client, "Last-Modified");
    validator[0] = 0;
    if (text.data != NULL && text.size < room)
        snprintf(validator, room, "%.*s", (int)text.size, text.data);
}

static uint64_t read_retry_after(const bide_http_client *client)
{
    bide_slice text = bide_http_client_field(client, "Retry-After");
    uint64_t seconds = 0;
    int64_t date, now = (int64_t)time(NULL);
    if (text.data == NULL)
        return 0;
    if (bide_http_parse_date(text, &date) == 0)
        seconds = date > now ? (uint64_t)(date - now) : 0;
    else if (!take_number(&text, &seconds))
        return 0;
    return seconds < max_after / second ? seconds * second : max_after;
}

/* Begins a request of what is not there yet. */
static int begin_request(struct working *working, const struct transfer *transfer,
                         const bide_http_url *url)
{
    bide_http_client *client = &working->connection.client;
    char range[40];
    int status = bide_http_url_target(url, working->target, sizeof working->target);
    if (status == 0)
        status = bide_http_url_authority(url, working->authority, sizeof working->authority);
    if (status == 0)
        status = bide_http_client_start_request(client, "GET", working->target, working->authority);
    if (status == 0)
        status = bide_http_client_add(client, "User-Agent", "bide-fetch");
    if (status == 0)
        status = bide_http_client_add(client, "Accept-Encoding", "identity");
    if (status == 0 && transfer->had > 0) {
        snprintf(range, sizeof range, "bytes=%llu-", (unsigned long long)transfer->had);
        status = bide_http_client_add(client, "Range", range);
        if (status == 0)
            status = bide_http_client_add(client, "If-Range", transfer->validator);
    }
    return status;
}

/* ---- Requests ---- */

/* Sends one, and waits for the head of its response. */
async int request(struct fetch *fetch, struct working *working, struct transfer *transfer,
                  const bide_http_url *url)
{
    struct connection *connection = &working->connection;
    for (;;) {
        bool is_kept = connection_is_to(connection, url) &&
                       bide_http_client_is_reusable(&connection->client);
        int status = 0;
        if (!is_kept)
            status = await connection_open(fetch, connection, url);
        if (status == 0)
            status = begin_request(working, transfer, url);
        if (status == 0)
            status = await bide_with_deadline(until(fetch),
                                              bide_http_client_recv(&connection->client));
        if (status == 0)
            return 0;
        if (status != -ECANCELED) {
            tell_status(transfer, status, connection->problem);
            working->is_final = is_hopeless(status);
        }
        connection_close(connection);
        /* the server may end one that is idle at any time */
        if (!is_kept || (status != -EPIPE && status != -ECONNRESET && status != -ECONNABORTED))
            return status;
        working->is_final = false;
    }
}

/* Reads a body that nobody wants, so that the connection can be kept; one that is long ends it. */
async int drain(struct fetch *fetch, struct working *working)
{
    bide_http_client *client = &working->connection.client;
    int status = 0;
    if (client->response.length <= MAX_DRAINED) {
        do
            status = await bide_with_deadline(
                until(fetch),
                bide_http_client_read(client, working->buffer, sizeof working->buffer));
        while (status == 0 && client->count > 0);
        if (status == 0)
            return 0;
    }
    connection_close(&working->connection);
    return status == -ECANCELED ? status : 0;
}

static bool is_redirect(int code)
{
    return code == 301 || code == 302 || code == 303 || code == 307 || code == 308;
}

/* Takes the place that a redirect names into working->next. */
static int follow(struct working *working, struct transfer *transfer, const bide_http_url *url)
{
    bide_slice location = bide_http_client_field(&working->connection.client, "Location");
    bide_http_url next;
    if (location.data == NULL ||
        bide_http_url_resolve(url, location, working->next, sizeof working->next) < 0 ||
        bide_http_url_parse(&next, working->next, strlen(working->next)) < 0)
        return give_up(working, transfer, "redirected to what is no URL of http or https");
    if (url->is_secure && !next.is_secure)
        return give_up(working, transfer, "redirected from https to http");
    return 0;
}

/* Requests until a response is no redirect. */
async int request_all(struct fetch *fetch, struct working *working, struct transfer *transfer)
{
    bide_http_url url;
    strcpy(working->url, transfer->url);
    for (int redirects = 0;; redirects++) {
        if (bide_http_url_parse(&url, working->url, strlen(working->url)) < 0)
            return give_up(working, transfer, "this is no URL of http or https");
        int status = await request(fetch, working, transfer, &url);
        if (status < 0 || !is_redirect(working->connection.client.response.status))
            return status;
        if (redirects == MAX_REDIRECTS)
            return give_up(working, transfer, "redirected too often");
        status = follow(working, transfer, &url);
        if (status == 0)
            status = await drain(fetch, working);
        if (status < 0)
            return status;
        strcpy(working->url, working->next);
    }
}

/* ---- Bodies ---- */

/* The part is opened once in a transfer, and no other process has it meanwhile. */
async int open_part(struct working *working, struct transfer *transfer)
{
    if (bide_descriptor_is_open(&working->file))
        return 0;
    int status = await bide_open(&working->file, working->place.part,
                                 O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
    if (status < 0)
        return file_failed(working, transfer, status);
    if (flock(working->file.fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    int error = errno;
    bide_close(&working->file); /* what is in it is not ours to remove */
    return give_up(working, transfer, "%s: %s", working->place.part,
                   error == EWOULDBLOCK ? "another process has it" : strerror(error));
}

static bool has_sum(const struct fetch *fetch, const struct transfer *transfer)
{
    return transfer->is_summed || fetch->options.prints_sums;
}

/* Begins anew: what is there is of no use. */
async int empty_part(struct fetch *fetch, struct working *working, struct transfer *transfer)
{
    transfer->had = transfer->resumed = working->summed = 0;
    int status = 0;
    struct stat about;
    if (has_sum(fetch, transfer) && digest_begin(&working->digest) < 0)
        return give_up(working, transfer, "out of memory");
    if (fstat(working->file.fd, &about) != 0 || about.st_size != 0)
        status = await bide_truncate(&working->file, 0);
    if (status == 0)
        status = await remains_save(working, transfer);
    return status < 0 ? file_failed(working, transfer, status) : 0;
}

/* Adds to the sum what an earlier run has left. */
async int sum_part(struct fetch *fetch, struct working *working, struct transfer *transfer)
{
    bool is_summed = working->digest.context != NULL && working->summed == transfer->had;
    if (!has_sum(fetch, transfer) || is_summed)
        return 0;
    if (digest_begin(&working->digest) < 0)
        return give_up(working, transfer, "out of memory");
    working->summed = 0;
    while (working->summed < transfer->had) {
        uint64_t left = transfer->had - working->summed;
        size_t size = left < sizeof working->buffer ? (size_t)left : sizeof working->buffer;
        long count = await bide_read_at(&working->file, working->buffer, size,
                                        (int64_t)working->summed);
        if (count <= 0)
            return file_failed(working, transfer, count == 0 ? -ENODATA : (int)count);
        digest_add(&working->digest, working->buffer, (size_t)count);
        working->summed += (uint64_t)count;
    }
    return 0;
}

/* Takes the body to its end. */
async int receive(struct fetch *fetch, struct working *working, struct transfer *transfer)
{
    bide_http_client *client = &working->connection.client;
    transfer->state = RECEIVING;
    for (;;) {
        int status = await bide_with_deadline(
            until(fetch), bide_http_client_read(client, working->buffer, sizeof working->buffer));
        if (status < 0) {
            tell_status(transfer, status, NULL);
            return status;
        }
        size_t size = client->count;
        if (size == 0)
            return 0;
        long written = await bide_write_at(&working->file, working->buffer, size,
                                           (int64_t)transfer->had);
        if (written < 0)
            return file_failed(working, transfer, (int)written);
        transfer->had += size;
        if (has_sum(fetch, transfer)) {
            digest_add(&working->digest, working->buffer, size);
            working->summed += size;
        }
    }
}

/* Forgets what is there: the next try begins anew. */
static int begin_anew(struct transfer *transfer, const char *why)
{
    transfer->had = transfer->resumed = 0;
    transfer->validator[0] = 0;
    tell(transfer, "%s", why);
    return -EAGAIN;
}

/* Is a response with a part that which goes on from what is there? */
static int check_part(struct transfer *transfer, const bide_http_client *client)
{
    char validator[sizeof transfer->validator];
    uint64_t first, last, size;
    bide_slice tag = bide_http_client_field(client, "ETag");
    if (!read_range(bide_http_client_field(client, "Content-Range"), true, &first, &last, &size) ||
        first != transfer->had ||
        (client->response.length != BIDE_HTTP_UNKNOWN && client->response.length != last - first + 1))
        return begin_anew(transfer, "the server has sent another part than was asked for");
    read_validator(client, validator, sizeof validator);
    if (transfer->validator[0] == '"' && tag.data != NULL && strcmp(validator, transfer->validator) != 0)
        return begin_anew(transfer, "the server has sent a part of another version");
    transfer->size = size;
    return 0;
}

/* The whole of it, from its beginning. */
async int take_whole(struct fetch *fetch, struct working *working, struct transfer *transfer)
{
    const bide_http_client *client = &working->connection.client;
    read_validator(client, transfer->validator, sizeof transfer->validator);
    transfer->size = client->response.length;
    int status = await empty_part(fetch, working, transfer);
    if (status == 0)
        status = await receive(fetch, working, transfer);
    return status;
}

/* The rest of it. */
async int take_rest(struct fetch *fetch, struct working *working, struct transfer *transfer)
{
    int status = check_part(transfer, &working->connection.client);
    if (status == 0)
        status = await sum_part(fetch, working, transfer);
    if (status < 0)
        return status;
    transfer->resumed = transfer->had;
    status = await receive(fetch, working, transfer);
    if (status == 0 && transfer->size != BIDE_HTTP_UNKNOWN && transfer->had < transfer->size) {
        tell(transfer, "the server has sent less than the rest");
        status = -ENODATA;
    } else if (status == 0 && transfer->size != BIDE_HTTP_UNKNOWN && transfer->had > transfer->size) {
        status = begin_anew(transfer, "the server has sent more than the rest");
    }
    return status;
}

/* There is no rest. */
async int take_nothing(struct fetch *fetch, struct working *working, struct transfer *transfer)
{
    uint64_t first, last, size;
    const bide_http_client *client = &working->connection.client;
    if (transfer->had == 0)
        return give_up(working, transfer, "416 %s", bide_http_reason(416));
    if (!read_range(bide_http_client_field(client, "Content-Range"), false, &first, &last, &size) ||
        size != transfer->had) {
        connection_close(&working->connection);
        return begin_anew(transfer, "what was left of an earlier try is of another version");
    }
    transfer->size = size;
    int status = await sum_part(fetch, working, transfer);
    if (status == 0)
        status = await drain(fetch, working);
    return status;
}

static bool is_passing(int code)
{
    return code == 408 || code == 425 || code == 429 || code >= 500;
}

/* ---- Tries ---- */

/* One. */
async int try_once(struct fetch *fetch, struct working *working, struct transfer *transfer)
{
    const bide_http_client *client = &working->connection.client;
    transfer->state = CONNECTING;
    int status = await request_all(fetch, working, transfer);
    if (status < 0)
        return status;
    int code = client->response.status;
    if (code == 200 || code == 206 || code == 416) {
        status = await open_part(working, transfer);
        if (status < 0)
            return status;
    }
    if (code == 200)
        return await take_whole(fetch, working, transfer);
    if (code == 206 && transfer->had > 0)
        return await take_rest(fetch, working, transfer);
    if (code == 416)
        return await take_nothing(fetch, working, transfer);
    tell(transfer, "%d %s", code, bide_http_reason(code));
    working->is_final = !is_passing(code);
    working->after = read_retry_after(client);
    status = await drain(fetch, working);
    return status < 0 ? status : -EIO;
}

static uint64_t pause_of(const struct fetch *fetch, const struct working *working, unsigned tries)
{
    uint64_t pause = fetch->options.pause;
    for (unsigned i = 1; i < tries && pause < max_pause; i++)
        pause *= 2;
    if (pause > max_pause && fetch->options.pause <= max_pause)
        pause = max_pause;
    pause -= (uint64_t)((double)pause / 2 * ((double)random() / RAND_MAX)); /* not all at once */
    return pause > working->after ? pause : working->after;
}

/* Gives the part the file's name, if it is what it is to be. */
async int finish(struct fetch *fetch, struct working *working, struct transfer *transfer)
{
    char sum[MAX_SUM + 1];
    if (has_sum(fetch, transfer)) {
        digest_end(&working->digest, sum);
        if (transfer->is_summed && strcmp(sum, transfer->sum) != 0) {
            await remains_remove(&working->place);
            return give_up(working, transfer, "its SHA-256 is %s, not %s", sum, transfer->sum);
        }
        strcpy(transfer->sum, sum);
    }
    int status = await remains_become_whole(fetch, working);
    if (status == 0 || status == -ECANCELED)
        return status;
    transfer->validator[0] = 0; /* what could not be synced is not gone on with */
    return give_up(working, transfer, "%s: %s", working->place.target, strerror(-status));
}

/* Tries until it is there, or there is no hope. */
async int try_often(struct fetch *fetch, struct working *working, struct transfer *transfer)
{
    for (;;) {
        transfer->tries++;
        working->is_final = false;
        working->after = 0;
        int status = await try_once(fetch, working, transfer);
        if (status == 0)
            return await finish(fetch, working, transfer);
        if (!bide_http_client_is_reusable(&working->connection.client))
            connection_close(&working->connection);
        if (status == -ECANCELED || working->is_final || transfer->tries >= fetch->options.tries)
            return status;
        if (transfer->validator[0] == 0) /* of which version that was nobody knows */
            transfer->had = transfer->resumed = 0;
        transfer->state = PAUSED;
        status = await bide_sleep_for(pause_of(fetch, working, transfer->tries));
        if (status < 0)
            return status;
    }
}

/* Only what a later run can go on with stays. */
async int leave_remains(struct working *working, const struct transfer *transfer)
{
    bool is_ours = bide_descriptor_is_open(&working->file);
    if (is_ours && (transfer->had == 0 || transfer->validator[0] == 0 || !working->is_saved))
        await remains_remove(&working->place);
    return 0;
}

async int transfer_run(struct fetch *fetch, struct working *working, struct transfer *transfer)
{
    bide_descriptor_init_closed(&working->file);
    working->summed = 0;
    working->is_saved = false;
    defer bide_close(&working->file);
    defer digest_free(&working->digest);
    transfer->begun = bide_platform.now();
    int status = place_of(&working->place, fetch, transfer);
    if (status < 0) {
        tell_status(transfer, status, NULL);
    } else {
        if (fetch->options.resumes)
            status = await remains_load(working, transfer);
        if (status == 0)
            status = await try_often(fetch, working, transfer);
        if (status < 0)
            await leave_remains(working, transfer);
    }
    transfer->ended = bide_platform.now();
    if (status == -ECANCELED)
        return status;
    transfer->state = status == 0 ? DONE : FAILED;
    return 0;
}
