/* Rewrites the header fields of requests and responses. Stateless; runs on the loop's thread. */
#define _GNU_SOURCE
#include "fields.h"
#include "rules.h"
#include "sticky.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

enum { MAX_FORWARDED = 1024 };

static bool equals_ignoring_case(bide_slice one, bide_slice other)
{
    return one.size == other.size && strncasecmp(one.data, other.data, one.size) == 0;
}

/* True if `name` is in a comma-separated list. */
static bool list_contains(bide_slice list, bide_slice name)
{
    const char *at = list.data, *end = list.data + list.size;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma != NULL ? comma : end;
        bide_slice token = {at, (size_t)(stop - at)};
        while (token.size != 0 && (*token.data == ' ' || *token.data == '\t'))
            token.data++, token.size--;
        while (token.size != 0 &&
               (token.data[token.size - 1] == ' ' || token.data[token.size - 1] == '\t'))
            token.size--;
        if (equals_ignoring_case(token, name))
            return true;
        at = stop + 1;
    }
    return false;
}

bool fields_is_hop_by_hop(bide_slice name)
{
    switch (name.size) {
    case 2:
        return bide_http_is(name, "TE");
    case 7:
        return bide_http_is(name, "Upgrade") || bide_http_is(name, "Trailer");
    case 10:
        return bide_http_is(name, "Connection") || bide_http_is(name, "Keep-Alive");
    case 14:
        return bide_http_is(name, "Content-Length");
    case 16:
        return bide_http_is(name, "Proxy-Connection");
    case 17:
        return bide_http_is(name, "Transfer-Encoding");
    case 18:
        return bide_http_is(name, "Proxy-Authenticate");
    case 19:
        return bide_http_is(name, "Proxy-Authorization");
    default:
        return false;
    }
}

/* True if a "Connection" field lists anything other than the two common values. */
static bool connection_names_fields(const bide_http_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bide_http_is(fields[i].name, "Connection") &&
            !bide_http_is(fields[i].value, "keep-alive") && !bide_http_is(fields[i].value, "close"))
            return true;
    }
    return false;
}

bool fields_list_contains(bide_slice list, const char *name)
{
    return list.data != NULL && list_contains(list, (bide_slice){name, strlen(name)});
}

static bool is_named_by_connection(const bide_http_field *fields, size_t count, bide_slice name)
{
    for (size_t i = 0; i < count; i++) {
        if (bide_http_is(fields[i].name, "Connection") && list_contains(fields[i].value, name))
            return true;
    }
    return false;
}

/* ---- The request ---- */

bool fields_is_forwarded(enum forwarded forwarded, bide_slice name)
{
    switch (name.size) {
    case 15:
        return forwarded == FORWARDED_X && bide_http_is(name, "X-Forwarded-For");
    case 16:
        return forwarded == FORWARDED_X && bide_http_is(name, "X-Forwarded-Host");
    case 17:
        return forwarded == FORWARDED_X && bide_http_is(name, "X-Forwarded-Proto");
    case 9:
        return forwarded == FORWARDED_STANDARD && bide_http_is(name, "Forwarded");
    default:
        return false;
    }
}

/* True if the proxy replaces the field by its own. */
static bool is_replaced(const struct forward *self, bide_slice name)
{
    switch (name.size) {
    case 4:
        return bide_http_is(name, "Host");
    case 6:
        return bide_http_is(name, "Expect") && self->exchange.request.length == 0;
    case 17:
        return (self->key[0] != '\0' && bide_http_is(name, "Sec-WebSocket-Key")) ||
               fields_is_forwarded(self->session->listen->forwarded, name);
    default:
        return fields_is_forwarded(self->session->listen->forwarded, name);
    }
}

/*
 * The values of that field from earlier hops, followed by `own`; values that do not fit are left
 * out.
 */
static bide_slice forwarded_chain(const struct forward *self, const char *name, const char *own,
                                  char *text)
{
    const bide_http_request *request = &self->exchange.request;
    size_t size = 0, own_size = strlen(own);
    for (size_t i = 0; i < request->field_count; i++) {
        const bide_http_field *field = &request->fields[i];
        if (!bide_http_is(field->name, name) || field->value.size == 0 ||
            size + field->value.size + 2 + own_size > MAX_FORWARDED)
            continue;
        memcpy(text + size, field->value.data, field->value.size);
        memcpy(text + size + field->value.size, ", ", 2);
        size += field->value.size + 2;
    }
    memcpy(text + size, own, own_size);
    return (bide_slice){text, size + own_size};
}

/* Prints the client's address without its port; an IPv6 address between `open` and `close`. */
static void print_client_address(const struct session *session, const char *open, const char *close,
                                 char *text, size_t size)
{
    const bide_address *client = &session->client;
    char ip[INET6_ADDRSTRLEN];
    bool is_v6 = client->any.generic.sa_family == AF_INET6;
    if (client->length == 0 || (client->any.generic.sa_family != AF_INET && !is_v6)) {
        snprintf(text, size, "unknown");
        return;
    }
    inet_ntop(is_v6 ? AF_INET6 : AF_INET,
              is_v6 ? (const void *)&client->any.v6.sin6_addr : &client->any.v4.sin_addr, ip,
              sizeof ip);
    snprintf(text, size, "%s%s%s", is_v6 ? open : "", ip, is_v6 ? close : "");
}

static bide_slice text_from(const char *string)
{
    return (bide_slice){string, strlen(string)};
}

static int add_forwarded(struct forward *self)
{
    const bide_http_request *request = &self->exchange.request;
    const struct session *session = self->session;
    bide_http_client *client = &self->scratch->client;
    const char *protocol = session->secure != NULL ? "https" : "http";
    char text[MAX_FORWARDED], own[512], ip[64];
    int status = 0;
    if (session->listen->forwarded == FORWARDED_X) {
        print_client_address(session, "", "", own, sizeof own);
        status = bide_http_client_add_slices(client, text_from("X-Forwarded-For"),
                                             forwarded_chain(self, "X-Forwarded-For", own, text));
        if (status == 0)
            status = bide_http_client_add(client, "X-Forwarded-Proto", protocol);
        if (status == 0)
            status =
                bide_http_client_add_slices(client, text_from("X-Forwarded-Host"), request->host);
    } else if (session->listen->forwarded == FORWARDED_STANDARD) {
        print_client_address(session, "\"[", "]\"", ip, sizeof ip);
        snprintf(own, sizeof own, "for=%s;host=\"%.*s\";proto=%s", ip,
                 (int)(request->host.size < 256 ? request->host.size : 256), request->host.data,
                 protocol);
        status = bide_http_client_add_slices(client, text_from("Forwarded"),
                                             forwarded_chain(self, "Forwarded", own, text));
    }
    return status;
}

bide_slice fields_origin_target(const bide_http_request *request)
{
    bide_slice target = request->target;
    if (target.size != 0 && (target.data[0] == '/' || target.data[0] == '*'))
        return target;
    if (request->query.data == NULL)
        return request->path;
    if (request->path.data + request->path.size + 1 == request->query.data)
        return (bide_slice){request->path.data, request->path.size + 1 + request->query.size};
    return target; /* "http://host?query" has no path to point at */
}

static int add_to_request(bide_http_client *client, const struct rule *rules,
                          const struct rule *behind)
{
    int status = 0;
    for (; rules != NULL && status == 0; rules = rules->next)
        if (rule_adds(rules, behind))
            status = bide_http_client_add(client, rules->name, rules->value);
    return status;
}

int fields_add_to_request(struct forward *self)
{
    const bide_http_request *request = &self->exchange.request;
    bide_http_client *client = &self->scratch->client;
    bide_slice host = request->host;
    if (self->backend->set_host != NULL)
        host = text_from(self->backend->set_host);
    if (host.size == 0) /* HTTP/1.0 */
        host = text_from(self->server->authority);
    bool has_others = connection_names_fields(request->fields, request->field_count);
    int status = bide_http_client_start_request_slices(client, request->method_name,
                                                       fields_origin_target(request), host);
    for (size_t i = 0; status == 0 && i < request->field_count; i++) {
        const bide_http_field *field = &request->fields[i];
        if (fields_is_hop_by_hop(field->name) || is_replaced(self, field->name) ||
            rules_drop(self->session->listen->request_rules, field->name) ||
            rules_drop(self->backend->request_rules, field->name) ||
            (has_others &&
             is_named_by_connection(request->fields, request->field_count, field->name)))
            continue;
        status = bide_http_client_add_slices(client, field->name, field->value);
    }
    if (status == 0)
        status = add_forwarded(self);
    if (status == 0)
        status = add_to_request(client, self->session->listen->request_rules,
                                self->backend->request_rules);
    if (status == 0)
        status = add_to_request(client, self->backend->request_rules, NULL);
    if (status == 0 && self->key[0] != '\0')
        status = bide_http_client_add(client, "Sec-WebSocket-Key", self->key);
    if (status == 0 && self->protocol[0] != '\0')
        status = bide_http_client_request_upgrade(client, self->protocol);
    return status;
}

bool fields_parse_upgrade(struct forward *self)
{
    const bide_http_request *request = &self->exchange.request;
    self->protocol[0] = '\0';
    if (request->upgrade.size == 0 || request->upgrade.size >= sizeof self->protocol ||
        request->length != 0 || list_contains(request->upgrade, text_from("h2c")))
        return false;
    memcpy(self->protocol, request->upgrade.data, request->upgrade.size);
    self->protocol[request->upgrade.size] = '\0';
    return true;
}

/* ---- The response ---- */

static int add_to_response(bide_http_exchange *exchange, const struct rule *rules,
                           const struct rule *behind)
{
    int status = 0;
    for (; rules != NULL && status == 0; rules = rules->next)
        if (rule_adds(rules, behind))
            status = bide_http_add(exchange, rules->name, rules->value);
    return status;
}

int fields_add_to_response(struct forward *self)
{
    const bide_http_response *response = &self->scratch->client.response;
    bool has_others = connection_names_fields(response->fields, response->field_count);
    int status = 0;
    for (size_t i = 0; status == 0 && i < response->field_count; i++) {
        const bide_http_field *field = &response->fields[i];
        if (fields_is_hop_by_hop(field->name) || bide_http_is(field->name, "Date") ||
            (self->key[0] != '\0' && bide_http_is(field->name, "Sec-WebSocket-Accept")) ||
            rules_drop(self->session->listen->response_rules, field->name) ||
            rules_drop(self->backend->response_rules, field->name) ||
            (has_others &&
             is_named_by_connection(response->fields, response->field_count, field->name)))
            continue;
        status = bide_http_add_slices(&self->exchange, field->name, field->value);
    }
    if (status == 0 && self->backend->sticky == STICKY_COOKIE && self->named != self->server) {
        char cookie[STICKY_FIELD];
        sticky_print_cookie(self->server, self->session->secure != NULL, cookie);
        status = bide_http_add(&self->exchange, "Set-Cookie", cookie);
    }
    if (status == 0)
        status = add_to_response(&self->exchange, self->session->listen->response_rules,
                                 self->backend->response_rules);
    if (status == 0)
        status = add_to_response(&self->exchange, self->backend->response_rules, NULL);
    return status;
}
