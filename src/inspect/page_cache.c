/* The cache is a table of pages, indexed by address. See the header. */
#include "page_cache.h"

#include "safe_read.h"

#include <stdint.h>
#include <string.h>

enum { CACHED_PAGE_SIZE = 4096, CACHED_PAGES = 128 };

/* A copy of a page; its index is that of its address. */
typedef struct page {
    uintptr_t number; /* the address over CACHED_PAGE_SIZE */
    uint32_t round;   /* of the cache when it was copied */
    bool is_readable;
    char bytes[CACHED_PAGE_SIZE];
} page;

static page page_cache[CACHED_PAGES];
static uint32_t round_now; /* 0 only before anything was copied */

void bide_page_cache_clear_(void)
{
    if (++round_now == 0) {
        for (size_t i = 0; i < CACHED_PAGES; i++)
            page_cache[i].round = 0;
        round_now = 1;
    }
}

static const page *cached_page(uintptr_t number)
{
    page *page = &page_cache[number % CACHED_PAGES];
    if (page->round != round_now || page->number != number) {
        page->round = round_now;
        page->number = number;
        page->is_readable =
            bide_peek_((const void *)(number * CACHED_PAGE_SIZE), page->bytes, CACHED_PAGE_SIZE);
    }
    return page;
}

bool bide_page_cache_read_(const void *address, void *to, size_t size)
{
    uintptr_t at = (uintptr_t)address;
    char *next = to;
    while (size != 0) {
        const page *page = cached_page(at / CACHED_PAGE_SIZE);
        size_t count = CACHED_PAGE_SIZE - at % CACHED_PAGE_SIZE;
        if (count > size)
            count = size;
        if (!page->is_readable)
            return false;
        memcpy(next, page->bytes + at % CACHED_PAGE_SIZE, count);
        at += count;
        next += count;
        size -= count;
    }
    return true;
}
