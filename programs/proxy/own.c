/* Responses of the proxy's own. Runs on the program's loop. */
#include "own.h"
#include "reading.h"

bide_awaiter *own_reject_tunnel(struct forward *self)
{
    static const char text[] = "501 Not Implemented\n";
    if (self->exchange.request.major == 1)
        bide_http_close_after(&self->exchange);
    self->exchange.status = 501;
    return bide_http_respond(&self->exchange, text, sizeof text - 1);
}

bide_awaiter *own_reject_request(struct forward *self)
{
    static const char bad[] = "400 Bad Request\n";
    static const char large[] = "431 Request Header Fields Too Large\n";
    bool is_large = self->status == -EMSGSIZE;
    self->exchange.status = is_large ? 431 : 400;
    (void)bide_http_add(&self->exchange, "Content-Type", "text/plain; charset=utf-8");
    return bide_http_respond(&self->exchange, is_large ? large : bad,
                             (is_large ? sizeof large : sizeof bad) - 1);
}

bide_awaiter *own_redirect(struct forward *self)
{
    static const char text[] = "The page is at another location.\n";
    self->exchange.status = (int)self->redirect->redirect;
    (void)bide_http_add(&self->exchange, "Content-Type", "text/plain; charset=utf-8");
    return bide_http_respond(&self->exchange, text, sizeof text - 1);
}

bide_awaiter *own_reject_rate(struct forward *self, uint64_t wait)
{
    static const char text[] = "429 Too Many Requests\n";
    char seconds[24];
    (void)snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)((wait - 1) / SECOND + 1));
    self->session->program->statistics.limited++;
    self->exchange.status = 429;
    (void)bide_http_add(&self->exchange, "Retry-After", seconds);
    (void)bide_http_add(&self->exchange, "Content-Type", "text/plain; charset=utf-8");
    return bide_http_respond(&self->exchange, text, sizeof text - 1);
}
