/* One cell: makes it, runs it, and compares the result with model.c. */
#include "composition.h"
#include "memory.h"

#include "../primitives/rows.h"

#include "small_stack.h"

#include "bide/extend/choice.h"
#include "bide/extend/wrapper.h"
#include "bide/handle.h"

#include <stdarg.h>
#include <stdlib.h>

/* ---- Failures ---- */

void cell_fail(cell *c, const char *format, ...)
{
    uint32_t none = 0;
    if (!bide_atomic_compare_exchange(&c->failed, &none, 1, relaxed, relaxed))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->failure, sizeof c->failure, format, arguments);
    va_end(arguments);
    bide_atomic_store(&c->failed, 2, release); /* partner: cell_failed */
}

bool cell_failed(cell *c)
{
    return bide_atomic_load(&c->failed, acquire) == 2;
}

/* ---- What the coroutines see ---- */

static const char *name_of(const place *p)
{
    return p != NULL ? p->name : "another";
}

/* A forked child runs beside its parent, which must not be read then. */
static bool may_be_forked(const bide_frame *frame)
{
    const bide_coroutine_type *const *type = bide_frame_point(frame)->code->type;
    return type != NULL && (*type)->destroyed == bide_fork_task_destroyed_;
}

/* The chain of awaits ends after few steps. */
static bool has_short_chain(const bide_frame *frame)
{
    for (int count = 0; count < 100; count++) {
        const bide_frame *outer = frame->awaiter.frame;
        if (outer == NULL || outer == frame || may_be_forked(frame) ||
            bide_frame_point(outer)->state != BIDE_AT_AWAIT)
            return true;
        frame = outer;
    }
    return false;
}

static void witness_is_at(witness *self, const bide_frame *frame, const place *p, const char *when)
{
    const bide_context *context = frame->context;
    cell_check(self->cell, self->cell->name.repeats != 0 || has_short_chain(frame),
               "%s: its backtrace is endless when it %s", self->what, when);
    const place *scheduler = place_of(context->scheduler);
    cell_check(self->cell, scheduler == p, "%s: its context's scheduler is %s, not %s, when it %s",
               self->what, name_of(scheduler), name_of(p), when);
    cell_check(self->cell, place_is_here(p), "%s: is not on a thread of %s when it %s", self->what,
               name_of(p), when);
}

void witness_begins(witness *self, const bide_frame *frame)
{
    const bide_context *context = frame->context;
    cell_check(self->cell, bide_atomic_fetch_add(&self->began, 1, relaxed) == 0, "%s: began twice",
               self->what);
    self->stop = context->stop;
    self->name = context->name;
    witness_is_at(self, frame, self->place, "begins");
}

void witness_moved(witness *self, const bide_frame *frame, const place *to)
{
    witness_is_at(self, frame, to, "has moved");
}

void witness_returns(witness *self, const bide_frame *frame, int status)
{
    const bide_context *context = frame->context;
    cell_check(self->cell, bide_atomic_fetch_add(&self->returned, 1, release) == 0,
               "%s: went on twice", self->what);
    cell_check(self->cell, context->stop == self->stop, "%s: has another stop source", self->what);
    cell_check(self->cell, context->name == self->name, "%s: has another name", self->what);
    cell_check(self->cell, status <= 0, "%s: goes on with %d", self->what, status);
    witness_is_at(self, frame, self->goes_on, "goes on");
}

static bool has_returned(witness *self)
{
    return bide_atomic_load(&self->returned, acquire) != 0;
}

/* The path is made again, for another round. */
static void renew_layers(cell *c)
{
    for (size_t i = c->depth; i-- != 0;) {
        layer_end(c->layers[i]);
        layer_init(c->layers[i], c, i, c->kinds[i]);
    }
    cell_expect(c, c->outcome.goes_on);
}

bide_coroutine(subject_body)
{
    bide_begin(subject_body, struct subject * self);
    witness_begins(&self->witness, bide_this_frame());
    for (; self->moved < self->witness.cell->setting->moves; self->moved++) {
        bide_await(bide_schedule(
            &self->moves[self->moved],
            cell_away_of(self->witness.cell, place_of(bide_this_context()->scheduler))->scheduler));
    }
    while (++self->round < self->witness.cell->name.rounds) {
        bide_await_status(self->witness.status, cell_make(self->witness.cell, 0));
        if (self->witness.status != self->witness.cell->outcome.status)
            bide_return(self->witness.status);
        witness_moved(&self->witness, bide_this_frame(), self->witness.goes_on);
        renew_layers(self->witness.cell);
    }
    bide_await_status(self->witness.status, cell_make(self->witness.cell, 0));
    witness_returns(&self->witness, bide_this_frame(), self->witness.status);
    bide_return(self->witness.status);
    bide_end();
}

bide_coroutine(parent_body)
{
    bide_begin(parent_body, struct parent * self);
    witness_begins(&self->witness, bide_this_frame());
    bide_await_status(self->witness.status, bide_task_init(&self->subject->task, &subject_body));
    witness_returns(&self->witness, bide_this_frame(), self->witness.status);
    bide_return(self->witness.status);
    bide_end();
}

/* Waits for the same object, behind the subject. */
struct next {
    bide_task task;
    const primitive *primitive;
    void *object;
    void *waiter; /* NULL: it has not begun */
    int status;
    int ends;
};

bide_coroutine(next_body)
{
    bide_begin(next_body, struct next * self);
    bide_await_status(self->status, self->primitive->begin(self->waiter, self->object));
    self->ends++;
    bide_end();
}

bide_awaiter *cell_make(cell *c, size_t index)
{
    return index < c->depth ? layer_make(c->layers[index])
                            : c->primitive->begin(c->waiter, c->object);
}

/* ---- Making a cell ---- */

enum { TIME = 1000 /* of hand places, when deadlines come */ };

uint64_t cell_time(const cell *c, const place *p)
{
    bool comes = c->end->act == ACT_DEADLINE;
    if (place_is_by_hand(p))
        return comes ? TIME : BIDE_FOREVER - 1;
    return bide_platform.now() + (comes ? UINT64_C(50000) : UINT64_C(3600000000000));
}

static void cell_make_witness(cell *c, witness *w, const char *what)
{
    w->cell = c;
    w->what = what;
    w->status = WAITS;
}

static void cell_init_layers(cell *c)
{
    const cell_name *name = &c->name;
    size_t max = name->repeats != 0 ? 2 * name->repeats : MAX_LAYERS;
    c->layers = calloc(max, sizeof *c->layers);
    c->kinds = calloc(max, sizeof *c->kinds);
    if (c->layers == NULL || c->kinds == NULL)
        abort();
    for (; c->depth < max; c->depth++) {
        size_t i = c->depth;
        wrapper_kind kind = name->repeats == 0 ? name->wrappers[i]
                            : i % 2 == 0       ? name->wrappers[0]
                                               : WRAP_CHILD;
        if (kind == WRAP_NONE)
            break;
        c->kinds[i] = kind;
        c->layers[i] = memory_new(sizeof *c->layers[i]);
        layer_init(c->layers[i], c, i, kind);
    }
}

/* Of a cell's own, the same each time. */
static uint64_t seed_of(const cell *c)
{
    return (((c->name.row * 100 + c->name.end) * 100 + c->name.wrappers[0]) * 100 +
            c->name.wrappers[1]) *
           2;
}

/* Objects that are initialised may use the places. */
static void begin_places(const cell *c)
{
    place_begin(c->setting->home, seed_of(c));
    place_begin(c->setting->away, seed_of(c) + 1);
}

static void cell_init(cell *c, const cell_name *name)
{
    memset(c, 0, sizeof *c);
    c->name = *name;
    c->row = row_at(name->row);
    c->primitive = c->row.primitive;
    c->setting = &settings[name->setting];
    c->end = &ends[name->end];
    place_open(c->setting->home);
    place_open(c->setting->away);
    begin_places(c);
    c->subject = memory_new(sizeof *c->subject);
    c->parent = memory_new(sizeof *c->parent);
    c->spawned = memory_new(sizeof *c->spawned);
    c->context = memory_new(sizeof *c->context);
    c->stop = memory_new(sizeof *c->stop);
    c->deadline = memory_new(sizeof *c->deadline);
    cell_init_layers(c);
    cell_make_witness(c, &c->subject->witness, "the subject");
    cell_make_witness(c, &c->parent->witness, "its parent");
    c->parent->subject = c->subject;
    bide_stop_source_init(c->stop);
    c->context->scheduler = c->setting->home->scheduler;
    c->context->stop = c->stop;
    c->context->name = "composition";
    cell_expect(c, c->setting->moves % 2 == 0 ? c->setting->home : c->setting->away);
    c->waiter = primitive_new_waiter(c->primitive);
    c->object = primitive_new_object(c->primitive);
}

static void free_memory(cell *c, void *memory, const char *what)
{
    cell_check(c, memory_free(memory), "%s was written to when it had gone", what);
}

static void cell_free(cell *c)
{
    free_memory(c, c->subject, "the subject");
    free_memory(c, c->parent, "the subject's parent");
    free_memory(c, c->spawned, "the root");
    free_memory(c, c->context, "the context");
    free_memory(c, c->stop, "the stop source");
    free_memory(c, c->deadline, "the deadline");
    for (size_t i = 0; i < c->depth; i++)
        free_memory(c, c->layers[i], wrapper_names[c->kinds[i]]);
    free(c->layers);
    free(c->kinds);
}

/* ---- Which cells there are ---- */

static bool has_layer(const cell *c, wrapper_kind kind)
{
    for (size_t i = 0; i < c->depth; i++) {
        if (c->kinds[i] == kind)
            return true;
    }
    return false;
}

static bool has_any(const cell *c, bool (*is_one)(wrapper_kind kind))
{
    for (size_t i = 0; i < c->depth; i++) {
        if (is_one(c->kinds[i]))
            return true;
    }
    return false;
}

static bool is_by_hand(const cell *c)
{
    return place_is_by_hand(c->setting->home);
}

static bool has_place(const cell *c, place_kind kind)
{
    return c->setting->home->kind == kind || c->setting->away->kind == kind;
}

static bool is_never_destroyed(const cell *c)
{
    return (c->row.flags & ROW_NOT_DESTROYED) != 0 || has_layer(c, WRAP_FORKED) ||
           has_layer(c, WRAP_FORK_CALLED);
}

static bool has_select(const cell *c)
{
    return has_layer(c, WRAP_SELECT) || has_layer(c, WRAP_SELECT_RACED);
}

/* Whether a select is given what it cannot undo. */
static bool is_refused(const cell *c)
{
    size_t select = 0;
    while (select < c->depth && !wrapper_selects(c->kinds[select]))
        select++;
    if (select == c->depth)
        return false;
    for (size_t i = select + 1; i < c->depth; i++) {
        if (!wrapper_is_case(c->kinds[i]))
            return true;
    }
    bide_awaiter *awaiter = c->primitive->begin(c->waiter, c->object);
    bool refused = bide_choice_refused_(awaiter) != NULL;
    bide_wrapper_abandon(&awaiter);
    return refused;
}

/* Whether a select of the path has its other case. */
static bool is_outraced(const cell *c)
{
    for (size_t i = 0; i < c->depth; i++) {
        if (wrapper_selects(c->kinds[i]) && !memory_is_retired(c->layers[i]) &&
            bide_select_winner(&c->layers[i]->of.select.select.any) != 0)
            return true;
    }
    return false;
}

/* NULL: it exists. */
static const char *excluded(const cell *c)
{
    const end *e = c->end;
    bool by_itself = (c->row.flags & ROW_BY_ITSELF) != 0;
    if (e->act == ACT_CLOSE && c->primitive->close == NULL)
        return "it cannot be closed";
    if (e->act == ACT_TOKEN && !has_any(c, wrapper_has_token))
        return "there is no token";
    if (e->destroys == DESTROYS_STEPPED && !is_by_hand(c))
        return "its scheduler is not stepped";
    if (has_place(c, PLACE_TEST) && e->moment == MOMENT_ELSEWHERE)
        return "a test loop's coroutines are woken on its own thread";
    if (has_place(c, PLACE_TEST) && (c->row.flags & ROW_CALLS_BLOCK) != 0)
        return "a test loop makes its calls itself";
    if ((c->row.flags & ROW_NEEDS_TIMERS) != 0 && !is_by_hand(c) && !by_itself)
        return "time passes there by itself";
    if (c->setting->home->kind == PLACE_INLINE &&
        (e->destroys == DESTROYS_AWAY ||
         (e->destroys == DESTROYS_AT_ONCE && e->moment == MOMENT_OUTSIDE)))
        return "inline, what is handed something from outside runs at once";
    if (by_itself && e->moment != MOMENT_BEFORE && e->destroys != DESTROYS_UNBEGUN &&
        e->destroys != DESTROYS_EARLY && e->destroys != DESTROYS_STEPPED)
        return "it ends by itself";
    if (e->act == ACT_DEADLINE && !is_by_hand(c) && !c->outcome.ends &&
        has_any(c, wrapper_has_deadline))
        return "that its time has come cannot be seen";
    if (c->outcome.at_begin && e->moment != MOMENT_BEFORE && e->destroys != DESTROYS_UNBEGUN &&
        e->destroys != DESTROYS_EARLY && e->destroys != DESTROYS_STEPPED && e->act != ACT_WAKE)
        return "it has ended by then";
    if (c->name.repeats != 0 && has_layer(c, WRAP_SPAWNS) && e->destroys != DESTROYS_NOT)
        return "its `finally` destroys the next: that recurses";
    if (e->begun == ROOT && c->setting->moves != 0)
        return "a root's own operation is what moves it";
    if ((has_layer(c, WRAP_SCOPE_MOVES) || has_layer(c, WRAP_SCOPE_WITHIN)) &&
        (e->destroys == DESTROYS_EARLY || (by_itself && e->destroys == DESTROYS_STEPPED)))
        return "a scope's owner is not destroyed before it joins";
    if (is_never_destroyed(c) && e->destroys != DESTROYS_NOT && e->destroys != DESTROYS_ENDED &&
        (e->destroys != DESTROYS_UNBEGUN || c->setting->home->kind == PLACE_INLINE))
        return "who has forked, or blocks a thread, is not destroyed";
    if ((c->row.flags & ROW_ASKED_THERE) != 0 && row_place != c->setting->home &&
        e->act == ACT_ASK && e->destroys == DESTROYS_AT_ONCE)
        return "what another thread is asked to end is not destroyed meanwhile";
    if (is_refused(c))
        return "a select refuses what it cannot undo";
    return c->open;
}

/* ---- Acting ---- */

static void *root_frame(cell *c)
{
    return c->end->begun != STARTED ? &c->spawned->root.frame : &c->parent->task.frame;
}

static bool has_ended(cell *c)
{
    return c->end->begun != STARTED ? bide_event_is_set(&c->spawned->ended)
                                    : has_returned(&c->parent->witness);
}

static bool settle(cell *c)
{
    place *const both[] = {c->setting->home, c->setting->away};
    bool settled;
    do {
        settled = places_settle(both, 2);
    } while (settled &&
             (layers_settle(c) || ((c->row.flags & ROW_CALLS_BLOCK) != 0 && row_calls_settle())));
    cell_check(c, settled, "it goes on for ever");
    return !cell_failed(c);
}

/* (with real time, a waiter for a deadline polls) */
static bool is_to_be_interrupted(const cell *c)
{
    return (c->row.flags & ROW_IS_INTERRUPTED) != 0 && c->end->moment != MOMENT_BEFORE &&
           c->outcome.row_ends && c->outcome.row_status != 0 &&
           (c->end->act != ACT_DEADLINE || is_by_hand(c));
}

/* Sets the events of the selects. */
static void race_all(cell *c)
{
    for (size_t i = 0; i < c->depth; i++)
        layer_race(c->layers[i]);
}

static void act_now(void *argument)
{
    cell *c = argument;
    if (is_to_be_interrupted(c))
        row_is_interrupted();
    switch (c->end->act) {
    case ACT_WAKE:
        c->woken = true;
        if (seed_of(c) / 2 % 2 == 0)
            race_all(c);
        c->primitive->wake(c->object);
        race_all(c);
        break;
    case ACT_ASK:
        bide_stop_request(c->stop);
        break;
    case ACT_TOKEN:
        for (size_t i = 0; i < c->depth; i++) {
            if (wrapper_has_token(c->kinds[i]))
                bide_stop_request(&c->layers[i]->token);
        }
        break;
    case ACT_DEADLINE:
        if (!c->has_deadline && !has_any(c, wrapper_has_deadline))
            bide_stop_request_with(c->stop, -ETIMEDOUT);
        places_let_time_be(TIME);
        break;
    case ACT_CLOSE:
        c->closed = true;
        c->primitive->close(c->object);
        break;
    case ACT_NOTHING:
    case ACT_DESTROY:
    default:
        break;
    }
}

static void destroy_now(void *argument)
{
    cell *c = argument;
    c->destroyed = !has_ended(c);
    bide_destroy(root_frame(c));
}

static void act_and_destroy(void *argument)
{
    act_now(argument);
    destroy_now(argument);
}

static void resume_parent(void *argument)
{
    bide_resume(&((cell *)argument)->parent->task.frame);
}

static void resume_and_destroy(void *argument)
{
    resume_parent(argument);
    destroy_now(argument);
}

static void cell_spawn(cell *c)
{
    const bide_context *context = c->has_deadline ? &c->deadline->context : c->context;
    if (c->end->begun == ROOT)
        bide_spawn(c->spawned, context, cell_make(c, 0));
    else if (c->end->begun == SPAWNED)
        bide_spawn(c->spawned, context, bide_task_init(&c->parent->task, &parent_body));
    else
        bide_start(&c->parent->task.frame, &parent_body, context);
}

/* A deadline for all, unless one of the wrappers is one. */
static void set_deadline(cell *c)
{
    place *home = c->setting->home;
    if (c->end->act != ACT_DEADLINE || has_any(c, wrapper_has_deadline))
        return;
    c->has_deadline = true;
    cell_check(c, bide_deadline_init(c->deadline, c->context, cell_time(c, home)) == 0,
               "the deadline cannot be set");
}

static void hold_all(cell *c)
{
    place_hold(c->setting->home);
    place_hold(c->setting->away);
}

static void release_all(cell *c)
{
    place_release(c->setting->home);
    place_release(c->setting->away);
}

static void cell_begin(cell *c)
{
    place *home = c->setting->home;
    if (c->end->moment == MOMENT_BEFORE)
        act_now(c);
    set_deadline(c);
    if (c->end->destroys == DESTROYS_UNBEGUN || c->end->destroys == DESTROYS_EARLY)
        hold_all(c);
    if (c->end->destroys == DESTROYS_UNBEGUN && c->end->begun != STARTED) {
        if (home->kind == PLACE_INLINE)
            return; /* it begins at once: see cell_act */
        cell_spawn(c);
    } else {
        cell_spawn(c);
        if (c->end->begun != STARTED || c->end->destroys == DESTROYS_UNBEGUN)
            return;
        if (c->end->destroys == DESTROYS_EARLY) {
            place_call(home, resume_and_destroy, c);
            release_all(c);
        } else {
            place_call(home, resume_parent, c);
        }
    }
}

static void spawn_and_destroy(void *argument)
{
    cell_spawn(argument);
    destroy_now(argument);
}

static void step_and_destroy(cell *c)
{
    for (unsigned i = 0; i < c->end->steps; i++) {
        if (!place_step(c->setting->away))
            place_step(c->setting->home);
    }
    place_touch(c->setting->home, destroy_now, c);
}

static void cell_act(cell *c)
{
    place *home = c->setting->home;
    switch (c->end->destroys) {
    case DESTROYS_UNBEGUN:
        if (c->end->begun != STARTED && home->kind == PLACE_INLINE)
            place_call(home, spawn_and_destroy, c);
        else
            place_touch(home, destroy_now, c);
        release_all(c);
        break;
    case DESTROYS_EARLY:
        break;
    case DESTROYS_AT_ONCE:
        hold_all(c);
        if (c->end->moment == MOMENT_OUTSIDE) {
            act_now(c);
            place_touch(home, destroy_now, c);
        } else {
            place_call(home, act_and_destroy, c);
        }
        release_all(c);
        break;
    case DESTROYS_AWAY:
        place_hold(home);
        act_now(c);
        place_drain(c->setting->away);
        place_touch(home, destroy_now, c);
        place_release(home);
        break;
    case DESTROYS_STEPPED:
        if ((c->row.flags & ROW_BY_ITSELF) == 0)
            act_now(c);
        step_and_destroy(c);
        break;
    case DESTROYS_ENDED:
    case DESTROYS_NOT:
    default:
        if (c->end->moment == MOMENT_LATER)
            place_call(home, act_now, c);
        else if (c->end->moment == MOMENT_OUTSIDE)
            act_now(c);
        else if (c->end->moment == MOMENT_ELSEWHERE)
            place_call_elsewhere(act_now, c);
        break;
    }
}

/* Whether the deadline has passed, and the request was made. */
static bool has_struck(cell *c)
{
    if (c->outcome.ends || !c->has_deadline)
        return has_ended(c);
    return bide_atomic_load(&c->deadline->state, acquire) == BIDE_DEADLINE_ENDED;
}

/* Waits until real time reaches a deadline; gives up only if the test has failed. */
static bool settle_until_struck(cell *c)
{
    uint64_t max = bide_platform.now() + UINT64_C(10000000000);
    while (settle(c) && !has_struck(c)) {
        if (bide_platform.now() > max) {
            cell_fail(c, "the deadline has come, and it does not end");
            return false;
        }
        bide_platform.yield();
    }
    return !cell_failed(c);
}

/* ---- Comparison with the model ---- */

static bool check_status(cell *c, int status, const char *what)
{
    cell_check(c, status == c->outcome.status, "%s ended with %d, not with %d", what, status,
               c->outcome.status);
    return !cell_failed(c);
}

static bool check_ended(cell *c, const char *when)
{
    cell_check(c, has_ended(c), "%s it has not ended%s", when,
               has_returned(&c->subject->witness) ? ", but the subject has" : "");
    if (cell_failed(c))
        return false;
    if (c->end->begun != STARTED && !check_status(c, c->spawned->root.status, "the root"))
        return false;
    if (c->end->begun == ROOT)
        return !cell_failed(c);
    return check_status(c, c->subject->witness.status, "the subject") &&
           check_status(c, c->parent->witness.status, "its parent");
}

static bool check_waits(cell *c, const char *when)
{
    cell_check(c, !has_returned(&c->subject->witness), "%s it has ended, with %d", when,
               c->subject->witness.status);
    cell_check(c, !has_ended(c), "%s it has ended", when);
    if ((c->row.flags & (ROW_ANY_WAITS | ROW_BY_ITSELF)) == 0)
        cell_check(c, !c->primitive->is_idle(c->object), "%s nobody waits", when);
    return !cell_failed(c);
}

/* The outermost shared task continues without the subject. */
static size_t orphan_of(const cell *c)
{
    size_t i = 0;
    while (i < c->depth && c->kinds[i] != WRAP_SHARED && c->kinds[i] != WRAP_SHARED_ELSEWHERE)
        i++;
    return i;
}

/* Whether a coroutine has the row's result. (Not a destroyed one.) */
static bool is_taken(cell *c)
{
    layer *taker = NULL;
    for (size_t i = 0; i < c->depth; i++) {
        if (!memory_is_retired(c->layers[i]) &&
            (wrapper_takes(c->kinds[i]) || wrapper_begins_taker(c->kinds[i])))
            taker = c->layers[i];
    }
    bool ended_with_0 = c->outcome.row_ends ? c->outcome.row_status == 0 : c->woken;
    bool returned = taker != NULL           ? layer_took(taker)
                    : c->end->begun == ROOT ? !c->destroyed && has_ended(c)
                                            : has_returned(&c->subject->witness);
    return returned && c->outcome.begins && ended_with_0 && !is_outraced(c);
}

static void next_begin(struct next *next, cell *c)
{
    next->primitive = c->primitive;
    next->object = c->object;
    next->waiter = primitive_new_waiter(c->primitive);
    next->status = WAITS;
    bide_start(&next->task.frame, &next_body, &bide_default_context);
    bide_resume(&next->task.frame);
}

static void check_tokens(cell *c)
{
    const primitive *p = c->primitive;
    cell_check(c, p->is_idle(c->object), "somebody waits still");
    if (p->free_tokens != NULL && !c->closed) {
        unsigned tokens = p->free_tokens(c->object);
        cell_check(c, tokens == 1, "at last there are %u tokens", tokens);
    }
}

/* Hands on the result of the subject, and then of the next one; no token may be missing. */
static void hand_on_all(cell *c, struct next *next)
{
    const primitive *p = c->primitive;
    bool taken = is_taken(c);
    bool kept = c->destroyed && c->end->act == ACT_WAKE && !taken && c->outcome.begins &&
                orphan_of(c) == c->depth && (p->traits & KEEPS_WHAT_IT_HAD) != 0 &&
                (!has_select(c) || !is_outraced(c));
    /* (it has run if nobody else has it) */
    bool may_have_run = c->end->destroys == DESTROYS_AWAY || c->end->destroys == DESTROYS_STEPPED ||
                        (c->end->destroys == DESTROYS_AT_ONCE && c->end->moment == MOMENT_OUTSIDE);
    kept |= c->destroyed && may_have_run && !taken && orphan_of(c) == c->depth &&
            (c->row.flags & ROW_TAKES_WHEN_IT_RUNS) != 0 && next->ends == 0;
    if (p->hand_on != NULL && (taken || kept))
        p->hand_on(c->object, c->waiter);
    primitive_retire_waiter(p, c->waiter);
    if (!settle(c))
        return;
    if ((c->row.flags & (ROW_BY_ITSELF | ROW_ALONE)) != 0) {
        check_tokens(c);
        return;
    }
    if (next->waiter == NULL)
        next_begin(next, c);
    if (!settle(c))
        return;
    int expected = c->closed ? -EPIPE : 0;
    cell_check(c, next->ends == 1, "the next ended %d times", next->ends);
    cell_check(c, next->status == expected, "the next ended with %d", next->status);
    if (cell_failed(c))
        return;
    if (next->status == 0 && p->hand_on != NULL)
        p->hand_on(c->object, next->waiter);
    primitive_retire_waiter(p, next->waiter);
    check_tokens(c);
}

static void check_stop(cell *c)
{
    uint32_t word = bide_atomic_load(&c->stop->word, relaxed);
    cell_check(c, (word & ~3u) == 0, "somebody waits in the stop source");
    cell_check(c, c->stop->first_child == NULL, "something is attached to the stop source still");
    cell_check(c, bide_atomic_load(&c->stop->lock, relaxed) == 0, "the stop source is locked");
}

/* The memory of ended waits is retired: nothing may refer to it. */
static void retire_ended(cell *c)
{
    for (size_t i = orphan_of(c); i-- != 0;) {
        layer_end(c->layers[i]);
        if (!cell_failed(c))
            memory_retire(c->layers[i]);
    }
}

static bool cell_finish(cell *c, struct next *next)
{
    const primitive *p = c->primitive;
    if (!c->woken && !c->closed && (c->row.flags & ROW_BY_ITSELF) == 0) {
        if (c->destroyed)
            retire_ended(c);
        if (cell_failed(c))
            return false;
        c->woken = true;
        p->wake(c->object);
    }
    if (!settle(c) || (!c->destroyed && !check_ended(c, "at last")))
        return false;
    hand_on_all(c, next);
    if (cell_failed(c) || !settle(c))
        return false;
    for (size_t i = c->depth; i-- != 0;) {
        if (!memory_is_retired(c->layers[i]))
            layer_end(c->layers[i]);
    }
    if (c->has_deadline)
        cell_check(c, bide_deadline_try_stop(c->deadline), "the deadline has not ended");
    check_stop(c);
    if (cell_failed(c))
        return false;
    primitive_free_object(p, c->object);
    cell_check(c, place_is_empty(c->setting->home) && place_is_empty(c->setting->away),
               "something is queued, or a timer is set, still");
    cell_check(c, counted_frames() == 0, "%ld frames were not freed", counted_frames());
    cell_free(c);
    cell_check(c, primitive_free_waiter(p, c->waiter), "the waiter was written to after its end");
    if (next->waiter != NULL)
        cell_check(c, primitive_free_waiter(p, next->waiter),
                   "the next one's waiter was written to after its end");
    cell_check(c, c->late_failure[0] == '\0', "%s", c->late_failure);
    return !cell_failed(c);
}

/* ---- Running it ---- */

static bool has_line(const cell *c)
{
    return (c->row.flags & (ROW_BY_ITSELF | ROW_ALONE)) == 0 && c->primitive->max_waiting != 1;
}

/* Whether it waits now, visibly. */
static bool check_begun(cell *c)
{
    if (c->end->destroys == DESTROYS_EARLY)
        return settle(c);
    if (c->end->destroys == DESTROYS_UNBEGUN ||
        (c->end->destroys == DESTROYS_STEPPED && (c->row.flags & ROW_BY_ITSELF) != 0))
        return true;
    if (!settle(c))
        return false;
    if (c->outcome.at_begin)
        return check_ended(c, "when it has begun");
    return (c->end->act == ACT_DEADLINE && !is_by_hand(c)) || check_waits(c, "when it has begun");
}

static bool check_acted(cell *c)
{
    if (c->destroyed)
        return settle(c);
    if (c->end->act == ACT_DEADLINE && (c->outcome.ends || c->has_deadline) &&
        !settle_until_struck(c))
        return false;
    if (!settle(c))
        return false;
    if (c->outcome.ends)
        return check_ended(c, "after that");
    return c->end->act == ACT_DEADLINE || c->end->act == ACT_DESTROY ||
           check_waits(c, "after that");
}

/* On the thread that runs it, whose thread-local state is used. */
static void set_places(const cell *c)
{
    places_set_budget(c->setting->gives_way ? 1 : 0);
    places_let_time_be(0);
}

static bool run(cell *c, struct next *next)
{
    set_places(c);
    cell_begin(c);
    if (cell_failed(c) || !check_begun(c))
        return false;
    if (has_line(c))
        next_begin(next, c);
    cell_act(c);
    if (cell_failed(c) || !check_acted(c))
        return false;
    if (c->end->destroys == DESTROYS_ENDED)
        place_call(c->setting->home, destroy_now, c);
    return !cell_failed(c) && cell_finish(c, next);
}

struct running {
    cell *c;
    struct next *next;
    bool passed;
};

static void *run_there(void *argument)
{
    struct running *self = argument;
    begin_places(self->c); /* a test loop belongs to this thread */
    self->passed = run(self->c, self->next);
    return NULL;
}

verdict cell_run(const cell_name *name, char *reason, size_t size)
{
    cell c;
    struct next next = {.waiter = NULL};
    cell_init(&c, name);
    const char *why = excluded(&c);
    if (why != NULL) {
        snprintf(reason, size, "%s", why);
        primitive_free_object(c.primitive, c.object);
        cell_free(&c);
        free(c.waiter);
        return CELL_EXCLUDED;
    }
    struct running running = {&c, &next, false};
    if (name->repeats != 0 || name->rounds != 0)
        on_a_small_stack(run_there, &running);
    else
        running.passed = run(&c, &next);
    if (running.passed)
        return CELL_PASSED;
    snprintf(reason, size, "%s", c.failure);
    return CELL_FAILED;
}

void cell_print_name(const cell_name *name, char *text, size_t size)
{
    snprintf(text, size, "%s | %s%s%s%s | %s | %s", row_at(name->row).primitive->name,
             wrapper_names[name->wrappers[0]],
             name->repeats != 0  ? " of itself"
             : name->rounds != 0 ? " again and again"
                                 : "",
             name->wrappers[1] != WRAP_NONE ? " of " : "",
             name->wrappers[1] != WRAP_NONE ? wrapper_names[name->wrappers[1]] : "",
             ends[name->end].name, settings[name->setting].name);
}
