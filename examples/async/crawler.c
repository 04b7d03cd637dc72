/* Visits the pages of a small web: all links of a page concurrently, and each page once. */
#include <bide/async.h>
#include <bide/loop.h>
#include <bide/sleep.h>
#include <stdio.h>
#include <string.h>

struct page {
    const char *url, *links[3];
    bool seen, missing;
};

static struct page web[] = {
    {.url = "/", .links = {"/pkg", "/cmd", "/doc"}},
    {.url = "/pkg", .links = {"/", "/pkg/fmt", "/pkg/os"}},
    {.url = "/pkg/fmt", .links = {"/", "/pkg"}},
    {.url = "/pkg/os", .links = {"/pkg", "/gone"}},
    {.url = "/cmd", .links = {"/cmd/go"}},
    {.url = "/doc", .links = {"/doc", "/gone"}},
    {.url = "/cmd/go", .missing = true},
    {.url = "/gone", .missing = true},
};
enum { PAGES = sizeof web / sizeof *web };

static struct page *find(const char *url)
{
    size_t i = 0;
    while (i < PAGES - 1 && strcmp(web[i].url, url) != 0)
        i++;
    return &web[i];
}

async int fetch(struct page *page)
{
    try await bide_sleep_for(BIDE_MILLISECONDS(1));
    return page->missing ? -ENOENT : 0;
}

async_created int crawl(const char *url)
{
    bide_scope scope;
    struct page *page = find(url);
    if (page->seen)
        return 0;
    page->seen = true;
    if (await fetch(page) == -ENOENT)
        return 0;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    for (int i = 0; i < 3 && page->links[i] != NULL; i++)
        if (spawn(&scope, crawl(page->links[i])) < 0)
            return -ENOMEM;
    return await bide_scope_join(&scope);
}

async int main(void)
{
    try await crawl("/");
    for (int i = 0; i < PAGES; i++)
        printf("%s%s\n", web[i].url,
               !web[i].seen     ? ": not seen"
               : web[i].missing ? ": not found"
                                : "");
    return 0;
}
