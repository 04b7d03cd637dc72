/*
 * Checks one scenario: explores all its executions, or replays one.
 */
#define _GNU_SOURCE
#include "crash.h"
#include "explore.h"
#include "execution.h"
#include "machine.h"
#include "memory.h"
#include "replay.h"
#include "rounds.h"
#include "sample.h"
#include "spin.h"

#include <stdlib.h>
#include <string.h>

/* The index of an event has 16 bits; one operation adds a few events. */
enum { MAX_STEPS = UINT16_MAX - 64 };

const char *bide_check_finding_name(bide_check_finding finding)
{
    static const char *const names[] = {
        "nothing",
        "failed assertion",
        "race",
        "use after free",
        "double free",
        "out of bounds",
        "uninitialised read",
        "leak",
        "deadlock",
        "livelock",
        "misuse",
        "crash",
        "bad scenario",
    };
    return names[finding];
}

static void checker_begin(const bide_check_scenario *scenario, bide_check_result *result)
{
    memset(result, 0, sizeof *result);
    spin_reset();
    rounds_reset();
    the_checker.scenario = scenario;
    the_checker.result = result;
    the_checker.stopped = the_checker.samples = the_checker.only_grows = false;
    the_checker.max_steps = scenario->max_steps != 0 ? scenario->max_steps : 10000;
    if (the_checker.max_steps > MAX_STEPS)
        the_checker.max_steps = MAX_STEPS;
    the_checker.max_spurious = scenario->never_spurious      ? 0
                               : scenario->max_spurious != 0 ? scenario->max_spurious
                                                             : 1;
}

bide_check_finding bide_check_explore(const bide_check_scenario *scenario,
                                      bide_check_result *result)
{
    checker_begin(scenario, result);
    replay_read(NULL);
    crash_begin(scenario->max_seconds);
    explore_all();
    crash_end();
    memory_restore();
    return result->finding;
}

bide_check_finding bide_check_sample(const bide_check_scenario *scenario,
                                     const bide_check_sampling *sampling, bide_check_result *result)
{
    bide_check_scenario unbounded = *scenario;
    unbounded.preemptions = 0;
    checker_begin(&unbounded, result);
    replay_read(NULL);
    the_checker.samples = the_checker.only_grows = true;
    crash_begin(scenario->max_seconds);
    sample_all(sampling);
    crash_end();
    memory_restore();
    the_checker.scenario = scenario;
    return result->finding;
}

bide_check_finding bide_check_replay(const bide_check_scenario *scenario, const char *replay,
                                     bide_check_result *result)
{
    bide_check_scenario unbounded =
        *scenario; /* a sampled execution has any number of preemptions */
    unbounded.preemptions = 0;
    checker_begin(&unbounded, result);
    if (!replay_read(replay)) {
        result->finding = BIDE_CHECK_BAD_SCENARIO;
        result->message = strdup("this is not the text of an execution");
        the_checker.scenario = scenario;
        return result->finding;
    }
    graph *g = graph_new();
    the_checker.only_grows = true;
    crash_begin(scenario->max_seconds);
    machine_run(g);
    crash_end();
    graph_free(g);
    memory_restore();
    the_checker.scenario = scenario;
    replay_read(NULL);
    return result->finding;
}

void bide_check_result_free(bide_check_result *result)
{
    free(result->message);
    free(result->trace);
    free(result->replay);
    free(result->graph);
    for (size_t i = 0; i < result->outcomes_count; i++)
        free(result->outcomes[i]);
    free(result->outcomes);
    free(result->counts);
    memset(result, 0, sizeof *result);
}
