/* Fields of requests that the command line adds. Used at startup. */
#include "fetch.h"

#include "../common/command_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char token[] = "!#$%&'*+-.^_`|~0123456789"
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* True for fields that fetch or its HTTP client writes, or that are of one connection. */
static bool is_reserved(const char *name)
{
    static const char *const names[] = {"Accept-Encoding",
                                        "Connection",
                                        "Content-Length",
                                        "Expect",
                                        "Host",
                                        "If-Range",
                                        "Keep-Alive",
                                        "Range",
                                        "TE",
                                        "Trailer",
                                        "Proxy-Connection",
                                        "Proxy-Authorization",
                                        "Upgrade",
                                        "Transfer-Encoding"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool has_control(const char *text)
{
    for (; *text != 0; text++)
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            return true;
    return false;
}

bool headers_have(const struct options *options, const char *name)
{
    for (size_t i = 0; i < options->header_count; i++)
        if (strcasecmp(options->headers[i].name, name) == 0)
            return true;
    return false;
}

static void put_header(struct options *options, char *name, const char *value)
{
    if (options->header_count == MAX_HEADERS)
        command_line_reject("too many header fields:", name);
    if (strcasecmp(name, "Authorization") == 0 && headers_have(options, name))
        command_line_reject("credentials are given twice", "");
    options->headers[options->header_count++] = (struct header){name, value};
}

void headers_add(struct options *options, const char *text)
{
    char *name = strdup(text);
    if (name == NULL)
        command_line_reject(strerror(ENOMEM), "");
    char *value = name + strspn(name, token);
    if (value == name || *value != ':' || has_control(value))
        command_line_reject("not a header field 'Name: value':", text);
    *value++ = 0;
    value += strspn(value, " \t");
    for (size_t size = strlen(value); size != 0 && strchr(" \t", value[size - 1]) != NULL; size--)
        value[size - 1] = 0;
    if (is_reserved(name))
        command_line_reject("fetch writes this header field itself:", name);
    put_header(options, name, value);
}

static void append_base64(char *to, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = (const unsigned char *)text;
    for (size_t left = strlen(text); left != 0; left -= left < 3 ? left : 3) {
        unsigned bits = (unsigned)at[0] << 16 | (left > 1 ? (unsigned)at[1] << 8 : 0) |
                        (left > 2 ? (unsigned)at[2] : 0);
        *to++ = digits[bits >> 18];
        *to++ = digits[bits >> 12 & 63];
        *to++ = '=';
        *to++ = '=';
        if (left > 1)
            to[-2] = digits[bits >> 6 & 63];
        if (left > 2)
            to[-1] = digits[bits & 63];
        at += left < 3 ? left : 3;
    }
    *to = 0;
}

void headers_add_user(struct options *options, const char *credentials)
{
    static char name[] = "Authorization";
    const char *colon = strchr(credentials, ':');
    size_t size = strlen(credentials);
    char *value = malloc(sizeof "Basic " + 4 * (size / 3 + 1));
    if (value == NULL)
        command_line_reject(strerror(ENOMEM), "");
    if (colon == NULL || colon == credentials || has_control(credentials))
        command_line_reject("credentials are NAME:PASSWORD", ""); /* (and are not printed) */
    strcpy(value, "Basic ");
    append_base64(value + strlen(value), credentials);
    put_header(options, name, value);
}

void headers_add_user_file(struct options *options, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    if (file == NULL)
        command_line_reject(strerror(errno), path);
    if (getline(&line, &capacity, file) < 0)
        command_line_reject("there are no credentials in", path);
    fclose(file);
    line[strcspn(line, "\r\n")] = 0;
    headers_add_user(options, line);
    free(line);
}
