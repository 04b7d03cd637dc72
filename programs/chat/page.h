/* The page, its style and its script, which are compiled into the program. */
#ifndef CHAT_PAGE_H
#define CHAT_PAGE_H

#include <bide/http.h>

/* The handler of a path, or NULL if the page has no such file. */
const bide_http_handler *page_handler(bide_slice path);

#endif
