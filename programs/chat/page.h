/* The page, its style and its script, which are a part of the program. */
#ifndef CHAT_PAGE_H
#define CHAT_PAGE_H

#include <bide/http.h>

/* The handler of a path; NULL: it is none of the page's. */
const bide_http_handler *page_handler(bide_slice path);

#endif
