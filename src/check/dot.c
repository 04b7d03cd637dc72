/*
 * A node is a step, with its number in the trace; a cluster is a thread. The edges are program order,
 * reads-from, and each location's modification order. A reads-from edge is solid if its store happens
 * before its load, and dashed if nothing orders them.
 */
#define _GNU_SOURCE
#include "dot.h"

#include "execution.h"
#include "orders.h"
#include "source_location.h"
#include "trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_quoted(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
}

static void print_label(FILE *out, const event *e)
{
    char where[256];
    if (e->kind == EVENT_FENCE) {
        fputs("fence", out);
    } else if (e->kind == EVENT_CHOICE) {
        trace_choice(out, e);
    } else {
        fprintf(out, "%s%s ", step_name(e->op.step),
                e->op.step == STEP_COMPARE_EXCHANGE && !e->is_rmw ? ", failed," : "");
        print_quoted(out, trace_object(e));
        fprintf(out, "%s%" PRIu64, e->kind == EVENT_LOAD ? ": read " : " = ", e->value);
        if (e->kind == EVENT_LOAD && is_initial(e->rf))
            fputs(", initial", out);
    }
    if (e->kind != EVENT_CHOICE)
        fprintf(out, "\\n%s", e->op.step == STEP_INIT ? "plain" : order_name(e->order));
    source_location_describe(e->op.site, where, sizeof where);
    fputs("\\n", out);
    print_quoted(out, where);
}

static void print_thread(FILE *out, unsigned thread, const reference *order, unsigned count)
{
    unsigned before = 0;
    if (the_execution.threads[thread].position == 0)
        return;
    fprintf(out, "  subgraph cluster_%u {\n    label=\"", thread);
    if (thread == SETUP || thread == LAST)
        fputs(thread == SETUP ? "setup" : "finish", out);
    else
        fprintf(out, "thread %u", thread);
    fputs("\";\n", out);
    for (unsigned i = 0; i < count; i++) {
        if (order[i].thread != thread)
            continue;
        const event *e = event_at(the_checker.g, order[i]);
        fprintf(out, "    s%u [label=\"%u: ", i + 1, i + 1);
        print_label(out, e);
        fprintf(out, "\"%s];\n", e->blocked ? ", style=dashed" : "");
        if (before != 0)
            fprintf(out, "    s%u -> s%u;\n", before, i + 1);
        before = i + 1;
    }
    fputs("  }\n", out);
}

static void print_reads(FILE *out, const reference *order, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const event *e = event_at(the_checker.g, order[i]);
        unsigned from = e->kind == EVENT_LOAD ? trace_number(e->rf) : 0;
        if (from != 0)
            fprintf(out, "  s%u -> s%u [label=rf, color=darkgreen, fontcolor=darkgreen%s];\n", from,
                    i + 1, clock_has(&e->hb, e->rf) ? "" : ", style=dashed");
    }
}

static void print_modification_orders(FILE *out)
{
    const graph *g = the_checker.g;
    for (unsigned i = 0; i < g->locations_count; i++) {
        const location *l = &g->locations[i];
        unsigned before = 0;
        for (unsigned j = 0; l->in_use && j < l->count; j++) {
            unsigned number = trace_number(l->stores[j]);
            if (number == 0)
                continue;
            if (before != 0)
                fprintf(out,
                        "  s%u -> s%u [label=mo, color=brown, fontcolor=brown, "
                        "constraint=false];\n",
                        before, number);
            before = number;
        }
    }
}

char *dot_execution(void)
{
    char *text = NULL;
    size_t size;
    unsigned count;
    const reference *order = execution_order(&count);
    const bide_check_result *r = the_checker.result;
    FILE *out = open_memstream(&text, &size);
    fputs("digraph execution {\n  graph [labelloc=t, label=\"", out);
    print_quoted(out, the_checker.scenario->name != NULL ? the_checker.scenario->name : "");
    fprintf(out, "\\n%s", bide_check_finding_name(r->finding));
    if (r->message != NULL) {
        fputs("\\n", out);
        print_quoted(out, r->message);
    }
    fputs("\"];\n  node [shape=box, fontname=monospace];\n  edge [fontname=monospace];\n", out);
    for (unsigned t = 0; t < THREADS; t++)
        print_thread(out, t, order, count);
    print_reads(out, order, count);
    print_modification_orders(out);
    fputs("}\n", out);
    fclose(out);
    return text;
}
