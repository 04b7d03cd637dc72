/*
 * Checking one scenario.
 */
#define _GNU_SOURCE
#include "crash.h"
#include "explore.h"
#include "execution.h"
#include "machine.h"
#include "memory.h"
#include "replay.h"
#include "spin.h"

#include <stdlib.h>
#include <string.h>

/* What an event's index can tell, with room for what one operation adds. */
enum { MAX_STEPS = UINT16_MAX - 64 };

const char *bide_check_finding_name(bide_check_finding finding)
{
    static const char *const names[] = {
        "nothing",  "failed assertion", "race",   "use after free", "double free",  "leak",
        "deadlock", "livelock",         "misuse", "crash",          "bad scenario",
    };
    return names[finding];
}

static void begin(const bide_check_scenario *scenario, bide_check_result *result)
{
    memset(result, 0, sizeof *result);
    spin_forget();
    the_checker.scenario = scenario;
    the_checker.result = result;
    the_checker.stopped = false;
    the_checker.max_steps = scenario->max_steps != 0 ? scenario->max_steps : 10000;
    if (the_checker.max_steps > MAX_STEPS)
        the_checker.max_steps = MAX_STEPS;
    the_checker.max_spurious = scenario->never_spurious       ? 0
                                : scenario->max_spurious != 0 ? scenario->max_spurious
                                                               : 1;
}

bide_check_finding bide_check_explore(const bide_check_scenario *scenario,
                                      bide_check_result *result)
{
    begin(scenario, result);
    script_read(NULL);
    crash_begin();
    explore_all();
    crash_end();
    memory_restore();
    return result->finding;
}

bide_check_finding bide_check_replay(const bide_check_scenario *scenario, const char *replay,
                                     bide_check_result *result)
{
    begin(scenario, result);
    if (!script_read(replay)) {
        result->finding = BIDE_CHECK_BAD_SCENARIO;
        result->message = strdup("that is no execution's text");
        return result->finding;
    }
    graph *g = graph_new();
    crash_begin();
    machine_run(g);
    crash_end();
    graph_free(g);
    memory_restore();
    script_read(NULL);
    return result->finding;
}

void bide_check_result_free(bide_check_result *result)
{
    free(result->message);
    free(result->trace);
    free(result->replay);
    for (size_t i = 0; i < result->outcomes_count; i++)
        free(result->outcomes[i]);
    free(result->outcomes);
    free(result->counts);
    memset(result, 0, sizeof *result);
}
