/*
 * A reverse proxy for TCP and HTTP.
 *
 *     proxy [--check] FILE
 *     proxy --listen ADDRESS --server ADDRESS...
 *
 * docs: bide-proxy.1 beside this file.
 */
#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: proxy [--check] FILE\n"
    "       proxy [--listen ADDRESS] --server ADDRESS... [OPTION...]\n"
    "\n"
    "A reverse proxy for TCP and HTTP. FILE is its configuration: see bide-proxy(1). Without\n"
    "one, these options say what to do:\n"
    "  --listen ADDRESS      listens there; 127.0.0.1:0, any free port, if there is none\n"
    "  --server ADDRESS      a server to connect to; '10.0.0.1:80 weight 2'; may be repeated\n"
    "  --http                is a proxy of HTTP; otherwise of TCP\n"
    "  --least-connections   chooses the server that has the fewest; otherwise each in turn\n"
    "  --accept-proxy        expects the PROXY protocol of clients\n"
    "  --send-proxy v1|v2    sends it to servers\n"
    "  --tls-cert FILE       speaks TLS with clients, by this certificate\n"
    "  --tls-key FILE        ... with this key, if it is not in that file\n"
    "  --log off|stderr|PATH writes its log there; otherwise to standard output\n"
    "  --check               reads the configuration, says what is wrong with it, and ends\n"
    "  --help                prints this\n"
    "The first line that it prints ends with the port. SIGHUP: reads FILE again. SIGUSR1: prints\n"
    "figures. SIGTERM: ends when its connections have, or 30 seconds later.\n";

/* Lines of a configuration, as they come from options. */
struct lines {
    FILE *global, *listen, *backend;
    char *texts[3];
    size_t sizes[3];
    const char *certificate, *key;
};

static void open_lines(struct lines *lines)
{
    FILE **files[3] = {&lines->global, &lines->listen, &lines->backend};
    for (int i = 0; i < 3; i++) {
        *files[i] = open_memstream(&lines->texts[i], &lines->sizes[i]);
        if (*files[i] == NULL)
            abort();
    }
}

/* A file with all of them. */
static FILE *close_lines(struct lines *lines, const char *address, char **text, size_t *size)
{
    FILE *whole = open_memstream(text, size);
    if (whole == NULL)
        abort();
    if (lines->certificate != NULL)
        fprintf(lines->listen, "certificate \"%s\" %s%s%s\n", lines->certificate,
                lines->key != NULL ? "\"" : "", lines->key != NULL ? lines->key : "",
                lines->key != NULL ? "\"" : "");
    fclose(lines->global);
    fclose(lines->listen);
    fclose(lines->backend);
    fprintf(whole, "%slisten %s\nto servers\n%sbackend servers\n%s", lines->texts[0], address,
            lines->texts[1], lines->texts[2]);
    fclose(whole);
    for (int i = 0; i < 3; i++)
        free(lines->texts[i]);
    return fmemopen(*text, *size, "r");
}

enum option_code {
    OPTION_LISTEN = 256,
    OPTION_SERVER,
    OPTION_HTTP,
    MIN_OPTION,
    OPTION_ACCEPT_PROXY,
    OPTION_SEND_PROXY,
    OPTION_CERTIFICATE,
    OPTION_KEY,
    OPTION_LOG,
    OPTION_CHECK,
    OPTION_HELP
};

static const struct option options[] = {
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"server", required_argument, NULL, OPTION_SERVER},
    {"http", no_argument, NULL, OPTION_HTTP},
    {"least-connections", no_argument, NULL, MIN_OPTION},
    {"accept-proxy", no_argument, NULL, OPTION_ACCEPT_PROXY},
    {"send-proxy", required_argument, NULL, OPTION_SEND_PROXY},
    {"tls-cert", required_argument, NULL, OPTION_CERTIFICATE},
    {"tls-key", required_argument, NULL, OPTION_KEY},
    {"log", required_argument, NULL, OPTION_LOG},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

struct command {
    struct lines lines;
    const char *listen;
    bool has_server;
    bool has_lines; /* other options than --check */
    bool is_check;
};

static _Noreturn void misused(const char *why)
{
    fprintf(stderr, "proxy: %s; proxy --help says more\n", why);
    exit(2);
}

static void take_option(struct command *command, int option)
{
    struct lines *lines = &command->lines;
    command->has_lines |= option != OPTION_CHECK;
    switch (option) {
    case OPTION_LISTEN: command->listen = optarg; break;
    case OPTION_SERVER:
        command->has_server = true;
        fprintf(lines->backend, "server %s\n", optarg);
        break;
    case OPTION_HTTP: fputs("mode http\n", lines->listen); break;
    case MIN_OPTION: fputs("balance least-connections\n", lines->backend); break;
    case OPTION_ACCEPT_PROXY: fputs("accept-proxy\n", lines->listen); break;
    case OPTION_SEND_PROXY: fprintf(lines->backend, "send-proxy %s\n", optarg); break;
    case OPTION_CERTIFICATE: lines->certificate = optarg; break;
    case OPTION_KEY: lines->key = optarg; break;
    case OPTION_LOG: fprintf(lines->global, "log \"%s\"\n", optarg); break;
    case OPTION_CHECK: command->is_check = true; break;
    case OPTION_HELP: fputs(help, stdout); exit(0);
    default: exit(2); /* getopt has said why */
    }
}

static struct configuration *read_configuration(struct command *command, const char *path)
{
    char complaint[512], *text = NULL;
    size_t size = 0;
    FILE *file = close_lines(&command->lines, command->listen, &text, &size);
    if (path != NULL && file != NULL) {
        fclose(file);
        file = fopen(path, "re");
    }
    if (file == NULL) {
        fprintf(stderr, "proxy: %s: %s\n", path != NULL ? path : "options", strerror(errno));
        exit(1);
    }
    struct configuration *configuration = configuration_read(
        file, path != NULL ? path : "options", NULL, complaint, sizeof complaint);
    fclose(file);
    free(text);
    if (configuration == NULL) {
        fprintf(stderr, "proxy: %s\n", complaint);
        exit(1);
    }
    return configuration;
}

int main(int argc, char **argv)
{
    static struct program program;
    signal(SIGPIPE, SIG_IGN); /* of a log that is a pipe */
    struct command command = {.listen = "127.0.0.1:0"};
    open_lines(&command.lines);
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        take_option(&command, option);
    const char *path = optind < argc ? argv[optind] : NULL;
    if (argc - optind > 1 || (path != NULL && command.has_lines))
        misused("there is one FILE, or options in its place");
    if (path == NULL && !command.has_server)
        misused("there is neither a FILE nor a --server");
    struct configuration *configuration = read_configuration(&command, path);
    if (command.is_check) {
        configuration_release(configuration);
        return 0;
    }
    int status = program_run(&program, configuration, path);
    if (status < 0)
        fprintf(stderr, "proxy: %s\n", strerror(-status));
    return status < 0;
}
