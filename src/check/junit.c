/*
 * The cases are kept in a file without a name, which the processes of jobs.h share: each appends a case
 * by one write(). The process that has opened the file copies the cases in order, the last of each number:
 * a process may be lost after it has added its case, and is then a case itself.
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
    verdict verdict;
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
    const char *element = c->verdict == BAD          ? "failure"
                          : c->verdict == UNFINISHED ? "skipped"
                                                     : "system-out";
    fputs("<testcase name=\"", out);
    print_escaped(out, c->name);
    fprintf(out, "\" time=\"%.3f\">", c->seconds);
    fprintf(out, "<properties><property name=\"verdict\" value=\"%s\"/></properties>",
            verdict_name(c->verdict));
    if (c->verdict < UNFINISHED) {
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
    case_head head = {.number = number, .verdict = c->verdict, .seconds = c->seconds};
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

/* One of the kept cases. */
typedef struct kept_case {
    case_head head;
    const char *text;
    size_t place; /* among the kept cases */
} kept_case;

static int compare_cases(const void *a, const void *b)
{
    const kept_case *x = a, *y = b;
    if (x->head.number != y->head.number)
        return x->head.number < y->head.number ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/*
 * The cases in the order of their numbers, the last of each number; NULL if there is no memory. A case
 * that was written in part ends them.
 */
static kept_case *sorted_cases(const char *all, size_t size, size_t *count)
{
    kept_case *cases = malloc((size / sizeof(case_head) + 1) * sizeof *cases);
    size_t kept_count = 0;
    *count = 0;
    if (cases == NULL)
        return NULL;
    for (size_t at = 0; size - at >= sizeof(case_head);) {
        kept_case c = {.text = all + at + sizeof c.head, .place = kept_count};
        memcpy(&c.head, all + at, sizeof c.head);
        if (c.head.length > size - at - sizeof c.head)
            break;
        cases[kept_count++] = c;
        at += sizeof c.head + c.head.length;
    }
    qsort(cases, kept_count, sizeof *cases, compare_cases);
    for (size_t i = 0; i < kept_count; i++) {
        if (i + 1 == kept_count || cases[i + 1].head.number != cases[i].head.number)
            cases[(*count)++] = cases[i];
    }
    return cases;
}

static void print_all(const char *suite, const kept_case *cases, size_t count)
{
    unsigned counts[VERDICTS] = {0};
    double seconds = 0;
    for (size_t i = 0; i < count; i++) {
        counts[cases[i].head.verdict]++;
        seconds += cases[i].head.seconds;
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"", output);
    print_escaped(output, suite);
    fprintf(output, "\" tests=\"%zu\" failures=\"%u\" skipped=\"%u\" time=\"%.3f\">\n", count,
            counts[BAD], counts[UNFINISHED], seconds);
    fputs("<properties>", output);
    for (unsigned v = 0; v < VERDICTS; v++)
        fprintf(output, "<property name=\"%s\" value=\"%u\"/>", verdict_name((verdict)v),
                counts[v]);
    fputs("</properties>\n", output);
    for (size_t i = 0; i < count; i++)
        fwrite(cases[i].text, 1, cases[i].head.length, output);
    fputs("</testsuite>\n</testsuites>\n", output);
}

bool junit_close(const char *suite)
{
    if (output == NULL)
        return true;
    size_t size, count = 0;
    char *all = read_kept(&size);
    kept_case *cases = all != NULL ? sorted_cases(all, size, &count) : NULL;
    bool is_read = cases != NULL || failed("a temporary file");
    if (is_read)
        print_all(suite, cases, count);
    free(cases);
    free(all);
    fclose(kept);
    bool is_whole = ferror(output) == 0;
    bool is_written = (fclose(output) == 0 && is_whole) || failed(output_path);
    output = kept = NULL;
    return is_read && is_written;
}
