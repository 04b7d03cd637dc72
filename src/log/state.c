/* The state of a log, which its handles share. state.h says why it is correct. */
#include "state.h"

#include "../coroutine/lock.h"

#include <string.h>

void bide_log_state_init_(struct log_state *state, uint32_t window, bool groups_hold)
{
    state->sharing = NULL;
    bide_atomic_init(&state->lock, LOCK_FREE);
    state->window = window;
    state->groups_hold = groups_hold;
    state->claimed = 0;
    state->left = 0;
    state->tail = 0;
    state->oldest = 1;
    state->last_time = 0;
    state->owners = 0;
    state->groups = NULL;
    state->pending = NULL;
    state->is_flushing = false;
    state->groups_are_removed = false;
    bide_notify_init(&state->flushed);
    bide_notify_init(&state->room);
    bide_notify_init(&state->news);
    state->ended = 0;
    state->changed = NULL;
}

void bide_log_state_destroy_(struct log_state *state)
{
    while (state->groups != NULL) {
        struct bide_log_group_ *group = state->groups;
        state->groups = group->following;
        bide_log_group_destroy_(group);
    }
    bide_log_batch_free_(state->pending);
    bide_notify_destroy(&state->flushed);
    bide_notify_destroy(&state->room);
    bide_notify_destroy(&state->news);
}

void bide_log_lock_(struct log_state *state)
{
    if (state->sharing != NULL)
        state->sharing->lock(state);
    else
        lock_take(&state->lock);
}

void bide_log_unlock_(struct log_state *state)
{
    if (state->sharing != NULL)
        state->sharing->unlock(state);
    else
        lock_free(&state->lock);
}

void bide_log_await_(struct log_state *state, unsigned kinds)
{
    if (state->sharing != NULL)
        state->sharing->await(state, kinds);
}

void bide_log_notify_(struct log_state *state, unsigned kinds)
{
    if ((kinds & LOG_ROOM) != 0)
        bide_notify_all(&state->room);
    if ((kinds & LOG_NEWS) != 0)
        bide_notify_all(&state->news);
    if (state->sharing != NULL)
        state->sharing->notify(state, kinds);
    bide_log_changed_(state);
}

void bide_log_changed_(struct log_state *state)
{
    if (state->changed != NULL)
        state->changed(state);
}

struct bide_log_group_ **bide_log_state_find_(struct log_state *state, const char *name)
{
    struct bide_log_group_ **at = &state->groups;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->following;
    return at;
}

struct bide_log_group_ *bide_log_state_remove_(struct log_state *state, struct bide_log_group_ **at)
{
    struct bide_log_group_ *group = *at;
    *at = group->following;
    if (state->sharing == NULL)
        return group;
    state->sharing->remove_group(state, group);
    return NULL;
}

/* The messages in front of which nothing has to be kept: 4. */
static uint64_t log_state_done(const struct log_state *state)
{
    uint64_t done = state->tail;
    for (const struct bide_log_group_ *group = state->groups; group != NULL;
         group = group->following) {
        if (group->acknowledged < done)
            done = group->acknowledged;
    }
    return done;
}

uint64_t bide_log_state_oldest_(const struct log_state *state)
{
    if (!state->groups_hold)
        return state->oldest;
    uint64_t end = state->tail + state->claimed;
    uint64_t first = end > state->window ? end - state->window + 1 : 1;
    return first > state->oldest ? first : state->oldest;
}

bool bide_log_state_has_room_(const struct log_state *state, uint32_t count)
{
    uint64_t used = state->claimed;
    if (state->groups_hold)
        used += state->tail - log_state_done(state);
    return used + count <= state->window;
}

void bide_log_operation_init_(bide_log_operation *operation, bide_log *log)
{
    operation->log = log;
    operation->count = 0;
    operation->claimed = 0;
    operation->has_turn = false;
    operation->uncertain = false;
    operation->problem[0] = '\0';
    operation->is_fetching = false;
    operation->commit.batch = NULL;
}
