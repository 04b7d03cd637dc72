/*
 * A reverse proxy for TCP and HTTP: the command line.
 *
 *     proxy [--check] [OPTION...] FILE
 *     proxy --listen ADDRESS --server ADDRESS...
 *
 * The manual is bide-proxy.1 in this directory.
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
    "A reverse proxy for TCP and HTTP. FILE is its configuration: see bide-proxy(1). For simple\n"
    "cases, these options replace it:\n"
    "  --listen ADDRESS      listen on this address (127.0.0.1:0, any free port)\n"
    "  --server ADDRESS      a server to connect to; '10.0.0.1:80 weight 2'; may be repeated\n"
    "  --http                proxy HTTP requests instead of TCP connections\n"
    "  --least-connections   choose the server with the fewest connections; otherwise round robin\n"
    "  --accept-proxy        expect the PROXY protocol from clients\n"
    "  --send-proxy v1|v2    send the PROXY protocol to servers\n"
    "  --tls-cert FILE       use TLS with clients, with this certificate\n"
    "  --tls-key FILE        the certificate's key, if it is in another file\n"
    "  --log off|stderr|PATH write the log there; otherwise to standard output\n"
    "These options go with FILE, too:\n"
    "  --user NAME[:GROUP]   become this user after listening\n"
    "  --chroot DIRECTORY    look up all files, and FILE, inside of this one\n"
    "  --confine auto|on|off limit files and system calls by Landlock and seccomp: if the kernel\n"
    "                        can, or always, or never (auto)\n"
    "  --monitor SOCKET      let bide-top look at the proxy; auto: at the usual place\n"
    "  --handover SOCKET     take over the sockets of the proxy that listens here, and pass them "
    "on\n"
    "                        to the next one: a restart without a gap\n"
    "  --check               check the configuration, report errors, and exit\n"
    "  --help                print this\n"
    "The first line of output ends with the port. SIGHUP reloads FILE. SIGUSR1 prints\n"
    "statistics. SIGTERM stops the proxy when its connections are closed, or 30 seconds later.\n";

/* Lines of a configuration that replace the options. */
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

/* Opens all of the lines as one file. */
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
    OPTION_LEAST_CONNECTIONS,
    OPTION_ACCEPT_PROXY,
    OPTION_SEND_PROXY,
    OPTION_CERTIFICATE,
    OPTION_KEY,
    OPTION_LOG,
    OPTION_USER,
    OPTION_CHROOT,
    OPTION_CONFINE,
    OPTION_MONITOR,
    OPTION_HANDOVER,
    OPTION_CHECK,
    OPTION_HELP
};

static const struct option options[] = {
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"server", required_argument, NULL, OPTION_SERVER},
    {"http", no_argument, NULL, OPTION_HTTP},
    {"least-connections", no_argument, NULL, OPTION_LEAST_CONNECTIONS},
    {"accept-proxy", no_argument, NULL, OPTION_ACCEPT_PROXY},
    {"send-proxy", required_argument, NULL, OPTION_SEND_PROXY},
    {"tls-cert", required_argument, NULL, OPTION_CERTIFICATE},
    {"tls-key", required_argument, NULL, OPTION_KEY},
    {"log", required_argument, NULL, OPTION_LOG},
    {"user", required_argument, NULL, OPTION_USER},
    {"chroot", required_argument, NULL, OPTION_CHROOT},
    {"confine", required_argument, NULL, OPTION_CONFINE},
    {"monitor", required_argument, NULL, OPTION_MONITOR},
    {"handover", required_argument, NULL, OPTION_HANDOVER},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

struct command {
    struct lines lines;
    const char *listen;
    bool has_server;
    bool has_lines; /* options that replace a file */
    bool is_check;
    const char *monitor, *handover;
    struct confine confine;
};

static _Noreturn void exit_with_usage(const char *why)
{
    fprintf(stderr, "proxy: %s; try 'proxy --help'\n", why);
    exit(2);
}

static void apply_option(struct command *command, int option)
{
    struct lines *lines = &command->lines;
    command->has_lines |= option < OPTION_USER;
    switch (option) {
    case OPTION_LISTEN:
        command->listen = optarg;
        break;
    case OPTION_SERVER:
        command->has_server = true;
        fprintf(lines->backend, "server %s\n", optarg);
        break;
    case OPTION_HTTP:
        fputs("mode http\n", lines->listen);
        break;
    case OPTION_LEAST_CONNECTIONS:
        fputs("balance least-connections\n", lines->backend);
        break;
    case OPTION_ACCEPT_PROXY:
        fputs("accept-proxy\n", lines->listen);
        break;
    case OPTION_SEND_PROXY:
        fprintf(lines->backend, "send-proxy %s\n", optarg);
        break;
    case OPTION_CERTIFICATE:
        lines->certificate = optarg;
        break;
    case OPTION_KEY:
        lines->key = optarg;
        break;
    case OPTION_LOG:
        fprintf(lines->global, "log \"%s\"\n", optarg);
        break;
    case OPTION_USER:
        command->confine.user = optarg;
        break;
    case OPTION_CHROOT:
        command->confine.chroot = optarg;
        break;
    case OPTION_CONFINE:
        if (!confine_parse_mode(&command->confine, optarg))
            exit_with_usage("--confine takes auto, on or off");
        break;
    case OPTION_MONITOR:
        command->monitor = optarg;
        break;
    case OPTION_HANDOVER:
        command->handover = optarg;
        break;
    case OPTION_CHECK:
        command->is_check = true;
        break;
    case OPTION_HELP:
        fputs(help, stdout);
        exit(0);
    default:
        exit(2); /* getopt has reported the error */
    }
}

static struct configuration *read_configuration(struct command *command, const char *path)
{
    char error_text[512], *text = NULL;
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
    struct configuration *configuration = configuration_read(file, path != NULL ? path : "options",
                                                             NULL, error_text, sizeof error_text);
    fclose(file);
    free(text);
    if (configuration == NULL) {
        fprintf(stderr, "proxy: %s\n", error_text);
        exit(1);
    }
    return configuration;
}

int main(int argc, char **argv)
{
    static struct program program;
    signal(SIGPIPE, SIG_IGN); /* the log may be a pipe */
    struct command command = {.listen = "127.0.0.1:0"};
    confine_init(&command.confine, "proxy");
    open_lines(&command.lines);
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        apply_option(&command, option);
    const char *path = optind < argc ? argv[optind] : NULL;
    if (argc - optind > 1 || (path != NULL && command.has_lines))
        exit_with_usage("expected one FILE, or options instead of it");
    if (path == NULL && !command.has_server)
        exit_with_usage("expected a FILE or a --server");
    confine_enter(&command.confine);
    struct configuration *configuration = read_configuration(&command, path);
    if (command.is_check) {
        configuration_release(configuration);
        return 0;
    }
    int status = program_run(&program, configuration, path, &command.confine, command.monitor,
                             command.handover);
    if (status < 0)
        fprintf(stderr, "proxy: %s\n", strerror(-status));
    return status < 0;
}
