/* Which log a URL names, before it is opened. The library checks URLs; this only looks at them. */
#include "stream.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool url_is_stdio(const char *url)
{
    return strncmp(url, "stdio:", 6) == 0;
}

bool url_is_shared(const char *url)
{
    return !url_is_stdio(url) && strncmp(url, "ring:", 5) != 0 && strncmp(url, "file:", 5) != 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The part after the scheme, decoded. Returns false if there is none that can be. */
static bool decode_name(const char *url, const char *scheme, char name[PATH_MAX])
{
    size_t length = strlen(scheme), size = 0;
    if (strncmp(url, scheme, length) != 0)
        return false;
    for (url += length; *url != '\0' && *url != '?'; url++) {
        char c = *url;
        if (c == '%') {
            int high = hex_digit(url[1]), low = high < 0 ? -1 : hex_digit(url[2]);
            if (low < 0)
                return false;
            c = (char)(high * 16 + low);
            url += 2;
        }
        if (c == '\0' || size + 1 == PATH_MAX)
            return false;
        name[size++] = c;
    }
    name[size] = '\0';
    return true;
}

const char *url_shown(const char *url)
{
    static const char scheme[] = "redis://";
    static char shown[PATH_MAX];
    const char *at = strrchr(url, '@');
    if (strncmp(url, scheme, sizeof scheme - 1) != 0 || at == NULL)
        return url;
    snprintf(shown, sizeof shown, "%s%s", scheme, at + 1);
    return shown;
}

/* The server and the stream of a name, without the user. */
static const char *server_and_stream(const char *name)
{
    const char *slash = strchr(name, '/');
    for (const char *at = slash; at != NULL && at != name; at--) {
        if (at[-1] == '@')
            return at;
    }
    return name;
}

bool url_is_same(const char *one, const char *other)
{
    char name[PATH_MAX], path[PATH_MAX];
    struct stat about, others;
    if (decode_name(one, "ring:", name) && decode_name(other, "ring:", path))
        return name[0] != '\0' && strcmp(name, path) == 0;
    if (decode_name(one, "shm://", name) && decode_name(other, "shm://", path))
        return strcmp(name, path) == 0;
    if (decode_name(one, "redis://", name) && decode_name(other, "redis://", path))
        return strcmp(server_and_stream(name), server_and_stream(path)) == 0;
    return decode_name(one, "file://", name) && decode_name(other, "file://", path) &&
           stat(name, &about) == 0 && stat(path, &others) == 0 && about.st_dev == others.st_dev &&
           about.st_ino == others.st_ino;
}

int url_opened(const char *url, bool must_exist, char **opened)
{
    char option[32] = "";
    bool is_made = strncmp(url, "file:", 5) == 0 || strncmp(url, "shm:", 4) == 0;
    bool has_size = strstr(url, "?size=") != NULL || strstr(url, "&size=") != NULL;
    if (must_exist && is_made)
        snprintf(option, sizeof option, "create=no");
    else if (url_is_stdio(url) && !has_size)
        snprintf(option, sizeof option, "size=%u", must_exist ? LINE_SIZE : BIDE_LOG_SIZE_MAX);
    size_t size = strlen(url) + strlen(option) + 2, name = strcspn(url, "?");
    *opened = malloc(size);
    if (*opened == NULL)
        return -ENOMEM;
    if (option[0] == '\0')
        snprintf(*opened, size, "%s", url);
    else /* in front of the others: an error prints the option and those behind it */
        snprintf(*opened, size, "%.*s?%s%s%s", (int)name, url, option, url[name] != '\0' ? "&" : "",
                 url[name] != '\0' ? url + name + 1 : "");
    return 0;
}
