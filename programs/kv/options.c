#include "options.h"

#include "../common/command_line.h"

#include <stdio.h>
#include <stdlib.h>

const char program_name[] = "kv";

static const char help[] =
    "usage: kv [OPTION VALUE]...\n"
    "\n"
    "A server of keys and values, for clients of redis (RESP2).\n"
    "\n"
    "  --port N               listen on this port; 0, which is the default, is any\n"
    "  --bind ADDRESS         listen on this address (127.0.0.1)\n"
    "  --append-only FILE     keep each change in this file, and read it at the start\n"
    "  --fsync WHEN           sync that file always (before the reply), everysec or no (everysec)\n"
    "  --snapshot FILE        SAVE, BGSAVE and the end write all keys here; read at the start,\n"
    "                         unless there is an append-only file\n"
    "  --save-each SECONDS    write it this often too, if keys have changed; 0 is never (0)\n"
    "  --clients N            connections at a time (10000)\n"
    "  --bulk BYTES           the largest key or value (536870912)\n"
    "  --request BYTES        the largest request (1073741824)\n"
    "  --backlog BYTES        how far a subscriber may be behind (33554432)\n"
    "  --help                 print this\n"
    "\n"
    "The first line that it prints ends with the port. SIGTERM and SIGINT end it: what has come "
    "is\n"
    "answered, and what was changed is on the disk.\n";

static enum fsync fsync_of(const char *text)
{
    static const char *const names[] = {"always", "everysec", "no"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0)
            return (enum fsync)i;
    }
    command_refuse("--fsync is always, everysec or no, not", text);
}

void options_read(struct options *options, int argc, char **argv)
{
    const size_t largest = UINT32_C(1) << 30;
    *options = (struct options){.address = "127.0.0.1",
                                .fsync = FSYNC_EACH_SECOND,
                                .clients = 10000,
                                .bulk = 512 << 20,
                                .request = largest,
                                .backlog = 32 << 20};
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--help") == 0) {
            fputs(help, stdout);
            exit(0);
        }
        if (strncmp(name, "--", 2) != 0)
            command_refuse("there is no argument", name);
        if (value == NULL)
            command_refuse("a value is missing, or there is no option", name);
        if (strcmp(name, "--port") == 0)
            options->port = (unsigned)command_number(name, value, 0, UINT16_MAX);
        else if (strcmp(name, "--bind") == 0)
            options->address = value;
        else if (strcmp(name, "--append-only") == 0)
            options->append_only = value;
        else if (strcmp(name, "--fsync") == 0)
            options->fsync = fsync_of(value);
        else if (strcmp(name, "--snapshot") == 0)
            options->snapshot = value;
        else if (strcmp(name, "--save-each") == 0)
            options->save_each = command_number(name, value, 0, 1000000000);
        else if (strcmp(name, "--clients") == 0)
            options->clients = command_number(name, value, 1, 1 << 20);
        else if (strcmp(name, "--bulk") == 0)
            options->bulk = command_number(name, value, 64, 512 << 20);
        else if (strcmp(name, "--request") == 0)
            options->request = command_number(name, value, 1024, largest);
        else if (strcmp(name, "--backlog") == 0)
            options->backlog = command_number(name, value, 1024, largest);
        else
            command_refuse("there is no option", name);
    }
}
