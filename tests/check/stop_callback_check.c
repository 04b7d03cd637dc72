/*
 * Stop callbacks: removed and freed during a request to stop; attached during a request; requests
 * from two threads.
 */
#include "bide/check.h"
#include "bide/stop_callback.h"

typedef struct state {
    bide_stop_source stop;
    bide_stop_callback *callback; /* allocated, so that a late access is detected */
    bide_stop_callback *another;
    bide_stop_callback_waiter *waiter;
    int reason; /* written before a request */
    bool removed, another_removed;
    int ran; /* written by the function */
    int another_ran;
} state;

static void function(void *p)
{
    state *s = p;
    bide_check_assert(s->reason == 1);
    bide_check_assert(++s->ran == 1);
}

static void removing_function(void *p)
{
    state *s = p;
    bide_check_assert(!bide_stop_callback_remove(s->callback));
    function(p);
}

static void another_function(void *p)
{
    state *s = p;
    bide_check_assert(s->reason == 1);
    bide_check_assert(++s->another_ran == 1);
}

static void setup_none(void *p)
{
    state *s = p;
    bide_stop_source_init(&s->stop);
    s->callback = bide_check_alloc(sizeof *s->callback);
    s->waiter = bide_check_alloc(sizeof *s->waiter);
}

static void setup(void *p)
{
    state *s = p;
    setup_none(p);
    bide_stop_callback_init(s->callback, &s->stop, &bide_default_context, function, s);
}

static void setup_removing(void *p)
{
    state *s = p;
    setup_none(p);
    bide_stop_callback_init(s->callback, &s->stop, &bide_default_context, removing_function, s);
}

static void setup_two(void *p)
{
    state *s = p;
    setup(p);
    s->another = bide_check_alloc(sizeof *s->another);
    bide_stop_callback_init(s->another, &s->stop, &bide_default_context, another_function, s);
}

/* ---- The operations of the threads ---- */

static void request(void *p)
{
    state *s = p;
    s->reason = 1;
    bide_stop_request(&s->stop);
}

/* a write before each of two requests would be a race */
static void request_without_reason(void *p)
{
    bide_stop_request(&((state *)p)->stop);
}

/* Resumed on this thread or on the requesting one, which then frees it. */
static void wait_and_free(state *s)
{
    bide_check_assert(bide_check_await(bide_stop_callback_wait(s->waiter, s->callback)) == 0);
    bide_check_assert(s->ran == 1);
    bide_check_free(s->callback);
    bide_check_free(s->waiter);
}

static void remove_and_free(void *p)
{
    state *s = p;
    if (!bide_stop_callback_remove(s->callback)) {
        wait_and_free(s);
        return;
    }
    s->removed = true;
    bide_check_free(s->callback);
    bide_check_free(s->waiter);
}

static void remove_another_and_free(void *p)
{
    state *s = p;
    s->another_removed = bide_stop_callback_remove(s->another);
    if (s->another_removed) {
        bide_check_free(s->another);
        s->another = NULL;
    }
}

static void come_and_go(void *p)
{
    state *s = p;
    bide_stop_callback_init(s->callback, &s->stop, &bide_default_context, function, s);
    remove_and_free(p);
}

static void wait_for_the_removed(void *p)
{
    wait_and_free(p);
}

static void finish(void *p)
{
    state *s = p;
    bide_check_assert(s->ran == !s->removed); /* never after a remove that returned true */
    bide_check_assert(s->stop.first_child == NULL);
    bide_check_note("%s", s->removed ? "removed" : "ran");
}

/* The last function has run when both requests have returned. */
static void finish_and_remove(void *p)
{
    state *s = p;
    bide_check_assert(!bide_stop_callback_remove(s->callback));
    wait_and_free(s);
    finish(p);
}

static void finish_two(void *p)
{
    state *s = p;
    bide_check_assert(s->another_ran == !s->another_removed);
    if (s->another != NULL) {
        bide_stop_callback_waiter waiter;
        bide_check_await(bide_stop_callback_wait(&waiter, s->another));
        bide_check_free(s->another);
    }
    finish(p);
}

static void finish_removed_by_itself(void *p)
{
    state *s = p;
    bide_check_assert(s->ran == 1);
    bide_check_assert(s->stop.first_child == NULL);
}

static void setup_reason(void *p)
{
    setup(p);
    ((state *)p)->reason = 1;
}

#define SCENARIO(name_of, setup_with, finish_with, ...)                          \
    static const bide_check_scenario name_of = {.name = #name_of,                \
                                                .size = sizeof(state),           \
                                                .cxx20_release_sequences = true, \
                                                .setup = setup_with,             \
                                                .finish = finish_with,           \
                                                .never_spurious = true,          \
                                                .threads = {__VA_ARGS__}}

SCENARIO(removed_while_asked, setup, finish, request, remove_and_free);
SCENARIO(set_and_removed_while_asked, setup_none, finish, request, come_and_go);
SCENARIO(two_ask, setup_reason, finish_and_remove, request_without_reason, request_without_reason);
SCENARIO(removed_while_two_ask, setup_reason, finish, request_without_reason,
         request_without_reason, remove_and_free);
SCENARIO(two_removed_while_asked, setup_two, finish_two, request, remove_and_free,
         remove_another_and_free);
SCENARIO(removed_by_its_own_function, setup_removing, finish_removed_by_itself, request,
         wait_for_the_removed);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&removed_while_asked,
                                                     &removed_by_its_own_function,
                                                     &set_and_removed_while_asked,
                                                     &two_ask,
                                                     &removed_while_two_ask,
                                                     &two_removed_while_asked,
                                                     NULL};
    static const char *const files[] = {"stop_callback.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
