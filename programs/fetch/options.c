/* The command line and the input files of fetch: options, and the list of transfers. */
#include "fetch.h"

#include "../common/command_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char program_name[] = "fetch";

static const char help[] =
    "usage: fetch [OPTION]... URL...\n"
    "\n"
    "Downloads URLs, many at once, into files.\n"
    "\n"
    "  -o NAME            the file's name, of one URL\n"
    "  -O DIR             the files' directory; it is created if it does not exist\n"
    "  -j N               concurrent downloads (8)\n"
    "  --input FILE       URLs from a file, or - for the standard input; each line is\n"
    "                     'URL [NAME [SHA256]]'\n"
    "  --tries N          how often a download is tried (5)\n"
    "  --retry-delay MS   milliseconds before the second try; doubled for each further try (500)\n"
    "  --timeout SECONDS  how long to wait for the next byte (30)\n"
    "  --no-sync          do not sync files to the disk\n"
    "  --header FIELD     add 'Name: value' to each request; may be repeated\n"
    "  --user NAME:PASSWORD\n"
    "                     credentials for the servers of all URLs\n"
    "  --user-file FILE   the same from the first line of a file, which other users cannot see\n"
    "  --skip-finished    leave files alone that exist\n"
    "  --resume           resume the partial files of an earlier run\n"
    "  --cacert FILE      trust these authorities, in PEM, instead of the system's\n"
    "  --insecure         do not verify certificates\n"
    "  --http2            one connection for all downloads of a server that speaks HTTP/2\n"
    "  --sha256           print the SHA-256 of each file\n"
    "  --quiet            print errors only\n"
    "  --monitor SOCKET   let bide-top look at fetch; auto: at the usual place\n"
    "  --help             print this\n"
    "\n"
    "By default, a file is named after the last part of its URL's path.\n"
    "The exit status is 0 if all downloads succeeded, 1 if any failed, 2 for a bad command line, "
    "and\n"
    "130 if it was interrupted.\n";

static void *require_memory(void *memory)
{
    if (memory == NULL) {
        fputs("fetch: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* ---- Names ---- */

enum { MAX_COMPONENT = 255 - 10 }; /* ".part.from" is appended */

/* True if a name that someone else has chosen is safe for a file. */
static bool is_safe(const char *name)
{
    if (name[0] == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    for (const char *at = name; *at != 0; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f || *at == '/')
            return false;
    }
    return strlen(name) <= MAX_COMPONENT;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The last part of a URL's path, decoded. Returns false if it is not safe for a file. */
static bool name_from_url(char name[MAX_NAME], const bide_http_url *url)
{
    size_t begin = url->path.size, size = 0;
    while (begin > 0 && url->path.data[begin - 1] != '/')
        begin--;
    for (size_t i = begin; i < url->path.size; i++) {
        char c = url->path.data[i];
        if (c == '%' && i + 2 < url->path.size && hex_digit(url->path.data[i + 1]) >= 0 &&
            hex_digit(url->path.data[i + 2]) >= 0) {
            c = (char)(hex_digit(url->path.data[i + 1]) * 16 + hex_digit(url->path.data[i + 2]));
            i += 2;
        }
        if (c == 0 || size + 1 == MAX_NAME)
            return false;
        name[size++] = c;
    }
    name[size] = 0;
    if (size == 0)
        strcpy(name, "index.html");
    return is_safe(name);
}

/* ---- Transfers ---- */

static void set_sum(struct transfer *transfer, const char *sum)
{
    size_t size = strlen(sum);
    for (size_t i = 0; i < size; i++) {
        if (size != MAX_SUM || hex_digit(sum[i]) < 0)
            command_line_reject("not a SHA-256:", sum);
        transfer->sum[i] = (char)(sum[i] >= 'A' && sum[i] <= 'F' ? sum[i] | 0x20 : sum[i]);
    }
    if (!digest_is_available())
        command_line_reject("fetch was built without SHA-256, which is needed for", sum);
    transfer->is_summed = true;
}

/* `name` and `sum` may be NULL. */
static void add_transfer(struct fetch *fetch, const char *text, const char *name, const char *sum)
{
    bide_http_url url;
    if (strlen(text) >= MAX_URL || bide_http_url_parse(&url, text, strlen(text)) < 0)
        command_line_reject("not an http or https URL:", text);
    if (url.user.data != NULL)
        command_line_reject("a URL with a user name is not supported:", text);
#if !FETCH_HAS_TLS
    if (url.is_secure)
        command_line_reject("fetch was built without TLS:", text);
#endif
    if ((fetch->count & (fetch->count + 1)) == 0) /* (grows when count is 0, 1, 3, 7, ...) */
        fetch->transfers = require_memory(
            realloc(fetch->transfers, (2 * fetch->count + 1) * sizeof *fetch->transfers));
    struct transfer *transfer = &fetch->transfers[fetch->count++];
    memset(transfer, 0, sizeof *transfer);
    transfer->url = text;
    transfer->size = BIDE_HTTP_UNKNOWN;
    if (name != NULL) {
        if (!is_safe(name))
            command_line_reject("invalid file name:", name);
        strcpy(transfer->name, name);
    } else if (fetch->options.output == NULL && !name_from_url(transfer->name, &url)) {
        command_line_reject("a file name is needed (-o, --input) for", text);
    }
    if (sum != NULL)
        set_sum(transfer, sum);
}

static void add_from_file(struct fetch *fetch, const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    if (file == NULL)
        command_line_reject(strerror(errno), path);
    while (getline(&line, &capacity, file) >= 0) {
        char *words[4] = {NULL}, *rest = line;
        for (int i = 0; i < 4; i++) {
            words[i] = strtok_r(rest, " \t\r\n", &rest);
            if (words[i] == NULL)
                break;
        }
        if (words[0] == NULL || words[0][0] == '#')
            continue;
        if (words[3] != NULL)
            command_line_reject("extra words in the line of", words[0]);
        add_transfer(fetch, require_memory(strdup(words[0])), words[1], words[2]);
    }
    if (ferror(file))
        command_line_reject("cannot read", path);
    free(line);
    if (file != stdin)
        fclose(file);
}

static int compare_names(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* No two transfers may write the same file. */
static void reject_clashes(const struct fetch *fetch)
{
    static const char *const suffixes[] = {".part", ".part.from"};
    const char **names = require_memory(malloc(fetch->count * sizeof *names));
    for (size_t i = 0; i < fetch->count; i++)
        names[i] = fetch->transfers[i].name;
    qsort(names, fetch->count, sizeof *names, compare_names);
    for (size_t i = 0; i < fetch->count; i++) {
        if (i > 0 && strcmp(names[i - 1], names[i]) == 0)
            command_line_reject("two URLs have the same file:", names[i]);
        for (int j = 0; j < 2; j++) {
            char other[MAX_NAME + 16];
            const char *key = other;
            snprintf(other, sizeof other, "%s%s", names[i], suffixes[j]);
            if (bsearch(&key, names, fetch->count, sizeof *names, compare_names) != NULL)
                command_line_reject("two URLs need the file", other);
        }
    }
    free(names);
}

/* ---- The command line ---- */

static bool read_flag(struct options *options, const char *name)
{
    if (strcmp(name, "--resume") == 0)
        options->resumes = true;
    else if (strcmp(name, "--skip-finished") == 0)
        options->skips = true;
    else if (strcmp(name, "--no-sync") == 0)
        options->syncs = false;
    else if (strcmp(name, "--http2") == 0 && FETCH_HAS_HTTP2)
        options->uses_http2 = true;
    else if (strcmp(name, "--insecure") == 0)
        options->verifies = false;
    else if (strcmp(name, "--sha256") == 0)
        options->prints_sums = true;
    else if (strcmp(name, "--quiet") == 0)
        options->is_quiet = true;
    else
        return false;
    return true;
}

/* Hides credentials from lists of processes. */
static void read_user(struct options *options, char *value)
{
    headers_add_user(options, value);
    memset(value, '*', strlen(value));
}

static void read_option(struct options *options, const char *name, char *value)
{
    if (strcmp(name, "--header") == 0)
        headers_add(options, value);
    else if (strcmp(name, "--user") == 0)
        read_user(options, value);
    else if (strcmp(name, "--user-file") == 0)
        headers_add_user_file(options, value);
    else if (strcmp(name, "-o") == 0)
        options->output = value;
    else if (strcmp(name, "-O") == 0)
        options->directory = value;
    else if (strcmp(name, "-j") == 0)
        options->workers = (unsigned)command_line_number(name, value, 1, 256);
    else if (strcmp(name, "--tries") == 0)
        options->tries = (unsigned)command_line_number(name, value, 1, 1000);
    else if (strcmp(name, "--retry-delay") == 0)
        options->retry_delay = command_line_number(name, value, 0, 3600000) * 1000000;
    else if (strcmp(name, "--timeout") == 0)
        options->timeout = command_line_number(name, value, 1, 86400) * 1000000000;
    else if (strcmp(name, "--cacert") == 0)
        options->authorities = value;
    else if (strcmp(name, "--monitor") == 0)
        options->monitor = value;
    else
        command_line_reject("unknown option", name);
}

void options_read(struct fetch *fetch, int argc, char **argv)
{
    struct options *options = &fetch->options;
    const char **urls = require_memory(calloc((size_t)argc, sizeof *urls));
    const char **inputs = require_memory(calloc((size_t)argc, sizeof *inputs));
    size_t url_count = 0, input_count = 0;
    bool options_ended = false;
    *options = (struct options){.workers = 8,
                                .tries = 5,
                                .timeout = UINT64_C(30000000000),
                                .retry_delay = 500000000,
                                .syncs = true,
                                .verifies = true};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (options_ended || name[0] != '-') {
            urls[url_count++] = name;
        } else if (strcmp(name, "--") == 0) {
            options_ended = true;
        } else if (strcmp(name, "--help") == 0) {
            fputs(help, stdout);
            exit(0);
        } else if (!read_flag(options, name)) {
            if (i + 1 == argc)
                command_line_reject("unknown option, or one without a value:", name);
            if (strcmp(name, "--input") == 0)
                inputs[input_count++] = argv[++i];
            else
                read_option(options, name, argv[++i]);
        }
    }
    for (size_t i = 0; i < url_count; i++)
        add_transfer(fetch, urls[i], NULL, NULL);
    for (size_t i = 0; i < input_count; i++)
        add_from_file(fetch, inputs[i]);
    free(urls);
    free(inputs);
    if (fetch->count == 0 && input_count == 0)
        command_line_reject("expected a URL", "");
    if (options->prints_sums && !digest_is_available())
        command_line_reject("fetch was built without SHA-256, which is needed for", "--sha256");
    if (options->output != NULL) {
        if (fetch->count != 1)
            command_line_reject("-o takes exactly one URL:", options->output);
        if (options->output[0] == 0 || strlen(options->output) >= MAX_NAME)
            command_line_reject("invalid file name:", options->output);
        strcpy(fetch->transfers[0].name, options->output);
    }
    if (fetch->count > 0)
        reject_clashes(fetch);
}
