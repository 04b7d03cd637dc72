/* The wrappers: how each is put around its content. */
#include "composition.h"

#include "bide/handle.h"
#include "bide/sync_wait.h"

#include <stdlib.h>

const char *const wrapper_names[WRAPPERS] = {
    [WRAP_NONE] = "none",
    [WRAP_THEN] = "then",
    [WRAP_WITH_STOP] = "with_stop",
    [WRAP_SHELTER] = "with_stop of none",
    [WRAP_WITH_VALUE] = "with_value",
    [WRAP_WITH_DEADLINE] = "with_deadline",
    [WRAP_ALL] = "when_all",
    [WRAP_ALL_SECOND] = "when_all, second",
    [WRAP_ALL_READY] = "when_all_ready",
    [WRAP_ANY] = "when_any",
    [WRAP_ANY_SECOND] = "when_any, second",
    [WRAP_SCOPE] = "scope",
    [WRAP_SCOPE_MOVES] = "scope whose owner moves",
    [WRAP_SCOPE_WITHIN] = "scope, spawned from within",
    [WRAP_SCOPE_TOKEN] = "scope, joined with_stop",
    [WRAP_SCOPE_LIMITED] = "scope, joined with_deadline",
    [WRAP_SCHEDULE_ON] = "schedule_on",
    [WRAP_RESUME_ON] = "resume_on",
    [WRAP_ONCE] = "once",
    [WRAP_SHARED] = "shared task",
    [WRAP_SHARED_ELSEWHERE] = "shared task elsewhere",
    [WRAP_OWNED] = "owned",
    [WRAP_CHILD] = "child",
    [WRAP_CHILD_MOVES] = "child that moves",
    [WRAP_CHILD_TOLD] = "child that is told",
    [WRAP_SPAWNS] = "child that spawns",
    [WRAP_GENERATOR] = "generator",
    [WRAP_FORKED] = "forked child",
    [WRAP_FORK_CALLED] = "child that a fork calls",
    [WRAP_SELECT] = "select",
    [WRAP_SELECT_RACED] = "select of two in one turn",
};

bool wrapper_has_token(wrapper_kind kind)
{
    return kind == WRAP_WITH_STOP || kind == WRAP_SCOPE_TOKEN;
}

bool wrapper_has_deadline(wrapper_kind kind)
{
    return kind == WRAP_WITH_DEADLINE || kind == WRAP_SCOPE_LIMITED;
}

bool wrapper_takes(wrapper_kind kind)
{
    switch (kind) {
    case WRAP_SHARED:
    case WRAP_SHARED_ELSEWHERE:
    case WRAP_OWNED:
    case WRAP_CHILD:
    case WRAP_CHILD_MOVES:
    case WRAP_CHILD_TOLD:
    case WRAP_GENERATOR:
    case WRAP_FORKED:
    case WRAP_FORK_CALLED:
        return true;
    default:
        return false;
    }
}

bool wrapper_selects(wrapper_kind kind)
{
    return kind == WRAP_SELECT || kind == WRAP_SELECT_RACED;
}

bool wrapper_is_case(wrapper_kind kind)
{
    switch (kind) {
    case WRAP_THEN:
    case WRAP_WITH_STOP:
    case WRAP_SHELTER:
    case WRAP_WITH_DEADLINE:
    case WRAP_SCHEDULE_ON:
    case WRAP_RESUME_ON:
    case WRAP_SELECT:
    case WRAP_SELECT_RACED:
        return true;
    default:
        return false;
    }
}

bool wrapper_begins_taker(wrapper_kind kind)
{
    switch (kind) {
    case WRAP_SCOPE:
    case WRAP_SCOPE_MOVES:
    case WRAP_SCOPE_WITHIN:
    case WRAP_SCOPE_TOKEN:
    case WRAP_SCOPE_LIMITED:
    case WRAP_SPAWNS:
        return true;
    default:
        return false;
    }
}

/*
 * Whether the started coroutine has ended with 0. It is not enough that its probe has seen a 0: a root or branch that
 * is destroyed on its way home releases what it took.
 */
static bool begun_took(layer *self)
{
    if (bide_atomic_load(&self->took, acquire) == 0)
        return false;
    return self->kind == WRAP_SPAWNS ? bide_event_is_set(&self->of.spawning.spawned.ended)
                                     : self->of.scope.branch.status == 0;
}

bool layer_took(layer *self)
{
    return wrapper_begins_taker(self->kind)
               ? begun_took(self)
               : bide_atomic_load(&self->witness.returned, acquire) != 0;
}

/* ---- Frames that are counted ---- */

static bide_atomic(long) frames;

static void *count_allocate(bide_allocator *allocator, size_t size)
{
    (void)allocator;
    bide_atomic_fetch_add(&frames, 1, relaxed);
    return malloc(size);
}

static void count_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    (void)allocator;
    memset(memory, 0xA5, size);
    bide_atomic_fetch_sub(&frames, 1, relaxed);
    free(memory);
}

bide_allocator counting_allocator = {count_allocate, count_deallocate};

long counted_frames(void)
{
    return bide_atomic_load(&frames, relaxed);
}

/* ---- Bodies ---- */

bide_coroutine(child_layer_body)
{
    bide_begin(child_layer_body, struct coroutine_layer * self);
    witness_begins(&self->layer->witness, bide_this_frame());
    if (self->layer->kind == WRAP_CHILD_MOVES) {
        bide_await(bide_schedule(&self->move, self->layer->inner->scheduler));
        witness_moved(&self->layer->witness, bide_this_frame(), self->layer->inner);
    }
    bide_await_status(self->layer->witness.status,
                      cell_make(self->layer->cell, self->layer->index + 1));
    witness_returns(&self->layer->witness, bide_this_frame(), self->layer->witness.status);
    bide_return(self->layer->witness.status);
    bide_end();
}

bide_shared_coroutine(shared_layer_body)
{
    bide_begin(shared_layer_body, struct shared_layer * self);
    witness_begins(&self->layer->witness, bide_this_frame());
    bide_await_status(self->layer->witness.status,
                      cell_make(self->layer->cell, self->layer->index + 1));
    witness_returns(&self->layer->witness, bide_this_frame(), self->layer->witness.status);
    bide_return(self->layer->witness.status);
    bide_end();
}

bide_async_generator_coroutine(generator_layer_body)
{
    bide_begin(generator_layer_body, struct generator_layer * self);
    witness_begins(&self->layer->witness, bide_this_frame());
    bide_await_status(self->layer->witness.status,
                      cell_make(self->layer->cell, self->layer->index + 1));
    witness_returns(&self->layer->witness, bide_this_frame(), self->layer->witness.status);
    if (self->layer->witness.status < 0)
        bide_return(self->layer->witness.status);
    bide_yield(self);
    bide_end();
}

static void branch_ended(bide_branch *branch)
{
    struct scope_layer *self = bide_container_of(branch, struct scope_layer, branch);
    bide_atomic_fetch_add(&self->ended, 1, relaxed);
    if (branch->status == 0)
        bide_atomic_store(&self->layer->took, 1, release);
}

/* The inner operation, and the place where its result is taken. */
static int probe_sees(void *argument, int status)
{
    layer *self = argument;
    cell_check(self->cell, place_is_here(self->ends_at),
               "%s: what it has begun does not end on a thread of %s", wrapper_names[self->kind],
               self->ends_at->name);
    if (status == 0)
        bide_atomic_store(&self->took, 1, release);
    return status;
}

static bide_awaiter *make_probed(layer *self)
{
    return bide_then(&self->probe, cell_make(self->cell, self->index + 1), probe_sees, self);
}

/* A branch of the scope that starts the other branch, while the owner may be moving. */
bide_coroutine(spawner_body)
{
    bide_begin(spawner_body, bide_task * self);
    struct scope_layer *scope = bide_container_of(self, struct scope_layer, spawner);
    bide_scope_spawn(&scope->scope, &scope->branch, make_probed(scope->layer));
    bide_end();
}

static void scope_layer_spawn(struct scope_layer *self, const bide_context *context)
{
    layer *l = self->layer;
    if (l->kind == WRAP_SCOPE_WITHIN) {
        bide_scope_spawn(&self->scope, &self->within,
                         bide_task_init(&self->spawner, &spawner_body));
    } else {
        bide_atomic_fetch_add(&self->spawned, 1, relaxed);
        bide_scope_spawn_in(&self->scope, &self->branch, context, cell_make(l->cell, l->index + 1),
                            branch_ended);
    }
}

static bide_awaiter *scope_layer_join(struct scope_layer *self)
{
    layer *l = self->layer;
    bide_awaiter *join = bide_scope_join(&self->scope);
    if (l->kind == WRAP_SCOPE_TOKEN)
        return bide_with_stop(&self->with_stop, &l->token, join);
    if (l->kind == WRAP_SCOPE_LIMITED)
        return bide_with_deadline(&self->with_deadline, cell_time(l->cell, l->place), join);
    return join;
}

bide_coroutine(scope_layer_body)
{
    bide_begin(scope_layer_body, struct scope_layer * self);
    witness_begins(&self->layer->witness, bide_this_frame());
    if (self->layer->inner != self->layer->place)
        bide_await(bide_schedule(&self->move, self->layer->inner->scheduler));
    bide_scope_init(&self->scope, bide_this_frame());
    scope_layer_spawn(self, bide_this_context());
    if (self->layer->kind == WRAP_SCOPE_MOVES || self->layer->kind == WRAP_SCOPE_WITHIN) {
        bide_await(bide_schedule(&self->move, self->layer->witness.goes_on->scheduler));
        witness_moved(&self->layer->witness, bide_this_frame(), self->layer->witness.goes_on);
    }
    bide_await_status(self->layer->witness.status, scope_layer_join(self));
    witness_returns(&self->layer->witness, bide_this_frame(), self->layer->witness.status);
    bide_return(self->layer->witness.status);
    bide_end();
}

/* The place where it is only for a while. */
static const place *told_place(const layer *self)
{
    return cell_away_of(self->cell, self->place);
}

static void told_to_stop(void *argument)
{
    struct told_layer *self = argument;
    layer *l = self->layer;
    bide_atomic_fetch_add(&self->calls, 1, relaxed);
    cell_check(l->cell, place_is_here(told_place(l)),
               "a stop callback is not called on a thread of %s", told_place(l)->name);
}

bide_coroutine(told_layer_body)
{
    bide_begin(told_layer_body, struct told_layer * self);
    witness_begins(&self->layer->witness, bide_this_frame());
    bide_await(bide_schedule(&self->move, told_place(self->layer)->scheduler));
    bide_stop_callback_init(&self->callback, bide_this_context()->stop, bide_this_context(),
                            told_to_stop, self);
    self->registered = true;
    bide_await(bide_schedule(&self->move, self->layer->place->scheduler));
    witness_moved(&self->layer->witness, bide_this_frame(), self->layer->place);
    bide_await_status(self->layer->witness.status,
                      cell_make(self->layer->cell, self->layer->index + 1));
    witness_returns(&self->layer->witness, bide_this_frame(), self->layer->witness.status);
    if (!bide_stop_callback_remove(&self->callback))
        bide_await(bide_stop_callback_wait(&self->wait, &self->callback));
    self->registered = false;
    bide_return(self->layer->witness.status);
    bide_finally();
    if (self->registered && bide_stop_callback_remove(&self->callback))
        self->registered = false;
    bide_end();
}

bide_coroutine(spawning_layer_body)
{
    bide_begin(spawning_layer_body, struct spawning_layer * self);
    witness_begins(&self->layer->witness, bide_this_frame());
    bide_await(bide_schedule(&self->move, self->layer->inner->scheduler));
    bide_spawn(&self->spawned, bide_this_context(), make_probed(self->layer));
    self->began = true;
    bide_await(bide_schedule(&self->move, self->layer->witness.goes_on->scheduler));
    witness_moved(&self->layer->witness, bide_this_frame(), self->layer->witness.goes_on);
    bide_await(
        bide_with_stop(&self->shelter, NULL, bide_event_wait(&self->wait, &self->spawned.ended)));
    self->began = false;
    self->layer->witness.status = self->spawned.root.status;
    witness_returns(&self->layer->witness, bide_this_frame(), self->layer->witness.status);
    bide_return(self->layer->witness.status);
    bide_finally();
    if (self->began)
        bide_destroy(&self->spawned.root.frame);
    bide_end();
}

/*
 * The number of coroutines that were on a deque of a pool, and then in a ring, without being posted, because they fork;
 * and whether one of them has resumed. (On other schedulers a parent resumes when its child has ended.)
 */
static bide_atomic(uint32_t) parents_aside;
static bide_atomic(uint32_t) parents_gone_on;

bool layers_settle(cell *c)
{
    uint32_t spins = 0;
    if (bide_atomic_load(&parents_aside, acquire) == 0 &&
        bide_atomic_load(&parents_gone_on, relaxed) == 0)
        return false;
    while (bide_atomic_load(&parents_aside, acquire) != 0)
        wait_a_moment(&spins);
    bide_atomic_store(&parents_gone_on, 0, relaxed);
    place_look_again(c->setting->home);
    place_look_again(c->setting->away);
    return true;
}

struct forked_child {
    bide_fork_task forking;
    layer *layer;
};

bide_fork_coroutine(forked_child_body)
{
    bide_begin(forked_child_body, struct forked_child * self);
    witness_begins(&self->layer->witness, bide_this_frame());
    bide_await_status(self->layer->witness.status,
                      cell_make(self->layer->cell, self->layer->index + 1));
    witness_returns(&self->layer->witness, bide_this_frame(), self->layer->witness.status);
    bide_return(self->layer->witness.status);
    bide_end();
}

/* A forked or called child ends with its own error; the first wait returns it. */
bide_fork_coroutine(forking_layer_body)
{
    bide_begin(forking_layer_body, struct forking_layer * self);
    witness_moved(&self->layer->witness, bide_this_frame(), self->layer->place);
    if (self->layer->kind == WRAP_FORK_CALLED) {
        bide_try(
            bide_fork_call(self, struct forked_child, &forked_child_body, layer = self->layer));
    } else {
        self->counted =
            self->layer->place->kind == PLACE_POOL && self->layer->place->strand == NULL;
        if (self->counted)
            bide_atomic_fetch_add(&parents_aside, 1, relaxed);
        bide_await(bide_fork(self, struct forked_child, &forked_child_body, layer = self->layer));
        if (self->counted) {
            bide_atomic_store(&parents_gone_on, 1, relaxed);
            bide_atomic_fetch_sub(&parents_aside, 1, release);
        }
        bide_try(bide_fork_join(self));
    }
    witness_moved(&self->layer->witness, bide_this_frame(), self->layer->place);
    bide_end();
}

/* ---- Making ---- */

static const bide_context_key(layer) layer_key = BIDE_CONTEXT_KEY("a layer");

static int then_passes(void *argument, int status)
{
    layer *self = argument;
    cell_check(self->cell, self->calls++ == 0, "a function of `then` was called twice");
    return status;
}

static bide_awaiter *make_when(layer *self)
{
    struct when_layer *when = &self->of.when;
    bool first = self->kind == WRAP_ALL || self->kind == WRAP_ANY;
    bool any = self->kind == WRAP_ANY || self->kind == WRAP_ANY_SECOND;
    bide_event_init(&when->other, !any);
    bide_branch_init(&when->branches[first ? 0 : 1], cell_make(self->cell, self->index + 1));
    bide_branch_init(&when->branches[first ? 1 : 0], bide_event_wait(&when->wait, &when->other));
    if (any)
        return bide_when_any(&when->when, when->branches, 2);
    if (self->kind == WRAP_ALL_READY)
        return bide_when_all_ready(&when->when, when->branches, 2);
    return bide_when_all(&when->when, when->branches, 2);
}

static bide_awaiter *make_select(layer *self)
{
    struct select_layer *select = &self->of.select;
    const cell_name *name = &self->cell->name;
    bide_awaiter *other = bide_event_wait(&select->wait, &select->other);
    select->select.random = name->row * 31 + name->end * 7 + name->setting * 3 + self->index;
    return bide_select_any_of(&select->select, cell_make(self->cell, self->index + 1), other);
}

void layer_race(layer *self)
{
    if (self->kind == WRAP_SELECT_RACED)
        bide_event_set(&self->of.select.other);
}

static bide_awaiter *make_shared(layer *self)
{
    struct shared_layer *shared = &self->of.shared;
    shared->layer = self;
    shared->context = (bide_context){.scheduler = self->inner->scheduler, .name = "shared"};
    bide_shared_task_init(&shared->shared, &shared_layer_body, &shared->context);
    return bide_shared_task_wait(&shared->wait, &shared->shared);
}

static bide_awaiter *make_owned(layer *self)
{
    struct coroutine_layer *owned =
        bide_create(sizeof *owned, &child_layer_body, &counting_allocator);
    if (owned != NULL)
        owned->layer = self;
    return bide_owned(owned, &child_layer_body);
}

static bide_awaiter *make_generator(layer *self)
{
    struct generator_layer *generator = &self->of.generator;
    generator->layer = self;
    return bide_async_generator_next(
        &generator->next, bide_async_generator_init(&generator->generator, &generator_layer_body));
}

bide_awaiter *layer_make(layer *self)
{
    cell *c = self->cell;
    size_t inside = self->index + 1;
    cell_check(c, !self->made, "a wrapper was made twice");
    self->made = true;
    switch (self->kind) {
    case WRAP_THEN:
        return bide_then(&self->of.then, cell_make(c, inside), then_passes, self);
    case WRAP_WITH_STOP:
        return bide_with_stop(&self->of.with_stop, &self->token, cell_make(c, inside));
    case WRAP_SHELTER:
        return bide_with_stop(&self->of.with_stop, NULL, cell_make(c, inside));
    case WRAP_WITH_VALUE:
        return bide_with_value(&self->of.with_value, &layer_key, self, cell_make(c, inside));
    case WRAP_WITH_DEADLINE:
        return bide_with_deadline(&self->of.with_deadline, cell_time(c, self->place),
                                  cell_make(c, inside));
    case WRAP_SCOPE:
    case WRAP_SCOPE_MOVES:
    case WRAP_SCOPE_WITHIN:
    case WRAP_SCOPE_TOKEN:
    case WRAP_SCOPE_LIMITED:
        self->of.scope.layer = self;
        return bide_task_init(&self->of.scope.task, &scope_layer_body);
    case WRAP_SCHEDULE_ON:
        return bide_schedule_on(&self->of.schedule_on, self->inner->scheduler,
                                cell_make(c, inside));
    case WRAP_RESUME_ON:
        return bide_resume_on(&self->of.resume_on, cell_away_of(c, self->place)->scheduler,
                              cell_make(c, inside));
    case WRAP_ONCE:
        bide_once_init(&self->of.once.once);
        return bide_once_run(&self->of.once.run, &self->of.once.once, cell_make(c, inside));
    case WRAP_SHARED:
    case WRAP_SHARED_ELSEWHERE:
        return make_shared(self);
    case WRAP_OWNED:
        return make_owned(self);
    case WRAP_CHILD:
    case WRAP_CHILD_MOVES:
        self->of.child.layer = self;
        return bide_task_init(&self->of.child.task, &child_layer_body);
    case WRAP_CHILD_TOLD:
        self->of.told.layer = self;
        return bide_task_init(&self->of.told.task, &told_layer_body);
    case WRAP_SPAWNS:
        self->of.spawning.layer = self;
        return bide_task_init(&self->of.spawning.task, &spawning_layer_body);
    case WRAP_GENERATOR:
        return make_generator(self);
    case WRAP_FORKED:
    case WRAP_FORK_CALLED:
        self->of.forking.layer = self;
        return bide_fork_task_init(&self->of.forking.forking, &forking_layer_body);
    case WRAP_SELECT:
    case WRAP_SELECT_RACED:
        return make_select(self);
    default:
        return make_when(self);
    }
}

void layer_init(layer *self, cell *c, size_t index, wrapper_kind kind)
{
    /* An operation that has moved a coroutine stays until the coroutine has ended, and may be reused. */
    bide_resume_on_operation moves = self->of.resume_on;
    memset(self, 0, sizeof *self);
    if (kind == WRAP_RESUME_ON)
        self->of.resume_on = moves;
    self->kind = kind;
    self->cell = c;
    self->index = index;
    self->witness.cell = c;
    self->witness.what = wrapper_names[kind];
    self->witness.status = WAITS;
    bide_stop_source_init(&self->token);
    if (wrapper_selects(kind))
        bide_event_init(&self->of.select.other, false);
}

static void scope_layer_end(layer *self)
{
    uint32_t spawned = bide_atomic_load(&self->of.scope.spawned, relaxed);
    uint32_t ended = bide_atomic_load(&self->of.scope.ended, relaxed);
    if (spawned != ended)
        snprintf(self->cell->late_failure, sizeof self->cell->late_failure,
                 "%u branches of the scope, `ended` was called %u times", spawned, ended);
}

/* It was destroyed after its callback was posted; the callback has run by now. */
static void told_layer_end(layer *self)
{
    struct told_layer *told = &self->of.told;
    cell *c = self->cell;
    bool asked = self->reached && (c->end->act == ACT_ASK || c->end->act == ACT_TOKEN ||
                                   c->end->act == ACT_DEADLINE);
    uint32_t calls = bide_atomic_load(&told->calls, relaxed);
    if (told->registered)
        bide_sync_wait(bide_stop_callback_wait(&told->wait, &told->callback));
    if (!c->destroyed && bide_atomic_load(&self->witness.began, relaxed) != 0)
        cell_check(c, calls == asked, "a stop callback was called %u times, not %d", calls, asked);
}

void layer_end(layer *self)
{
    cell *c = self->cell;
    cell_check(c, self->token.first_child == NULL, "something is attached to the token still");
    cell_check(c, bide_atomic_load(&self->token.lock, relaxed) == 0, "the token is locked");
    if (!self->made)
        return;
    switch (self->kind) {
    case WRAP_GENERATOR:
        bide_async_generator_destroy(&self->of.generator.generator);
        break;
    case WRAP_SCOPE:
    case WRAP_SCOPE_MOVES:
    case WRAP_SCOPE_WITHIN:
    case WRAP_SCOPE_TOKEN:
    case WRAP_SCOPE_LIMITED:
        scope_layer_end(self);
        break;
    case WRAP_ANY:
    case WRAP_ANY_SECOND:
        bide_event_destroy(&self->of.when.other); /* (reports a remaining waiter) */
        break;
    case WRAP_SELECT:
    case WRAP_SELECT_RACED:
        bide_event_destroy(&self->of.select.other);
        break;
    case WRAP_ONCE:
        bide_once_destroy(&self->of.once.once);
        break;
    case WRAP_CHILD_TOLD:
        told_layer_end(self);
        break;
    default:
        break;
    }
}
