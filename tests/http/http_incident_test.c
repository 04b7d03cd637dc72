/*
 * Incidents: which requests a server reports, with what, and the log of them, whose size is bounded.
 */
#include "http_peer.h"

#include "bide/http_log.h"

static peer one;

/* ---- What a server reports ---- */

static unsigned incidents;
static bide_http_incident last; /* its texts are copied: */
static char last_peer[64], last_line[400], last_reason[100];

static void keep(char *copy, size_t room, const char *text, size_t size)
{
    assert_true(size < room);
    memcpy(copy, text, size);
    copy[size] = '\0';
}

static void note_incident(bide_http_server *server, const bide_http_incident *incident)
{
    assert_ptr_equal(server, &one.server);
    incidents++;
    last = *incident;
    keep(last_peer, sizeof last_peer, incident->peer, strlen(incident->peer));
    keep(last_line, sizeof last_line, incident->line.data, incident->line.size);
    const char *reason = incident->reason != NULL ? incident->reason : "";
    keep(last_reason, sizeof last_reason, reason, strlen(reason));
}

#define HOST " HTTP/1.1\r\nHost: a\r\n\r\n"
#define POST "POST /count HTTP/1.1\r\nHost: a\r\n"

static void refused_and_failed_requests_are_incidents(void **state)
{
    static const struct {
        const char *request, *line;
        int status, error;
        const char *reason;
    } rows[] = {
        {"GET / HTTP/9.1\r\nHost: a\r\n\r\n", "GET / HTTP/9.1", 505, 0, "the version is unknown"},
        {"GET /\r\n\r\n", "GET /", 400, 0, "the request is invalid"},
        {"\x16\x03\x01 a handshake of TLS\n", "\x16\x03\x01 a handshake of TLS", 400, 0, "the request is invalid"},
        {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "BREW / HTTP/1.1", 501, 0, "the method or coding is unknown"},
        {POST "Content-Length: 9999999\r\n\r\n", "POST /count HTTP/1.1", 413, 0, "the body is too long"},
        {POST "Expect: more\r\n\r\n", "POST /count HTTP/1.1", 417, 0, "the expectation is unknown"},
        {POST "Transfer-Encoding: chunked\r\n\r\nx\r\n", "POST /count HTTP/1.1", 400, -EBADMSG, "the request is invalid"},
        {"GET /fails-by?5" HOST, "GET /fails-by?5 HTTP/1.1", 500, -EIO, ""},
        {"GET /fails-by?32" HOST, "GET /fails-by?32 HTTP/1.1", 500, -EPIPE, ""},
        {"GET /fails-by?24" HOST, "GET /fails-by?24 HTTP/1.1", 503, -EMFILE, ""},
        {"GET /fails-behind HTTP/1.0\r\n\r\n", "GET /fails-behind HTTP/1.0", 502, -EREMOTEIO, ""},
        {"GET /fails-late" HOST, "GET /fails-late HTTP/1.1", 200, -EIO, ""}, /* its response is cut short */
        {"GET /responds-and-fails" HOST, "GET /responds-and-fails HTTP/1.1", 426, -EINVAL, ""},
    };
    (void)state;
    peer_init(&one, &(bide_http_options){.incident = note_incident});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        incidents = 0;
        (void)peer_say(&one, rows[i].request);
        assert_int_equal(incidents, 1);
        assert_int_equal(last.status, rows[i].status);
        assert_int_equal(last.error, rows[i].error);
        assert_string_equal(last_line, rows[i].line);
        assert_string_equal(last_reason, rows[i].reason);
        assert_string_equal(last_peer, "-"); /* (memory has no address) */
    }
    peer_end(&one);
}

static void usual_ends_are_no_incidents(void **state)
{
    static const char *const requests[] = {
        "GET /hello" HOST, "GET /nowhere" HOST, "GET /fails-by?13" HOST, "HEAD /chunks" HOST,
        POST "Content-Length: 9\r\n\r\nabc", /* the client leaves */
        "GET /hel", "",
    };
    (void)state;
    peer_init(&one, &(bide_http_options){.incident = note_incident});
    incidents = 0;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        (void)peer_say(&one, requests[i]);
    assert_int_equal(incidents, 0);
    one.server.options.allows_half_close = false;
    (void)peer_say(&one, "GET /slow" HOST); /* the client leaves while the handler waits */
    assert_int_equal(incidents, 0);
    one.ends = false;
    (void)peer_say(&one, ""); /* nothing comes */
    one.stop_after = 5;
    (void)peer_say(&one, "GET /slow" HOST); /* the server is stopped */
    assert_int_equal(incidents, 0);
    peer_end(&one);
}

/* ---- Clients that leave in the middle of a body ---- */

static struct {
    int status, error;
    unsigned count;
} end;

static void note_end(bide_http_exchange *exchange, int error)
{
    end.status = exchange->status;
    end.error = error;
    end.count++;
}

static int read_end; /* that the stream's second read ends with */
static unsigned reads;

static bide_awaiter *read_once(bide_stream stream, bide_stream_operation *operation, void *data, size_t size)
{
    return reads++ == 0 ? bide_memory_stream(stream.object).table->read(stream, operation, data, size)
                        : bide_stream_ended(operation, read_end);
}

static size_t count_once(const bide_stream_operation *operation)
{
    return reads > 1 ? 0 : bide_memory_stream(&one.server_end).table->count(operation);
}

static void a_client_that_leaves_in_a_body_is_no_incident(void **state)
{
    static const char request[] = POST "Content-Length: 9\r\n\r\nabc";
    static const int ends[] = {0, -ECONNRESET, -EPIPE};
    bide_stream_table table = *bide_memory_stream(&one.server_end).table;
    bide_stream_operation write;
    (void)state;
    table.read = read_once;
    table.count = count_once;
    peer_init(&one, &(bide_http_options){.incident = note_incident, .ended = note_end});
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        bide_await_later(peer_begin(&one, request, sizeof request - 1)); /* (prepares the loop and the pipes) */
        bide_stream stream = {&table, &one.server_end};
        incidents = end.count = reads = 0;
        read_end = ends[i];
        assert_int_equal(bide_sim_loop_wait(&one.loop, bide_stream_write(&write, bide_memory_stream(&one.client_end), request,
                                                                         sizeof request - 1)),
                         0);
        assert_int_equal(bide_sim_loop_wait(&one.loop, bide_http_serve(&one.connection, &one.server, stream, one.memory)),
                         read_end == 0 ? -ENODATA : read_end);
        assert_int_equal(end.count, 1);
        assert_int_equal(end.status, 499);
        assert_int_equal(end.error, read_end == 0 ? -ENODATA : read_end);
        assert_int_equal(incidents, 0);
    }
    peer_end(&one);
}

static void what_is_too_slow_is_an_incident(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.incident = note_incident, .request_timeout = 3 * SECOND});
    one.ends = false;
    incidents = 0;
    assert_int_equal(peer_say(&one, "GET /x HTTP/1.1\r\nHos"), -ETIMEDOUT);
    assert_int_equal(incidents, 1);
    assert_int_equal(last.status, 408);
    assert_string_equal(last_line, "GET /x HTTP/1.1");
    assert_string_equal(last_reason, "the request is too slow");
    assert_int_equal(peer_say(&one, "GET /slow" HOST), -ETIMEDOUT); /* the handler */
    assert_int_equal(incidents, 2);
    assert_int_equal(last.status, 503);
    assert_int_equal(last.error, -ETIMEDOUT);
    assert_string_equal(last_line, "GET /slow HTTP/1.1");
    peer_end(&one);
}

static void a_long_line_is_reported_in_part(void **state)
{
    static char request[2000];
    (void)state;
    peer_init(&one, &(bide_http_options){.incident = note_incident});
    memset(request, 'x', sizeof request);
    memcpy(request, "GET /fails?", 11);
    strcpy(request + 1000, HOST);
    incidents = 0;
    (void)peer_say(&one, request);
    assert_int_equal(incidents, 1);
    assert_int_equal(strlen(last_line), 256);
    assert_memory_equal(last_line, request, 256);
    peer_end(&one);
}

/* ---- The log ---- */

static bide_http_log upgrades;
static char upgrades_memory[8192];

/* After an upgrade the buffer, with the request's head, is the other protocol's. */
static void the_log_of_an_upgrade_has_the_texts_of_its_request(void **state)
{
    static char request[2000], wanted[2000], long_name[401];
    static const char referer[] = "http://a/?from";
    (void)state;
    for (size_t max_fields = 4; max_fields <= 64; max_fields += 60) {
        peer_init(&one, &(bide_http_options){.log = &upgrades, .max_fields = max_fields, .incident = note_incident});
        for (int size = 0; size <= 400; size += 200) {
            memset(long_name, 'n', sizeof long_name);
            long_name[size] = '\0';
            int head = snprintf(request, sizeof request, "GET /upgrade?%s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n%s%s%s%s\r\n", long_name,
                                max_fields > 4 ? "Referer: " : "", max_fields > 4 ? referer : "",
                                max_fields > 4 ? "\r\nUser-Agent: me\r\n" : "", "");
            memset(request + head, 'z', sizeof request - (size_t)head - 1); /* what the other protocol reads */
            bide_http_log_init(&upgrades, NULL, upgrades_memory, sizeof upgrades_memory, BIDE_HTTP_LOG_COMBINED);
            one.piece = 700; /* several reads, at the beginning of the buffer */
            incidents = 0;
            assert_int_equal(peer_say(&one, request), 0);
            assert_int_equal(upgrades.lines, 1);
            int most = max_fields > 4 ? 256 : 4 * (int)sizeof(bide_http_field) - 3;
            snprintf(wanted, sizeof wanted, "/upgrade?%s", long_name);
            if ((int)strlen(wanted) > most)
                wanted[most] = '\0';
            char line[4000];
            snprintf(line, sizeof line, "- - - [06/Nov/1994:08:49:37 +0000] \"GET %s HTTP/1.1\" 101 0 \"%s\" \"%s\"\n", wanted,
                     max_fields > 4 ? referer : "-", max_fields > 4 ? "me" : "-");
            upgrades_memory[upgrades.filled] = '\0';
            assert_string_equal(upgrades_memory, line);
            assert_int_equal(incidents, 0);
        }
        peer_end(&one);
    }
}

static int64_t seconds;

static int64_t told_clock(void)
{
    return seconds;
}

static bide_http_server server = {.options = {.clock = told_clock}};
static bide_http_log errors;
static bide_descriptor file;
static char memory[1 << 20];

static void begin_log(void)
{
    seconds = 784111777;
    bide_descriptor_init_closed(&file);
    bide_http_log_init(&errors, &file, memory, sizeof memory, BIDE_HTTP_LOG_COMMON);
}

static void log_some(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        bide_http_log_incident(&errors, &server, &(bide_http_incident){.peer = "192.0.2.1", .status = 400, .line = {"x", 1}, .reason = "why"});
}

#define TIME "[06/Nov/1994:08:49:37 +0000]"

static void a_line_says_when_who_and_why(void **state)
{
    static const char wanted[] =
        TIME " 192.0.2.1 400 \"GET / HTTP/9\" the version is unknown\n"
        TIME " 192.0.2.1 500 \"GET /a HTTP/1.1\" error 5: Input/output error\n"
        TIME " - - \"-\" TLS handshake: no cipher: error 71: Protocol error\n"
        TIME " 192.0.2.1 400 \"\\x0a\\x22\\x5cx5c\" why\n";
    (void)state;
    begin_log();
    bide_http_log_incident(&errors, &server, &(bide_http_incident){
        .peer = "192.0.2.1", .status = 400, .line = {"GET / HTTP/9", 12}, .reason = "the version is unknown"});
    bide_http_log_incident(&errors, &server, &(bide_http_incident){
        .peer = "192.0.2.1", .status = 500, .line = {"GET /a HTTP/1.1", 15}, .error = -EIO});
    bide_http_log_incident(&errors, &server, &(bide_http_incident){
        .peer = "-", .error = -EPROTO, .reason = "TLS handshake: no cipher"});
    bide_http_log_incident(&errors, &server, &(bide_http_incident){
        .peer = "192.0.2.1", .status = 400, .line = {"\n\"\\x5c", 6}, .reason = "why"});
    assert_int_equal(errors.lines, 4);
    char text[1000];
    keep(text, sizeof text, memory, errors.filled);
    assert_string_equal(text, wanted);
}

static void a_client_cannot_fill_a_disk(void **state)
{
    static const char further[] = "[06/Nov/1994:08:49:38 +0000] - - \"-\" further incidents before this one: 999900\n"
                                  "[06/Nov/1994:08:49:38 +0000] 192.0.2.1 400 \"x\" why\n";
    (void)state;
    begin_log();
    log_some(1000000);
    assert_int_equal(errors.lines, 100);
    assert_int_equal(errors.suppressed, 999900);
    /* one a second, and the number of those that are left out */
    size_t before = errors.filled;
    seconds++;
    log_some(2);
    assert_int_equal(errors.lines, 102);
    assert_int_equal(errors.filled - before, strlen(further));
    assert_memory_equal(memory + before, further, strlen(further));
    /* and so on */
    errors.filled = 0;
    for (int i = 0; i < 1000; i++) {
        seconds++;
        log_some(50);
        assert_true(errors.filled < 2048);
        errors.filled = 0;
    }
    assert_int_equal(errors.lines, 102 + 2 * 1000);
    /* a pause earns at most a hundred, and a clock that goes back nothing */
    seconds += 1000000;
    log_some(1000);
    assert_int_equal(errors.lines, 102 + 2 * 1000 + 101);
    seconds -= 5000;
    log_some(10);
    assert_int_equal(errors.lines, 102 + 2 * 1000 + 101);
    errors.filled = 0;
    seconds = INT64_MAX; /* (of a clock that is wrong) */
    log_some(1000);
    assert_int_equal(errors.lines, 102 + 2 * 1000 + 101 + 101);
}

/* A line that finds no room is counted like one too many, and costs no other its place. */
static void what_finds_no_room_is_counted(void **state)
{
    static const char further[] = TIME " - - \"-\" further incidents before this one: 4\n"
                                  TIME " 192.0.2.1 400 \"x\" why\n";
    static const char one_line[] = TIME " 192.0.2.1 400 \"x\" why\n";
    (void)state;
    begin_log();
    errors.size = 2 * strlen(one_line) + 5;
    log_some(6);
    assert_int_equal(errors.lines, 2);
    assert_int_equal(errors.suppressed, 4);
    assert_int_equal(errors.dropped, 0);
    errors.filled = 0; /* they were written */
    errors.size = sizeof memory / 2;
    log_some(1);
    assert_int_equal(errors.filled, strlen(further));
    assert_memory_equal(memory, further, strlen(further));
    log_some(200);
    assert_int_equal(errors.lines, 101); /* 100 incidents */
    assert_int_equal(errors.suppressed, 107);
}

static void the_longest_line_is_bounded(void **state)
{
    static char line[8000], reason[8000];
    (void)state;
    begin_log();
    memset(line, '\1', sizeof line);
    bide_http_log_incident(&errors, &server, &(bide_http_incident){
        .peer = "2001:db8:1111:2222:3333:4444:5555:6666", .status = 400, .line = {line, sizeof line}, .reason = "the request is invalid", .error = -EPROTO});
    assert_int_equal(errors.lines, 1);
    assert_true(errors.filled < 1024);
    /* a reason may have texts of the peer too */
    errors.filled = 0;
    memset(reason, '\2', sizeof reason - 1);
    bide_http_log_incident(&errors, &server, &(bide_http_incident){
        .peer = "2001:db8:1111:2222:3333:4444:5555:6666", .status = 400, .line = {line, sizeof line}, .reason = reason, .error = -EPROTO});
    assert_int_equal(errors.lines, 2);
    assert_in_range(errors.filled, 256, 1023);
    memory[errors.filled] = '\0';
    assert_non_null(strstr(memory, "\\x02: error 71: Protocol error\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_and_failed_requests_are_incidents),
        cmocka_unit_test(usual_ends_are_no_incidents),
        cmocka_unit_test(a_client_that_leaves_in_a_body_is_no_incident),
        cmocka_unit_test(what_is_too_slow_is_an_incident),
        cmocka_unit_test(a_long_line_is_reported_in_part),
        cmocka_unit_test(the_log_of_an_upgrade_has_the_texts_of_its_request),
        cmocka_unit_test(a_line_says_when_who_and_why),
        cmocka_unit_test(a_client_cannot_fill_a_disk),
        cmocka_unit_test(what_finds_no_room_is_counted),
        cmocka_unit_test(the_longest_line_is_bounded),
    };
    return cmocka_run_group_tests_name("http_incident", tests, NULL, NULL);
}
