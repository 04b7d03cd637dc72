/*
 * Counts of servers, and the two texts that show them. A text is made at once, in memory, by the handler of
 * one request: so its numbers belong together.
 */
#define _GNU_SOURCE
#include "status.h"
#include "http.h"
#include "statistics.h"

#include <bide/sleep.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Counting ---- */

/* Upper bounds of the buckets of latencies, in microseconds. A last bucket has no bound. */
static const uint32_t latency_bounds[LATENCIES - 1] = {500,     1000,    2500,    5000,    10000,
                                                       25000,   50000,   100000,  250000,  500000,
                                                       1000000, 2500000, 5000000, 10000000};

static const char *const error_names[ERRORS] = {"refused",     "timeout",  "reset",
                                                "unreachable", "protocol", "other"};

static const char *const class_names[RESPONSES] = {"1xx", "2xx", "3xx", "4xx", "5xx"};

static enum error_kind kind_of_error(int error)
{
    switch (-error) {
    case ECONNREFUSED:
        return ERROR_REFUSED;
    case ETIMEDOUT:
        return ERROR_TIMEOUT;
    case ECONNRESET:
    case EPIPE:
    case ENODATA:
        return ERROR_RESET;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
        return ERROR_UNREACHABLE;
    case EPROTO:
    case EBADMSG:
    case EMSGSIZE:
        return ERROR_PROTOCOL;
    default:
        return ERROR_OTHER;
    }
}

void status_count_error(struct upstream *server, int error)
{
    server->counts.errors[kind_of_error(error)]++;
}

void status_count_response(struct upstream *server, int status, uint64_t time)
{
    struct counts *counts = &server->counts;
    uint64_t microseconds = (time + 999) / 1000;
    unsigned bucket = 0;
    while (bucket < LATENCIES - 1 && microseconds > latency_bounds[bucket])
        bucket++;
    if (status >= 100 && status < 600)
        counts->responses[status / 100 - 1]++;
    counts->latencies[bucket]++;
    counts->latency_sum += microseconds;
}

void status_count_own_response(struct upstream *server, int status)
{
    if (status >= 100 && status < 600)
        server->counts.own_responses[status / 100 - 1]++;
}

static uint64_t sum_of(const uint64_t *counts, unsigned count)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += counts[i];
    return sum;
}

/* ---- Metrics ---- */

/* A label's value, quoted. */
static void print_label(FILE *file, const char *text)
{
    putc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', file);
        putc(*text, file);
    }
    putc('"', file);
}

static void print_metric_head(FILE *file, const char *name, const char *type, const char *help)
{
    fprintf(file, "# HELP bide_proxy_%s %s\n# TYPE bide_proxy_%s %s\n", name, help, name, type);
}

static void print_total(FILE *file, const char *name, const char *help, uint64_t value)
{
    print_metric_head(file, name, "counter", help);
    fprintf(file, "bide_proxy_%s %" PRIu64 "\n", name, value);
}

/* The name and the labels of a server; another label may follow, or a space. */
static void print_server_labels(FILE *file, const char *name, const struct upstream *server)
{
    fprintf(file, "bide_proxy_server_%s{backend=", name);
    print_label(file, server->backend->name);
    fputs(",server=", file);
    print_label(file, server->name);
}

typedef void print_server(FILE *file, const char *name, const struct upstream *server,
                          uint64_t now);

static void print_each_server(FILE *file, const struct program *program, const char *name,
                              print_server *print)
{
    uint64_t now = bide_now(bide_loop_context(program->loop));
    for (const struct backend *backend = program->configuration->backends; backend != NULL;
         backend = backend->next) {
        for (const struct upstream *server = backend->servers; server != NULL;
             server = server->next)
            print(file, name, server, now);
    }
}

static void print_one(FILE *file, const char *name, const struct upstream *server, uint64_t value)
{
    print_server_labels(file, name, server);
    fprintf(file, "} %" PRIu64 "\n", value);
}

static void print_up(FILE *file, const char *name, const struct upstream *server, uint64_t now)
{
    print_one(file, name, server, strcmp(statistics_state(server, now), "up") == 0);
}

static void print_live(FILE *file, const char *name, const struct upstream *server, uint64_t now)
{
    (void)now;
    print_one(file, name, server, server->live);
}

static void print_connections(FILE *file, const char *name, const struct upstream *server,
                              uint64_t now)
{
    (void)now;
    print_one(file, name, server, server->total);
}

static void print_bytes_in(FILE *file, const char *name, const struct upstream *server,
                           uint64_t now)
{
    (void)now;
    print_one(file, name, server, server->bytes_in);
}

static void print_bytes_out(FILE *file, const char *name, const struct upstream *server,
                            uint64_t now)
{
    (void)now;
    print_one(file, name, server, server->bytes_out);
}

static void print_classes(FILE *file, const char *name, const struct upstream *server,
                          const uint64_t counts[RESPONSES])
{
    for (unsigned i = 0; i < RESPONSES; i++) {
        print_server_labels(file, name, server);
        fprintf(file, ",code=\"%s\"} %" PRIu64 "\n", class_names[i], counts[i]);
    }
}

static void print_responses(FILE *file, const char *name, const struct upstream *server,
                            uint64_t now)
{
    (void)now;
    print_classes(file, name, server, server->counts.responses);
}

static void print_own_responses(FILE *file, const char *name, const struct upstream *server,
                                uint64_t now)
{
    (void)now;
    print_classes(file, name, server, server->counts.own_responses);
}

static void print_errors(FILE *file, const char *name, const struct upstream *server, uint64_t now)
{
    (void)now;
    for (unsigned i = 0; i < ERRORS; i++) {
        print_server_labels(file, name, server);
        fprintf(file, ",kind=\"%s\"} %" PRIu64 "\n", error_names[i], server->counts.errors[i]);
    }
}

static void print_latencies(FILE *file, const char *name, const struct upstream *server,
                            uint64_t now)
{
    const struct counts *counts = &server->counts;
    uint64_t sum = 0;
    (void)name;
    (void)now;
    for (unsigned i = 0; i < LATENCIES; i++) {
        sum += counts->latencies[i];
        print_server_labels(file, "response_seconds_bucket", server);
        if (i < LATENCIES - 1)
            fprintf(file, ",le=\"%g\"} %" PRIu64 "\n", latency_bounds[i] / 1e6, sum);
        else
            fprintf(file, ",le=\"+Inf\"} %" PRIu64 "\n", sum);
    }
    print_server_labels(file, "response_seconds_sum", server);
    fprintf(file, "} %" PRIu64 ".%06u\n", counts->latency_sum / 1000000,
            (unsigned)(counts->latency_sum % 1000000));
    print_one(file, "response_seconds_count", server, sum);
}

static void print_listeners(FILE *file, const struct program *program)
{
    print_metric_head(file, "listener_connections", "gauge", "Open connections of clients.");
    for (const struct listener *listener = program->listeners; listener != NULL;
         listener = listener->next) {
        if (listener->is_shutting_down)
            continue;
        fputs("bide_proxy_listener_connections{listener=", file);
        print_label(file, listener->listen->name);
        fprintf(file, "} %zu\n", bide_server_own_stats(&listener->server)->live);
    }
}

static void print_metrics(FILE *file, const struct program *program)
{
    static const struct {
        const char *name, *type, *help;
        print_server *print;
    } of_servers[] = {
        {"up", "gauge", "1 if the server is used: known, not down and not suspended.", print_up},
        {"connections", "gauge", "Open connections to the server.", print_live},
        {"connections_total", "counter",
         "Uses of the server: connections, or requests in mode http.", print_connections},
        {"bytes_in_total", "counter", "Bytes from clients to the server.", print_bytes_in},
        {"bytes_out_total", "counter", "Bytes from the server to clients.", print_bytes_out},
        {"responses_total", "counter", "Responses of the server.", print_responses},
        {"own_responses_total", "counter",
         "Responses of the proxy's own, in place of the server's: 502, 504 and the like.",
         print_own_responses},
        {"errors_total", "counter", "Failures of the server.", print_errors},
        {"response_seconds", "histogram", "Time from a request to the end of its response.",
         print_latencies},
    };
    const struct statistics *statistics = &program->statistics;
    print_total(file, "connections_total", "Accepted connections.", statistics->connections);
    print_total(file, "rejected_total", "Connections that were rejected.", statistics->rejected);
    print_total(file, "failed_total", "Connections for which no server was found.",
                statistics->failed);
    print_total(file, "limited_total",
                "Connections, or HTTP requests, beyond the rate of their client.",
                statistics->limited);
    print_total(file, "requests_total", "HTTP requests.", statistics->requests);
    print_total(file, "retries_total", "Retries with another server.", statistics->retries);
    print_total(file, "bytes_in_total", "Bytes from clients.", statistics->bytes_in);
    print_total(file, "bytes_out_total", "Bytes to clients.", statistics->bytes_out);
    print_total(file, "log_lines_dropped_total", "Lines that the log had no room for.",
                program->log.dropped);
    print_listeners(file, program);
    for (size_t i = 0; i < sizeof of_servers / sizeof of_servers[0]; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "server_%s", of_servers[i].name);
        print_metric_head(file, name, of_servers[i].type, of_servers[i].help);
        print_each_server(file, program, of_servers[i].name, of_servers[i].print);
    }
}

/* ---- The page ---- */

static void print_escaped(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        default:
            putc(*text, file);
        }
    }
}

/* An upper bound of the time that this part of the responses needed. */
static void print_quantile(FILE *file, const struct counts *counts, double part)
{
    uint64_t all = sum_of(counts->latencies, LATENCIES), sum = 0;
    for (unsigned i = 0; i < LATENCIES && all != 0; i++) {
        sum += counts->latencies[i];
        if ((double)sum < part * (double)all)
            continue;
        if (i < LATENCIES - 1)
            fprintf(file, "<td>&le; %g ms", latency_bounds[i] / 1e3);
        else
            fprintf(file, "<td>&gt; %g ms", latency_bounds[i - 1] / 1e3);
        return;
    }
    fputs("<td>-", file);
}

static void print_row(FILE *file, const char *name, const struct upstream *server, uint64_t now)
{
    const struct counts *counts = &server->counts;
    const char *state = statistics_state(server, now);
    (void)name;
    fputs("<tr><td>", file);
    print_escaped(file, server->backend->name);
    fputs("<td>", file);
    print_escaped(file, server->name);
    fprintf(file, "<td class=%s>%s<td>%u<td>%" PRIu64, state, state, server->live, server->total);
    for (unsigned i = 1; i < RESPONSES; i++)
        fprintf(file, "<td>%" PRIu64, counts->responses[i]);
    fprintf(file, "<td>%" PRIu64 "<td>%" PRIu64 "<td>%" PRIu64 "<td>%" PRIu64,
            sum_of(counts->own_responses, RESPONSES), sum_of(counts->errors, ERRORS),
            server->bytes_in, server->bytes_out);
    print_quantile(file, counts, 0.5);
    print_quantile(file, counts, 0.99);
    fputs("</tr>\n", file);
}

static void print_page(FILE *file, const struct program *program)
{
    const struct statistics *statistics = &program->statistics;
    fputs("<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>bide-proxy</title>\n"
          "<meta name=viewport content='width=device-width'><meta http-equiv=refresh content=5>\n"
          "<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}"
          "th,td{padding:.2em .6em;border-bottom:1px solid #ccc;text-align:right}"
          "th:first-child,td:first-child,.text{text-align:left}.up{color:#060}.down,.suspended{"
          "color:#b00;font-weight:bold}"
          ".unknown{color:#850}</style></head>\n<body><h1>bide-proxy</h1>\n",
          file);
    fprintf(file,
            "<p>%" PRIu64 " connections, %" PRIu64 " rejected, %" PRIu64
            " without a server; %" PRIu64 " requests, %" PRIu64 " retries; %" PRIu64
            " bytes in, %" PRIu64 " out. <a href=/metrics>Metrics</a></p>\n",
            statistics->connections, statistics->rejected, statistics->failed, statistics->requests,
            statistics->retries, statistics->bytes_in, statistics->bytes_out);
    fputs("<table><tr><th>listener<th>connections</tr>\n", file);
    for (const struct listener *listener = program->listeners; listener != NULL;
         listener = listener->next) {
        fputs("<tr><td>", file);
        print_escaped(file, listener->listen->name);
        fprintf(file, "<td>%zu%s</tr>\n", bide_server_own_stats(&listener->server)->live,
                listener->is_shutting_down ? " (closing)" : "");
    }
    fputs("</"
          "table>\n<table><tr><th>backend<th>server<th>state<th>open<th>total<th>2xx<th>3xx<th>4xx<"
          "th>5xx<th>by the proxy<th>errors"
          "<th>bytes in<th>bytes out<th>median<th>99%</tr>\n",
          file);
    print_each_server(file, program, "", print_row);
    fputs("</table></body></html>\n", file);
}

/* ---- The handler ---- */

/* Makes the text for the request's path: 0, or -ENOMEM. Another path or method gets an error's text. */
static int make_text(struct status_page *self)
{
    bide_http_exchange *exchange = &self->exchange;
    bool is_read =
        exchange->request.method == BIDE_HTTP_GET || exchange->request.method == BIDE_HTTP_HEAD;
    bool is_page = bide_http_is(exchange->request.path, "/");
    FILE *file = open_memstream(&self->text, &self->size);
    if (file == NULL)
        return -ENOMEM;
    if (session_is_outdated(http_session(exchange->connection)))
        bide_http_close_after(exchange);
    if (!is_read)
        exchange->status = 405;
    else if (is_page)
        print_page(file, http_session(exchange->connection)->program);
    else if (bide_http_is(exchange->request.path, "/metrics"))
        print_metrics(file, http_session(exchange->connection)->program);
    else
        exchange->status = 404;
    if (!is_read)
        (void)bide_http_add(exchange, "Allow", "GET, HEAD");
    (void)bide_http_add(exchange, "Content-Type",
                        is_read && is_page ? "text/html; charset=utf-8"
                                           : "text/plain; version=0.0.4; charset=utf-8");
    (void)bide_http_add(exchange, "Cache-Control", "no-store");
    (void)bide_http_add(exchange, "Content-Security-Policy",
                        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
    (void)bide_http_add(exchange, "X-Content-Type-Options", "nosniff");
    return fclose(file) == 0 ? 0 : -ENOMEM;
}

bide_declared_coroutine(status_body)
{
    bide_begin(status_body, struct status_page * self);
    self->text = NULL;
    self->size = 0;
    int status = make_text(self);
    if (status < 0)
        bide_return(status);
    bide_try(bide_http_respond(&self->exchange, self->text, self->size));
    bide_finally();
    free(self->text);
    bide_end();
}
