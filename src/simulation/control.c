/*
 * Descriptors and credentials that go with a message over a Unix socket.
 *
 * 1. Nodes are passed, with a reference each while the message travels. So they stay if the sender
 *    closes its numbers, and are closed if nobody receives the message.
 * 2. The receiver gets a number for each node, as far as its control data have room and numbers are
 *    free. The other nodes are closed, and the message is marked as truncated (MSG_CTRUNC).
 * 3. Everything is in one process, so credentials are those of that process.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <stdlib.h>
#include <unistd.h>

enum { MAX_PASSED = 253 }; /* (SCM_MAX_FD) */

struct memory_passed {
    unsigned count;
    memory_node *nodes[];
};

void bide_sim_passed_free_(memory_passed *passed)
{
    if (passed == NULL)
        return;
    for (unsigned i = 0; i < passed->count; i++)
        bide_sim_node_drop_(passed->nodes[i]);
    free(passed);
}

/* The number of descriptors in control data. */
static size_t control_count_descriptors(const struct msghdr *header)
{
    size_t count = 0;
    struct msghdr copy = *header; /* (the macros take no constant one) */
    if (copy.msg_control == NULL)
        return 0;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&copy); at != NULL; at = CMSG_NXTHDR(&copy, at)) {
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS)
            count += (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    }
    return count;
}

static int control_take_descriptor(sim_environment *environment, memory_passed *passed,
                                   const unsigned char *data)
{
    int fd;
    memcpy(&fd, data, sizeof fd);
    memory_node *node = bide_sim_node_of_(environment, fd);
    if (node == NULL)
        return -EBADF;
    bide_sim_node_hold_(node);
    passed->nodes[passed->count++] = node;
    return 0;
}

int bide_sim_passed_take_(sim_environment *environment, const struct msghdr *header,
                          memory_passed **passed)
{
    struct msghdr copy = *header;
    size_t count = control_count_descriptors(header);
    int error = 0;
    *passed = NULL;
    if (count == 0)
        return 0;
    if (count > MAX_PASSED)
        return -EINVAL;
    memory_passed *all = malloc(sizeof *all + count * sizeof all->nodes[0]);
    if (all == NULL)
        return -ENOMEM;
    all->count = 0;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&copy); at != NULL; at = CMSG_NXTHDR(&copy, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = CMSG_LEN(0); i + sizeof(int) <= at->cmsg_len && error == 0;
             i += sizeof(int))
            error = control_take_descriptor(environment, all, (const unsigned char *)at + i);
    }
    if (error != 0)
        bide_sim_passed_free_(all);
    else
        *passed = all;
    return error;
}

/* ---- Giving ---- */

/* The next header of control data, with `size` bytes of data; NULL: there is no room. */
static struct cmsghdr *control_next_header(const struct msghdr *header, size_t used, int type,
                                           size_t size)
{
    if (header->msg_control == NULL || header->msg_controllen < used + CMSG_LEN(size))
        return NULL;
    struct cmsghdr *at = (struct cmsghdr *)(void *)((char *)header->msg_control + used);
    at->cmsg_level = SOL_SOCKET;
    at->cmsg_type = type;
    at->cmsg_len = CMSG_LEN(size);
    return at;
}

static size_t control_size_with(const struct msghdr *header, size_t used, size_t size)
{
    used += CMSG_SPACE(size);
    return used < header->msg_controllen ? used : header->msg_controllen;
}

/* (other systems have other credentials) */
#ifdef __linux__
static size_t control_give_credentials(struct msghdr *header)
{
    struct ucred own = {getpid(), getuid(), getgid()};
    struct cmsghdr *at = control_next_header(header, 0, SCM_CREDENTIALS, sizeof own);
    if (at == NULL) {
        header->msg_flags |= MSG_CTRUNC;
        return 0;
    }
    memcpy(CMSG_DATA(at), &own, sizeof own);
    return control_size_with(header, 0, sizeof own);
}
#endif

/* 2 */
static size_t control_give_descriptors(sim_environment *environment, memory_passed *passed,
                                       struct msghdr *header, size_t used)
{
    int fds[MAX_PASSED];
    unsigned count = 0;
    size_t room = header->msg_control != NULL && header->msg_controllen > used + CMSG_LEN(0)
                      ? (header->msg_controllen - used - CMSG_LEN(0)) / sizeof(int)
                      : 0;
    while (count < passed->count && count < room &&
           (fds[count] = bide_sim_install_(environment, passed->nodes[count])) >= 0) {
        bide_sim_node_hold_(passed->nodes[count]);
        count++;
    }
    if (count < passed->count)
        header->msg_flags |= MSG_CTRUNC;
    if (count == 0)
        return used;
    struct cmsghdr *at = control_next_header(header, used, SCM_RIGHTS, count * sizeof(int));
    memcpy(CMSG_DATA(at), fds, count * sizeof(int));
    return control_size_with(header, used, count * sizeof(int));
}

void bide_sim_passed_give_(memory_node *receiver, memory_passed *passed, memory_message *message)
{
    struct msghdr *header = message->header;
    if (header != NULL) {
        size_t used = 0;
#ifdef __linux__
        if (receiver->family == AF_UNIX &&
            bide_sim_option_of_(receiver, SOL_SOCKET, SO_PASSCRED) != 0)
            used = control_give_credentials(header);
#endif
        if (passed != NULL)
            used = control_give_descriptors(receiver->environment, passed, header, used);
        header->msg_controllen = used;
    }
    bide_sim_passed_free_(passed);
}
