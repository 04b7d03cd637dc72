/* MIME types by file suffix. A pure function; any thread may call it. */
#include "bide/http_files.h"

#include <string.h>

static const bide_http_type http_known_types[] = {
    {"html", "text/html; charset=utf-8"},
    {"htm", "text/html; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"js", "text/javascript; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"map", "application/json"},
    {"txt", "text/plain; charset=utf-8"},
    {"md", "text/markdown; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"xml", "application/xml"},
    {"svg", "image/svg+xml"},
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"webp", "image/webp"},
    {"avif", "image/avif"},
    {"ico", "image/x-icon"},
    {"bmp", "image/bmp"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"ttf", "font/ttf"},
    {"otf", "font/otf"},
    {"mp3", "audio/mpeg"},
    {"ogg", "audio/ogg"},
    {"opus", "audio/ogg"},
    {"wav", "audio/wav"},
    {"flac", "audio/flac"},
    {"m4a", "audio/mp4"},
    {"mp4", "video/mp4"},
    {"webm", "video/webm"},
    {"mov", "video/quicktime"},
    {"pdf", "application/pdf"},
    {"zip", "application/zip"},
    {"gz", "application/gzip"},
    {"br", "application/octet-stream"},
    {"tar", "application/x-tar"},
    {"xz", "application/x-xz"},
    {"bz2", "application/x-bzip2"},
    {"zst", "application/zstd"},
    {"7z", "application/x-7z-compressed"},
    {"wasm", "application/wasm"},
    {"atom", "application/atom+xml"},
    {"rss", "application/rss+xml"},
    {"webmanifest", "application/manifest+json"},
    {"xhtml", "application/xhtml+xml"},
    {"rtf", "application/rtf"},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"epub", "application/epub+zip"},
    {"jar", "application/java-archive"},
    {"deb", "application/vnd.debian.binary-package"},
    {NULL, NULL},
};

static const char *http_type_find(const bide_http_type *types, bide_slice suffix)
{
    for (; types->suffix != NULL; types++)
        if (bide_http_is(suffix, types->suffix))
            return types->type;
    return NULL;
}

const char *bide_http_content_type(const bide_http_files *files, const char *name, size_t size)
{
    bide_slice suffix = {name + size, 0};
    const char *type = NULL;
    while (suffix.data != name && suffix.data[-1] != '/' && suffix.data[-1] != '.') {
        suffix.data--;
        suffix.size++;
    }
    if (suffix.data == name || suffix.data[-1] != '.')
        return "application/octet-stream";
    if (files != NULL && files->options.types != NULL)
        type = http_type_find(files->options.types, suffix);
    if (type == NULL)
        type = http_type_find(http_known_types, suffix);
    return type != NULL ? type : "application/octet-stream";
}
