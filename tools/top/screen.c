/*
 * Enters and leaves the screen. The state that the handler of crashes needs is static.
 */
#include "screen.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static const char enter_text[] = "\033[?1049h\033[?25l\033[H\033[2J";
static const char leave_text[] = "\033[0m\033[?25h\033[?1049l";

/* ---- Crashes ---- */

/* The state of the terminal before screen_enter(), for the handler. */
static struct termios terminal_before;
static volatile sig_atomic_t is_changed;

static void write_terminal(const char *text, size_t size)
{
    while (size != 0) {
        ssize_t count = write(STDOUT_FILENO, text, size);
        if (count < 0 && errno != EINTR)
            return;
        if (count > 0) {
            text += count;
            size -= (size_t)count;
        }
    }
}

static void restore_terminal_and_raise(int number)
{
    if (is_changed) {
        write_terminal(leave_text, sizeof leave_text - 1);
        tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
    }
    raise(number); /* the handler is reset: SA_RESETHAND */
}

static void catch_crashes(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction action = {.sa_handler = restore_terminal_and_raise,
                               .sa_flags = SA_RESETHAND | SA_NODEFER};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}

/* ---- Entering and leaving ---- */

int screen_enter(screen *screen, bide_descriptor *input)
{
    if (!is_changed && tcgetattr(STDIN_FILENO, &terminal_before) != 0)
        return -errno;
    catch_crashes();
    int error = bide_terminal_start_raw(&screen->terminal, input, 0);
    if (error != 0)
        return error;
    is_changed = 1;
    screen->input = input;
    screen->is_ours = true;
    write_terminal(enter_text, sizeof enter_text - 1);
    return 0;
}

void screen_leave(screen *screen)
{
    if (!screen->is_ours)
        return;
    write_terminal(leave_text, sizeof leave_text - 1);
    bide_terminal_stop_raw(&screen->terminal);
    screen->is_ours = false;
    is_changed = 0;
}

void screen_suspend(screen *screen)
{
    screen_leave(screen);
    raise(SIGSTOP);
    (void)screen_enter(screen, screen->input);
}
