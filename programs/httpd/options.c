/* The command line of httpd. */
#include "options.h"

#include "../common/command_line.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char program_name[] = "httpd";

static const char help[] =
    "usage: httpd [OPTION...] DIRECTORY\n"
    "\n"
    "A web server for the files in DIRECTORY and its subdirectories, with directory listings.\n"
    "\n"
    "  --port N                  listen on this port; 0, the default, means any free port\n"
    "  --bind ADDRESS            listen on this address (127.0.0.1)\n"
    "  --tls-cert FILE           use TLS with this certificate and its chain; may be repeated: "
    "the\n"
    "                            name that the client requests selects one\n"
    "  --tls-key FILE            the certificate's key, if it is in another file\n"
    "  --tls-ocsp FILE           the certificate's status, an OCSP response in DER, for clients "
    "that ask\n"
    "  --tls-key-log FILE        append the secrets of connections there, for debugging\n"
    "  --log FILE                log a line for each request there; - is standard output\n"
    "  --error-log FILE          log incidents there, such as refused requests; - is standard\n"
    "                            output; by default on standard error\n"
    "  --log-format FORMAT       common or combined (combined)\n"
    "  --connections N           the maximum; more of them wait (10000, or what descriptors "
    "allow)\n"
    "  --header-timeout SECONDS  for a TLS handshake, and for the head of a request (10)\n"
    "  --body-timeout SECONDS    between two pieces of a body, sent or received (30)\n"
    "  --idle-timeout SECONDS    between two requests of a connection (60)\n"
    "  --request-timeout SECONDS for a whole request with its response (3600)\n"
    "  --grace SECONDS           for requests in progress at shutdown (30)\n"
    "  --threads N               the number of loops, each on its own thread (1)\n"
    "  --back-end NAME           uring, epoll or poll; by default the best available one\n"
    "  --cache-control VALUE     the Cache-Control of all files\n"
    "  --compress                compress texts by gzip for clients that accept it\n"
    "  --no-listings             answer 404 for a directory without an index.html\n"
    "  --follow-links            follow symbolic links inside the directory\n"
    "  --hidden                  also serve names that begin with a dot\n"
    "  --user NAME[:GROUP]       become this user after listening\n"
    "  --chroot DIRECTORY        look up all files, and DIRECTORY, inside of this one\n"
    "  --confine auto|on|off     limit files and system calls by Landlock and seccomp: if the\n"
    "                            kernel can, or always, or never (auto)\n"
    "  --monitor SOCKET          let bide-top look at the server; auto: at the usual place\n"
    "  --help                    print this\n"
    "\n"
    "The first line of output ends with the port. SIGHUP reloads certificates and reopens the "
    "logs.\n"
    "SIGUSR1 prints statistics. SIGTERM stops the server when requests in progress are finished;\n"
    "the second SIGTERM stops it at once.\n";

enum option_code {
    OPTION_PORT = 256,
    OPTION_BIND,
    OPTION_CERTIFICATE,
    OPTION_KEY,
    OPTION_STATUS,
    OPTION_KEY_LOG,
    OPTION_LOG,
    OPTION_ERROR_LOG,
    OPTION_LOG_FORMAT,
    OPTION_CONNECTIONS,
    OPTION_HEADER_TIMEOUT,
    OPTION_BODY_TIMEOUT,
    OPTION_IDLE_TIMEOUT,
    OPTION_REQUEST_TIMEOUT,
    OPTION_GRACE,
    OPTION_THREADS,
    OPTION_BACK_END,
    OPTION_CACHE_CONTROL,
    OPTION_COMPRESS,
    OPTION_NO_LISTINGS,
    OPTION_FOLLOW_LINKS,
    OPTION_HIDDEN,
    OPTION_USER,
    OPTION_CHROOT,
    OPTION_CONFINE,
    OPTION_MONITOR,
    OPTION_HELP
};

static const struct option names[] = {
    {"port", required_argument, NULL, OPTION_PORT},
    {"bind", required_argument, NULL, OPTION_BIND},
    {"tls-cert", required_argument, NULL, OPTION_CERTIFICATE},
    {"tls-key", required_argument, NULL, OPTION_KEY},
    {"tls-ocsp", required_argument, NULL, OPTION_STATUS},
    {"tls-key-log", required_argument, NULL, OPTION_KEY_LOG},
    {"log", required_argument, NULL, OPTION_LOG},
    {"error-log", required_argument, NULL, OPTION_ERROR_LOG},
    {"log-format", required_argument, NULL, OPTION_LOG_FORMAT},
    {"connections", required_argument, NULL, OPTION_CONNECTIONS},
    {"header-timeout", required_argument, NULL, OPTION_HEADER_TIMEOUT},
    {"body-timeout", required_argument, NULL, OPTION_BODY_TIMEOUT},
    {"idle-timeout", required_argument, NULL, OPTION_IDLE_TIMEOUT},
    {"request-timeout", required_argument, NULL, OPTION_REQUEST_TIMEOUT},
    {"grace", required_argument, NULL, OPTION_GRACE},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"back-end", required_argument, NULL, OPTION_BACK_END},
    {"cache-control", required_argument, NULL, OPTION_CACHE_CONTROL},
    {"compress", no_argument, NULL, OPTION_COMPRESS},
    {"no-listings", no_argument, NULL, OPTION_NO_LISTINGS},
    {"follow-links", no_argument, NULL, OPTION_FOLLOW_LINKS},
    {"hidden", no_argument, NULL, OPTION_HIDDEN},
    {"user", required_argument, NULL, OPTION_USER},
    {"chroot", required_argument, NULL, OPTION_CHROOT},
    {"confine", required_argument, NULL, OPTION_CONFINE},
    {"monitor", required_argument, NULL, OPTION_MONITOR},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static unsigned parse_count(const char *name, unsigned min, unsigned max)
{
    char option[32];
    snprintf(option, sizeof option, "--%s", name);
    return (unsigned)command_line_number(option, optarg, min, max);
}

/* Parses seconds, with a precision of milliseconds. */
static uint64_t parse_seconds(const char *name, double min)
{
    const double max = 1e9;
    char *end;
    double value = strtod(optarg, &end);
    if (end == optarg || *end != '\0' || !(value >= min && value <= max)) {
        fprintf(stderr, "httpd: --%s takes seconds, %g or more, not '%s'\n", name, min, optarg);
        exit(2);
    }
    return (uint64_t)(value * 1000) * UINT64_C(1000000);
}

static void add_certificate(struct options *options)
{
    if (options->certificate_count == MAX_CERTIFICATES)
        command_line_reject("too many of --tls-cert", "");
    options->certificates[options->certificate_count++] = optarg;
}

static void set_key(struct options *options)
{
    if (options->certificate_count == 0 || options->keys[options->certificate_count - 1] != NULL)
        command_line_reject("--tls-key must follow its --tls-cert", "");
    options->keys[options->certificate_count - 1] = optarg;
}

static void set_status(struct options *options)
{
    if (options->certificate_count == 0 ||
        options->statuses[options->certificate_count - 1] != NULL)
        command_line_reject("--tls-ocsp must follow its --tls-cert", "");
    options->statuses[options->certificate_count - 1] = optarg;
}

static void set_log_format(struct options *options)
{
    if (strcmp(optarg, "common") == 0)
        options->log_format = BIDE_HTTP_LOG_COMMON;
    else if (strcmp(optarg, "combined") == 0)
        options->log_format = BIDE_HTTP_LOG_COMBINED;
    else
        command_line_reject("--log-format takes common or combined, not", optarg);
}

static void set_back_end(struct options *options)
{
    if (strcmp(optarg, "uring") == 0)
        options->back_end = BIDE_LOOP_URING;
    else if (strcmp(optarg, "epoll") == 0)
        options->back_end = BIDE_LOOP_EPOLL;
    else if (strcmp(optarg, "poll") == 0)
        options->back_end = BIDE_LOOP_POLL;
    else
        command_line_reject("--back-end takes uring, epoll or poll, not", optarg);
}

static void apply_option(struct options *options, int code, const char *name)
{
    const double min = 0.001;
    switch (code) {
    case OPTION_PORT:
        options->port = parse_count(name, 0, UINT16_MAX);
        break;
    case OPTION_BIND:
        options->address = optarg;
        break;
    case OPTION_CERTIFICATE:
        add_certificate(options);
        break;
    case OPTION_KEY:
        set_key(options);
        break;
    case OPTION_STATUS:
        set_status(options);
        break;
    case OPTION_KEY_LOG:
        options->key_log = optarg;
        break;
    case OPTION_LOG:
        options->log = optarg;
        break;
    case OPTION_ERROR_LOG:
        options->error_log = optarg;
        break;
    case OPTION_LOG_FORMAT:
        set_log_format(options);
        break;
    case OPTION_CONNECTIONS:
        options->connections = parse_count(name, 1, 1 << 20);
        options->has_connections = true;
        break;
    case OPTION_HEADER_TIMEOUT:
        options->header_timeout = parse_seconds(name, min);
        break;
    case OPTION_BODY_TIMEOUT:
        options->body_timeout = parse_seconds(name, min);
        break;
    case OPTION_IDLE_TIMEOUT:
        options->idle_timeout = parse_seconds(name, min);
        break;
    case OPTION_REQUEST_TIMEOUT:
        options->request_timeout = parse_seconds(name, min);
        break;
    case OPTION_GRACE:
        options->grace = parse_seconds(name, 0);
        break;
    case OPTION_THREADS:
        options->threads = parse_count(name, 1, MAX_THREADS);
        break;
    case OPTION_BACK_END:
        set_back_end(options);
        break;
    case OPTION_CACHE_CONTROL:
        options->cache_control = optarg;
        break;
    case OPTION_COMPRESS:
        options->compresses = true;
        break;
    case OPTION_NO_LISTINGS:
        options->lists = false;
        break;
    case OPTION_FOLLOW_LINKS:
        options->follows_links = true;
        break;
    case OPTION_HIDDEN:
        options->has_hidden = true;
        break;
    case OPTION_USER:
        options->confine.user = optarg;
        break;
    case OPTION_CHROOT:
        options->confine.chroot = optarg;
        break;
    case OPTION_CONFINE:
        if (!confine_parse_mode(&options->confine, optarg))
            command_line_reject("--confine takes auto, on or off, not", optarg);
        break;
    case OPTION_MONITOR:
        options->monitor = optarg;
        break;
    case OPTION_HELP:
        fputs(help, stdout);
        exit(0);
    default:
        exit(2); /* getopt has reported the error */
    }
}

void options_read(struct options *options, int argc, char **argv)
{
    const uint64_t second = UINT64_C(1000000000);
    *options = (struct options){.address = "127.0.0.1",
                                .log_format = BIDE_HTTP_LOG_COMBINED,
                                .connections = 10000,
                                .threads = 1,
                                .header_timeout = 10 * second,
                                .body_timeout = 30 * second,
                                .idle_timeout = 60 * second,
                                .request_timeout = 3600 * second,
                                .grace = 30 * second,
                                .lists = true};
    confine_init(&options->confine, program_name);
    int index = 0;
    for (int code; (code = getopt_long(argc, argv, "", names, &index)) != -1;)
        apply_option(options, code, code != '?' ? names[index].name : "");
    if (argc - optind != 1)
        command_line_reject("expected one DIRECTORY", "");
    if (options->key_log != NULL && options->certificate_count == 0)
        command_line_reject("--tls-key-log needs --tls-cert", "");
    options->directory = argv[optind];
}
