/* The command line of kv. */
#include "options.h"

#include "../common/command_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const char program_name[] = "kv";

static const char help[] =
    "usage: kv [OPTION VALUE]...\n"
    "\n"
    "A key-value server for redis clients (RESP2 and RESP3).\n"
    "\n"
    "  --port N               listen on this port; 0, the default, means any free port; none: on "
    "no "
    "port\n"
    "  --tls-port N           listen with TLS on this port, too; 0 means any free port\n"
    "  --tls-cert FILE        the certificate for it in PEM, with its chain\n"
    "  --tls-key FILE         its private key, unless that is in the certificate's file\n"
    "  --tls-ca FILE          the authorities of clients' certificates\n"
    "  --tls-auth-clients WHEN\n"
    "                         yes: clients need a certificate of these; optional: one that is sent "
    "must\n"
    "                         be good; no (with --tls-ca yes, otherwise no)\n"
    "  --bind ADDRESS         listen on this address (127.0.0.1)\n"
    "  --unix-socket PATH     listen there too\n"
    "  --unix-socket-mode N   the mode of that file, in octal digits (600)\n"
    "  --append-only FILE     log each change to this file, and load it at startup\n"
    "  --fsync WHEN           sync that file always (before the reply), everysec or no (everysec)\n"
    "  --snapshot FILE        SAVE, BGSAVE and shutdown write all keys here; loaded at startup\n"
    "                         unless there is an append-only file\n"
    "  --save-every SECONDS   also write it this often if keys have changed; 0 means never (0)\n"
    "  --password-file FILE   clients must send the first line of this file, with AUTH\n"
    "  --protected-mode WHEN  yes: without a password, only clients on this machine are served "
    "(yes)\n"
    "  --clients N            the maximum of connections (10000)\n"
    "  --bulk BYTES           the largest key or value (536870912)\n"
    "  --request BYTES        the largest request (1073741824)\n"
    "  --reply BYTES          the largest reply of several values (67108864)\n"
    "  --backlog BYTES        the most that is buffered for a subscriber (33554432)\n"
    "  --patterns N           the most patterns that a client may subscribe to (10000)\n"
    "  --max-memory BYTES     the most memory of keys, values, subscriptions and what clients wait "
    "for;\n"
    "                         0 means no limit (0)\n"
    "  --eviction POLICY      keys that are removed for it: allkeys-lru, allkeys-lfu, "
    "allkeys-random,\n"
    "                         volatile-lru, volatile-lfu, volatile-random, volatile-ttl or "
    "noeviction\n"
    "                         (noeviction)\n"
    "  --lfu-log-factor N     how many uses make a key frequent, for the policies with lfu (10)\n"
    "  --lfu-decay-time N     minutes without a use that make it less frequent (1)\n"
    "  --notify CLASSES       send messages of changes of keys, as notify-keyspace-events of "
    "redis: "
    "some\n"
    "                         of KEg$lshzxemnA; '' means none ('')\n"
    "  --user NAME[:GROUP]    become this user before any file is opened\n"
    "  --chroot DIRECTORY     look up all files inside of this one\n"
    "  --confine auto|on|off  limit files and system calls by Landlock and seccomp: if the kernel\n"
    "                         can, or always, or never (auto)\n"
    "  --monitor SOCKET       let bide-top look at the server; auto: at the usual place\n"
    "  --check FILE           check an append-only file or a snapshot, and do nothing else: 0 if\n"
    "                         it is intact, 1 if not\n"
    "  --help                 print this\n"
    "\n"
    "The first line of output ends with the port. SIGTERM and SIGINT stop the server: requests "
    "that\n"
    "have arrived are answered, and all changes are on the disk.\n";

static enum fsync parse_fsync(const char *text)
{
    static const char *const names[] = {"always", "everysec", "no"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0)
            return (enum fsync)i;
    }
    command_line_reject("--fsync takes always, everysec or no, not", text);
}

static enum eviction parse_eviction(const char *text)
{
    enum eviction policy;
    if (!eviction_read(bytes_of(text), &policy))
        command_line_reject("--eviction takes a policy of redis, not", text);
    return policy;
}

static unsigned parse_notify(const char *text)
{
    unsigned classes;
    if (!notify_read(bytes_of(text), &classes))
        command_line_reject("--notify takes letters of Ag$lshzxeKEtmdn, not", text);
    return classes;
}

static bool parse_protected(const char *text)
{
    if (strcmp(text, "yes") == 0 || strcmp(text, "no") == 0)
        return text[0] == 'y';
    command_line_reject("--protected-mode takes yes or no, not", text);
}

const char *const tls_clients_names[3] = {"no", "optional", "yes"};

static enum tls_clients parse_tls_clients(const char *text)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, tls_clients_names[i]) == 0)
            return (enum tls_clients)i;
    }
    command_line_reject("--tls-auth-clients takes yes, no or optional, not", text);
}

/* Parses the value of --port. */
static void parse_port(struct options *options, const char *text)
{
    options->has_port = strcmp(text, "none") != 0;
    options->port =
        options->has_port ? (unsigned)command_line_number("--port", text, 0, UINT16_MAX) : 0;
}

static mode_t parse_mode(const char *text)
{
    char *end;
    unsigned long mode = strtoul(text, &end, 8);
    if (text[0] < '0' || text[0] > '7' || *end != '\0' || mode > 0777)
        command_line_reject("--unix-socket-mode takes octal digits up to 777, not", text);
    return (mode_t)mode;
}

/* The first line of the file. (An argument would be shown to all users of the machine.) */
static char *read_password(const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size = file != NULL ? getline(&line, &capacity, file) : -1;
    if (size > 0 && line[size - 1] == '\n')
        line[--size] = '\0';
    if (size <= 0 || (size_t)size != strlen(line)) {
        fprintf(stderr, "kv: %s: %s\n", path,
                file == NULL ? strerror(errno) : "its first line is no password");
        exit(1);
    }
    fclose(file);
    return line;
}

/* Parses an option of TLS. Returns false if it is none. */
static bool parse_tls_option(struct options *options, const char *name, const char *value)
{
    if (strcmp(name, "--tls-port") == 0) {
        options->has_tls_port = true;
        options->tls_port = (unsigned)command_line_number(name, value, 0, UINT16_MAX);
    } else if (strcmp(name, "--tls-cert") == 0) {
        options->tls_cert = value;
    } else if (strcmp(name, "--tls-key") == 0) {
        options->tls_key = value;
    } else if (strcmp(name, "--tls-ca") == 0) {
        options->tls_ca = value;
    } else {
        return false;
    }
    return true;
}

/* Rejects options that do not go together. `tls_clients` is the value of --tls-auth-clients, or NULL. */
static void check_listeners(struct options *options, const char *tls_clients)
{
    if (!options->has_port && !options->has_tls_port && options->unix_socket == NULL)
        command_line_reject("without a port there must be", "--tls-port or --unix-socket");
    if (options->has_tls_port && options->tls_cert == NULL)
        command_line_reject("--tls-port needs", "--tls-cert");
    const char *of_tls = options->tls_cert != NULL  ? "--tls-cert"
                         : options->tls_key != NULL ? "--tls-key"
                         : options->tls_ca != NULL  ? "--tls-ca"
                         : tls_clients != NULL      ? "--tls-auth-clients"
                                                    : NULL;
    if (!options->has_tls_port && of_tls != NULL)
        command_line_reject(of_tls, "needs --tls-port");
    if (options->tls_ca != NULL)
        options->tls_clients = TLS_CLIENTS_REQUIRED;
    if (tls_clients != NULL)
        options->tls_clients = parse_tls_clients(tls_clients);
    if (options->tls_clients != TLS_CLIENTS_ANONYMOUS && options->tls_ca == NULL)
        command_line_reject("--tls-auth-clients needs", "--tls-ca");
}

void options_read(struct options *options, int argc, char **argv)
{
    const size_t largest = UINT32_C(1) << 30;
    const char *tls_clients = NULL;
    *options = (struct options){.address = "127.0.0.1",
                                .has_port = true,
                                .unix_socket_mode = 0600,
                                .fsync = FSYNC_EACH_SECOND,
                                .is_protected = true,
                                .clients = 10000,
                                .bulk = 512 << 20,
                                .request = largest,
                                .reply = 64 << 20,
                                .backlog = 32 << 20,
                                .patterns = 10000,
                                .eviction = EVICTION_NONE,
                                .lfu_log_factor = 10,
                                .lfu_decay_time = 1};
    confine_init(&options->confine, program_name);
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--help") == 0) {
            fputs(help, stdout);
            exit(0);
        }
        if (strncmp(name, "--", 2) != 0)
            command_line_reject("unexpected argument", name);
        if (value == NULL)
            command_line_reject("unknown option, or one without a value:", name);
        if (strcmp(name, "--port") == 0)
            parse_port(options, value);
        else if (strcmp(name, "--tls-auth-clients") == 0)
            tls_clients = value;
        else if (parse_tls_option(options, name, value))
            ; /* it is set */
        else if (strcmp(name, "--bind") == 0)
            options->address = value;
        else if (strcmp(name, "--unix-socket") == 0)
            options->unix_socket = value;
        else if (strcmp(name, "--unix-socket-mode") == 0)
            options->unix_socket_mode = parse_mode(value);
        else if (strcmp(name, "--check") == 0)
            options->check = value;
        else if (strcmp(name, "--user") == 0)
            options->confine.user = value;
        else if (strcmp(name, "--chroot") == 0)
            options->confine.chroot = value;
        else if (strcmp(name, "--confine") == 0 && confine_parse_mode(&options->confine, value))
            ; /* it is set */
        else if (strcmp(name, "--monitor") == 0)
            options->monitor = value;
        else if (strcmp(name, "--append-only") == 0)
            options->append_only = value;
        else if (strcmp(name, "--fsync") == 0)
            options->fsync = parse_fsync(value);
        else if (strcmp(name, "--snapshot") == 0)
            options->snapshot = value;
        else if (strcmp(name, "--save-every") == 0)
            options->save_every = command_line_number(name, value, 0, 1000000000);
        else if (strcmp(name, "--password-file") == 0)
            options->password = read_password(value);
        else if (strcmp(name, "--protected-mode") == 0)
            options->is_protected = parse_protected(value);
        else if (strcmp(name, "--clients") == 0)
            options->clients = command_line_number(name, value, 1, 1 << 20);
        else if (strcmp(name, "--bulk") == 0)
            options->bulk = command_line_number(name, value, 64, 512 << 20);
        else if (strcmp(name, "--request") == 0)
            options->request = command_line_number(name, value, 1024, largest);
        else if (strcmp(name, "--reply") == 0)
            options->reply = command_line_number(name, value, 1024, largest);
        else if (strcmp(name, "--backlog") == 0)
            options->backlog = command_line_number(name, value, 1024, largest);
        else if (strcmp(name, "--patterns") == 0)
            options->patterns = command_line_number(name, value, 0, 1 << 20);
        else if (strcmp(name, "--max-memory") == 0)
            options->max_memory = command_line_number(name, value, 0, SIZE_MAX >> 1);
        else if (strcmp(name, "--eviction") == 0)
            options->eviction = parse_eviction(value);
        else if (strcmp(name, "--lfu-log-factor") == 0)
            options->lfu_log_factor = command_line_number(name, value, 0, INT32_MAX);
        else if (strcmp(name, "--lfu-decay-time") == 0)
            options->lfu_decay_time = command_line_number(name, value, 0, INT32_MAX);
        else if (strcmp(name, "--notify") == 0)
            options->notify = parse_notify(value);
        else
            command_line_reject("unknown option", name);
    }
    check_listeners(options, tls_clients);
}
