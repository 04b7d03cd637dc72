/*
 * Stop sources: the tree, and the sources that a request reaches. sync/cancel_test.c has the cancellation of waits.
 */
#include "testing.h"

#include "bide/errors.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

static void a_request_reaches_all_below_and_none_above(void **state)
{
    (void)state;
    bide_stop_source sources[4]; /* 0 -> 1 -> 2, and 0 -> 3 */
    for (int i = 0; i < 4; i++)
        bide_stop_source_init(&sources[i]);
    bide_stop_source_attach(&sources[1], &sources[0]);
    bide_stop_source_attach(&sources[2], &sources[1]);
    bide_stop_source_attach(&sources[3], &sources[0]);
    bide_stop_request_with(&sources[1], -ETIMEDOUT);
    assert_int_equal(bide_stop_reason(&sources[0]), 0);
    assert_int_equal(bide_stop_reason(&sources[1]), -ETIMEDOUT);
    assert_int_equal(bide_stop_reason(&sources[2]), -ETIMEDOUT);
    assert_int_equal(bide_stop_reason(&sources[3]), 0);
    bide_stop_request(&sources[0]); /* the first reason stays */
    assert_int_equal(bide_stop_reason(&sources[0]), -ECANCELED);
    assert_int_equal(bide_stop_reason(&sources[1]), -ETIMEDOUT);
    assert_int_equal(bide_stop_reason(&sources[3]), -ECANCELED);
    for (int i = 1; i < 4; i++)
        bide_stop_source_detach(&sources[i]);
}

static void a_source_attached_to_a_stopped_one_is_stopped(void **state)
{
    (void)state;
    bide_stop_source parent, child, grandchild;
    bide_stop_source_init(&parent);
    bide_stop_source_init(&child);
    bide_stop_source_init(&grandchild);
    bide_stop_source_attach(&grandchild, &child);
    bide_stop_request_with(&parent, -ETIMEDOUT);
    assert_false(bide_stop_requested(&grandchild));
    bide_stop_source_attach(&child, &parent);
    assert_int_equal(bide_stop_reason(&grandchild), -ETIMEDOUT);
    bide_stop_source_detach(&grandchild);
    bide_stop_source_detach(&child);
}

static void a_detached_source_is_not_reached(void **state)
{
    (void)state;
    bide_stop_source parent, children[3];
    bide_stop_source_init(&parent);
    for (int i = 0; i < 3; i++) {
        bide_stop_source_init(&children[i]);
        bide_stop_source_attach(&children[i], &parent);
    }
    for (int i = 0; i < 3; i++)
        bide_stop_source_detach(&children[(i + 1) % 3]);
    assert_null(parent.first_child);
    bide_stop_source_attach(&children[0], &parent);
    bide_stop_source_detach(&children[1]); /* of one without a parent: nothing */
    bide_stop_request(&parent);
    assert_true(bide_stop_requested(&children[0]));
    assert_false(bide_stop_requested(&children[1]));
    assert_false(bide_stop_requested(NULL));
    assert_int_equal(bide_stop_reason(NULL), 0);
    bide_stop_source_detach(&children[0]);
}

/* ---- Roots ---- */

struct looker {
    bide_task task;
    bide_stop_source *given;
    bool own, attached, asked;
};

bide_coroutine(looker_body)
{
    bide_begin(looker_body, struct looker * self);
    bide_stop_source *stop = bide_this_context()->stop;
    self->own = stop != self->given;
    self->attached = self->given->first_child == stop;
    bide_stop_request(self->given);
    self->asked = bide_stop_requested(stop);
    bide_end();
}

static void a_root_runs_in_a_source_of_its_own(void **state)
{
    (void)state;
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    bide_context context = {&bide_inline_scheduler, &stop, "name", NULL, NULL};
    struct looker looker = {.given = &stop};
    assert_int_equal(bide_sync_wait_in(&context, bide_task_init(&looker.task, &looker_body)), 0);
    assert_true(looker.own && looker.attached && looker.asked);
    assert_null(stop.first_child); /* detached at its end */
}

#if TESTING_HOSTED
static void a_tree_may_be_very_deep(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    bide_stop_source *all = calloc(DEPTH, sizeof *all);
    assert_non_null(all);
    for (int i = 0; i < DEPTH; i++) {
        bide_stop_source_init(&all[i]);
        if (i != 0)
            bide_stop_source_attach(&all[i], &all[i - 1]);
    }
    bide_stop_request(&all[0]);
    int asked = 0;
    for (int i = 0; i < DEPTH; i++)
        asked += bide_stop_requested(&all[i]);
    assert_int_equal(asked, DEPTH);
    for (int i = DEPTH; --i >= 0;)
        bide_stop_source_detach(&all[i]);
    free(all);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_reaches_all_below_and_none_above),
        cmocka_unit_test(a_source_attached_to_a_stopped_one_is_stopped),
        cmocka_unit_test(a_detached_source_is_not_reached),
        cmocka_unit_test(a_root_runs_in_a_source_of_its_own),
#if TESTING_HOSTED
        cmocka_unit_test(a_tree_may_be_very_deep),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
