/* CONFIG: the server's options, as parameters. Some can be set while the server runs. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>

enum parameter_kind {
    FIXED_TEXT,   /* these cannot be set */
    FIXED_NUMBER, /* ... */
    NUMBER_VALUE,
    SIZE_VALUE,   /* bytes, also as 16kb, 16mb, 1gb */
    SWITCH_VALUE, /* yes or no */
    POLICY_VALUE, /* of eviction */
    NOTIFY_VALUE  /* classes of notifications */
};

struct parameter {
    const char *name;
    enum parameter_kind kind;
    const char *text;      /* FIXED_TEXT */
    uint64_t number;       /* FIXED_NUMBER, NUMBER_VALUE, SIZE_VALUE: as it is now */
    size_t *size;          /* NUMBER_VALUE, SIZE_VALUE: its place */
    bool *is_on;           /* SWITCH_VALUE: its place */
    enum eviction *policy; /* POLICY_VALUE: its place */
    unsigned *classes;     /* NOTIFY_VALUE: its place */
    uint64_t min, max;
};

enum {
    PARAMETERS = 27,
    MAX_PATTERNS = 64, /* of CONFIG GET */
    MAX_PATTERN_BYTES = 2048
};

static const char *text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* All parameters of the server, with their places in its options. */
static void list_parameters(struct kv *kv, struct parameter parameters[PARAMETERS])
{
    static const char *const fsyncs[] = {"always", "everysec", "no"};
    struct options *options = &kv->options;
    const uint64_t largest = UINT64_C(1) << 30;
    static char mode[8];
    (void)snprintf(mode, sizeof mode, "%o", (unsigned)options->unix_socket_mode);
    const char *appends = options->append_only != NULL ? "yes" : "no";
    const struct parameter all[PARAMETERS] = {
        {"appendfsync", FIXED_TEXT, .text = fsyncs[options->fsync]},
        {"appendonly", FIXED_TEXT, .text = appends},
        {"backlog", SIZE_VALUE, .size = &options->backlog, .min = 1024, .max = largest},
        {"bind", FIXED_TEXT, .text = options->address},
        {"client-query-buffer-limit", SIZE_VALUE, .size = &options->request, .min = 1024,
         .max = largest},
        {"daemonize", FIXED_TEXT, .text = "no"},
        {"databases", FIXED_NUMBER, .number = 1},
        {"lfu-decay-time", NUMBER_VALUE, .size = &options->lfu_decay_time, .max = INT32_MAX},
        {"lfu-log-factor", NUMBER_VALUE, .size = &options->lfu_log_factor, .max = INT32_MAX},
        {"maxclients", FIXED_NUMBER, .number = options->clients},
        {"maxmemory", SIZE_VALUE, .size = &options->max_memory, .max = SIZE_MAX >> 1},
        {"maxmemory-policy", POLICY_VALUE, .policy = &options->eviction},
        {"notify-keyspace-events", NOTIFY_VALUE, .classes = &options->notify},
        {"patterns", SIZE_VALUE, .size = &options->patterns, .max = 1 << 20},
        {"port", FIXED_NUMBER, .number = options->port},
        {"proto-max-bulk-len", SIZE_VALUE, .size = &options->bulk, .min = 64, .max = 512 << 20},
        {"protected-mode", SWITCH_VALUE, .is_on = &options->is_protected},
        {"reply", SIZE_VALUE, .size = &options->reply, .min = 1024, .max = largest},
        {"save", FIXED_TEXT, .text = ""},
        {"save-every", FIXED_NUMBER, .number = options->save_every},
        {"tls-auth-clients", FIXED_TEXT, .text = tls_clients_names[options->tls_clients]},
        {"tls-ca-cert-file", FIXED_TEXT, .text = text_or_empty(options->tls_ca)},
        {"tls-cert-file", FIXED_TEXT, .text = text_or_empty(options->tls_cert)},
        {"tls-key-file", FIXED_TEXT, .text = text_or_empty(options->tls_key)},
        {"tls-port", FIXED_NUMBER, .number = options->tls_port},
        {"unixsocket", FIXED_TEXT, .text = kv->unix_path.path},
        {"unixsocketperm", FIXED_TEXT, .text = mode},
    };
    memcpy(parameters, all, sizeof all);
    for (size_t i = 0; i < PARAMETERS; i++) {
        if (parameters[i].size != NULL)
            parameters[i].number = *parameters[i].size;
    }
}

/* ---- GET ---- */

static void reply_parameter(struct client *client, const struct parameter *parameter)
{
    char text[NUMBER_SIZE + NOTIFY_TEXT];
    const char *value = text;
    reply_bulk(client, bytes_of(parameter->name));
    if (parameter->kind == FIXED_TEXT)
        value = parameter->text;
    else if (parameter->kind == POLICY_VALUE)
        value = eviction_names[*parameter->policy];
    else if (parameter->kind == NOTIFY_VALUE)
        notify_print(*parameter->classes, text);
    else if (parameter->kind == SWITCH_VALUE)
        value = *parameter->is_on ? "yes" : "no";
    else
        (void)snprintf(text, sizeof text, "%" PRIu64, parameter->number);
    reply_bulk(client, bytes_of(value));
}

/* CONFIG GET pattern [pattern ...] */
static void get_parameters(struct client *client)
{
    struct parameter parameters[PARAMETERS];
    size_t patterns = client->request.count - 2, size = 0, begin, count = 0;
    for (size_t i = 0; i < patterns && patterns <= MAX_PATTERNS; i++)
        size += client_argument(client, i + 2).size;
    if (patterns > MAX_PATTERNS || size > MAX_PATTERN_BYTES) {
        reply_error(client, "-ERR CONFIG GET may have %d patterns of %d bytes together",
                    MAX_PATTERNS, MAX_PATTERN_BYTES);
        return;
    }
    client->kv->work += size;
    begin = reply_start_array(client);
    list_parameters(client->kv, parameters);
    for (size_t i = 0; i < PARAMETERS; i++) {
        bool found = false;
        for (size_t j = 2; j < client->request.count; j++, client->kv->work++)
            found |= bytes_match(bytes_of(parameters[i].name), client_argument(client, j),
                                 &client->kv->work);
        if (!found)
            continue;
        reply_parameter(client, &parameters[i]);
        count++;
    }
    reply_finish_map(client, begin, count);
}

/* ---- SET ---- */

/* Compares without regard to capital letters. */
static bool is_name_of(const struct parameter *parameter, struct bytes name)
{
    size_t size = strlen(parameter->name);
    for (size_t i = 0; i < name.size && i < size; i++) {
        char c = name.data[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c) != parameter->name[i])
            return false;
    }
    return name.size == size;
}

/* Parses a number with a unit, as redis has it: k is 1000, kb 1024. */
static bool read_size(struct bytes text, uint64_t *size)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {{"", 1},        {"B", 1},        {"K", 1000},       {"KB", 1 << 10},
                 {"M", 1000000}, {"MB", 1 << 20}, {"G", 1000000000}, {"GB", 1 << 30}};
    size_t digits = 0;
    int64_t number;
    while (digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    if (!number_read((struct bytes){text.data, digits}, &number))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (bytes_are((struct bytes){text.data + digits, text.size - digits}, units[i].name))
            return !__builtin_mul_overflow((uint64_t)number, units[i].factor, size);
    }
    return false;
}

static const char *read_policy(struct bytes text, uint64_t *value)
{
    enum eviction policy;
    if (!eviction_read(text, &policy))
        return "argument(s) must be one of the following: volatile-lru, volatile-lfu, "
               "volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, "
               "noeviction";
    *value = policy;
    return NULL;
}

static const char *read_number(const struct parameter *parameter, struct bytes text,
                               uint64_t *value)
{
    int64_t number;
    if (!number_read(text, &number))
        return "argument couldn't be parsed into an integer";
    *value = (uint64_t)number;
    return *value >= parameter->min && *value <= parameter->max
               ? NULL
               : "argument must be between 0 and 2147483647 inclusive";
}

static const char *read_classes(struct bytes text, uint64_t *value)
{
    unsigned classes;
    if (!notify_read(text, &classes))
        return "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
    *value = classes;
    return NULL;
}

/* Reads a value for the parameter. Returns NULL, or why it is wrong. */
static const char *read_value(const struct parameter *parameter, struct bytes text, uint64_t *value)
{
    if (parameter->kind == FIXED_TEXT || parameter->kind == FIXED_NUMBER)
        return "can't set immutable config";
    if (parameter->kind == SWITCH_VALUE) {
        *value = bytes_are(text, "YES");
        return *value || bytes_are(text, "NO") ? NULL : "argument must be 'yes' or 'no'";
    }
    if (parameter->kind == POLICY_VALUE)
        return read_policy(text, value);
    if (parameter->kind == NOTIFY_VALUE)
        return read_classes(text, value);
    if (parameter->kind == NUMBER_VALUE)
        return read_number(parameter, text, value);
    if (!read_size(text, value))
        return "argument must be a memory value";
    return *value >= parameter->min && *value <= parameter->max ? NULL : "argument is out of range";
}

static void set_parameter(const struct parameter *parameter, uint64_t value)
{
    if (parameter->kind == SWITCH_VALUE)
        *parameter->is_on = value != 0;
    else if (parameter->kind == POLICY_VALUE)
        *parameter->policy = (enum eviction)value;
    else if (parameter->kind == NOTIFY_VALUE)
        *parameter->classes = (unsigned)value;
    else
        *parameter->size = (size_t)value;
}

void config_apply(struct kv *kv)
{
    const struct options *options = &kv->options;
    kv->limits.bulk = options->bulk;
    kv->limits.total = options->request;
    kv->keys.uses.are_counted = eviction_counts_uses(options->eviction);
    kv->keys.uses.log_factor = options->lfu_log_factor;
    kv->keys.uses.decay_time = options->lfu_decay_time;
    notify_classes_changed(kv);
}

/* CONFIG SET name value [name value ...]: all of them, or none if one is wrong. */
static void set_parameters(struct client *client)
{
    struct kv *kv = client->kv;
    struct parameter parameters[PARAMETERS];
    uint64_t values[PARAMETERS];
    bool is_set[PARAMETERS] = {false};
    list_parameters(kv, parameters);
    for (size_t i = 2; i + 1 < client->request.count; i += 2) {
        struct bytes name = client_argument(client, i);
        const char *wrong = NULL;
        size_t at = 0;
        while (at < PARAMETERS && !is_name_of(&parameters[at], name))
            at++;
        client->kv->work += at;
        if (at == PARAMETERS) {
            reply_error(client,
                        "-ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
                        name.size < 64 ? (int)name.size : 64, name.data);
            return;
        }
        wrong = is_set[at]
                    ? "duplicate parameter"
                    : read_value(&parameters[at], client_argument(client, i + 1), &values[at]);
        if (wrong != NULL) {
            reply_error(client, "-ERR CONFIG SET failed (possibly related to argument '%s') - %s",
                        parameters[at].name, wrong);
            return;
        }
        is_set[at] = true;
    }
    for (size_t i = 0; i < PARAMETERS; i++) {
        if (is_set[i])
            set_parameter(&parameters[i], values[i]);
    }
    config_apply(kv);
    reply_ok(client);
}

/* ---- CONFIG ---- */

void command_config(struct client *client)
{
    struct bytes word = client_argument(client, 1);
    size_t count = client->request.count;
    if (bytes_are(word, "GET") && count > 2) {
        get_parameters(client);
    } else if (bytes_are(word, "SET") && count > 2 && count % 2 == 0) {
        set_parameters(client);
    } else if (bytes_are(word, "RESETSTAT") && count == 2) {
        client->kv->commands = client->kv->keys.hits = client->kv->keys.misses = 0;
        client->kv->evictions = 0;
        reply_ok(client);
    } else if (bytes_are(word, "GET") || bytes_are(word, "SET") || bytes_are(word, "RESETSTAT")) {
        reply_error(client, "-ERR wrong number of arguments for 'config|%.*s' command",
                    (int)word.size, word.data);
    } else {
        reply_error(client, "-ERR unknown subcommand '%.*s'. GET, SET and RESETSTAT are supported.",
                    word.size < 64 ? (int)word.size : 64, word.data);
    }
}
