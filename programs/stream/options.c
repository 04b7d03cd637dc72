/* The command line of stream. */
#include "stream.h"

#include "../common/command_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char program_name[] = "stream";

static const char help[] =
    "usage: stream copy [OPTION]... FROM TO\n"
    "       stream tail [OPTION]... URL\n"
    "       stream count [OPTION]... URL\n"
    "       stream lag URL GROUP\n"
    "       stream measure [OPTION]... URL\n"
    "\n"
    "Copies, prints, counts and measures message logs, such as file:///var/lib/orders.\n"
    "stdio: is standard input and output, a message on each line; not for lag and measure.\n"
    "\n"
    "copy: the messages that FROM has\n"
    "  --group NAME     continue where this group is, and acknowledge what was copied\n"
    "  --after POSITION begin after this position; of a group, only if it is new\n"
    "  --batch N        messages that are copied at once, up to 1000 (100)\n"
    "\n"
    "tail: the newest messages\n"
    "  -n N             how many, up to 1000000 (10)\n"
    "  -f               and then new ones, until a signal; not of stdio:, ring: and file:\n"
    "  --count N        with -f: how many of both are printed, up to 10000000 (all)\n"
    "\n"
    "measure: sends messages to a log that has none, and reads them\n"
    "  --count N        how many, up to 10000000 (10000)\n"
    "  --size BYTES     of each, 16 to 1048576 (100)\n"
    "  --batch N        messages that are sent at once, up to 1000 (1)\n"
    "\n"
    "All:\n"
    "  --quiet          no progress, and no report of copy\n"
    "  --help           print this\n"
    "  --version        print the version\n"
    "\n"
    "The exit status is 0, or 1 after an error, 2 for a bad command line, and 130 if it was\n"
    "interrupted. The first signal lets it finish what it has begun, the second does not.\n";

enum { COPY = 1 << COMMAND_COPY, TAIL = 1 << COMMAND_TAIL, MEASURE = 1 << COMMAND_MEASURE };

static const struct {
    const char *name;
    unsigned commands;
    bool has_value;
} known[] = {
    {"--group", COPY, true},   {"--after", COPY, true}, {"--batch", COPY | MEASURE, true},
    {"-n", TAIL, true},        {"-f", TAIL, false},     {"--count", TAIL | MEASURE, true},
    {"--size", MEASURE, true}, {"--quiet", ~0u, false},
};

static enum command read_command(const char *name)
{
    static const char *const names[] = {"copy", "tail", "count", "lag", "measure"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0)
            return (enum command)i;
    }
    command_line_reject("unknown command", name);
}

/* Returns true if the option has a value. Exits if the command does not have the option. */
static bool takes_value(const struct options *options, const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) != 0)
            continue;
        if ((known[i].commands & 1u << options->command) == 0)
            command_line_reject("the command does not take", name);
        return known[i].has_value;
    }
    command_line_reject("unknown option", name);
}

static void set_option(struct options *options, const char *name, const char *value)
{
    if (strcmp(name, "--group") == 0) {
        options->group = value;
    } else if (strcmp(name, "--after") == 0) {
        options->has_start = true;
        if (bide_log_position_parse(&options->start, value) < 0)
            command_line_reject("--after takes a position, such as 0-12, not", value);
    } else if (strcmp(name, "--batch") == 0) {
        options->batch = (uint32_t)command_line_number(name, value, 1, BATCH_MAX);
    } else if (strcmp(name, "-n") == 0) {
        options->lines = (uint32_t)command_line_number(name, value, 0, TAIL_MAX);
    } else if (strcmp(name, "-f") == 0) {
        options->follows = true;
    } else if (strcmp(name, "--count") == 0) {
        options->count = (uint32_t)command_line_number(name, value, 1, MEASURED_MAX);
    } else if (strcmp(name, "--size") == 0) {
        options->size =
            (uint32_t)command_line_number(name, value, MEASURED_MIN_SIZE, MEASURED_MAX_SIZE);
    } else {
        options->is_quiet = true;
    }
}

static void set_words(struct options *options, const char *const *words, unsigned count)
{
    static const char *const expected[] = {"copy takes two URLs", "tail takes a URL",
                                           "count takes a URL", "lag takes a URL and a group",
                                           "measure takes a URL"};
    bool has_two = options->command == COMMAND_COPY || options->command == COMMAND_LAG;
    if (count != (has_two ? 2 : 1))
        command_line_reject(expected[options->command], "");
    options->from = words[0];
    if (options->command == COMMAND_COPY)
        options->to = words[1];
    if (options->command == COMMAND_LAG)
        options->group = words[1];
    bool is_stdio = url_is_stdio(options->from);
    if (is_stdio && (options->command == COMMAND_LAG || options->command == COMMAND_MEASURE))
        command_line_reject("a log is expected, not", options->from);
    if (is_stdio && (options->group != NULL || options->has_start))
        command_line_reject("--group and --after are for a log, not", options->from);
    if (options->follows && !url_is_shared(options->from))
        command_line_reject("-f is for a log that other processes can have open, not",
                            options->from);
    if (options->command == COMMAND_TAIL && options->count != 0 && !options->follows)
        command_line_reject("--count of tail is for -f", "");
    if (options->command == COMMAND_COPY && url_is_same(options->from, options->to))
        command_line_reject("both URLs are the same log:", url_shown(options->from));
}

void options_read(struct options *options, int argc, char **argv)
{
    const char *words[2] = {NULL};
    unsigned count = 0;
    bool options_ended = false, has_command = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0)
            break;
        if (strcmp(argv[i], "--help") == 0)
            fputs(help, stdout);
        else if (strcmp(argv[i], "--version") == 0)
            puts("bide-stream " BIDE_VERSION_TEXT);
        else
            continue;
        exit(fflush(stdout) != 0);
    }
    *options = (struct options){.lines = 10, .size = 100};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!has_command) {
            options->command = read_command(word);
            has_command = true;
        } else if (options_ended || word[0] != '-') {
            if (count == 2)
                command_line_reject("an argument too many:", word);
            words[count++] = word;
        } else if (strcmp(word, "--") == 0) {
            options_ended = true;
        } else if (!takes_value(options, word)) {
            set_option(options, word, NULL);
        } else if (i + 1 == argc) {
            command_line_reject("an option without a value:", word);
        } else {
            set_option(options, word, argv[++i]);
        }
    }
    if (!has_command)
        command_line_reject("a command is expected", "");
    if (options->batch == 0)
        options->batch = options->command == COMMAND_MEASURE ? 1 : 100;
    if (options->count == 0 && options->command == COMMAND_MEASURE)
        options->count = 10000;
    set_words(options, words, count);
}
