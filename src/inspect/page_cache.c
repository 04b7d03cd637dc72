#include "page_cache.h"

#include "safe_read.h"

#include <stdint.h>
#include <string.h>

enum { PAGE = 4096, PAGES = 128 };

/* A copy; in its place by its address. */
typedef struct page {
    uintptr_t number; /* of the page, by its address */
    uint32_t round;   /* in which it was copied */
    bool is_there;
    char bytes[PAGE];
} page;

static page pages[PAGES];
static uint32_t round_now; /* 0 is none's but at the begin, when nothing was copied */

void bide_page_cache_discard_(void)
{
    if (++round_now == 0) {
        for (size_t i = 0; i < PAGES; i++)
            pages[i].round = 0;
        round_now = 1;
    }
}

static const page *page_of(uintptr_t number)
{
    page *page = &pages[number % PAGES];
    if (page->round != round_now || page->number != number) {
        page->round = round_now;
        page->number = number;
        page->is_there = bide_peek_((const void *)(number * PAGE), page->bytes, PAGE);
    }
    return page;
}

bool bide_page_cache_read_(const void *address, void *to, size_t size)
{
    uintptr_t at = (uintptr_t)address;
    char *next = to;
    while (size != 0) {
        const page *page = page_of(at / PAGE);
        size_t count = PAGE - at % PAGE;
        if (count > size)
            count = size;
        if (!page->is_there)
            return false;
        memcpy(next, page->bytes + at % PAGE, count);
        at += count;
        next += count;
        size -= count;
    }
    return true;
}
