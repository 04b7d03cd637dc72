/*
 * The cyclic barrier: phases that start when all have arrived; arrivals that are taken back; dropping out; the last
 * arrival of a phase.
 */
#include "misuse.h"
#include "sync/meeting.h"
#include "sync/users.h"

static bide_awaiter *meet_others(user *self)
{
    return bide_cyclic_barrier_arrive_and_wait(&self->waiter.cyclic_barrier, self->object);
}

static void all_go_on_when_the_last_has_arrived(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_cyclic_barrier barrier;
    user users[3];
    by_hand_init(&by_hand);
    bide_cyclic_barrier_init(&barrier, 3);
    assert_int_equal(bide_cyclic_barrier_parties(&barrier), 3);
    for (int phase = 0; phase < 3; phase++) {
        by_hand.posted = 0;
        users_begin(users, 2, &by_hand, meet_others, &barrier);
        assert_int_equal(by_hand.posted, 0);
        user_begin(&users[2], &by_hand, meet_others, &barrier, 'c');
        by_hand_assert_trace(&by_hand, "c"); /* the last need not wait */
        assert_int_equal(by_hand_run(&by_hand), 2);
        by_hand_assert_trace(&by_hand, "ab");
        for (int i = 0; i < 3; i++) {
            assert_int_equal(users[i].status, 0);
            assert_int_equal(bide_cyclic_barrier_is_last(&users[i].waiter.cyclic_barrier), i == 2);
        }
    }
    bide_cyclic_barrier_destroy(&barrier);
}

static void one_party_alone_is_always_the_last(void **state)
{
    (void)state;
    bide_cyclic_barrier barrier;
    bide_cyclic_barrier_init(&barrier, 1);
    for (uint32_t i = 0; i < 3; i++) {
        bide_cyclic_barrier_token token = bide_cyclic_barrier_arrive(&barrier);
        assert_true(token.is_last);
        assert_int_equal(token.phase, i);
        assert_true(bide_cyclic_barrier_try_wait(&barrier, token));
    }
}

struct token_user {
    user user;
    bide_cyclic_barrier_token token;
};

static bide_awaiter *wait_with_token(user *self)
{
    struct token_user *token_user = bide_container_of(self, struct token_user, user);
    return bide_cyclic_barrier_wait(&self->waiter.cyclic_barrier, self->object, token_user->token);
}

static void a_token_is_waited_with_for_its_phase(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_cyclic_barrier barrier;
    struct token_user users[3];
    by_hand_init(&by_hand);
    bide_cyclic_barrier_init(&barrier, 2);
    bide_cyclic_barrier_token first = bide_cyclic_barrier_arrive(&barrier);
    assert_false(first.is_last);
    assert_false(bide_cyclic_barrier_try_wait(&barrier, first));
    users[0].token = users[1].token = users[2].token = first;
    user_begin(&users[0].user, &by_hand, wait_with_token, &barrier, 'a');
    user_begin(&users[1].user, &by_hand, wait_with_token, &barrier, 'b'); /* anybody may */
    bide_cyclic_barrier_token second = bide_cyclic_barrier_arrive(&barrier);
    assert_true(second.is_last);
    assert_int_equal(second.phase, first.phase);
    assert_true(bide_cyclic_barrier_try_wait(&barrier, first));
    user_begin(&users[2].user, &by_hand, wait_with_token, &barrier, 'c');
    by_hand_assert_trace(&by_hand, "c");
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "ab");
}

static void a_party_that_drops_out_is_missed_in_no_later_phase(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_cyclic_barrier barrier;
    user users[2];
    by_hand_init(&by_hand);
    bide_cyclic_barrier_init(&barrier, 3);
    users_begin(users, 2, &by_hand, meet_others, &barrier);
    assert_true(bide_cyclic_barrier_arrive_and_drop(&barrier));
    assert_int_equal(bide_cyclic_barrier_parties(&barrier), 2);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "ab");

    assert_false(bide_cyclic_barrier_arrive_and_drop(&barrier));
    user_begin(&users[0], &by_hand, meet_others, &barrier, 'a');
    by_hand_assert_trace(&by_hand, "a");
    assert_int_equal(bide_cyclic_barrier_parties(&barrier), 1);
    assert_true(bide_cyclic_barrier_arrive_and_drop(&barrier));
    assert_int_equal(bide_cyclic_barrier_parties(&barrier), 0);
    bide_cyclic_barrier_destroy(&barrier);
}

static void a_wait_that_is_cut_short_takes_its_arrival_back(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_cyclic_barrier barrier;
    user users[3];
    by_hand_init(&by_hand);
    bide_cyclic_barrier_init(&barrier, 3);
    users_begin(users, 2, &by_hand, meet_others, &barrier);
    bide_stop_request_with(&users[0].stop, -ETIMEDOUT);
    by_hand_run(&by_hand);
    assert_int_equal(users[0].status, -ETIMEDOUT);
    user_begin(&users[2], &by_hand, meet_others, &barrier, 'c');
    assert_int_equal(users[2].status, 1); /* the first is missing again */
    user_begin(&users[0], &by_hand, meet_others, &barrier, 'd');
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "adbc");
}

static void a_party_asked_to_stop_before_has_not_arrived_unless_as_the_last(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_cyclic_barrier barrier;
    user users[2];
    bide_stop_source stop;
    by_hand_init(&by_hand);
    bide_cyclic_barrier_init(&barrier, 2);
    bide_stop_source_init(&stop);
    bide_stop_request(&stop);
    users[0] = (user){.by_hand = &by_hand, .wait = meet_others, .object = &barrier, .name = 'a'};
    users[0].context = by_hand.context;
    users[0].context.stop = &stop;
    bide_start(&users[0].task.frame, &user_body, &users[0].context);
    bide_resume(&users[0].task.frame);
    assert_int_equal(users[0].status, -ECANCELED);
    user_begin(&users[1], &by_hand, meet_others, &barrier, 'b');
    assert_int_equal(users[1].status, 1);
    bide_start(&users[0].task.frame, &user_body, &users[0].context);
    bide_resume(&users[0].task.frame);
    assert_int_equal(users[0].status, 0);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "aab");
}

static void a_phase_that_is_complete_is_not_taken_back(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_cyclic_barrier barrier;
    user users[2];
    by_hand_init(&by_hand);
    bide_cyclic_barrier_init(&barrier, 3);
    users_begin(users, 2, &by_hand, meet_others, &barrier);
    assert_true(bide_cyclic_barrier_arrive(&barrier).is_last);
    bide_stop_request(&users[0].stop);
    by_hand_run(&by_hand);
    assert_int_equal(users[0].status, 0);
    assert_int_equal(users[1].status, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bide_cyclic_barrier_arrive(&barrier).is_last, i == 2);
}

/* An arrival stays, even if a wait for its phase is cancelled. */
static void an_arrival_with_a_token_is_for_good(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_cyclic_barrier barrier;
    struct token_user user;
    by_hand_init(&by_hand);
    bide_cyclic_barrier_init(&barrier, 2);
    user.token = bide_cyclic_barrier_arrive(&barrier);
    user_begin(&user.user, &by_hand, wait_with_token, &barrier, 'a');
    bide_stop_request(&user.user.stop);
    by_hand_run(&by_hand);
    assert_int_equal(user.user.status, -ECANCELED);
    assert_true(bide_cyclic_barrier_arrive(&barrier).is_last);
}

static void the_arrival_of_a_destroyed_coroutine_is_taken_back(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_cyclic_barrier barrier;
    user users[2];
    by_hand_init(&by_hand);
    bide_cyclic_barrier_init(&barrier, 3);
    users_begin(users, 2, &by_hand, meet_others, &barrier);
    bide_destroy(&users[0].task.frame);
    assert_false(bide_cyclic_barrier_arrive(&barrier).is_last);
    assert_true(bide_cyclic_barrier_arrive(&barrier).is_last);
    bide_destroy(&users[1].task.frame); /* its phase is complete, and it has not run */
    assert_int_equal(by_hand_run(&by_hand), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bide_cyclic_barrier_arrive(&barrier).is_last, i == 2);
    bide_cyclic_barrier_destroy(&barrier);
}

static void phases_wrap_around(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_cyclic_barrier barrier;
    struct token_user users[2];
    by_hand_init(&by_hand);
    bide_cyclic_barrier_init(&barrier, 2);
    uintptr_t first = bide_atomic_load(&barrier.queue.state, relaxed);
    bide_atomic_init(&barrier.queue.state, first - ((uintptr_t)1 << BIDE_CYCLIC_BARRIER_BELOW_));
    user_begin(&users[0].user, &by_hand, meet_others, &barrier, 'a');
    users[1].token = bide_cyclic_barrier_arrive(&barrier);
    assert_int_equal(users[1].token.phase, UINTPTR_MAX >> BIDE_CYCLIC_BARRIER_BELOW_);
    assert_int_equal(bide_atomic_load(&barrier.queue.state, relaxed), first);
    by_hand_run(&by_hand);
    assert_int_equal(users[0].user.status, 0);
    assert_true(bide_cyclic_barrier_try_wait(&barrier, users[1].token));
    user_begin(&users[0].user, &by_hand, meet_others, &barrier, 'a');
    user_begin(&users[1].user, &by_hand, wait_with_token, &barrier, 'b');
    assert_int_equal(users[0].user.status, 1);
    assert_int_equal(users[1].user.status, 0);
    bide_destroy(&users[0].user.task.frame);
}

static void closing_ends_the_waits_for_a_phase_that_is_not_complete(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_cyclic_barrier barrier;
    user users[2];
    struct token_user late;
    by_hand_init(&by_hand);
    bide_cyclic_barrier_init(&barrier, 2);
    late.token = bide_cyclic_barrier_arrive(&barrier);
    user_begin(&users[0], &by_hand, meet_others, &barrier, 'a');
    assert_int_equal(users[0].status, 0);
    user_begin(&users[0], &by_hand, meet_others, &barrier, 'a');
    bide_cyclic_barrier_close(&barrier);
    bide_cyclic_barrier_close(&barrier);
    by_hand_run(&by_hand);
    assert_int_equal(users[0].status, -EPIPE);
    user_begin(&users[1], &by_hand, meet_others, &barrier, 'b');
    assert_int_equal(users[1].status, -EPIPE);
    assert_false(bide_cyclic_barrier_arrive(&barrier).is_last);
    assert_false(bide_cyclic_barrier_arrive(&barrier).is_last);
    user_begin(&late.user, &by_hand, wait_with_token, &barrier, 'c');
    assert_int_equal(late.user.status, 0); /* that phase was complete before */
    late.token = bide_cyclic_barrier_arrive(&barrier);
    user_begin(&late.user, &by_hand, wait_with_token, &barrier, 'd');
    assert_int_equal(late.user.status, -EPIPE);
    bide_cyclic_barrier_destroy(&barrier);
}

#if TESTING_HOSTED

#include "small_stack.h"

enum { SHORT = 1000 * 1000 };

static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    bide_cyclic_barrier barrier;
    bide_cyclic_barrier_init(&barrier, 2);
    assert_int_equal(
        bide_cyclic_barrier_arrive_and_wait_blocking(&barrier, bide_platform.now() + SHORT),
        -ETIMEDOUT);
    bide_cyclic_barrier_token token = bide_cyclic_barrier_arrive(&barrier);
    assert_false(token.is_last);
    assert_int_equal(bide_cyclic_barrier_wait_blocking(&barrier, token, 0), -ETIMEDOUT);
    assert_int_equal(bide_cyclic_barrier_arrive_and_wait_blocking(&barrier, 0), 0);
    assert_int_equal(bide_cyclic_barrier_wait_blocking(&barrier, token, 0), 0);
    bide_cyclic_barrier_close(&barrier);
    assert_int_equal(bide_cyclic_barrier_arrive_and_wait_blocking(&barrier, BIDE_FOREVER), -EPIPE);
    bide_cyclic_barrier_destroy(&barrier);
}

static void too_many_parties(void)
{
    bide_cyclic_barrier large;
    bide_cyclic_barrier_init(&large, BIDE_CYCLIC_BARRIER_MAX + 1);
}

static void no_parties(void)
{
    bide_cyclic_barrier empty;
    bide_cyclic_barrier_init(&empty, 0);
}

static void more_than_none_arrive(void)
{
    bide_cyclic_barrier none;
    bide_cyclic_barrier_init(&none, 1);
    (void)bide_cyclic_barrier_arrive_and_drop(&none);
    bide_cyclic_barrier_arrive(&none);
}

static void more_than_none_meet(void)
{
    bide_cyclic_barrier none;
    bide_cyclic_barrier_init(&none, 1);
    (void)bide_cyclic_barrier_arrive_and_drop(&none);
    bide_cyclic_barrier_arrive_and_wait_blocking(&none, BIDE_FOREVER);
}

#if BIDE_DEBUG
static void destroy_it_while_it_is_awaited(void)
{
    by_hand by_hand;
    bide_cyclic_barrier precious;
    user user;
    by_hand_init(&by_hand);
    bide_cyclic_barrier_init(&precious, 2);
    user_begin(&user, &by_hand, meet_others, &precious, 'a');
    bide_cyclic_barrier_destroy(&precious);
}
#endif

static void misuse_is_told(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(
        too_many_parties, "a barrier has no parties, or too many: &large", "too_many_parties"));
    assert_true(misuse_aborts_naming(no_parties, "a barrier has no parties, or too many: &empty",
                                     "no_parties"));
    assert_true(misuse_aborts_naming(more_than_none_arrive,
                                     "more arrive at a barrier than it has parties: &none",
                                     "more_than_none_arrive"));
    assert_true(misuse_aborts_naming(more_than_none_meet,
                                     "more arrive at a barrier than it has parties",
                                     "bide_cyclic_barrier_arrive_and_wait"));
#if BIDE_DEBUG
    assert_true(misuse_aborts_naming(destroy_it_while_it_is_awaited,
                                     "a barrier is destroyed while it is waited for: &precious",
                                     "destroy_it_while_it_is_awaited"));
#endif
}

/* ---- A crowd, on a small stack ---- */

static uint32_t passed;

struct small {
    bide_task task;
    bide_cyclic_barrier *barrier;
    bide_cyclic_barrier_waiter wait;
};

bide_coroutine(small_body)
{
    bide_begin(small_body, struct small * self);
    bide_try(bide_cyclic_barrier_arrive_and_wait(&self->wait, self->barrier));
    bide_try(bide_cyclic_barrier_arrive_and_wait(&self->wait, self->barrier));
    passed++;
    bide_end();
}

static uint32_t many(void)
{
    return crowd_of_waiters() < BIDE_CYCLIC_BARRIER_MAX ? crowd_of_waiters()
                                                        : BIDE_CYCLIC_BARRIER_MAX;
}

static void *meet_a_crowd(void *argument)
{
    struct small *all = argument;
    bide_cyclic_barrier barrier;
    bide_cyclic_barrier_init(&barrier, many());
    for (uint32_t i = 0; i < many(); i++) {
        all[i].barrier = &barrier;
        bide_start(&all[i].task.frame, &small_body, &bide_default_context);
        bide_resume(&all[i].task.frame);
    }
    return NULL;
}

static void a_crowd_meets_twice_on_a_small_stack(void **state)
{
    (void)state;
    struct small *all = calloc(crowd_of_waiters(), sizeof *all);
    assert_non_null(all);
    passed = 0;
    on_a_small_stack(meet_a_crowd, all);
    assert_int_equal(passed, many());
    free(all);
}

/*
 * ---- At random, with threads ----
 *
 * Four threads go through phases; at random they give up waiting and retry. Each writes the number of the phase
 * before it arrives, and must read everybody's after it; one of them is the last. After enough phases they drop out,
 * one after the other.
 */
enum { PARTIES = 4 };

struct phases {
    bide_cyclic_barrier barrier;
    uint32_t rounds;
    uint32_t written[2][PARTIES]; /* of even and of odd phases */
    bide_atomic(uint32_t) lasts;
};

struct party {
    pthread_t thread;
    struct phases *phases;
    uint32_t number;
    uint64_t random;
    uint32_t too_late, wrong;
};

static void pass_a_phase(struct party *self, uint32_t phase, uint32_t parties)
{
    struct phases *phases = self->phases;
    bide_cyclic_barrier_waiter wait;
    int status;
    phases->written[phase % 2][self->number] = phase;
    for (;;) {
        uint64_t number = testing_random(&self->random);
        uint64_t deadline =
            number % 2 == 0 ? BIDE_FOREVER : bide_platform.now() + number / 2 % 10000;
        random_moment(&self->random, 50);
        if (number % 3 == 0) {
            bide_cyclic_barrier_token token = bide_cyclic_barrier_arrive(&phases->barrier);
            do {
                status = bide_cyclic_barrier_wait_blocking(&phases->barrier, token, deadline);
                deadline = BIDE_FOREVER;
            } while (status == -ETIMEDOUT);
            wait.is_last = token.is_last;
        } else {
            status = bide_sync_wait_until(
                bide_cyclic_barrier_arrive_and_wait(&wait, &phases->barrier), deadline);
        }
        if (status != -ETIMEDOUT)
            break;
        self->too_late++;
    }
    if (status == 0 && bide_cyclic_barrier_is_last(&wait))
        bide_atomic_fetch_add(&phases->lasts, 1, relaxed);
    self->wrong += status != 0;
    for (uint32_t i = PARTIES - parties; i < PARTIES; i++)
        self->wrong += phases->written[phase % 2][i] != phase;
}

static void *pass_phases(void *argument)
{
    struct party *self = argument;
    struct phases *phases = self->phases;
    for (uint32_t phase = 1; phase <= phases->rounds; phase++)
        pass_a_phase(self, phase, PARTIES);
    /* The first drops out in the next phase, the second in the one after that, ... */
    for (uint32_t i = 0; i < self->number; i++)
        pass_a_phase(self, phases->rounds + 1 + i, PARTIES - i - 1);
    if (bide_cyclic_barrier_arrive_and_drop(&phases->barrier))
        bide_atomic_fetch_add(&phases->lasts, 1, relaxed);
    return NULL;
}

static void each_phase_is_complete_for_all_however_often_some_give_up(void **state)
{
    (void)state;
    struct phases phases = {.rounds = rounds_of(5000)};
    struct party parties[PARTIES];
    uint64_t seed = testing_seed();
    uint32_t too_late = 0;
    bide_cyclic_barrier_init(&phases.barrier, PARTIES);
    bide_atomic_init(&phases.lasts, 0);
    for (uint32_t i = 0; i < PARTIES; i++) {
        parties[i] = (struct party){.phases = &phases, .number = i, .random = seed + i};
        start_thread(&parties[i].thread, pass_phases, &parties[i]);
    }
    for (uint32_t i = 0; i < PARTIES; i++) {
        join_thread(parties[i].thread);
        assert_int_equal(parties[i].wrong, 0);
        too_late += parties[i].too_late;
    }
    printf("# %u arrivals were taken back\n", too_late);
    assert_int_equal(bide_atomic_load(&phases.lasts, relaxed), phases.rounds + PARTIES);
    assert_int_equal(bide_cyclic_barrier_parties(&phases.barrier), 0);
    bide_cyclic_barrier_destroy(&phases.barrier);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_go_on_when_the_last_has_arrived),
        cmocka_unit_test(one_party_alone_is_always_the_last),
        cmocka_unit_test(a_token_is_waited_with_for_its_phase),
        cmocka_unit_test(a_party_that_drops_out_is_missed_in_no_later_phase),
        cmocka_unit_test(a_wait_that_is_cut_short_takes_its_arrival_back),
        cmocka_unit_test(a_party_asked_to_stop_before_has_not_arrived_unless_as_the_last),
        cmocka_unit_test(a_phase_that_is_complete_is_not_taken_back),
        cmocka_unit_test(an_arrival_with_a_token_is_for_good),
        cmocka_unit_test(the_arrival_of_a_destroyed_coroutine_is_taken_back),
        cmocka_unit_test(phases_wrap_around),
        cmocka_unit_test(closing_ends_the_waits_for_a_phase_that_is_not_complete),
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
        cmocka_unit_test(misuse_is_told),
        cmocka_unit_test(a_crowd_meets_twice_on_a_small_stack),
        cmocka_unit_test(each_phase_is_complete_for_all_however_often_some_give_up),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
