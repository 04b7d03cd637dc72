/*
 * Draws of a test loop: the numbers of its seed, the record of a run, and what code under test asks
 * for: faults, delays, test points. One thread does all of it.
 *
 * A draw is the seed's number, or, for a record with a list, the list's next of its stream. Each draw is
 * recorded with its kind and its stream; each that is not 0 has a line in the trace. The seed's numbers are one
 * sequence, except those of bide_sim_loop_draw_named: each name has one of its own.
 */
#define _GNU_SOURCE
#include "sim_loop.h"

#include "../coroutine/internal.h"
#include "../system/portable.h"

#include <errno.h>
#include <string.h>

/* ---- Numbers ---- */

uint64_t bide_test_next_number_(uint64_t *state)
{
    uint64_t number = *state += UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
    return number ^ (number >> 31);
}

uint32_t bide_test_number_below_(bide_sim_loop *loop, uint32_t below)
{
    return (uint32_t)(((bide_test_next_number_(&loop->random) >> 32) * below) >> 32);
}

bool bide_test_chance_(bide_sim_loop *loop, unsigned exponent)
{
    return (bide_test_next_number_(&loop->random) >> (64 - exponent)) == 0;
}

/* ---- The record ---- */

static test_line *test_next_line(bide_sim_record_ *record)
{
    if (record == NULL || record->lines == NULL)
        return NULL;
    return &record->lines[(*record->lines_count)++ % record->lines_capacity];
}

void bide_test_note_line_(bide_sim_loop *loop, test_line line)
{
    test_line *to = test_next_line(loop->record);
    if (to == NULL)
        return;
    line.time = loop->now;
    line.draw = loop->record->count;
    *to = line;
    if (loop->record->is_live)
        bide_sim_line_print_(stderr, to);
}

/* The stream of a name, by FNV-1a. */
static uint8_t stream_named(test_draw kind, const char *name)
{
    uint32_t hash = UINT32_C(2166136261) ^ (uint32_t)kind;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT32_C(16777619);
    return (uint8_t)(TEST_NAMED + hash % (TEST_STREAMS - TEST_NAMED));
}

/* The next of the list, of this stream; 0: there is none. */
static uint32_t next_given(bide_sim_record_ *record, uint8_t stream)
{
    size_t at = record->given_next[stream];
    while (at < record->given_count && record->given_streams[at] != stream)
        at++;
    record->given_next[stream] = at + 1;
    return at < record->given_count ? record->given[at] : 0;
}

static uint32_t draw_from_stream(bide_sim_loop *loop, test_draw kind, uint8_t stream,
                                 uint32_t number, uint32_t below)
{
    bide_sim_record_ *record = loop->record;
    bide_assert(number < below);
    if (record == NULL)
        return number;
    if (record->given != NULL) {
        number = next_given(record, stream);
        if (number >= below)
            number = 0;
    }
    if (record->count < record->capacity) {
        record->draws[record->count] = (uint16_t)number;
        record->kinds[record->count] = (uint8_t)kind;
        record->streams[record->count] = stream;
    }
    record->count++;
    if (record->made != NULL)
        *record->made = record->count;
    return number;
}

uint32_t bide_test_draw_(bide_sim_loop *loop, test_draw kind, uint32_t number, uint32_t below)
{
    return draw_from_stream(loop, kind, (uint8_t)kind, number, below);
}

uint32_t bide_test_draw_from_(bide_sim_loop *loop, test_draw kind, const char *name,
                              uint32_t number, uint32_t below)
{
    return draw_from_stream(loop, kind, stream_named(kind, name), number, below);
}

uint32_t bide_sim_loop_draw(bide_sim_loop *loop, uint32_t below)
{
    uint32_t number = bide_test_draw_(loop, DRAW_OWN, bide_test_number_below_(loop, below), below);
    if (number != 0)
        bide_test_note_line_(loop, (test_line){.kind = DRAW_OWN, .value = number, .of = below});
    return number;
}

uint32_t bide_sim_loop_draw_named(bide_sim_loop *loop, const char *name, uint32_t below)
{
    uint8_t stream = stream_named(DRAW_OWN, name);
    uint64_t state = loop->seed ^ (uint64_t)stream << 56 ^ (uint64_t)loop->named[stream]++ << 24;
    state = bide_test_next_number_(&state);
    uint32_t number = (uint32_t)(((bide_test_next_number_(&state) >> 32) * below) >> 32);
    number = draw_from_stream(loop, DRAW_OWN, stream, number, below);
    if (number != 0)
        bide_test_note_line_(
            loop, (test_line){.kind = DRAW_OWN, .what = name, .value = number, .of = below});
    return number;
}

/* ---- In the code under test ---- */

static bide_sim_fault *test_fault_named(bide_sim_loop *loop, const char *name)
{
    for (size_t i = 0; i < loop->faults_count; i++) {
        if (loop->faults[i].name == name || strcmp(loop->faults[i].name, name) == 0)
            return &loop->faults[i];
    }
    if (loop->faults_count == BIDE_SIM_FAULTS_MAX) {
        bide_platform.misuse("more names of faults than BIDE_SIM_FAULTS_MAX", name, __FILE__,
                             __LINE__);
        return NULL;
    }
    bide_sim_fault *fault = &loop->faults[loop->faults_count++];
    *fault = (bide_sim_fault){.name = name, .rate_ = UINT64_MAX};
    return fault;
}

bool bide_sim_loop_fault_(bide_sim_loop *loop, const char *name, uint32_t rate)
{
    static const uint32_t rates[] = {0, 2, 8, 64};
    enum { RATES = sizeof rates / sizeof rates[0] };
    bide_sim_fault *fault = rate != 0 ? test_fault_named(loop, name) : NULL;
    if (fault == NULL)
        return false;
    fault->asked++;
    if (rate == TEST_RATE_DRAWN) {
        if (fault->rate_ == UINT64_MAX)
            fault->rate_ = rates[bide_test_draw_from_(loop, DRAW_RATE, name,
                                                      bide_test_number_below_(loop, RATES), RATES)];
        rate = (uint32_t)fault->rate_;
    }
    if (rate == 0 || bide_test_draw_from_(loop, DRAW_FAULT, name,
                                          bide_test_number_below_(loop, rate) == 0, 2) == 0)
        return false;
    fault->fired++;
    bide_test_note_line_(
        loop, (test_line){.kind = DRAW_FAULT, .what = fault->name, .value = 1, .of = rate});
    return true;
}

bool bide_maybe_(const char *name)
{
    return bide_sim_loop_fault_(bide_sim_loop_running_, name, TEST_RATE_DRAWN);
}

uint64_t bide_test_now(void)
{
    const bide_sim_loop *loop = bide_sim_loop_running_;
    return loop != NULL ? loop->now : bide_platform.now();
}

uint64_t bide_test_random(void)
{
    uint64_t number = 0;
    if (bide_sim_loop_running_ != NULL)
        return bide_test_next_number_(&bide_sim_loop_running_->user_random);
    while (portable_random(&number, sizeof number) != 0) {
        if (errno != EINTR) {
            bide_platform.misuse("the system has no getrandom", "bide_test_random", __FILE__,
                                 __LINE__);
            break;
        }
    }
    return number;
}

uint64_t bide_sim_loop_delay_(bide_sim_loop *loop, const char *what, uint64_t max)
{
    enum { DELAYS = 5 }; /* 0, and four delays, each eight times the previous one */
    if (max == 0)
        return 0;
    uint32_t number =
        bide_test_draw_from_(loop, DRAW_DELAY, what, bide_test_number_below_(loop, DELAYS), DELAYS);
    if (number == 0)
        return 0;
    uint64_t delay = max >> (3 * (DELAYS - 1 - number));
    uint64_t microseconds = delay / 1000 < UINT32_MAX ? delay / 1000 : UINT32_MAX;
    bide_test_note_line_(
        loop, (test_line){.kind = DRAW_DELAY, .what = what, .value = (uint32_t)microseconds});
    return delay;
}

static bool test_point_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return bide_sim_loop_running_ == NULL;
}

static bide_frame *test_point_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_sim_loop *loop = bide_sim_loop_running_;
    if (loop == NULL || frame->context->scheduler != &loop->scheduler)
        return frame;
    bool yields =
        test_has_priorities(loop) || bide_test_chance_(loop, 1 + test_turn_exponent(loop) / 2);
    if (bide_test_draw_(loop, DRAW_POINT, yields, 2) == 0)
        return frame;
    bide_test_note_line_(loop, (test_line){.kind = DRAW_POINT, .value = 1, .of = 2});
    bide_wake_one(awaiter);
    return NULL;
}

static int test_point_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

/* The awaiter was posted, or was ready. */
static bool test_point_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

bide_awaiter *bide_sim_point(bide_sim_point_operation *point)
{
    static const bide_awaiter_ops ops = {
        .ready = test_point_ready,
        .suspend = test_point_suspend,
        .resume = test_point_resume,
        .withdraw = test_point_withdraw,
        .name = "bide_sim_point",
    };
    point->awaiter.ops = &ops;
    return &point->awaiter;
}
