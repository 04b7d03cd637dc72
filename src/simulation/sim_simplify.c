/*
 * A failing run of a test loop is made simpler: other draws are tried, each in a child, and kept if
 * they fail in the same way.
 *
 * Simpler is: fewer preemptions, then fewer draws that are not 0, then fewer draws, then smaller
 * ones. That is looked for in two ways, and the simpler outcome is taken:
 *
 *     fewest draws first  whatever they are. What is left is few. Then each preemption that is left
 *                         is made 0 with another draw, which was 0, in place of it.
 *     preemptions first   what is left may be many draws, whose times happen to agree.
 *
 * In both draws are left out then, and made smaller, until nothing more can be done alone.
 */
#include "sim_explorer.h"

#include <string.h>

/* How many values are tried for a draw. */
enum { FEW = 8, FEWER = 4 };

/* ---- What is simpler ---- */

/*
 * A child that crashed could not say how many draws it made: those that it was given, and zeroes,
 * are as good.
 */
static void measure(recipe *r)
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

static bool preempts(const recipe *r, size_t at)
{
    return r->draws[at] != 0 && test_draw_preempts(r->kinds[at]);
}

static bool fails_alike(explorer *self, recipe *r)
{
    if (!bide_sim_fails_alike_(self, r))
        return false;
    r->preemptions = 0;
    for (size_t i = 0; i < r->count; i++)
        r->preemptions += preempts(r, i);
    return true;
}

static bool is_simpler(const explorer *self, const recipe *a, const recipe *b)
{
    if (a->preemptions != b->preemptions && (!self->draws_first || a->nonzero == b->nonzero))
        return a->preemptions < b->preemptions;
    if (a->nonzero != b->nonzero)
        return a->nonzero < b->nonzero;
    return a->count != b->count ? a->count < b->count : a->sum < b->sum;
}

static bool may_try(const explorer *self)
{
    return self->result->retries < self->max_retries;
}

/* Copies draws, and what is known of them, into the memory of `to`. */
static void copy_recipe(recipe *to, const recipe *from)
{
    recipe room = *to;
    memcpy(room.draws, from->draws, from->count * sizeof *room.draws);
    memcpy(room.kinds, from->kinds, from->length * sizeof *room.kinds);
    *to = *from;
    to->draws = room.draws;
    to->kinds = room.kinds;
}

bool bide_sim_best_is_(explorer *self, size_t count)
{
    self->best.count = count;
    measure(&self->best);
    return fails_alike(self, &self->best);
}

/* ---- One try ---- */

/* Makes the trial's draws those of the best, to be changed, and 0 up to `count`. */
static void copy_best(explorer *self, size_t count)
{
    const recipe *best = &self->best;
    uint16_t *draws = self->trial.draws;
    memcpy(draws, best->draws, best->count * sizeof *draws);
    if (count > best->count)
        memset(draws + best->count, 0, (count - best->count) * sizeof *draws);
}

/*
 * Do the first `count` of the trial's draws fail in the same way, and are they simpler? Then they
 * are best. They are not tried if they would not be simpler with so many preemptions.
 */
static bool improves(explorer *self, size_t count, size_t preemptions)
{
    recipe *trial = &self->trial;
    trial->count = count;
    trial->preemptions = preemptions;
    measure(trial);
    if (!is_simpler(self, trial, &self->best) || !may_try(self))
        return false;
    self->result->retries++;
    if (!fails_alike(self, trial) || !is_simpler(self, trial, &self->best))
        return false;
    recipe before = self->best;
    self->best = *trial;
    *trial = before;
    return true;
}

/* ---- Changes ---- */

/* Makes `size` of those that are not 0, or of the preemptions, from the `from`th on, 0. */
static bool zero_some(explorer *self, bool preemptions, size_t from, size_t size)
{
    size_t seen = 0;
    copy_best(self, 0);
    for (size_t i = 0; i < self->best.count; i++) {
        if (self->best.draws[i] == 0 || (preemptions && !preempts(&self->best, i)))
            continue;
        if (seen >= from && seen < from + size)
            self->trial.draws[i] = 0;
        seen++;
    }
    return improves(self, self->best.count, self->best.preemptions);
}

static bool zero_chunks(explorer *self, bool preemptions)
{
    bool any = false;
    const size_t *count = preemptions ? &self->best.preemptions : &self->best.nonzero;
    for (size_t size = *count; size != 0; size /= 2) {
        for (size_t from = 0; from < *count && may_try(self);) {
            if (zero_some(self, preemptions, from, size))
                any = true;
            else
                from += size;
        }
    }
    return any;
}

/* Leaves draws out, so that those behind come earlier. */
static bool leave_out(explorer *self)
{
    bool any = false;
    for (size_t size = 8; size != 0; size /= 2) {
        for (size_t at = 0; at + size <= self->best.count && may_try(self);) {
            copy_best(self, 0);
            memmove(self->trial.draws + at, self->trial.draws + at + size,
                    (self->best.count - at - size) * sizeof *self->trial.draws);
            if (improves(self, self->best.count - size, self->best.preemptions))
                any = true;
            else
                at += size;
        }
    }
    return any;
}

/* Makes the `at`th draw `value`, if that fails alike. */
static bool set_one(explorer *self, size_t at, uint16_t value)
{
    copy_best(self, 0);
    self->trial.draws[at] = value;
    return improves(self, self->best.count, self->best.preemptions);
}

/* Makes each draw small: the smallest of a few that fails alike, then by halves. */
static bool make_smaller(explorer *self)
{
    bool any = false;
    for (size_t i = 0; i < self->best.count && may_try(self); i++) {
        uint16_t passes = 0;
        while (passes < FEW && passes + 1 < self->best.draws[i] && may_try(self)) {
            if (set_one(self, i, passes + 1)) {
                any = true;
                break;
            }
            passes++;
        }
        while (i < self->best.count && passes + 1 < self->best.draws[i] && may_try(self)) {
            uint16_t middle = (uint16_t)((passes + self->best.draws[i]) / 2);
            if (set_one(self, i, middle))
                any = true;
            else
                passes = middle;
        }
    }
    return any;
}

/* Makes a preemption 0, and another draw, which is 0, `value`. */
static bool put_elsewhere(explorer *self, size_t preemption, size_t at, uint16_t value)
{
    size_t count = at < self->best.count ? self->best.count : at + 1;
    copy_best(self, count);
    self->trial.draws[preemption] = 0;
    self->trial.draws[at] = value;
    return improves(self, count, self->best.preemptions - 1);
}

/* Is another draw, by which nobody is preempted, as good as this preemption? */
static bool replace_one(explorer *self, size_t preemption)
{
    for (size_t at = 0; at < self->best.length && may_try(self); at++) {
        bool is_free = at >= self->best.count || self->best.draws[at] == 0;
        if (!is_free || test_draw_preempts(self->best.kinds[at]))
            continue;
        for (uint16_t value = 1; value <= FEWER; value++) {
            if (put_elsewhere(self, preemption, at, value))
                return true;
        }
    }
    return false;
}

static bool replace_preemptions(explorer *self)
{
    bool any = false;
    for (size_t i = 0; i < self->best.count && may_try(self); i++) {
        if (preempts(&self->best, i))
            any |= replace_one(self, i);
    }
    return any;
}

/* ---- Both ways ---- */

/* Until nothing more can be done. */
static void polish(explorer *self)
{
    bool any = true;
    while (any && may_try(self)) {
        any = leave_out(self);
        any |= make_smaller(self);
        any |= zero_chunks(self, true);
        any |= zero_chunks(self, false);
    }
}

static void draws_first(explorer *self)
{
    self->draws_first = true;
    zero_chunks(self, false);
    polish(self);
    self->draws_first = false;
    if (replace_preemptions(self))
        polish(self);
}

static void preemptions_first(explorer *self)
{
    zero_chunks(self, true);
    zero_chunks(self, false);
    polish(self);
}

void bide_sim_simplify_(explorer *self)
{
    uint64_t max = self->options->retries != 0 ? self->options->retries : 2000;
    copy_recipe(&self->found, &self->best);
    self->max_retries = max / 2;
    draws_first(self);
    copy_recipe(&self->other, &self->best);
    copy_recipe(&self->best, &self->found);
    self->max_retries = max;
    preemptions_first(self);
    if (is_simpler(self, &self->other, &self->best))
        copy_recipe(&self->best, &self->other);
}
