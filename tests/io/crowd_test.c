/*
 * Many descriptors become ready at once. All are served, although one poll handles only some of them. If
 * some are closed and their memory is freed meanwhile, their remaining events go nowhere.
 */
#define _GNU_SOURCE
#include "runner.h"

#include <stdlib.h>
#include <unistd.h>

enum { CROWD = 300 }; /* more than the kernel reports at once, and more than one poll handles */

struct member {
    struct runner runner;
    bide_io_operation operation;
    bide_descriptor one, other;
    char got;
};

typedef struct fixture {
    world *world;
    struct member *members[CROWD];
    unsigned woken;
} fixture;

static void open_all(fixture *f, world *world)
{
    f->world = world;
    f->woken = 0;
    for (int i = 0; i < CROWD; i++) {
        bide_io_operation pair;
        struct member *member = f->members[i] = calloc(1, sizeof *member);
        assert_non_null(member);
        assert_int_equal(world_wait(world, bide_socket_pair(&pair, &member->one, &member->other)), 0);
    }
}

/* Nothing polls meanwhile, so all of it is ready at the next poll. */
static void send_to_all(void *fixture_)
{
    fixture *f = fixture_;
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(write(bide_descriptor_fd(&f->members[i]->other), "x", 1), 1);
}

static bide_awaiter *receive(struct member *member)
{
    return bide_recv(&member->operation, &member->one, &member->got, 1);
}

static void close_member(struct member *member)
{
    assert_int_equal(bide_close(&member->one), 0);
    assert_int_equal(bide_close(&member->other), 0);
    free(member);
}

static void close_those_that_are_left(void *fixture_)
{
    fixture *f = fixture_;
    for (int i = 0; i < CROWD; i++) {
        if (f->members[i] != NULL)
            close_member(f->members[i]);
    }
}

static void all_of_them_are_served(void **state)
{
    fixture f;
    open_all(&f, world_of(state));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CROWD; i++)
            begin(f.world, &f.members[i]->runner, receive(f.members[i]));
        turn(f.world);
        if (f.world->memory == NULL)
            call_inside(f.world, send_to_all, &f);
        for (int i = 0; i < CROWD && f.world->memory != NULL; i++)
            world_send(f.world, &f.members[i]->other, "x", 1);
        for (int i = 0; i < CROWD; i++) {
            assert_int_equal(end(f.world, &f.members[i]->runner), 0);
            assert_int_equal(f.members[i]->operation.count, 1);
        }
    }
    call_inside(f.world, close_those_that_are_left, &f);
}

/* ---- The first waiter destroys the others ---- */

struct first {
    bide_task task;
    fixture *fixture;
    int which;
    int status;
};

static void do_away_with_others(fixture *f, int which)
{
    for (int i = 0; i < CROWD; i++) {
        if (i == which)
            continue;
        bide_destroy(&f->members[i]->runner.task.frame);
        close_member(f->members[i]);
        f->members[i] = NULL;
    }
}

bide_coroutine(first_body)
{
    bide_begin(first_body, struct first * self);
    bide_await_status(self->status, receive(self->fixture->members[self->which]));
    do_away_with_others(self->fixture, self->which);
    bide_end();
}

static void the_rest_of_a_batch_goes_nowhere(void **state)
{
    static const int places[] = {0, 1, 15, 16, CROWD / 2, CROWD - 1};
    (void)world_of_the_system(state, "memory reports one event at a time");
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        fixture f;
        struct first first = {.fixture = &f, .which = places[p]};
        bide_spawned spawned;
        bide_event_waiter wait;
        open_all(&f, world_of(state));
        for (int i = 0; i < CROWD; i++) {
            if (i == first.which)
                bide_spawn(&spawned, f.world->context, bide_task_init(&first.task, &first_body));
            else
                start(f.world, &f.members[i]->runner, receive(f.members[i]));
        }
        turn(f.world);
        call_inside(f.world, send_to_all, &f);
        assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &spawned.ended)), 0);
        assert_int_equal(first.status, 0);
        turn(f.world);
        call_inside(f.world, close_those_that_are_left, &f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(all_of_them_are_served),
        world_test(the_rest_of_a_batch_goes_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
