/* bide-top: shows what a running program's coroutines do. See its manual page. */
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
    "  -d, --delay SECONDS  look again after so long (2)\n"
    "      --once           look once, and print it as text\n"
    "      --json           look once, and print it as JSON; without an argument, the list\n"
    "      --tasks N        with these: also N tasks one by one, with who awaits whom\n"
    "      --group ID       ... of that group alone\n"
    "      --no-turns       do not have turns watched, which costs each some 100 ns\n"
    "      --help           print this\n"
    "      --version        print the version\n"
    "\n"
    "Keys: h shows them.\n";

enum { ONCE = 256, JSON, TASKS, GROUP, NO_TURNS, HELP, VERSION };

static const struct option long_options[] = {
    {"delay", required_argument, NULL, 'd'},   {"once", no_argument, NULL, ONCE},
    {"json", no_argument, NULL, JSON},         {"tasks", required_argument, NULL, TASKS},
    {"group", required_argument, NULL, GROUP}, {"no-turns", no_argument, NULL, NO_TURNS},
    {"help", no_argument, NULL, HELP},         {"version", no_argument, NULL, VERSION},
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

static bool take_delay(const char *text, uint64_t *interval)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0.1) || !(seconds <= 3600))
        return false;
    *interval = (uint64_t)(seconds * 1e9);
    return true;
}

static bool take_number(const char *text, int base, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, base);
    return end != text && *end == '\0' && text[0] != '-' && errno == 0 && *number <= most;
}

/* False: the option is misused. */
static bool take_option(arguments *arguments, int option)
{
    uint64_t number;
    switch (option) {
    case 'd':
        return take_delay(optarg, &arguments->live.interval);
    case ONCE:
        arguments->is_once = true;
        return true;
    case JSON:
        arguments->as_json = true;
        return true;
    case TASKS:
        if (!take_number(optarg, 10, 1000, &number))
            return false;
        arguments->request.tasks = (unsigned)number;
        return true;
    case GROUP:
        return take_number(optarg, 16, UINT64_MAX, &arguments->request.group);
    case NO_TURNS:
        arguments->live.wants_turns = false;
        return true;
    default:
        return false;
    }
}

/* Goes on, or returns an exit status. */
static int take_arguments(arguments *arguments, int count, char **texts)
{
    int option;
    while ((option = getopt_long(count, texts, "d:", long_options, NULL)) != -1) {
        if (option == HELP) {
            fputs(usage, stdout);
            return EXIT_SUCCESS;
        }
        if (option == VERSION) {
            puts("bide-top " BIDE_VERSION_TEXT);
            return EXIT_SUCCESS;
        }
        if (!take_option(arguments, option)) {
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

/* ---- What to do ---- */

static bool has_colours(void)
{
    const char *forbidden = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && (forbidden == NULL || forbidden[0] == '\0') &&
           terminal != NULL && strcmp(terminal, "dumb") != 0;
}

/* Is it a number? Then the path of that process's monitor. NULL: it has none. */
static const char *path_of(const char *what)
{
    static char path[MAX_PLACE];
    uint64_t process;
    if (!take_number(what, 10, 1u << 30, &process))
        return what;
    if (places_find((int)process, path))
        return path;
    fprintf(stderr,
            "bide-top: process %s has no monitor (bide_monitor_start) at its usual place\n", what);
    return NULL;
}

static int run(bide_loop *loop, arguments *arguments)
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
    int status = take_arguments(&arguments, count, texts);
    if (status >= 0)
        return status;
    int error = bide_loop_create(&loop, NULL);
    if (error != 0) {
        fprintf(stderr, "bide-top: %s\n", strerror(-error));
        return EXIT_FAILURE;
    }
    status = run(loop, &arguments);
    bide_loop_destroy(loop);
    return status;
}
