/*
 * Reports of a server: of the ends of exchanges, and of refused requests, to its log and its options' callbacks.
 *
 * Threads: the loop's.
 */
#include "server.h"

#include "bide/http_log.h"

#include <errno.h>
#include <string.h>

/* The longest first line of a request that is reported; the rest is left out. */
enum { HTTP_MAX_REPORTED = 256 };

/* The reason for which a status refuses a request. NULL: it does not. */
static const char *http_refusal_reason(int status)
{
    switch (status) {
    case 400:
        return "the request is invalid";
    case 408:
        return "the request is too slow";
    case 413:
        return "the body is too long";
    case 414:
        return "the target is too long";
    case 417:
        return "the expectation is unknown";
    case 431:
        return "the head is too long";
    case 501:
        return "the method or coding is unknown";
    case 505:
        return "the version is unknown";
    default:
        return NULL;
    }
}

/* The client has left, the server is being stopped, or the target does not exist or must not be read. */
static bool http_is_usual(const bide_http_connection *connection, int error)
{
    int status = connection->exchange->status;
    if (error == 0 || status == 403 || status == 404 || status == HTTP_CLIENT_LEFT)
        return true;
    if (error == -ENODATA && connection->input.error == -ENODATA)
        return true;
    if (error == -ECANCELED && (status < 500 || status == 503))
        return true;
    return (error == -ECONNRESET || error == -EPIPE) && status < 500;
}

/* The first line of the exchange's request: its parts, which need not be adjacent. A line that is too long is cut. */
static bide_slice http_print_line(char line[HTTP_MAX_REPORTED],
                                  const bide_http_connection *connection)
{
    const bide_http_request *request = &connection->exchange->request;
    const char *version = request->major == 2   ? " HTTP/2.0"
                          : request->minor == 1 ? " HTTP/1.1"
                                                : " HTTP/1.0";
    const bide_slice parts[] = {
        request->method_name, {" ", 1}, request->target, {version, strlen(version)}};
    size_t size = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t room = HTTP_MAX_REPORTED - size;
        size_t count = parts[i].size < room ? parts[i].size : room;
        if (count != 0)
            memcpy(line + size, parts[i].data, count);
        size += count;
    }
    return (bide_slice){line, size};
}

static void http_report_failure(bide_http_connection *connection, int error)
{
    char line[HTTP_MAX_REPORTED];
    bide_http_incident incident = {.status = connection->exchange->status, .error = error};
    if (connection->server->options.incident == NULL || http_is_usual(connection, error))
        return;
    incident.peer = bide_http_peer(connection->exchange);
    incident.line = http_print_line(line, connection);
    if (incident.status >= 400 && incident.status < 500)
        incident.reason = http_refusal_reason(incident.status);
    bide_http_report_incident(connection->server, &incident);
}

void bide_http_report_end_(bide_http_connection *connection, int error)
{
    const bide_http_options *options = &connection->server->options;
    if (error == 0)
        error = connection->exchange->error;
    if (options->log != NULL)
        bide_http_log_exchange(options->log, connection->exchange);
    http_report_failure(connection, error);
    if (options->ended != NULL)
        options->ended(connection->exchange, error);
}

void bide_http_report_refused_(bide_http_connection *connection, bide_slice line, int status)
{
    const bide_http_options *options = &connection->server->options;
    if (options->log != NULL)
        bide_http_log_refused(options->log, connection->server,
                              bide_http_peer(connection->exchange), line, status);
    if (options->incident != NULL) {
        bide_http_incident incident = {.peer = bide_http_peer(connection->exchange),
                                       .line = line,
                                       .status = status,
                                       .reason = http_refusal_reason(status)};
        bide_http_report_incident(connection->server, &incident);
    }
    if (options->refused != NULL)
        options->refused(connection, line, status);
}

/* The first line of a request that was refused, or the received part of it. */
static bide_slice http_refused_line(const bide_http_connection *connection)
{
    const bide_http_request *request = &connection->exchange->request;
    bide_slice line = {bide_reader_peek(&connection->reader),
                       bide_reader_buffered(&connection->reader)};
    if (connection->rejection ==
        413) { /* its head was accepted, and is before the reader's bytes */
        const char *end = request->target.data + request->target.size + sizeof " HTTP/1.1" - 1;
        line = (bide_slice){request->method_name.data, (size_t)(end - request->method_name.data)};
    }
    if (line.size > HTTP_MAX_REPORTED)
        line.size = HTTP_MAX_REPORTED;
    const char *end = line.size != 0 ? memchr(line.data, '\n', line.size) : NULL;
    if (end != NULL)
        line.size = (size_t)(end - line.data);
    if (line.size != 0 && line.data[line.size - 1] == '\r')
        line.size--;
    return line;
}

void bide_http_report_rejection_(bide_http_connection *connection)
{
    bide_http_report_refused_(connection, http_refused_line(connection), connection->rejection);
}
