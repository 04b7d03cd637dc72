/*
 * Verdicts in words. A sampled result is never called complete: an execution that was not drawn may
 * be wrong.
 */
#include "verdict.h"

#include <inttypes.h>

verdict verdict_of(const bide_check_scenario *s, const bide_check_result *r)
{
    if (r->is_unfinished)
        return s->must_finish && !r->is_sampled ? BAD : UNFINISHED;
    if (r->finding != s->expected)
        return BAD;
    if (r->finding != BIDE_CHECK_NOTHING)
        return COMPLETE;
    return r->is_sampled ? SAMPLED : r->is_bounded ? BOUNDED : COMPLETE;
}

const char *verdict_name(verdict v)
{
    static const char *const names[] = {[COMPLETE] = "complete",
                                        [BOUNDED] = "bounded",
                                        [SAMPLED] = "sampled",
                                        [UNFINISHED] = "unfinished",
                                        [BAD] = "wrong"};
    return names[v];
}

void verdict_print(FILE *out, const bide_check_scenario *s, const bide_check_result *r, verdict v)
{
    if (r->is_unfinished) {
        fprintf(out, "not finished%s: %" PRIu64 " %s", v == BAD ? " (it must be)" : "",
                r->executions + r->blocked, r->is_sampled ? "sampled" : "explored");
        return;
    }
    fputs(bide_check_finding_name(r->finding), out);
    if (v == BAD && r->finding != s->expected)
        fprintf(out, " (not %s)", bide_check_finding_name(s->expected));
    fprintf(out, ": %" PRIu64 " executions", r->executions);
    if (r->blocked != 0)
        fprintf(out, " and %" PRIu64 " given up", r->blocked);
    if (r->is_sampled)
        fprintf(out, ", sampled, seed %" PRIu64, r->seed);
    if (v == SAMPLED && r->bound > 0)
        fprintf(out, ", bound 1/%.6g", 1 / r->bound);
    if (v == BOUNDED)
        fprintf(out, ", bounded: at most %u preemption%s", s->preemptions,
                s->preemptions == 1 ? "" : "s");
    else if (v == COMPLETE && r->finding == BIDE_CHECK_NOTHING)
        fputs(", complete", out);
}

void verdict_print_counts(FILE *out, const unsigned counts[VERDICTS])
{
    const char *separator = "";
    for (unsigned v = 0; v < VERDICTS; v++) {
        if (counts[v] == 0)
            continue;
        fprintf(out, "%s%u %s", separator, counts[v], verdict_name((verdict)v));
        separator = ", ";
    }
}
