/*
 * The cases are kept in a file without a name, which the processes of jobs.h share: each appends a case
 * by one write(). The process that has opened the file copies the cases in order.
 */
#define _GNU_SOURCE
#include "junit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *output, *kept;
static const char *output_path;

/* Precedes the text of a case in the kept file. */
typedef struct case_head {
    unsigned number;
    junit_kind kind;
    double seconds;
    size_t length;
} case_head;

static bool failed(const char *path)
{
    fprintf(stderr, "bide_check: %s: %s\n", path, strerror(errno));
    return false;
}

bool junit_open(const char *path)
{
    output_path = path;
    output = fopen(path, "we");
    if (output == NULL)
        return failed(path);
    kept = tmpfile();
    if (kept != NULL && fcntl(fileno(kept), F_SETFL, O_APPEND) == 0)
        return true;
    failed("a temporary file");
    fclose(output);
    if (kept != NULL)
        fclose(kept);
    output = kept = NULL;
    return false;
}

/* Text in XML: other bytes than printable ASCII, tabs and ends of lines are question marks. */
static void print_escaped(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc((*text >= ' ' && *text < 127) || *text == '\n' || *text == '\t' ? *text : '?',
                  out);
        }
    }
}

static void print_case(FILE *out, const junit_case *c)
{
    static const char *const elements[] = {"system-out", "skipped", "failure"};
    const char *element = elements[c->kind];
    fputs("<testcase name=\"", out);
    print_escaped(out, c->name);
    fprintf(out, "\" time=\"%.3f\">", c->seconds);
    if (c->kind == JUNIT_PASSED) {
        fprintf(out, "<%s>", element);
        print_escaped(out, c->summary);
    } else {
        fprintf(out, "<%s message=\"", element);
        print_escaped(out, c->summary);
        fputs("\">", out);
    }
    if (c->details != NULL) {
        fputc('\n', out);
        print_escaped(out, c->details);
    }
    fprintf(out, "</%s></testcase>\n", element);
}

void junit_add(unsigned number, const junit_case *c)
{
    if (kept == NULL)
        return;
    case_head head = {.number = number, .kind = c->kind, .seconds = c->seconds};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return;
    fwrite(&head, sizeof head, 1, out);
    print_case(out, c);
    if (fclose(out) != 0)
        return;
    head.length = size - sizeof head;
    memcpy(text, &head, sizeof head);
    ssize_t written;
    do
        written = write(fileno(kept), text, size);
    while (written < 0 && errno == EINTR);
    if (written != (ssize_t)size)
        failed("a temporary file");
    free(text);
}

/* All that was kept, and the number of its bytes; NULL if it cannot be read. */
static char *read_kept(size_t *size)
{
    off_t end = lseek(fileno(kept), 0, SEEK_END);
    char *all = end >= 0 ? malloc((size_t)end + 1) : NULL;
    *size = 0;
    while (all != NULL && *size < (size_t)end) {
        ssize_t n = pread(fileno(kept), all + *size, (size_t)end - *size, (off_t)*size);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            free(all);
            return NULL;
        }
        *size += n > 0 ? (size_t)n : 0;
    }
    return all;
}

/* Writes the cases. A case that was written in part ends them. */
static void print_all(const char *suite, const char *all, size_t size)
{
    unsigned counts[] = {0, 0, 0}, max = 0;
    double seconds = 0;
    case_head head;
    size_t end = 0;
    while (size - end >= sizeof head) {
        memcpy(&head, all + end, sizeof head);
        if (head.length > size - end - sizeof head)
            break;
        counts[head.kind]++;
        seconds += head.seconds;
        max = head.number > max ? head.number : max;
        end += sizeof head + head.length;
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"", output);
    print_escaped(output, suite);
    fprintf(output, "\" tests=\"%u\" failures=\"%u\" skipped=\"%u\" time=\"%.3f\">\n",
            counts[0] + counts[1] + counts[2], counts[JUNIT_FAILED], counts[JUNIT_SKIPPED],
            seconds);
    for (unsigned number = 0; number <= max; number++) {
        for (size_t at = 0; at < end; at += sizeof head + head.length) {
            memcpy(&head, all + at, sizeof head);
            if (head.number == number)
                fwrite(all + at + sizeof head, 1, head.length, output);
        }
    }
    fputs("</testsuite>\n</testsuites>\n", output);
}

bool junit_close(const char *suite)
{
    if (output == NULL)
        return true;
    size_t size;
    char *all = read_kept(&size);
    bool is_read = all != NULL || failed("a temporary file");
    if (is_read)
        print_all(suite, all, size);
    free(all);
    fclose(kept);
    bool is_whole = ferror(output) == 0;
    bool is_written = (fclose(output) == 0 && is_whole) || failed(output_path);
    output = kept = NULL;
    return is_read && is_written;
}
