/*
 * Options of sockets. Most of them mean something to a kernel only: they are stored, and returned
 * to the caller that asks. These have a meaning here: SO_RCVBUF and SO_SNDBUF are the window of a
 * connection, SO_RCVBUF is the room of a receiver of datagrams, and SO_PASSCRED requests
 * credentials.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

typedef struct memory_rule {
    int level, name;
    int min, max;   /* of values that are taken */
    int first;      /* value of a new socket */
    bool is_switch; /* 0 or 1: any other number is 1 */
    bool is_doubled;
} memory_rule;

enum { MIN_BUFFER = 2304, MAX_BUFFER = 212992 }; /* (net.core.rmem_max) */

static const memory_rule option_rules[] = {
    {SOL_SOCKET, SO_KEEPALIVE, INT32_MIN, INT32_MAX, 0, true, false},
    {SOL_SOCKET, SO_BROADCAST, INT32_MIN, INT32_MAX, 0, true, false},
    {SOL_SOCKET, SO_REUSEADDR, INT32_MIN, INT32_MAX, 0, true, false},
    {SOL_SOCKET, SO_REUSEPORT, INT32_MIN, INT32_MAX, 0, true, false},
#ifdef SO_PASSCRED
    {SOL_SOCKET, SO_PASSCRED, INT32_MIN, INT32_MAX, 0, true, false},
#endif
    {SOL_SOCKET, SO_RCVBUF, INT32_MIN, INT32_MAX, MAX_BUFFER, false, true},
    {SOL_SOCKET, SO_SNDBUF, INT32_MIN, INT32_MAX, MAX_BUFFER, false, true},
    {IPPROTO_TCP, TCP_NODELAY, INT32_MIN, INT32_MAX, 0, true, false},
#ifdef TCP_KEEPIDLE
    {IPPROTO_TCP, TCP_KEEPIDLE, 1, 32767, 7200, false, false},
#else
    {IPPROTO_TCP, TCP_KEEPALIVE, 1, 32767, 7200, false, false},
#endif
    {IPPROTO_TCP, TCP_KEEPINTVL, 1, 32767, 75, false, false},
    {IPPROTO_TCP, TCP_KEEPCNT, 1, 127, 9, false, false},
#ifdef TCP_USER_TIMEOUT
    {IPPROTO_TCP, TCP_USER_TIMEOUT, 0, INT32_MAX, 0, false, false},
#endif
    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, INT32_MIN, INT32_MAX, -1, false, false},
};

static const memory_rule *rule_of(int level, int name)
{
    for (size_t i = 0; i < sizeof option_rules / sizeof *option_rules; i++) {
        if (option_rules[i].level == level && option_rules[i].name == name)
            return &option_rules[i];
    }
    return NULL;
}

static memory_option *option_find(memory_node *node, int level, int name)
{
    for (unsigned i = 0; i < node->options_count; i++) {
        if (node->options[i].level == level && node->options[i].name == name)
            return &node->options[i];
    }
    return NULL;
}

/* Whether such a socket has options of that level: 0, or a negative errno. */
static int check_level(const memory_node *node, int level)
{
    if (!node->kind->is_socket)
        return -ENOTSOCK;
    if (level != IPPROTO_TCP)
        return 0;
    if (node->family == AF_UNIX)
        return -EOPNOTSUPP;
    return node->type == SOCK_STREAM ? 0 : -ENOPROTOOPT;
}

static int option_doubled(int value)
{
    value = value < 0 || value > MAX_BUFFER ? MAX_BUFFER : value;
    return 2 * value < MIN_BUFFER ? MIN_BUFFER : 2 * value;
}

int bide_sim_set_option_(memory_node *node, int level, int name, int value)
{
    const memory_rule *rule = rule_of(level, name);
    int error = check_level(node, level);
    if (error != 0)
        return error;
    if (rule == NULL)
        return -ENOPROTOOPT;
    if (value < rule->min || value > rule->max)
        return -EINVAL;
    value = rule->is_switch ? value != 0 : rule->is_doubled ? option_doubled(value) : value;
    memory_option *option = option_find(node, level, name);
    if (option == NULL)
        option =
            &node->options[node->options_count++]; /* (there is room for all that have a rule) */
    *option = (memory_option){level, name, value};
    if (rule->is_doubled)
        bide_sim_stream_set_window_(node, name == SO_RCVBUF, (size_t)value);
    return 0;
}

int bide_sim_option_of_(const memory_node *node, int level, int name)
{
    BIDE_STATIC_ASSERT(sizeof option_rules / sizeof *option_rules <= MEMORY_OPTIONS,
                       "there is room for all");
    const memory_rule *rule = rule_of(level, name);
    for (unsigned i = 0; i < node->options_count; i++) {
        if (node->options[i].level == level && node->options[i].name == name)
            return node->options[i].value;
    }
    return rule != NULL ? rule->first : 0;
}

int bide_sim_get_option_(memory_node *node, int level, int name, int *value)
{
    int error = check_level(node, level);
    if (error != 0)
        return error;
    if (level == SOL_SOCKET && name == SO_ERROR)
        *value = -bide_sim_take_error_(node);
    else if (level == SOL_SOCKET && name == SO_TYPE)
        *value = node->type;
    else if (level == SOL_SOCKET && name == SO_ACCEPTCONN)
        *value = node->kind == &bide_sim_listener_kind_;
    else if (rule_of(level, name) != NULL)
        *value = bide_sim_option_of_(node, level, name);
    else
        return -ENOPROTOOPT;
    return 0;
}
