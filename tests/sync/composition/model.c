/*
 * The expected result of a cell, computed without running it. The walk goes from the subject inwards and knows for each
 * layer
 *
 *     place     where its awaiting coroutine is
 *     reached   whether the act's request reaches its wait, through contexts and tokens
 *
 * and returns how the wait for that layer ends, when, and where its coroutine resumes.
 */
#include "composition.h"

#include "bide/errors.h"

place *cell_away_of(const cell *c, const place *p)
{
    return p == c->setting->home ? c->setting->away : c->setting->home;
}

static bool is_request(const cell *c)
{
    return c->end->act == ACT_ASK || c->end->act == ACT_TOKEN || c->end->act == ACT_DEADLINE;
}

static int reason(const cell *c)
{
    return c->end->act == ACT_DEADLINE ? -ETIMEDOUT : -ECANCELED;
}

static outcome of_row(cell *c, place *at, bool reached)
{
    bool before = c->end->moment == MOMENT_BEFORE;
    outcome o = {.begins = true, .goes_on = at, .at_begin = before, .ends = true};
    if ((c->row.flags & ROW_MOVES) != 0)
        o.goes_on = cell_away_of(c, at);
    if (is_request(c) && reached && (c->row.flags & ROW_NOT_CUT) == 0) {
        o.status = reason(c);
    } else if (c->end->act == ACT_CLOSE) {
        o.status = -EPIPE;
    } else if (c->end->act != ACT_WAKE) {
        o.ends = o.at_begin = false;
    }
    if ((c->row.flags & ROW_BY_ITSELF) != 0 && o.status == 0)
        o.at_begin = o.ends = true;
    o.row_ends = o.ends;
    o.row_status = o.status;
    return o;
}

static outcome walk(cell *c, size_t index, place *at, bool reached);

/* A wait for an operation that runs independently of it. The wait starts it, unless it was cancelled before. */
static outcome of_shared(cell *c, layer *l, place *at, bool reached)
{
    l->inner = l->kind == WRAP_SHARED ? at : cell_away_of(c, at);
    outcome o = walk(c, l->index + 1, l->inner, false);
    l->witness.place = l->inner;
    l->witness.goes_on = o.goes_on;
    o.goes_on = at;
    bool before = c->end->moment == MOMENT_BEFORE;
    if (!reached || !is_request(c) || (o.at_begin && !before))
        return o;
    if (before) {
        o = (outcome){.begins = false, .goes_on = at, .at_begin = true};
    }
    o.ends = true;
    o.status = reason(c);
    return o;
}

/* A child is asked to stop as its parent is. If the request came before, it is not forked; but it is called. */
static outcome of_forked(cell *c, layer *l, place *at, bool reached)
{
    outcome o = walk(c, l->index + 1, at, reached);
    if (o.goes_on != at)
        c->open = "what is forked goes to no other scheduler";
    if (l->kind == WRAP_FORKED && reached && c->end->act == ACT_DEADLINE &&
        !place_is_by_hand(c->setting->home))
        c->open = "whether its time comes before or after a fork is open";
    if (l->kind == WRAP_FORKED && reached && is_request(c) && c->end->moment == MOMENT_BEFORE) {
        o = (outcome){.begins = false, .at_begin = true, .ends = true};
        o.status = reason(c);
    }
    o.goes_on = at;
    return o;
}

static outcome of_any(cell *c, layer *l, place *at, bool reached)
{
    outcome o = walk(c, l->index + 1, at, reached);
    bool before = c->end->moment == MOMENT_BEFORE;
    o.goes_on = at;
    if (!reached || !is_request(c))
        return o;
    bool with_other = o.ends && (before || !o.at_begin);
    if (with_other && o.status != reason(c))
        c->open = "which of two branches ends first is open";
    /* The other branch is cancelled and decides, unless this one has ended before. */
    if (!o.ends || (before && l->kind == WRAP_ANY_SECOND))
        o.status = reason(c);
    return o;
}

/*
 * A select is asked to stop itself, whatever its cases see of that. In one turn with its other case it ends with 0, one
 * way or the other.
 */
static outcome of_select(cell *c, layer *l, place *at, bool reached)
{
    outcome o = walk(c, l->index + 1, at, reached);
    o.goes_on = at;
    if (l->kind == WRAP_SELECT_RACED && c->end->act == ACT_WAKE) {
        o.ends = true;
        o.at_begin = c->end->moment == MOMENT_BEFORE;
        o.status = 0;
    }
    if (reached && is_request(c) && !(o.at_begin && o.status == 0) && !o.ends) {
        o.ends = o.row_ends = true;
        o.at_begin = c->end->moment == MOMENT_BEFORE;
        o.status = o.row_status = reason(c);
    }
    return o;
}

/* For an operation in a frame of its own the coroutine resumes where it is. */
static outcome walk(cell *c, size_t index, place *at, bool reached)
{
    if (index == c->depth)
        return of_row(c, at, reached);
    layer *l = c->layers[index];
    outcome o;
    l->place = l->inner = l->witness.place = l->witness.goes_on = at;
    l->reached = reached;
    switch (l->kind) {
    case WRAP_THEN:
        return walk(c, index + 1, at, reached);
    case WRAP_WITH_STOP:
        reached = c->end->act == ACT_TOKEN;
        break;
    case WRAP_SHELTER:
        reached = false;
        break;
    case WRAP_WITH_DEADLINE:
    case WRAP_SCOPE_LIMITED:
        reached |= c->end->act == ACT_DEADLINE;
        break;
    case WRAP_SCOPE_TOKEN: /* below the owner's source too */
        reached |= c->end->act == ACT_TOKEN;
        break;
    case WRAP_SCOPE_MOVES:
        l->witness.goes_on = cell_away_of(c, at);
        break;
    case WRAP_SCOPE_WITHIN:
        l->inner = cell_away_of(c, at);
        break;
    case WRAP_SPAWNS:
        l->inner = cell_away_of(c, at);
        o = walk(c, index + 1, l->inner, reached);
        l->ends_at = o.goes_on;
        o.goes_on = at;
        return o;
    case WRAP_SCHEDULE_ON:
        l->inner = cell_away_of(c, at);
        break;
    case WRAP_RESUME_ON:
        o = walk(c, index + 1, at, reached);
        o.goes_on = cell_away_of(c, at);
        return o;
    case WRAP_SHARED:
    case WRAP_SHARED_ELSEWHERE:
        return of_shared(c, l, at, reached);
    case WRAP_FORKED:
    case WRAP_FORK_CALLED:
        return of_forked(c, l, at, reached);
    case WRAP_CHILD_MOVES:
        l->inner = cell_away_of(c, at);
        break;
    case WRAP_ALL:
    case WRAP_ALL_SECOND:
        o = walk(c, index + 1, at, reached);
        /* The other operation is ready, but it is not begun. */
        if (reached && is_request(c) && c->end->moment == MOMENT_BEFORE && o.status == 0)
            o.status = reason(c);
        if (reached && c->end->act == ACT_DEADLINE && o.status == 0 && !place_is_by_hand(at))
            c->open = "whether its time comes before the other operation is begun is open";
        l->ends_at = o.goes_on;
        if (wrapper_takes(l->kind))
            l->witness.goes_on = o.goes_on;
        o.goes_on = at;
        return o;
    case WRAP_ONCE:
        /* At a give-way it does not begin to be the one that runs it. */
        if (reached && is_request(c) && c->end->moment == MOMENT_BEFORE && c->setting->gives_way) {
            walk(c, index + 1, at, reached);
            o = (outcome){.begins = false, .goes_on = at, .at_begin = true, .ends = true};
            o.status = reason(c);
            return o;
        }
        break;
    case WRAP_ANY:
    case WRAP_ANY_SECOND:
        return of_any(c, l, at, reached);
    case WRAP_SELECT:
    case WRAP_SELECT_RACED:
        return of_select(c, l, at, reached);
    default:
        break;
    }
    o = walk(c, index + 1, l->inner, reached);
    if (l->kind == WRAP_ONCE && reached && c->end->act == ACT_DEADLINE && o.status == 0 &&
        c->setting->gives_way && !place_is_by_hand(at))
        c->open = "whether its time comes before it begins to run it is open";
    /* (a test loop draws its budgets) */
    if (l->kind == WRAP_ONCE && reached && is_request(c) && o.status != reason(c) &&
        c->end->moment == MOMENT_BEFORE && at->kind == PLACE_TEST)
        c->open = "whether it gives way before it begins to run it is open";
    if (l->kind == WRAP_ALL_READY)
        o.status = 0;
    l->ends_at = o.goes_on;
    if (wrapper_takes(l->kind))
        l->witness.goes_on = o.goes_on;
    o.goes_on = at;
    return o;
}

static bool has_with_deadline(const cell *c)
{
    for (size_t i = 0; i < c->depth; i++) {
        if (wrapper_has_deadline(c->layers[i]->kind))
            return true;
    }
    return false;
}

void cell_expect(cell *c, place *at)
{
    bool reached = c->end->act == ACT_ASK || (c->end->act == ACT_DEADLINE && !has_with_deadline(c));
    c->outcome = walk(c, 0, at, reached);
    c->subject->witness.place = c->setting->home;
    c->subject->witness.goes_on = c->outcome.goes_on;
    c->parent->witness.place = c->parent->witness.goes_on = c->setting->home;
    place *innermost = c->depth != 0 ? c->layers[c->depth - 1]->inner : at;
    row_place = innermost;
    row_target = cell_away_of(c, innermost)->scheduler;
}
