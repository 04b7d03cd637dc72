/*
 * Serves the page, its style and its script. The headers forbid content from elsewhere and any
 * other script, so text from users is never run.
 */
#include "page.h"

#include <bide/bide.h>
#include <bide/http.h>

struct page_file {
    const char *path;
    const char *type;
    const unsigned char *data;
    size_t size;
};

static const unsigned char html[] = {
#include "chat.html.inc"
};
static const unsigned char style[] = {
#include "chat.css.inc"
};
static const unsigned char script[] = {
#include "chat.js.inc"
};

static const struct page_file page_files[] = {
    {"/", "text/html; charset=utf-8", html, sizeof html},
    {"/chat.css", "text/css; charset=utf-8", style, sizeof style},
    {"/chat.js", "text/javascript; charset=utf-8", script, sizeof script},
};

static const struct page_file *find_file(bide_slice path)
{
    for (size_t i = 0; i < sizeof page_files / sizeof *page_files; i++) {
        if (bide_http_is(path, page_files[i].path))
            return &page_files[i];
    }
    return NULL;
}

struct page {
    bide_http_exchange exchange;
};

bide_coroutine(page_body)
{
    bide_begin(page_body, struct page * self);
    const struct page_file *page_file = find_file(self->exchange.request.path);
    bide_http_add(&self->exchange, "Content-Type", page_file->type);
    bide_http_add(&self->exchange, "Content-Security-Policy",
                  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                  "img-src data:; "
                  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    bide_http_add(&self->exchange, "X-Content-Type-Options", "nosniff");
    bide_http_add(&self->exchange, "Referrer-Policy", "no-referrer");
    bide_http_add(&self->exchange, "Cache-Control", "no-cache");
    bide_try(bide_http_respond(&self->exchange, page_file->data, page_file->size));
    bide_end();
}

const bide_http_handler *page_handler(bide_slice path)
{
    static const bide_http_handler handler = {&page_body, sizeof(struct page)};
    return find_file(path) != NULL ? &handler : NULL;
}
