/*
 * What __func__ is in a body is the name of its step function: the body's, and an ending that is
 * known here.
 */
#include "bide/platform.h"

static const char ending[] = "_step_";

static size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

static bool ends_so(const char *name, size_t length)
{
    size_t begin = length - (sizeof ending - 1);
    if (length < sizeof ending)
        return false;
    for (size_t i = 0; i < sizeof ending - 1; i++) {
        if (name[begin + i] != ending[i])
            return false;
    }
    return true;
}

void bide_misuse_(const char *what, const char *function, const char *file, unsigned line)
{
    char body[128];
    size_t length = length_of(function);
    if (ends_so(function, length)) {
        length -= sizeof ending - 1;
        if (length >= sizeof body)
            length = sizeof body - 1;
        for (size_t i = 0; i < length; i++)
            body[i] = function[i];
        body[length] = '\0';
        function = body;
    }
    bide_platform.misuse(what, function, file, line);
    for (;;) /* it does not return; the compiler is not told that of a pointer */
        bide_platform.yield();
}
