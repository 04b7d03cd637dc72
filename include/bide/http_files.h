/*
 * A handler that serves the files below a directory. Floor: http.
 *
 *     bide_http_files files;
 *     bide_http_files_open(&files, &(bide_http_files_options){.root = "/srv/www"});
 *     bide_http_server_init(&http, &(bide_http_options){
 *         .handler = bide_http_files_handler, .argument = &files});
 *     ...
 *     bide_http_files_close(&files);           // when the server has ended
 *
 * As a route's handler (http_router.h) it serves the path in the route's last parameter:
 *
 *     {NULL, "/static/{path...}",
 *      {&bide_http_files_body, sizeof(bide_http_files_exchange)}, &files}
 *
 * It supports GET and HEAD; ETag and Last-Modified; If-Match, If-None-Match, If-Modified-Since,
 * If-Unmodified-Since; Range and If-Range, one range or several ("multipart/byteranges");
 * compressed siblings "a.js.br" or "a.js.gz", if the client accepts them and they are not older. A
 * directory is its "index.html", or, if the options say so, a page that lists it, or 404; without a
 * final "/" it is redirected.
 *
 * Nothing outside the directory is reached: ".." is rejected, and the path is opened as under a
 * restricted root (path.h). Links are followed inside the directory if the options say so.
 * Only regular files are served. Names that begin with "." are hidden, except ".well-known".
 *
 * The server's thread opens a path that is in the kernel's cache; for others it uses the options'
 * pool of threads for blocking calls, if there is one. Small files in memory leave with their head
 * in one call, larger ones by bide_send_file. Under a test loop with input and output in memory
 * there are none.
 */
#ifndef BIDE_HTTP_FILES_H
#define BIDE_HTTP_FILES_H

#include "bide/blocking.h"
#include "bide/directory.h"
#include "bide/http_server.h"

#include <sys/stat.h>

BIDE_EXTERN_C_BEGIN

/* A kind of file by the end of its name. */
typedef struct bide_http_type {
    const char *suffix; /* "html" */
    const char *type;   /* "text/html; charset=utf-8" */
} bide_http_type;

/* The files that are served, and how. The comment of a member says what 0 or NULL means. */
typedef struct bide_http_files_options {
    const char *root;          /* the folder */
    const char *index;         /* NULL: "index.html" */
    const char *cache_control; /* the value of "Cache-Control". NULL: none */
    const bide_http_type
        *types;              /* that are looked at before the library's own, up to a NULL suffix */
    bide_blocking *blocking; /* for paths that are not in the kernel's cache. NULL: in place */
    bool lists;              /* folders without an index have a page, which a script in it sorts */
    bool follows_links;      /* symbolic ones, inside the folder */
    bool has_hidden;         /* names that begin with "." are there */
    bool never_compressed;   /* compressed files are not looked for */
} bide_http_files_options;

/* The caller's memory, while a server uses it. */
typedef struct bide_http_files {
    bide_http_files_options options;
    int root_and_1_; /* a descriptor and one; 0: closed */
} bide_http_files;

/* The folder's descriptor; -1: it is closed. */
BIDE_INLINE int bide_http_files_root_(const bide_http_files *files)
{
    return files->root_and_1_ - 1;
}

/*
 * Opens the folder. `options` is copied, what it points at stays.
 * Threads: before it is shared. Errors: those of open(2). Progress: blocks.
 */
int bide_http_files_open(bide_http_files *files, const bide_http_files_options *options);

/*
 * Closes it. No exchange uses it. One that is closed, or of zeros, is left as it is.
 * Threads: one at a time. Progress: that of close.
 */
void bide_http_files_close(bide_http_files *files);

enum { BIDE_HTTP_PATH_SIZE = 1024, BIDE_HTTP_RANGES = 8 };

/* Bytes of a file: from the first, and how many. */
typedef struct bide_http_range {
    uint64_t begin;
    uint64_t size;
} bide_http_range;

/* A file that is looked for. Of the library. */
typedef struct bide_http_found_ {
    const bide_http_files *files;
    char *path; /* from the root on, with room for ".html.br" behind it */
    size_t path_size;
    uint8_t accepts; /* encodings */
    uint8_t encoding;
    bool only_cached;
    int fd; /* that was opened; or -1 */
    int error;
    bool is_directory;
    struct stat about;
} bide_http_found_;

/* The frame of the handler. */
typedef struct bide_http_files_exchange {
    bide_http_exchange exchange;

    /* of the library */
    bide_http_found_ found;
    bide_descriptor file;
    bide_blocking_call call;
    bide_http_range ranges[BIDE_HTTP_RANGES];
    int range_count;
    int i;
    const char *type;
    char tag[64];
    char modified[BIDE_HTTP_DATE_SIZE + 1];
    char path[BIDE_HTTP_PATH_SIZE + 32];
    char boundary[24];
    char part[256];
    size_t part_size;
    bide_directory directory;
    bide_entry_operation entry;
    char entries[2048];
} bide_http_files_exchange;

/*
 * The handler's body, and the handler. The exchange's argument is a bide_http_files.
 * Threads: any may use the name.
 */
bide_declare_body(bide_http_files_body);
extern const bide_http_handler bide_http_files_handler;

/*
 * The type of a file of that name: "application/octet-stream", if nothing else is known.
 * Threads: any. Progress: wait-free, linear in the types.
 */
const char *bide_http_content_type(const bide_http_files *files, const char *name, size_t size);

/*
 * Why it is correct: src/http/files.c.
 */

BIDE_EXTERN_C_END

#endif
