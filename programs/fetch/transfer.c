/*
 * One transfer, in async C. All of it runs on the worker's thread.
 *
 * Data is written to a part beside the file, and the part is renamed when it is complete. Each try
 * continues where the previous one stopped, if the server has identified that version of the
 * resource (ETag or Last-Modified) and still has it (If-Range).
 */
#include "tasks.h"

#include <bide/errors.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_DRAINED = 65536 };

static const uint64_t second = UINT64_C(1000000000);
static const uint64_t max_delay = 30 * UINT64_C(1000000000);
static const uint64_t max_retry_after = 120 * UINT64_C(1000000000);

/* ---- Errors ---- */

__attribute__((format(printf, 2, 3))) static void set_problem(struct transfer *transfer,
                                                              const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(transfer->problem, sizeof transfer->problem, format, arguments);
    va_end(arguments);
}

/* Records an error that makes further tries useless. */
__attribute__((format(printf, 3, 4))) static int
fail_permanently(struct worker *worker, struct transfer *transfer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(transfer->problem, sizeof transfer->problem, format, arguments);
    va_end(arguments);
    worker->is_final = true;
    return -EIO;
}

static int file_failed(struct worker *worker, struct transfer *transfer, int status)
{
    if (status == -ECANCELED)
        return status;
    return fail_permanently(worker, transfer, "%s: %s", worker->paths.part, strerror(-status));
}

static void set_problem_of_status(struct transfer *transfer, int status)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {
        {-ETIMEDOUT, "timed out"},
        {-ENOENT, "unknown host"},
        {-ENODATA, "the connection was closed early"},
        {-EPIPE, "the connection was closed early"},
        {-ECONNABORTED, "the connection was closed early"},
        {-EBADMSG, "the response is not HTTP, or redirects to something other than http or https"},
        {-ELOOP, "too many redirects"},
    };
    const char *text = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].status == status)
            text = texts[i].text;
    }
    set_problem(transfer, "%s", text != NULL ? text : strerror(-status));
}

static bool is_permanent(int status)
{
    return status == -ENOENT || status == -EKEYEXPIRED || status == -EKEYREVOKED ||
           status == -EKEYREJECTED || status == -EPROTONOSUPPORT || status == -EINVAL ||
           status == -ELOOP || status == -EPERM || status == -EMSGSIZE || status == -EBADMSG;
}

/* Records why there is no response. */
static void request_failed(struct worker *worker, struct transfer *transfer, int status)
{
    const bide_http_fetch *http = &worker->http;
    if (status == -ECANCELED)
        return;
    worker->is_final = is_permanent(status);
    if (http->reason[0] != 0)
        set_problem(transfer, "%s", http->reason);
    else if (status == -EPERM && strncasecmp(http->url, "https:", 6) == 0) /* (else the system's) */
        set_problem(transfer, "redirected from https to http");
    else
        set_problem_of_status(transfer, status);
}

/* ---- Heads ---- */

static uint64_t read_deadline(const struct fetch *fetch)
{
    return bide_now(bide_loop_context(fetch->loop)) + fetch->options.timeout;
}

/* Parses a number at the beginning of a text and removes it. */
static bool parse_number(bide_slice *text, uint64_t *number)
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

static bool skip_word(bide_slice *text, const char *word)
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
    if (text.data == NULL || !skip_word(&text, "bytes "))
        return false;
    if (!is_satisfied)
        return skip_word(&text, "*/") && parse_number(&text, size) && text.size == 0;
    if (!parse_number(&text, first) || !skip_word(&text, "-") || !parse_number(&text, last) ||
        !skip_word(&text, "/") || *last < *first)
        return false;
    if (skip_word(&text, "*"))
        return text.size == 0;
    return parse_number(&text, size) && text.size == 0 && *last < *size;
}

/* The validator of a response's version: a strong ETag, otherwise Last-Modified. */
static void read_validator(const bide_http_fetch *http, char *validator, size_t size)
{
    bide_slice text = bide_http_fetch_field(http, "ETag");
    bool is_strong = text.data != NULL && text.size >= 2 && text.data[0] == '"';
    if (!is_strong)
        text = bide_http_fetch_field(http, "Last-Modified");
    validator[0] = 0;
    if (text.data != NULL && text.size < size)
        snprintf(validator, size, "%.*s", (int)text.size, text.data);
}

static uint64_t read_retry_after(const bide_http_fetch *http)
{
    bide_slice text = bide_http_fetch_field(http, "Retry-After");
    uint64_t seconds = 0;
    int64_t date, now = (int64_t)time(NULL);
    if (text.data == NULL)
        return 0;
    if (bide_http_parse_date(text, &date) == 0)
        seconds = date > now ? (uint64_t)(date - now) : 0;
    else if (!parse_number(&text, &seconds))
        return 0;
    return seconds < max_retry_after / second ? seconds * second : max_retry_after;
}

/* ---- Requests ---- */

/* The request for the missing part of the file. */
static int prepare_request(struct fetch *fetch, struct worker *worker,
                           const struct transfer *transfer)
{
    bide_http_fetch *http = &worker->http;
    char range[40];
    int status = bide_http_fetch_init(http, fetch->agent, "GET", transfer->url);
    if (status == 0 && !headers_have(&fetch->options, "User-Agent"))
        status = bide_http_fetch_add(http, "User-Agent", "bide-fetch");
    for (size_t i = 0; status == 0 && i < fetch->options.header_count; i++)
        status = bide_http_fetch_add(http, fetch->options.headers[i].name,
                                     fetch->options.headers[i].value);
    if (status == 0)
        status = bide_http_fetch_add(http, "Accept-Encoding", "identity");
    if (status == 0 && transfer->present > 0) {
        snprintf(range, sizeof range, "bytes=%llu-", (unsigned long long)transfer->present);
        status = bide_http_fetch_add(http, "Range", range);
        if (status == 0)
            status = bide_http_fetch_add(http, "If-Range", transfer->validator);
    }
    return status;
}

/* Sends a request, follows redirects, and receives the head of the response. */
async int send_request(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    int status = prepare_request(fetch, worker, transfer);
    if (status == 0)
        status = await bide_http_fetch_send(&worker->http);
    if (status < 0)
        request_failed(worker, transfer, status);
    return status;
}

/* Reads and discards a body, so that the connection can be kept; a long one ends it instead. */
async int drain_body(struct fetch *fetch, struct worker *worker)
{
    bide_http_fetch *http = &worker->http;
    int status = 0;
    if (http->response.length > MAX_DRAINED)
        return 0;
    do
        status = await bide_with_deadline(
            read_deadline(fetch),
            bide_http_fetch_read(http, worker->buffer, sizeof worker->buffer));
    while (status == 0 && http->count > 0);
    return status == -ECANCELED ? status : 0;
}

/* ---- Bodies ---- */

/* Opens the part or creates it. Errors: those of files, -EAGAIN (another process does the same). */
async int open_or_create_part(struct worker *worker, bool *is_new)
{
    *is_new = false;
    int status = await bide_open(&worker->file, worker->paths.part, O_RDWR | O_NOFOLLOW, 0);
    if (status != -ENOENT)
        return status;
    status = await bide_open(&worker->file, worker->paths.part,
                             O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    *is_new = status == 0;
    return status == -EEXIST ? -EAGAIN : status;
}

/*
 * Locks the part against other processes. Its last holder may have renamed or removed it before that: the lock is of
 * use only if the path still leads to the file. Returns 0 or a negative errno: -EAGAIN if it does not, -EPERM if another
 * user could change the file.
 */
static int lock_part(struct worker *worker, bool is_new)
{
    struct stat locked, named;
    int fd = bide_descriptor_fd(&worker->file);
    if (fstat(fd, &locked) != 0)
        return -errno;
    if (!is_new && !partial_is_own(&locked))
        return -EPERM;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    if (fstat(fd, &locked) != 0)
        return -errno;
    if (lstat(worker->paths.part, &named) != 0)
        return errno == ENOENT ? -EAGAIN : -errno;
    if (!partial_is_same(&locked, &named))
        return -EAGAIN;
    worker->was_replaced = !partial_is_unchanged(&locked, &worker->loaded);
    worker->is_foreign = worker->was_replaced && !is_new;
    return 0;
}

/* Opens and locks the part. If that fails, it is closed, and not removed. Returns -EAGAIN if it has to be tried again. */
async int open_part_once(struct worker *worker, struct transfer *transfer)
{
    bool is_new; /* (on some file systems a new file is another user's) */
    int status = await open_or_create_part(worker, &is_new);
    if (status == -EAGAIN)
        return status;
    if (status < 0)
        return file_failed(worker, transfer, status);
    status = lock_part(worker, is_new);
    if (status < 0)
        bide_close(&worker->file);
    if (status == -EPERM)
        return fail_permanently(worker, transfer, "%s: not a file of its own", worker->paths.part);
    if (status == -EBUSY)
        return fail_permanently(worker, transfer, "%s: locked by another process",
                                worker->paths.part);
    return status < 0 && status != -EAGAIN ? file_failed(worker, transfer, status) : status;
}

/* Opens the part, once in a transfer. */
async int open_part(struct worker *worker, struct transfer *transfer)
{
    enum { ATTEMPTS = 10 };
    if (bide_descriptor_is_open(&worker->file))
        return 0;
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        int status = await open_part_once(worker, transfer);
        if (status != -EAGAIN)
            return status;
    }
    return fail_permanently(worker, transfer, "%s: replaced by other processes all the time",
                            worker->paths.part);
}

static bool has_sum(const struct fetch *fetch, const struct transfer *transfer)
{
    return transfer->is_summed || fetch->options.prints_sums;
}

/* Empties the part for a download from the start. */
async int empty_part(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    transfer->present = transfer->resumed = worker->summed = 0;
    worker->was_replaced = false;
    int status = 0;
    struct stat about;
    if (has_sum(fetch, transfer) && digest_start(&worker->digest) < 0)
        return fail_permanently(worker, transfer, "out of memory");
    if (fstat(bide_descriptor_fd(&worker->file), &about) != 0 || about.st_size != 0)
        status = await bide_truncate(&worker->file, 0);
    if (status == 0) {
        worker->is_foreign = false; /* (from now on it is this one's) */
        status = await partial_save(worker, transfer);
    }
    return status < 0 ? file_failed(worker, transfer, status) : 0;
}

/* Adds the part of an earlier run to the digest. */
async int sum_part(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    bool is_summed = worker->digest.context != NULL && worker->summed == transfer->present;
    if (!has_sum(fetch, transfer) || is_summed)
        return 0;
    if (digest_start(&worker->digest) < 0)
        return fail_permanently(worker, transfer, "out of memory");
    worker->summed = 0;
    while (worker->summed < transfer->present) {
        uint64_t left = transfer->present - worker->summed;
        size_t size = left < sizeof worker->buffer ? (size_t)left : sizeof worker->buffer;
        long count =
            await bide_read_at(&worker->file, worker->buffer, size, (int64_t)worker->summed);
        if (count <= 0)
            return file_failed(worker, transfer, count == 0 ? -ENODATA : (int)count);
        digest_add(&worker->digest, worker->buffer, (size_t)count);
        worker->summed += (uint64_t)count;
    }
    return 0;
}

/* Receives the rest of the body. */
async int receive_body(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    bide_http_fetch *http = &worker->http;
    transfer->state = RECEIVING;
    for (;;) {
        int status = await bide_with_deadline(
            read_deadline(fetch),
            bide_http_fetch_read(http, worker->buffer, sizeof worker->buffer));
        if (status < 0) {
            set_problem_of_status(transfer, status);
            return status;
        }
        size_t size = http->count;
        if (size == 0)
            return 0;
        long written =
            await bide_write_at(&worker->file, worker->buffer, size, (int64_t)transfer->present);
        if (written < 0)
            return file_failed(worker, transfer, (int)written);
        transfer->present += size;
        if (has_sum(fetch, transfer)) {
            digest_add(&worker->digest, worker->buffer, size);
            worker->summed += size;
            bide_assert(worker->summed == transfer->present); /* the digest covers the part */
        }
    }
}

/* Discards the part: the next try starts from the beginning. */
static int start_over(struct transfer *transfer, const char *why)
{
    transfer->present = transfer->resumed = 0;
    transfer->validator[0] = 0;
    set_problem(transfer, "%s", why);
    return -EAGAIN;
}

/* Checks that a partial response continues the part. */
static int check_part(struct transfer *transfer, const bide_http_fetch *http)
{
    char validator[sizeof transfer->validator];
    uint64_t first, last, size;
    bide_slice tag = bide_http_fetch_field(http, "ETag");
    if (!read_range(bide_http_fetch_field(http, "Content-Range"), true, &first, &last, &size) ||
        first != transfer->present ||
        (http->response.length != BIDE_HTTP_UNKNOWN && http->response.length != last - first + 1))
        return start_over(transfer, "the server sent a range that was not requested");
    read_validator(http, validator, sizeof validator);
    if (transfer->validator[0] == '"' && tag.data != NULL &&
        strcmp(validator, transfer->validator) != 0)
        return start_over(transfer, "the server sent a range of another version");
    transfer->size = size;
    return 0;
}

/* Receives the whole file. */
async int receive_whole(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    const bide_http_fetch *http = &worker->http;
    read_validator(http, transfer->validator, sizeof transfer->validator);
    transfer->size = http->response.length;
    try await empty_part(fetch, worker, transfer);
    return await receive_body(fetch, worker, transfer);
}

/* Receives the missing rest. */
async int receive_rest(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    int status = check_part(transfer, &worker->http);
    if (status < 0)
        return status;
    try await sum_part(fetch, worker, transfer);
    transfer->resumed = transfer->present;
    try await receive_body(fetch, worker, transfer);
    if (transfer->size == BIDE_HTTP_UNKNOWN || transfer->present == transfer->size)
        return 0;
    if (transfer->present > transfer->size)
        return start_over(transfer, "the server sent more than the missing rest");
    set_problem(transfer, "the server sent less than the missing rest");
    return -ENODATA;
}

/* Handles 416, which means that nothing is missing, or that the part is of another version. */
async int check_complete(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    uint64_t first, last, size;
    const bide_http_fetch *http = &worker->http;
    if (transfer->present == 0)
        return fail_permanently(worker, transfer, "416 %s", bide_http_reason(416));
    if (!read_range(bide_http_fetch_field(http, "Content-Range"), false, &first, &last, &size) ||
        size != transfer->present)
        return start_over(transfer, "the partial file is of another version");
    transfer->size = size;
    try await sum_part(fetch, worker, transfer);
    return await drain_body(fetch, worker);
}

static bool is_transient(int code)
{
    return code == 408 || code == 425 || code == 429 || code >= 500;
}

/* ---- Tries ---- */

/* Makes one try. */
async int try_once(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    const bide_http_fetch *http = &worker->http;
    transfer->state = CONNECTING;
    defer bide_http_fetch_close(&worker->http);
    try await send_request(fetch, worker, transfer);
    int code = http->response.status;
    if (code == 200 || code == 206 || code == 416)
        try await open_part(worker, transfer);
    if (code == 200)
        return await receive_whole(fetch, worker, transfer);
    if ((code == 206 || code == 416) && transfer->present > 0 && worker->was_replaced)
        return start_over(transfer, "another process has changed the partial file");
    if (code == 206 && transfer->present > 0)
        return await receive_rest(fetch, worker, transfer);
    if (code == 416)
        return await check_complete(fetch, worker, transfer);
    set_problem(transfer, "%d %s", code, bide_http_reason(code));
    worker->is_final = !is_transient(code);
    worker->retry_after = read_retry_after(http);
    try await drain_body(fetch, worker);
    return -EIO;
}

static uint64_t retry_delay(const struct fetch *fetch, const struct worker *worker, unsigned tries)
{
    uint64_t pause = fetch->options.retry_delay;
    for (unsigned i = 1; i < tries && pause < max_delay; i++)
        pause *= 2;
    if (pause > max_delay && fetch->options.retry_delay <= max_delay)
        pause = max_delay;
    pause -= (uint64_t)((double)pause / 2 * ((double)random() / RAND_MAX)); /* spreads retries */
    return pause > worker->retry_after ? pause : worker->retry_after;
}

/* Checks the digest and renames the part. */
async int finish_file(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    char sum[MAX_SUM + 1];
    if (has_sum(fetch, transfer)) {
        digest_finish(&worker->digest, sum);
        if (transfer->is_summed && strcmp(sum, transfer->sum) != 0) {
            await partial_remove(&worker->paths);
            return fail_permanently(worker, transfer, "SHA-256 is %s, expected %s", sum,
                                    transfer->sum);
        }
        strcpy(transfer->sum, sum);
    }
    int status = await partial_commit(fetch, worker);
    if (status == 0 || status == -ECANCELED)
        return status;
    transfer->validator[0] = 0; /* a file that could not be synced is not resumed */
    return fail_permanently(worker, transfer, "%s: %s", worker->paths.target, strerror(-status));
}

/* Tries until the transfer is complete, or retrying is useless. */
async int retry_until_done(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    for (;;) {
        transfer->tries++;
        worker->is_final = false;
        worker->retry_after = 0;
        int status = await try_once(fetch, worker, transfer);
        if (status == 0)
            return await finish_file(fetch, worker, transfer);
        if (status == -ECANCELED || worker->is_final || transfer->tries >= fetch->options.tries)
            return status;
        if (transfer->validator[0] == 0) /* the version is unknown */
            transfer->present = transfer->resumed = 0;
        transfer->state = PAUSED;
        try await bide_sleep_for(retry_delay(fetch, worker, transfer->tries));
    }
}

/* Removes a part that a later run could not resume. */
async int remove_useless_part(struct worker *worker, const struct transfer *transfer)
{
    bool is_ours = bide_descriptor_is_open(&worker->file) && !worker->is_foreign;
    if (is_ours && (transfer->present == 0 || transfer->validator[0] == 0 || !worker->is_saved))
        await partial_remove(&worker->paths);
    return 0;
}

/* Sets transfer->is_skipped if the file is there, and has the expected sum. */
async int find_finished(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    char sum[MAX_SUM + 1];
    struct stat about;
    int status = await bide_open(&worker->file, worker->paths.target, O_RDONLY | O_NONBLOCK, 0);
    if (status < 0)
        return status == -ECANCELED ? status : 0;
    if (fstat(bide_descriptor_fd(&worker->file), &about) == 0 && S_ISREG(about.st_mode)) {
        transfer->present = (uint64_t)about.st_size;
        status = await sum_part(fetch, worker, transfer);
        transfer->is_skipped = status == 0;
        if (status == 0 && has_sum(fetch, transfer)) {
            digest_finish(&worker->digest, sum);
            transfer->is_skipped = !transfer->is_summed || strcmp(sum, transfer->sum) == 0;
            if (transfer->is_skipped)
                strcpy(transfer->sum, sum);
        }
    }
    bide_close(&worker->file);
    digest_free(&worker->digest);
    worker->summed = 0;
    if (!transfer->is_skipped)
        transfer->present = 0;
    return status == -ECANCELED ? status : 0;
}

async int transfer_run(struct fetch *fetch, struct worker *worker, struct transfer *transfer)
{
    bide_descriptor_init_closed(&worker->file);
    worker->summed = 0;
    worker->is_saved = worker->was_replaced = worker->is_foreign = false;
    memset(&worker->loaded, 0, sizeof worker->loaded);
    defer bide_close(&worker->file);
    defer digest_free(&worker->digest);
    transfer->started_at = bide_platform.now();
    int status = paths_init(&worker->paths, fetch, transfer);
    if (status < 0) {
        set_problem_of_status(transfer, status);
    } else {
        if (fetch->options.skips)
            status = await find_finished(fetch, worker, transfer);
        if (status == 0 && fetch->options.resumes && !transfer->is_skipped)
            status = await partial_load(worker, transfer);
        if (status == 0 && !transfer->is_skipped)
            status = await retry_until_done(fetch, worker, transfer);
        if (status < 0)
            await remove_useless_part(worker, transfer);
    }
    transfer->finished_at = bide_platform.now();
    if (status == -ECANCELED)
        return status;
    transfer->state = status == 0 ? DONE : FAILED;
    return 0;
}
