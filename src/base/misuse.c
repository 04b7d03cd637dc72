/*
 * Reports of misuse that name a body instead of its step function. In a body, __func__ is the name of
 * the step function: the body's name and a fixed suffix. Any thread.
 */
#include "bide/platform.h"

uint64_t bide_clock_began_;

static const char step_suffix[] = "_step_";

static size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

static bool ends_so(const char *name, size_t length)
{
    size_t begin = length - (sizeof step_suffix - 1);
    if (length < sizeof step_suffix)
        return false;
    for (size_t i = 0; i < sizeof step_suffix - 1; i++) {
        if (name[begin + i] != step_suffix[i])
            return false;
    }
    return true;
}

void bide_misuse_(const char *what, const char *function, const char *file, unsigned line)
{
    char body[128];
    size_t length = length_of(function);
    if (ends_so(function, length)) {
        length -= sizeof step_suffix - 1;
        if (length >= sizeof body)
            length = sizeof body - 1;
        for (size_t i = 0; i < length; i++)
            body[i] = function[i];
        body[length] = '\0';
        function = body;
    }
    bide_platform.misuse(what, function, file, line);
    for (;;) /* it does not return; a function pointer has no such attribute */
        bide_platform.yield();
}
