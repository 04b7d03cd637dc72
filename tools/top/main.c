/* bide-top: shows the coroutines of a running program. See its manual page. */
#include "live.h"
#include "once.h"
#include "places.h"

#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "Usage: bide-top [OPTIONS] [PID | SOCKET]\n"
    "Shows the tasks, loops and workers of a running program that has called\n"
    "bide_monitor_start, live. Without an argument: lists the programs of this user.\n"
    "\n"
    "  -d, --delay SECONDS  look again after this time (2)\n"
    "      --once           look once, and print text\n"
    "      --json           look once, and print JSON; without an argument, the list\n"
    "      --tasks N        with --once or --json: also print N tasks and their awaits\n"
    "      --group ID       only the tasks of this group\n"
    "      --no-turns       do not time turns; timing costs some 100 ns a turn\n"
    "      --help           print this help\n"
    "      --version        print the version\n"
    "\n"
    "Press h for the keys.\n";

enum {
    OPTION_ONCE = 256,
    OPTION_JSON,
    OPTION_TASKS,
    OPTION_GROUP,
    OPTION_NO_TURNS,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option long_options[] = {
    {"delay", required_argument, NULL, 'd'},
    {"once", no_argument, NULL, OPTION_ONCE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"tasks", required_argument, NULL, OPTION_TASKS},
    {"group", required_argument, NULL, OPTION_GROUP},
    {"no-turns", no_argument, NULL, OPTION_NO_TURNS},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

enum { MISUSED = 2 };

typedef struct arguments {
    bool is_once, as_json;
    wire_request request;
    live_options live;
    const char *what; /* a number or a path; or NULL */
} arguments;

/* ---- The command line ---- */

static bool parse_delay(const char *text, uint64_t *interval)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0.1) || !(seconds <= 3600))
        return false;
    *interval = (uint64_t)(seconds * 1e9);
    return true;
}

static bool parse_unsigned(const char *text, int base, uint64_t max, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, base);
    return end != text && *end == '\0' && text[0] != '-' && errno == 0 && *number <= max;
}

/* False: the option or its argument is invalid. */
static bool apply_option(arguments *arguments, int option)
{
    uint64_t number;
    switch (option) {
    case 'd':
        return parse_delay(optarg, &arguments->live.interval);
    case OPTION_ONCE:
        arguments->is_once = true;
        return true;
    case OPTION_JSON:
        arguments->as_json = true;
        return true;
    case OPTION_TASKS:
        if (!parse_unsigned(optarg, 10, 1000, &number))
            return false;
        arguments->request.tasks = (unsigned)number;
        return true;
    case OPTION_GROUP:
        return parse_unsigned(optarg, 16, UINT64_MAX, &arguments->request.group);
    case OPTION_NO_TURNS:
        arguments->live.wants_turns = false;
        return true;
    default:
        return false;
    }
}

/* Returns an exit status, or -1 to continue. */
static int parse_arguments(arguments *arguments, int count, char **texts)
{
    int option;
    while ((option = getopt_long(count, texts, "d:", long_options, NULL)) != -1) {
        if (option == OPTION_HELP) {
            fputs(usage, stdout);
            return EXIT_SUCCESS;
        }
        if (option == OPTION_VERSION) {
            puts("bide-top " BIDE_VERSION_TEXT);
            return EXIT_SUCCESS;
        }
        if (!apply_option(arguments, option)) {
            if (option != '?')
                fprintf(stderr, "bide-top: \"%s\" is out of range\n", optarg);
            fputs("Try: bide-top --help\n", stderr);
            return MISUSED;
        }
    }
    if (count - optind > 1) {
        fputs("bide-top: one program at a time\nTry: bide-top --help\n", stderr);
        return MISUSED;
    }
    arguments->what = texts[optind];
    if (arguments->request.group != 0 && arguments->request.tasks == 0)
        arguments->request.tasks = 20;
    return -1;
}

/* ---- The commands ---- */

static bool has_colours(void)
{
    const char *forbidden = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && (forbidden == NULL || forbidden[0] == '\0') &&
           terminal != NULL && strcmp(terminal, "dumb") != 0;
}

/* Returns the path of a monitor, given as a process number or a path; NULL: there is none. */
static const char *path_of(const char *what)
{
    static char path[PATH_SIZE];
    uint64_t process;
    if (!parse_unsigned(what, 10, 1u << 30, &process))
        return what;
    if (places_find((int)process, path))
        return path;
    fprintf(stderr, "bide-top: process %s has no monitor (bide_monitor_start) at its usual place\n",
            what);
    return NULL;
}

static int run_command(bide_loop *loop, arguments *arguments)
{
    if (arguments->what == NULL)
        return once_list(loop, arguments->as_json);
    const char *path = path_of(arguments->what);
    if (path == NULL)
        return EXIT_FAILURE;
    if (arguments->as_json)
        return once_print_json(loop, path, &arguments->request);
    if (arguments->is_once)
        return once_print(loop, path, &arguments->request, has_colours());
    arguments->live.path = path;
    arguments->live.has_colours = has_colours();
    return live_show(loop, &arguments->live);
}

int main(int count, char **texts)
{
    arguments arguments = {
        .request = {.groups = 1000},
        .live = {.interval = UINT64_C(2000000000), .wants_turns = true},
    };
    bide_loop *loop;
    setlocale(LC_CTYPE, "");
    int status = parse_arguments(&arguments, count, texts);
    if (status >= 0)
        return status;
    int error = bide_loop_create(&loop, NULL);
    if (error != 0) {
        fprintf(stderr, "bide-top: %s\n", strerror(-error));
        return EXIT_FAILURE;
    }
    status = run_command(loop, &arguments);
    bide_loop_destroy(loop);
    return status;
}
