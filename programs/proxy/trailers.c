/* Copies trailers. Stateless; runs on the loop's thread. */
#include "trailers.h"
#include "fields.h"
#include "rules.h"

#include <errno.h>
#include <string.h>

/* The size of a name's and of a value's text. Longer ones are left out. */
enum { MAX_TRAILER = 4096 };

/* Terminates the text. Returns false if it is too long. */
static bool terminate(char text[MAX_TRAILER], bide_slice slice)
{
    if (slice.size >= MAX_TRAILER)
        return false;
    if (slice.size != 0)
        memcpy(text, slice.data, slice.size);
    text[slice.size] = '\0';
    return true;
}

/* Fields that would change how the message is read, or routed, are none of trailers. */
static bool is_for_heads(bide_slice name)
{
    static const char *const names[] = {"Host",          "Cookie",           "Set-Cookie",
                                        "Authorization", "Expect",           "Date",
                                        "Content-Type",  "Content-Encoding", "Set-Cookie2",
                                        "Cache-Control", "Location",         "Content-Range"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (bide_http_is(name, names[i]))
            return true;
    return fields_is_hop_by_hop(name) || fields_is_forwarded(FORWARDED_X, name) ||
           fields_is_forwarded(FORWARDED_STANDARD, name);
}

/*
 * Adds each field that the rules of the listener and of the backend keep. One that does not fit is left out: the message is whole
 * without it.
 */
static int add_trailers(struct forward *self, const bide_http_field *fields, size_t count,
                        const struct rule *of_listen, const struct rule *of_backend,
                        int (*add)(struct forward *self, const char *name, const char *value))
{
    char name[MAX_TRAILER], value[MAX_TRAILER];
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        if (is_for_heads(fields[i].name) || rules_drop(of_listen, fields[i].name) ||
            rules_drop(of_backend, fields[i].name))
            continue;
        if (terminate(name, fields[i].name) && terminate(value, fields[i].value))
            status = add(self, name, value);
        status = status == -EMSGSIZE ? 0 : status;
    }
    return status;
}

/* ---- Requests ---- */

bool trailers_follow_request(const struct forward *self)
{
    size_t count;
    (void)bide_http_request_trailers(&self->exchange, &count);
    return count != 0 && self->exchange.request.length == BIDE_HTTP_UNKNOWN;
}

static int add_to_request(struct forward *self, const char *name, const char *value)
{
    return bide_http_client_add_trailer(&self->scratch->client, name, value);
}

int trailers_add_to_request(struct forward *self)
{
    size_t count;
    const bide_http_field *fields = bide_http_request_trailers(&self->exchange, &count);
    return add_trailers(self, fields, count, self->session->listen->request_rules,
                        self->backend->request_rules, add_to_request);
}

/* ---- Responses ---- */

/* True if the client can take trailers. */
static bool wants_trailers(const struct forward *self)
{
    const bide_http_request *request = &self->exchange.request;
    return request->major == 2 ||
           (request->minor == 1 &&
            fields_list_contains(bide_http_request_field(&self->exchange, "TE"), "trailers"));
}

bool trailers_follow_response(const struct forward *self)
{
    size_t count;
    const bide_http_client *client = &self->scratch->client;
    (void)bide_http_client_trailers(client, &count);
    return count != 0 && client->response.length == BIDE_HTTP_UNKNOWN && wants_trailers(self);
}

static int add_to_response(struct forward *self, const char *name, const char *value)
{
    return bide_http_add_trailer(&self->exchange, name, value);
}

int trailers_add_to_response(struct forward *self)
{
    size_t count;
    const bide_http_field *fields = bide_http_client_trailers(&self->scratch->client, &count);
    return add_trailers(self, fields, count, self->session->listen->response_rules,
                        self->backend->response_rules, add_to_response);
}
