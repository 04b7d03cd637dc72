/*
 * A handler that serves the files below a directory.
 *
 * Threads: the handler runs on the loop's thread. Only bide_http_find_file_ may run on a thread of
 * options.blocking, while the handler waits for it.
 *
 * Why it is correct:
 * 1. The path is decoded once and checked after that: ".." gets a 404 and a NUL a 400. In addition,
 *    the path is opened beneath the directory (find_file.c).
 * 2. Tag, time and size come from the descriptor whose bytes are sent, so they match those bytes. A
 *    file that is replaced meanwhile is a different file.
 * 3. If a file shrinks while it is being sent, the announced length is wrong, and the connection is
 *    closed.
 */
#define _GNU_SOURCE
#include "bide/http_files.h"

#include "conditions.h"
#include "output.h"

#include "bide/coroutine.h"
#include "bide/http_router.h"

#include "../system/portable.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef O_PATH
enum { HTTP_FILES_ROOT = O_PATH | O_DIRECTORY | O_CLOEXEC };
#else
enum { HTTP_FILES_ROOT = O_RDONLY | O_DIRECTORY | O_CLOEXEC };
#endif

int bide_http_files_open(bide_http_files *files, const bide_http_files_options *options)
{
    files->options = *options;
    if (options->index == NULL)
        files->options.index = "index.html";
    files->root_and_1_ = 1 + open(options->root, HTTP_FILES_ROOT);
    return files->root_and_1_ == 0 ? -errno : 0;
}

void bide_http_files_close(bide_http_files *files)
{
    if (files->root_and_1_ != 0)
        close(bide_http_files_root_(files));
    files->root_and_1_ = 0;
}

/* ---- The path: 1 ---- */

static bool http_files_is_hidden(const bide_http_files *files, const char *part, size_t size)
{
    static const char known[] = ".well-known";
    return *part == '.' && !files->options.has_hidden &&
           !(size == sizeof known - 1 && memcmp(part, known, size) == 0);
}

/* No part of the path is ".", ".." or hidden. */
static bool http_files_are_parts_allowed(const bide_http_files *files, const char *path)
{
    while (*path != '\0') {
        size_t size = strcspn(path, "/");
        if ((size == 1 && path[0] == '.') || (size == 2 && path[0] == '.' && path[1] == '.') ||
            (size != 0 && http_files_is_hidden(files, path, size)))
            return false;
        path += size + (path[size] == '/');
    }
    return true;
}

/*
 * Decodes the path below the directory from the request. Returns 0, or the status of the response.
 */
static int http_files_decode_path(bide_http_files_exchange *self)
{
    const bide_http_exchange *exchange = &self->exchange;
    bide_slice path = exchange->request.path;
    if (exchange->route != NULL) {
        int last = -1;
        for (const char *at = exchange->route->pattern; *at != '\0'; at++)
            last += *at == '{';
        path = last >= 0 ? exchange->parameters[last] : (bide_slice){"", 0};
    }
    while (path.size != 0 && *path.data == '/') {
        path.data++;
        path.size--;
    }
    ptrdiff_t size = bide_http_decode(path, self->path, BIDE_HTTP_PATH_SIZE - 1);
    if (size < 0)
        return size == -EMSGSIZE ? 414 : 400;
    self->path[size] = '\0';
    self->found.path = self->path;
    self->found.path_size = (size_t)size;
    if (memchr(self->path, '\0', (size_t)size) != NULL)
        return 400;
    return self->path[0] != '/' && http_files_are_parts_allowed(exchange->argument, self->path)
               ? 0
               : 404;
}

static int http_files_status_of_error(int error)
{
    switch (error) {
    case -EACCES:
    case -EPERM:
        return 403;
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM:
        return 503;
    case -EIO:
        return 500;
    default:
        return 404;
    }
}

/* ---- Heads ---- */

static size_t http_files_print(char *out, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(out, size, format, arguments);
    va_end(arguments);
    return count >= 0 && (size_t)count < size ? (size_t)count : size - 1;
}

static void http_files_describe(bide_http_files_exchange *self)
{
    static const char suffixes[3][4] = {"", "-gz", "-br"};
    const struct stat *about = &self->found.about;
    http_files_print(self->tag, sizeof self->tag, "\"%llx.%lx-%llx%s\"",
                     (unsigned long long)PORTABLE_MTIME(about).tv_sec,
                     (unsigned long)PORTABLE_MTIME(about).tv_nsec,
                     (unsigned long long)about->st_size, suffixes[self->found.encoding]);
    bide_http_print_date(self->modified, about->st_mtime);
    self->modified[BIDE_HTTP_DATE_SIZE] = '\0';
    self->type = bide_http_content_type(self->found.files, self->path, self->found.path_size);
}

/* Adds the fields of every response about a file. Returns 0 or an error. */
static int http_files_add_fields(bide_http_files_exchange *self)
{
    const bide_http_files_options *options = &self->found.files->options;
    bide_http_exchange *exchange = &self->exchange;
    int status = bide_http_add(exchange, "Last-Modified", self->modified);
    if (status == 0)
        status = bide_http_add(exchange, "ETag", self->tag);
    if (status == 0 && !options->never_compressed)
        status = bide_http_add(exchange, "Vary", "Accept-Encoding");
    if (status == 0 && options->cache_control != NULL)
        status = bide_http_add(exchange, "Cache-Control", options->cache_control);
    return status;
}

/* Adds the fields of a response with the file's bytes. Returns 0 or an error. */
static int http_files_add_content_fields(bide_http_files_exchange *self, const char *type)
{
    static const char *const encodings[3] = {NULL, "gzip", "br"};
    bide_http_exchange *exchange = &self->exchange;
    int status = bide_http_add(exchange, "Content-Type", type);
    if (status == 0)
        status = bide_http_add(exchange, "Accept-Ranges", "bytes");
    if (status == 0 && self->found.encoding != HTTP_IDENTITY)
        status = bide_http_add(exchange, "Content-Encoding", encodings[self->found.encoding]);
    return status == 0 ? http_files_add_fields(self) : status;
}

static void http_files_print_range(bide_http_files_exchange *self, const bide_http_range *range)
{
    http_files_print(self->part, sizeof self->part, "bytes %llu-%llu/%llu",
                     (unsigned long long)range->begin,
                     (unsigned long long)(range->begin + range->size - 1),
                     (unsigned long long)self->found.about.st_size);
}

/* ---- Several ranges ---- */

/* Prints the delimiter before part `i`, or the final delimiter, into self->part. */
static void http_files_print_part(bide_http_files_exchange *self, int i)
{
    const bide_http_range *range = &self->ranges[i];
    if (i == self->range_count) {
        self->part_size =
            http_files_print(self->part, sizeof self->part, "\r\n--%s--\r\n", self->boundary);
        return;
    }
    self->part_size = http_files_print(
        self->part, sizeof self->part,
        "%s--%s\r\nContent-Type: %s\r\nContent-Range: bytes %llu-%llu/%llu\r\n\r\n",
        i == 0 ? "" : "\r\n", self->boundary, self->type, (unsigned long long)range->begin,
        (unsigned long long)(range->begin + range->size - 1),
        (unsigned long long)self->found.about.st_size);
}

/* Starts the response with several parts. Returns 0 or an error. */
static int http_files_start_parts(bide_http_files_exchange *self)
{
    uint64_t length = 0;
    char type[64];
    uint64_t random;
    /* The file contains such a line by chance only: the probability is one in 2^64. */
    if (portable_random(&random, sizeof random) != 0)
        return -EIO;
    http_files_print(self->boundary, sizeof self->boundary, "%016llx", (unsigned long long)random);
    for (int i = 0; i <= self->range_count; i++) {
        http_files_print_part(self, i);
        length += self->part_size + (i < self->range_count ? self->ranges[i].size : 0);
    }
    http_files_print(type, sizeof type, "multipart/byteranges; boundary=%s", self->boundary);
    int status = http_files_add_content_fields(self, type);
    return status == 0 ? bide_http_start_response(&self->exchange, length) : status;
}

/* ---- Directories ---- */

/*
 * Prints a file name as text or as a link and sets *used to the printed size. Returns how many bytes
 * of the name fit.
 */
static size_t http_files_print_name(char *out, size_t size, size_t *used, const char *name,
                                    bool is_link)
{
    static const char plain[] = "-._~";
    static const char digits[] = "0123456789ABCDEF";
    const char *at = name;
    *used = 0;
    for (; *at != '\0' && size - *used > 8; at++) {
        unsigned char byte = (unsigned char)*at;
        bool is_plain = (byte >= '0' && byte <= '9') ||
                        ((byte | 32) >= 'a' && (byte | 32) <= 'z') || strchr(plain, byte) != NULL;
        if (is_plain || (!is_link && byte >= ' ' && strchr("<>&\"'", byte) == NULL)) {
            out[(*used)++] = (char)byte;
        } else if (is_link) {
            out[(*used)++] = '%';
            out[(*used)++] = digits[byte >> 4];
            out[(*used)++] = digits[byte & 15];
        } else {
            *used += http_files_print(out + *used, size - *used, "&#%u;", byte);
        }
    }
    return (size_t)(at - name);
}

/* The size of a text of UTF-8 that was cut after `size` bytes, without a character that was cut. */
static size_t http_files_whole_size(const char *text, size_t size)
{
    size_t lead = size;
    while (lead != 0 && size - lead < 4 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80)
        lead--;
    if (lead == 0 || size - lead >= 4)
        return size; /* it is not UTF-8 */
    unsigned char first = (unsigned char)text[lead - 1];
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    return size - lead + 1 < length ? lead - 1 : size;
}

/*
 * Prints one line of the page into self->path, which is no longer needed. (self->entries holds the
 * names.)
 */
static size_t http_files_print_entry(bide_http_files_exchange *self)
{
    const char *slash = self->entry.type == DT_DIR ? "/" : "";
    char link[3 * 255 + 16], text[6 * 64 + 16];
    char name[64 + 1];
    size_t link_size, text_size;
    http_files_print_name(link, sizeof link, &link_size, self->entry.name, true);
    http_files_print(name, sizeof name, "%s", self->entry.name);
    if (strlen(self->entry.name) > 64)
        name[http_files_whole_size(name, 64)] = '\0';
    http_files_print_name(text, sizeof text, &text_size, name, false);
    return http_files_print(
        self->path, sizeof self->path, "<li><a href=\"%.*s%s\">%.*s%s%s</a></li>\n", (int)link_size,
        link, slash, (int)text_size, text, strlen(self->entry.name) > 64 ? "..." : "", slash);
}

/*
 * Prints the top of the page into self->entries, which is not used yet. The entries follow in the
 * order of the directory, whose size is unbounded; a script in the page sorts them.
 */
static size_t http_files_print_page_top(bide_http_files_exchange *self)
{
    static const char format[] = "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                                 "<meta name=\"viewport\" content=\"width=device-width\">\n"
                                 "<title>Index of /%s%s</title>\n<style>\n"
                                 ":root { color-scheme: light dark }\n"
                                 "body { font: 1rem/1.5 system-ui, sans-serif; max-width: 50rem; "
                                 "margin: 2rem auto; padding: 0 1rem }\n"
                                 "h1 { font-size: 1.25rem; overflow-wrap: anywhere }\n"
                                 "ul { list-style: none; padding: 0 }\n"
                                 "li { border-top: 1px solid #8884; overflow-wrap: anywhere }\n"
                                 "a { display: block; padding: .25rem 0; text-decoration: none }\n"
                                 "a:hover { text-decoration: underline }\n"
                                 "</style>\n<h1>Index of /%s%s</h1>\n<ul>\n%s";
    char text[512];
    size_t size;
    self->path[self->found.path_size] = '\0';
    size_t taken = http_files_print_name(text, sizeof text - 1, &size, self->path, false);
    if (taken < self->found.path_size)
        size = http_files_whole_size(text, size);
    text[size] = '\0';
    const char *more = taken < self->found.path_size ? "..." : "";
    return http_files_print(self->entries, sizeof self->entries, format, text, more, text, more,
                            self->found.path_size != 0 ? "<li><a href=\"../\">..</a></li>\n" : "");
}

static const char http_files_page_bottom[] =
    "</ul>\n<script>\n{\n"
    "const list = document.querySelector('ul'), text = item => item.textContent;\n"
    "const above = item => text(item) === '..' ? 0 : text(item).endsWith('/') ? 1 : 2;\n"
    "list.append(...[...list.children].sort((a, b) => above(a) - above(b) ||\n"
    "    text(a).localeCompare(text(b), undefined, { numeric: true })));\n"
    "}\n</script>\n";

static bool http_files_is_listed(const bide_http_files_exchange *self)
{
    return !http_files_is_hidden(self->found.files, self->entry.name, strlen(self->entry.name)) &&
           (self->entry.type == DT_DIR || self->entry.type == DT_REG ||
            self->entry.type == DT_UNKNOWN);
}

/* Adds "Location": the path with a trailing slash, and the query. */
static int http_files_redirect(bide_http_files_exchange *self)
{
    const bide_http_request *request = &self->exchange.request;
    char location[2048];
    if (request->path.size + request->query.size + 3 > sizeof location)
        return -ENOENT;
    size_t begin = 0; /* "//host" would name another server */
    while (begin + 1 < request->path.size && request->path.data[begin + 1] == '/')
        begin++;
    size_t size = request->path.size - begin;
    memcpy(location, request->path.data + begin, size);
    location[size++] = '/';
    if (request->query.data != NULL) {
        location[size++] = '?';
        memcpy(location + size, request->query.data, request->query.size);
        size += request->query.size;
    }
    self->exchange.status = 301;
    return bide_http_add_slices(&self->exchange, (bide_slice){"Location", 8},
                                (bide_slice){location, size});
}

/* ---- The handler ---- */

/* Ends the coroutine with the error of a plain call. */
#define HTTP_FILES_TRY(call)      \
    do {                          \
        int status_ = (call);     \
        if (status_ < 0)          \
            bide_return(status_); \
    } while (0)

/* Responds with a text that contains only the status. */
static bide_awaiter *http_files_respond_status(bide_http_files_exchange *self, int status)
{
    self->exchange.status = status;
    (void)bide_http_add(&self->exchange, "Content-Type", "text/plain; charset=utf-8");
    self->part_size = http_files_print(self->part, sizeof self->part, "%d %s\n", status,
                                       bide_http_reason(status));
    return bide_http_respond(&self->exchange, self->part, self->part_size);
}

bide_declared_coroutine(bide_http_files_body)
{
    bide_begin(bide_http_files_body, bide_http_files_exchange * self);
    bide_descriptor_init_closed(&self->file);
    self->found.files = self->exchange.argument;
    self->found.fd = -1;
    if (self->exchange.request.method != BIDE_HTTP_GET &&
        self->exchange.request.method != BIDE_HTTP_HEAD) {
        (void)bide_http_add(&self->exchange, "Allow", "GET, HEAD");
        bide_try(http_files_respond_status(self, 405));
        bide_return(0);
    }
    self->i = http_files_decode_path(self);
    if (self->i != 0) {
        bide_try(http_files_respond_status(self, self->i));
        bide_return(0);
    }

    self->found.accepts = (uint8_t)(self->found.files->options.never_compressed
                                        ? 0
                                        : bide_http_accepts_(&self->exchange));
    self->found.only_cached = true;
    bide_http_find_file_(&self->found);
    if (self->found.error == -EAGAIN) {
        self->found.only_cached = false;
        if (self->found.files->options.blocking != NULL)
            bide_try(bide_blocking_run(&self->call, self->found.files->options.blocking,
                                       bide_http_find_file_, &self->found));
        else
            bide_http_find_file_(&self->found);
    }
    if (self->found.error != 0) {
        bide_try(http_files_respond_status(self, http_files_status_of_error(self->found.error)));
        bide_return(0);
    }
    bide_descriptor_init(&self->file, self->found.fd);

    if (self->found.is_directory) {
        if (self->found.path_size != 0 && self->path[self->found.path_size - 1] != '/') {
            HTTP_FILES_TRY(http_files_redirect(self));
            bide_try(bide_http_respond(&self->exchange, NULL, 0));
            bide_return(0);
        }
        if (!self->found.files->options.lists) {
            bide_try(http_files_respond_status(self, 404));
            bide_return(0);
        }
        (void)bide_http_add(&self->exchange, "Content-Type", "text/html; charset=utf-8");
        bide_try(bide_http_write(&self->exchange, self->entries, http_files_print_page_top(self)));
        bide_directory_init(&self->directory, &self->file, self->entries, sizeof self->entries);
        for (;;) {
            bide_try_or_break(bide_next_entry(&self->entry, &self->directory));
            if (http_files_is_listed(self))
                bide_try(
                    bide_http_write(&self->exchange, self->path, http_files_print_entry(self)));
        }
        bide_try(bide_http_write(&self->exchange, http_files_page_bottom,
                                 sizeof http_files_page_bottom - 1));
        bide_return(0);
    }

    http_files_describe(self);
    self->i = bide_http_conditions_(&self->exchange, self->tag, self->found.about.st_mtime);
    if (self->i != 0) {
        HTTP_FILES_TRY(http_files_add_fields(self));
        if (self->i == 304) {
            self->exchange.status = 304;
            bide_try(bide_http_respond(&self->exchange, NULL, 0));
        } else {
            bide_try(http_files_respond_status(self, self->i));
        }
        bide_return(0);
    }
    self->range_count = bide_http_ranges_(&self->exchange, self->tag, self->found.about.st_mtime,
                                          (uint64_t)self->found.about.st_size, self->ranges);
    if (self->range_count < 0) {
        http_files_print(self->part, sizeof self->part, "bytes */%llu",
                         (unsigned long long)self->found.about.st_size);
        (void)bide_http_add(&self->exchange, "Content-Range", self->part);
        bide_try(http_files_respond_status(self, 416));
    } else if (self->range_count > 1) {
        self->exchange.status = 206;
        HTTP_FILES_TRY(http_files_start_parts(self));
        for (self->i = 0; self->i < self->range_count; self->i++) {
            http_files_print_part(self, self->i);
            bide_try(bide_http_write(&self->exchange, self->part, self->part_size));
            bide_try(bide_http_write_file(&self->exchange, &self->file, self->ranges[self->i].begin,
                                          self->ranges[self->i].size));
        }
        http_files_print_part(self, self->range_count);
        bide_try(bide_http_write(&self->exchange, self->part, self->part_size));
    } else {
        if (self->range_count == 1) {
            self->exchange.status = 206;
            http_files_print_range(self, &self->ranges[0]);
            HTTP_FILES_TRY(bide_http_add(&self->exchange, "Content-Range", self->part));
        } else {
            self->ranges[0] = (bide_http_range){0, (uint64_t)self->found.about.st_size};
        }
        HTTP_FILES_TRY(http_files_add_content_fields(self, self->type));
        HTTP_FILES_TRY(bide_http_start_response(&self->exchange, self->ranges[0].size));
        bide_try(bide_http_write_file(&self->exchange, &self->file, self->ranges[0].begin,
                                      self->ranges[0].size));
    }
    bide_finally();
    bide_close(&self->file);
    bide_end();
}

const bide_http_handler bide_http_files_handler = {&bide_http_files_body,
                                                   sizeof(bide_http_files_exchange)};
