/* A line of the log for each request. Runs on the program's loop. */
#include "access_log.h"
#include "status.h"

#include <errno.h>
#include <string.h>

static size_t copy_for_log(char *to, size_t max_size, bide_slice text)
{
    size_t size = text.size < max_size ? text.size : max_size;
    for (size_t i = 0; i < size; i++)
        to[i] = text.data[i] == '"' ? '\'' : text.data[i];
    return size;
}

void access_log_note(struct forward *self)
{
    const bide_http_request *request = &self->exchange.request;
    self->target_size = copy_for_log(self->target, sizeof self->target, request->target);
    self->method[copy_for_log(self->method, sizeof self->method - 1, request->method_name)] = '\0';
}

static void count_bytes(struct forward *self)
{
    struct statistics *statistics = &self->session->program->statistics;
    statistics->bytes_in += self->in;
    statistics->bytes_out += self->out;
    if (self->last != NULL) {
        self->last->bytes_in += self->in;
        self->last->bytes_out += self->out;
    }
}

void access_log_ended(bide_http_exchange *exchange, int error)
{
    struct forward *self = bide_container_of(exchange, struct forward, exchange);
    if (!bide_http_handler_began(exchange)) /* its client has reset its stream */
        return;
    struct session *session = self->session;
    struct log *log = &session->program->log;
    char client[BIDE_ADDRESS_TEXT];
    const char *reason = error == -ECONNRESET && self->status == -ECANCELED ? "the client has left"
                         : self->status < 0                   ? session_reason(self->status)
                         : error < 0 && self->backend != NULL ? session_reason(error)
                                                              : "";
    count_bytes(self);
    /* (an error while nothing of the server's response was sent has another status) */
    if (self->last != NULL && error != -ECONNRESET && self->response_status != 0 &&
        exchange->status == self->response_status)
        status_count_response(self->last, exchange->status, forward_now(self) - self->started_at);
    else if (self->last != NULL && error != -ECONNRESET)
        status_count_own_response(self->last, exchange->status);
    if (!log_is_on(log))
        return;
    log_line(log, "http %s %s %s/%s \"%s %.*s\" %d in=%llu out=%llu total=%.1fms retries=%u%s%s",
             session_client(session, client), session->listen->name,
             self->backend != NULL ? self->backend->name : "-",
             self->last != NULL ? self->last->name : "-", self->method, (int)self->target_size,
             self->target, exchange->status, (unsigned long long)self->in,
             (unsigned long long)self->out, (double)(forward_now(self) - self->started_at) / 1e6,
             self->retries, reason[0] != '\0' ? " " : "", reason);
}

void access_log_refused(bide_http_connection *connection, bide_slice line, int status)
{
    struct session *session = http_session(connection);
    struct log *log = &session->program->log;
    char client[BIDE_ADDRESS_TEXT], text[256];
    if (!log_is_on(log))
        return;
    size_t size = copy_for_log(text, sizeof text, line);
    for (size_t i = 0; i < size; i++)
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
    log_line(log, "http %s %s -/- \"%.*s\" %d refused", session_client(session, client),
             session->listen->name, (int)size, text, status);
}
