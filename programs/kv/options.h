/* What the program is told when it is started. */
#ifndef KV_OPTIONS_H
#define KV_OPTIONS_H

#include "journal.h"

struct options {
    const char *address;
    unsigned port;
    const char *append_only; /* a file; or NULL */
    enum fsync fsync;
    const char *snapshot; /* a file; or NULL */
    uint64_t save_each;   /* seconds; 0: only when asked */
    size_t clients;       /* at most */
    size_t bulk;          /* bytes of an argument at most */
    size_t request;       /* bytes of a request at most */
    size_t backlog;       /* bytes that a subscriber may be behind */
};

/* Reads them; ends the program with a text if it cannot, or is asked for help. */
void options_read(struct options *options, int argc, char **argv);

#endif
