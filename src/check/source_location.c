/*
 * The record of a code address is made when the code is first run, and is never freed. addr2line
 * resolves it.
 */
#define _GNU_SOURCE
#include "source_location.h"

#include "execution.h"
#include "heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char __executable_start[] __attribute__((weak));

/*
 * Returns the path without the current directory, and without the "../" that lead to the sources.
 */
static const char *short_path(const char *path)
{
    const char *found;
    char here[400];
    size_t length = getcwd(here, sizeof here) != NULL ? strlen(here) : 0;
    if (length > 1 && strncmp(path, here, length) == 0 && path[length] == '/')
        path += length + 1;
    while ((found = strstr(path, "../")) != NULL)
        path = found + 3;
    return path;
}

/*
 * Returns the line of an address in the code, and sets its function and file; 0: it is not known.
 */
static unsigned find_code(const void *code, char *function, size_t function_size, char *file,
                          size_t file_size)
{
    /* An address within the call, not the one after it. */
    uintptr_t address = (uintptr_t)code - 1;
    char command[256], program[160];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return 0;
    program[length] = '\0';
    uintptr_t base = (uintptr_t)__executable_start;
    /* The second attempt is for a program that is loaded at its link address. */
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "addr2line -f -e '%s' %#" PRIxPTR " 2>/dev/null", program,
                 i == 0 ? address - base : address);
        execution_enter_checker();
        FILE *pipe = popen(command, "r");
        bool known = pipe != NULL && fgets(function, (int)function_size, pipe) != NULL &&
                     fgets(file, (int)file_size, pipe) != NULL && file[0] != '?';
        if (pipe != NULL)
            pclose(pipe);
        execution_leave_checker();
        char *colon = known ? strrchr(file, ':') : NULL;
        unsigned line = colon != NULL ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
        if (line != 0) {
            *colon = '\0';
            function[strcspn(function, "\n")] = '\0';
            return line;
        }
    }
    return 0;
}

const char source_location_unresolved[] = "";

void source_location_resolve(const bide_check_site_ *site)
{
    if (site->file != source_location_unresolved)
        return;
    bide_check_site_ *s =
        (bide_check_site_ *)(uintptr_t)site; /* an unresolved record is writable */
    char function[256], file[400];
    s->line = find_code(source_location_code(site), function, sizeof function, file, sizeof file);
    execution_enter_checker();
    s->file = strdup(s->line != 0 ? file : "?");
    s->function = strdup(s->line != 0 ? function : "?");
    execution_leave_checker();
    if (s->file == NULL || s->function == NULL)
        abort();
}

void source_location_describe(const bide_check_site_ *site, char *text, size_t size)
{
    source_location_resolve(site);
    if (site->line == 0)
        snprintf(text, size, "%s", site->function);
    else
        snprintf(text, size, "%s:%u", short_path(site->file), site->line);
}

void source_location_describe_code(const void *code, char *text, size_t size)
{
    char function[256], file[400];
    unsigned line = find_code(code, function, sizeof function, file, sizeof file);
    if (line == 0)
        snprintf(text, size, "%p", code);
    else
        snprintf(text, size, "%s:%u", short_path(file), line);
}

/* ---- Records of code addresses ---- */

typedef struct code_site {
    bide_check_site_ site; /* first: see site_resolve */
    const void *code;
    struct code_site *next;
} code_site;

enum { LISTS = 256 };

bide_check_site_ *source_location_of_code(const void *code)
{
    static code_site *lists[LISTS];
    code_site **list = &lists[((uintptr_t)code ^ (uintptr_t)code >> 8) % LISTS];
    code_site *s = *list;
    while (s != NULL && s->code != code)
        s = s->next;
    if (s != NULL)
        return &s->site;
    s = heap_own_resized(NULL, sizeof *s);
    if (s == NULL)
        abort();
    s->site = (bide_check_site_){source_location_unresolved, "", "", 0, 0};
    s->code = code;
    s->next = *list;
    *list = s;
    return &s->site;
}

const void *source_location_code(const bide_check_site_ *site)
{
    return ((const code_site *)site)->code;
}
