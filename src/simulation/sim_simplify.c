/*
 * Simplifies a failing run of a test loop: other draws are tried, each in a child, and kept if they fail
 * in the same way.
 *
 * Simpler means: fewer preemptions, then fewer draws that are not 0, then fewer draws, then smaller
 * ones. There are two ways, and the simpler outcome is taken:
 *
 *     draws first        few draws remain, of any kind. Then each remaining preemption is replaced by
 *                        a draw of another kind, which was 0.
 *     preemptions first  many draws may remain, whose times happen to agree.
 *
 * Both then leave out draws, and reduce values, until no single change helps. That may be a run with
 * several preemptions where one would do. So, in the end, runs with one draw that is not 0 are tried, all
 * of them if the time allows it, and then some with two. Such a run passes nearly always, so many are made
 * in one child.
 */
#include "sim_explorer.h"

#include "../coroutine/internal.h"

#include <string.h>

/* The number of values to try for a draw. */
enum { SMALL_VALUES = 8, REPLACEMENT_VALUES = 4 };

/* For all of it, if the options say nothing. */
enum { SECONDS = 30 };

/* ---- The order of simplicity ---- */

/* Zeroes at the end do not count. */
static void recipe_measure(recipe *r)
{
    while (r->count != 0 && r->draws[r->count - 1] == 0)
        r->count--;
    r->nonzero = 0;
    r->sum = 0;
    for (size_t i = 0; i < r->count; i++) {
        r->nonzero += r->draws[i] != 0;
        r->sum += r->draws[i];
    }
}

static bool recipe_preempts(const recipe *r, size_t at)
{
    return r->draws[at] != 0 && test_draw_preempts(r->kinds[at]);
}

static bool recipe_fails_alike(explorer *self, recipe *r)
{
    if (!bide_sim_fails_alike_(self, r))
        return false;
    recipe_measure(r);
    r->preemptions = 0;
    for (size_t i = 0; i < r->count; i++)
        r->preemptions += recipe_preempts(r, i);
    return true;
}

static bool recipe_is_simpler(const explorer *self, const recipe *a, const recipe *b)
{
    if (a->preemptions != b->preemptions && (!self->draws_first || a->nonzero == b->nonzero))
        return a->preemptions < b->preemptions;
    if (a->nonzero != b->nonzero)
        return a->nonzero < b->nonzero;
    return a->count != b->count ? a->count < b->count : a->sum < b->sum;
}

static bool simplify_may_try(const explorer *self)
{
    return self->result->retries < self->max_retries && bide_platform.now() < self->until;
}

/* Copies the draws and what is known of them into the memory of `to`. */
static void recipe_copy(recipe *to, const recipe *from)
{
    recipe room = *to;
    memcpy(room.draws, from->draws, from->count * sizeof *room.draws);
    memcpy(room.kinds, from->kinds, from->length * sizeof *room.kinds);
    memcpy(room.streams, from->streams, from->length * sizeof *room.streams);
    *to = *from;
    to->draws = room.draws;
    to->kinds = room.kinds;
    to->streams = room.streams;
}

bool bide_sim_best_is_(explorer *self, size_t count)
{
    self->best.count = count;
    recipe_measure(&self->best);
    return recipe_fails_alike(self, &self->best);
}

/* ---- One attempt ---- */

/* Copies the best draws to the trial, and fills it with 0 up to `count`, which is at most the best one's length. */
static void simplify_copy_best(explorer *self, size_t count)
{
    const recipe *best = &self->best;
    uint16_t *draws = self->trial.draws;
    memcpy(draws, best->draws, best->count * sizeof *draws);
    if (count > best->count)
        memset(draws + best->count, 0, (count - best->count) * sizeof *draws);
    memcpy(self->trial.streams, best->streams, best->length * sizeof *best->streams);
}

/*
 * Tries the first `count` of the trial's draws. True: they fail in the same way and are simpler, and are
 * the best now. They are not run if they would not be simpler with that many preemptions.
 */
static bool simplify_try(explorer *self, size_t count, size_t preemptions)
{
    recipe *trial = &self->trial;
    trial->count = count;
    trial->preemptions = preemptions;
    recipe_measure(trial);
    if (!recipe_is_simpler(self, trial, &self->best) || !simplify_may_try(self))
        return false;
    self->result->retries++;
    if (!recipe_fails_alike(self, trial) || !recipe_is_simpler(self, trial, &self->best))
        return false;
    recipe before = self->best;
    self->best = *trial;
    *trial = before;
    return true;
}

/* ---- Changes ---- */

/* Zeroes `size` of the draws that are not 0, or of the preemptions, from number `from` on. */
static bool simplify_zero(explorer *self, bool preemptions, size_t from, size_t size)
{
    size_t seen = 0;
    simplify_copy_best(self, 0);
    for (size_t i = 0; i < self->best.count; i++) {
        if (self->best.draws[i] == 0 || (preemptions && !recipe_preempts(&self->best, i)))
            continue;
        if (seen >= from && seen < from + size)
            self->trial.draws[i] = 0;
        seen++;
    }
    return simplify_try(self, self->best.count, self->best.preemptions);
}

static bool simplify_zero_chunks(explorer *self, bool preemptions)
{
    bool any = false;
    const size_t *count = preemptions ? &self->best.preemptions : &self->best.nonzero;
    for (size_t size = *count; size != 0; size /= 2) {
        for (size_t from = 0; from < *count && simplify_may_try(self);) {
            if (simplify_zero(self, preemptions, from, size))
                any = true;
            else
                from += size;
        }
    }
    return any;
}

/*
 * Zeroes all draws of one value in a stream together: choices that have to agree, such as a key that several tasks
 * draw.
 */
static bool simplify_zero_equal(explorer *self)
{
    enum { VALUES_MAX = 64 };
    struct {
        uint8_t stream;
        uint16_t value;
    } tried[VALUES_MAX];
    size_t tried_count = 0;
    bool any = false;
    for (size_t i = 0; i < self->best.count && simplify_may_try(self); i++) {
        uint8_t stream = self->best.streams[i];
        uint16_t value = self->best.draws[i];
        size_t known = 0;
        while (known < tried_count &&
               (tried[known].stream != stream || tried[known].value != value))
            known++;
        if (value == 0 || known < tried_count)
            continue;
        if (tried_count == VALUES_MAX)
            break;
        tried[tried_count].stream = stream;
        tried[tried_count++].value = value;
        simplify_copy_best(self, 0);
        for (size_t j = i; j < self->best.count; j++) {
            if (self->best.streams[j] == stream && self->best.draws[j] == value)
                self->trial.draws[j] = 0;
        }
        any |= simplify_try(self, self->best.count, self->best.preemptions);
    }
    return any;
}

/* Leaves draws out; the later ones of their streams move forward. */
static bool simplify_leave_out(explorer *self)
{
    bool any = false;
    for (size_t size = 8; size != 0; size /= 2) {
        for (size_t at = 0; at + size <= self->best.count && simplify_may_try(self);) {
            simplify_copy_best(self, 0);
            memmove(self->trial.draws + at, self->trial.draws + at + size,
                    (self->best.count - at - size) * sizeof *self->trial.draws);
            memmove(self->trial.streams + at, self->trial.streams + at + size,
                    (self->best.count - at - size) * sizeof *self->trial.streams);
            if (simplify_try(self, self->best.count - size, self->best.preemptions))
                any = true;
            else
                at += size;
        }
    }
    return any;
}

static bool simplify_set(explorer *self, size_t at, uint16_t value)
{
    simplify_copy_best(self, 0);
    self->trial.draws[at] = value;
    return simplify_try(self, self->best.count, self->best.preemptions);
}

/* Reduces each draw: tries the smallest values, then bisects. */
static bool simplify_reduce_values(explorer *self)
{
    bool any = false;
    for (size_t i = 0; i < self->best.count && simplify_may_try(self); i++) {
        uint16_t passes = 0;
        while (passes < SMALL_VALUES && passes + 1 < self->best.draws[i] &&
               simplify_may_try(self)) {
            if (simplify_set(self, i, passes + 1)) {
                any = true;
                break;
            }
            passes++;
        }
        while (i < self->best.count && passes + 1 < self->best.draws[i] && simplify_may_try(self)) {
            uint16_t middle = (uint16_t)((passes + self->best.draws[i]) / 2);
            if (simplify_set(self, i, middle))
                any = true;
            else
                passes = middle;
        }
    }
    return any;
}

/* Zeroes a preemption, and makes another draw, which is 0, `value`. */
static bool simplify_move_preemption(explorer *self, size_t preemption, size_t at, uint16_t value)
{
    size_t count = at < self->best.count ? self->best.count : at + 1;
    simplify_copy_best(self, count);
    self->trial.draws[preemption] = 0;
    self->trial.draws[at] = value;
    return simplify_try(self, count, self->best.preemptions - 1);
}

/* Looks for a draw of another kind that fails alike in place of the preemption. */
static bool simplify_replace_preemption(explorer *self, size_t preemption)
{
    for (size_t at = 0; at < self->best.length && simplify_may_try(self); at++) {
        bool is_free = at >= self->best.count || self->best.draws[at] == 0;
        if (!is_free || test_draw_preempts(self->best.kinds[at]))
            continue;
        for (uint16_t value = 1; value <= REPLACEMENT_VALUES; value++) {
            if (simplify_move_preemption(self, preemption, at, value))
                return true;
        }
    }
    return false;
}

static bool simplify_replace_preemptions(explorer *self)
{
    bool any = false;
    for (size_t i = 0; i < self->best.count && simplify_may_try(self); i++) {
        if (recipe_preempts(&self->best, i))
            any |= simplify_replace_preemption(self, i);
    }
    return any;
}

/* ---- Runs with one draw that is not 0, or with two ---- */

/* The values that are tried at each place. */
static const uint16_t few_values[] = {1,        2,        3,        4,        5,        6,
                                      7,        8,        HOLD,     HOLD + 1, HOLD + 2, HOLD + 3,
                                      HOLD + 4, HOLD + 5, HOLD + 6, HOLD + 7};
enum { FEW_VALUES = sizeof few_values / sizeof *few_values, PAIRS = 50000 };

/* `other` is the plain run. Zeroes the draws of the trial up to `count`. */
static void make_plain(explorer *self, size_t count)
{
    memset(self->trial.draws, 0, count * sizeof *self->trial.draws);
    memcpy(self->trial.streams, self->other.streams, count * sizeof *self->trial.streams);
}

static size_t make_one_draw(explorer *self, uint64_t number)
{
    size_t at = (size_t)(number % self->other.length);
    make_plain(self, at + 1);
    self->trial.draws[at] = few_values[number / self->other.length];
    return at + 1;
}

/*
 * The second draw is at any place behind the first. The run with the first may be longer than the plain one: then it
 * is one draw more of a stream than that has.
 */
static size_t make_two_draws(explorer *self, uint64_t number)
{
    uint64_t state = number;
    size_t length = self->other.length;
    size_t first = (size_t)(bide_test_next_number_(&state) % length);
    size_t second = first + 1 + (size_t)(bide_test_next_number_(&state) % (length + length / 4));
    uint64_t values = bide_test_next_number_(&state);
    bool is_longer = second >= length && length < DRAWS_MAX;
    if (second >= length)
        second = is_longer ? length : length - 1;
    make_plain(self, is_longer ? length : second + 1);
    if (is_longer)
        self->trial.streams[length] = self->other.streams[bide_test_next_number_(&state) % length];
    self->trial.draws[first] = few_values[values % FEW_VALUES];
    self->trial.draws[second] = few_values[values / FEW_VALUES % FEW_VALUES];
    return second + 1;
}

/* Takes the first of the candidates that is simpler than the best. */
static bool simplify_search(explorer *self, uint64_t candidates,
                            size_t (*make)(explorer *self, uint64_t number))
{
    uint64_t number = 0;
    while (bide_sim_run_candidates_(self, &number, candidates, make)) {
        self->trial.count = make(self, number);
        recipe_measure(&self->trial);
        self->result->retries++;
        if (recipe_fails_alike(self, &self->trial) &&
            recipe_is_simpler(self, &self->trial, &self->best)) {
            recipe_copy(&self->best, &self->trial);
            return true;
        }
        number++;
    }
    return false;
}

/* The plain run passes, so there is no simpler one than with one draw that is not 0. */
static void simplify_by_few_draws(explorer *self)
{
    if (self->best.nonzero < 2)
        return;
    self->other.count = 0;
    recipe_measure(&self->other);
    if (recipe_fails_alike(self, &self->other)) {
        recipe_copy(&self->best, &self->other);
        return;
    }
    const shared *s = self->shared;
    self->other.length = s->draws_count;
    if (self->other.length == 0 || self->other.length > DRAWS_MAX)
        return;
    memcpy(self->other.streams, s->streams, self->other.length * sizeof *s->streams);
    if (simplify_search(self, self->other.length * FEW_VALUES, make_one_draw))
        return;
    while (self->best.preemptions > 1 && self->best.nonzero > 2 &&
           simplify_search(self, PAIRS, make_two_draws)) {
    }
}

/* ---- The two ways ---- */

static void simplify_until_stable(explorer *self)
{
    bool any = true;
    while (any && simplify_may_try(self)) {
        any = simplify_zero_equal(self);
        any |= simplify_leave_out(self);
        any |= simplify_reduce_values(self);
        any |= simplify_zero_chunks(self, true);
        any |= simplify_zero_chunks(self, false);
    }
}

static void simplify_draws_first(explorer *self)
{
    self->draws_first = true;
    simplify_zero_chunks(self, false);
    simplify_until_stable(self);
    self->draws_first = false;
    if (simplify_replace_preemptions(self))
        simplify_until_stable(self);
}

static void simplify_preemptions_first(explorer *self)
{
    simplify_zero_chunks(self, true);
    simplify_zero_chunks(self, false);
    simplify_until_stable(self);
}

void bide_sim_simplify_(explorer *self)
{
    uint64_t limit = self->options->retries != 0 ? self->options->retries : 2000;
    uint64_t seconds =
        self->options->simplify_seconds != 0 ? self->options->simplify_seconds : SECONDS;
    recipe_copy(&self->found, &self->best);
    self->max_retries = limit / 2;
    self->until = bide_platform.now() + seconds * TEST_SECOND;
    simplify_draws_first(self);
    recipe_copy(&self->other, &self->best);
    recipe_copy(&self->best, &self->found);
    self->max_retries = limit;
    simplify_preemptions_first(self);
    if (recipe_is_simpler(self, &self->other, &self->best))
        recipe_copy(&self->best, &self->other);
    simplify_by_few_draws(self);
}
