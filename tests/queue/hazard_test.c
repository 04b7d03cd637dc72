/*
 * Hazard pointers: protected objects stay, others are reclaimed, and the garbage is never more than promised;
 * threads come and go. Then a stack, whose nodes are popped while others read them.
 */
#include "sync/meeting.h"

#include "bide/hazard.h"

enum { SEATS = 4, HAZARDS_OF_ALL = SEATS * BIDE_HAZARDS };

typedef struct object {
    bide_hazard_retired retired;
    struct object *next;
    uint32_t *reclaimed;
    uint64_t value, inverse;
} object;

typedef struct fixture {
    bide_hazard_seat seats[SEATS];
    bide_hazard_domain domain;
    bide_atomic(void *) source;
    uint32_t reclaimed;
} fixture;

static void fixture_init(fixture *f)
{
    bide_hazard_init(&f->domain, f->seats, SEATS);
    bide_atomic_init(&f->source, NULL);
    f->reclaimed = 0;
}

static void reclaim(bide_hazard_retired *retired)
{
    object *object = retired->object;
    ++*object->reclaimed;
    free(object);
}

static object *new_object(fixture *f)
{
    object *object = calloc(1, sizeof *object);
    assert_non_null(object);
    object->reclaimed = &f->reclaimed;
    return object;
}

static void retire_new(fixture *f, bide_hazard_seat *seat, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        object *object = new_object(f);
        bide_hazard_retire(&f->domain, seat, &object->retired, object, reclaim);
    }
}

static void what_is_protected_stays_until_it_is_cleared(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f);
    bide_hazard_seat *reader = bide_hazard_join(&f.domain);
    bide_hazard_seat *writer = bide_hazard_join(&f.domain);
    object *object = new_object(&f);
    assert_null(bide_hazard_protect(reader, 0, &f.source));
    atomic_store(&f.source, object);
    assert_ptr_equal(bide_hazard_protect(reader, 3, &f.source), object);
    atomic_store(&f.source, NULL);
    bide_hazard_retire(&f.domain, writer, &object->retired, object, reclaim);
    assert_int_equal(bide_hazard_scan(&f.domain, writer), 1);
    bide_hazard_set(reader, 1, object);
    bide_hazard_clear(reader, 3);
    assert_int_equal(bide_hazard_scan(&f.domain, writer), 1);
    retire_new(&f, writer, 1000);
    assert_true(f.reclaimed >= 1000 - 2 * HAZARDS_OF_ALL);
    assert_int_equal(bide_hazard_scan(&f.domain, writer), 1);
    assert_int_equal(f.reclaimed, 1000);
    bide_hazard_clear(reader, 1);
    assert_int_equal(bide_hazard_scan(&f.domain, writer), 0);
    assert_int_equal(f.reclaimed, 1001);
    bide_hazard_leave(&f.domain, reader);
    bide_hazard_leave(&f.domain, writer);
    bide_hazard_destroy(&f.domain);
}

/* All hazards are in use; whichever seat retires, the garbage is within the domain's limit. */
static void there_is_never_more_garbage_than_is_promised(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f);
    bide_hazard_seat *seats[SEATS];
    uint32_t retired = 0;
    for (int i = 0; i < SEATS; i++) {
        seats[i] = bide_hazard_join(&f.domain);
        assert_non_null(seats[i]);
    }
    assert_null(bide_hazard_join(&f.domain));
    for (int i = 0; i < SEATS; i++)
        for (size_t j = 0; j < BIDE_HAZARDS; j++) {
            object *object = new_object(&f);
            atomic_store(&f.source, object);
            assert_ptr_equal(bide_hazard_protect(seats[i], j, &f.source), object);
            bide_hazard_retire(&f.domain, seats[0], &object->retired, object, reclaim);
            retired++;
        }
    for (int i = 0; i < 10000; i++) {
        retire_new(&f, seats[i % SEATS], 1);
        retired++;
        assert_true(retired - f.reclaimed <= 5 * HAZARDS_OF_ALL);
    }
    for (int i = 0; i < SEATS; i++)
        bide_hazard_leave(&f.domain, seats[i]);
    bide_hazard_destroy(&f.domain);
    assert_int_equal(f.reclaimed, retired);
}

/* For any number of seats, and any of them that retires. */
static void garbage_grows_with_the_domain_and_not_with_its_square(void **state)
{
    (void)state;
    enum { MANY = 256 };
    static bide_hazard_seat seats[MANY];
    bide_hazard_seat *joined[MANY];
    fixture f;
    uint32_t retired = 0, max = 0;
    fixture_init(&f);
    bide_hazard_init(&f.domain, seats, MANY);
    for (int i = 0; i < MANY; i++)
        joined[i] = bide_hazard_join(&f.domain);
    for (int i = 0; i < 100000; i++, retired++) {
        retire_new(&f, joined[i % MANY], 1);
        max = retired + 1 - f.reclaimed > max ? retired + 1 - f.reclaimed : max;
    }
    assert_in_range(max, 1, 4 * BIDE_HAZARDS * MANY);
    for (int i = 0; i < MANY; i++)
        bide_hazard_leave(&f.domain, joined[i]);
    assert_int_equal(f.reclaimed, retired);
    bide_hazard_destroy(&f.domain);
}

/* One has retired, and is idle; another reclaims its object. */
static void what_a_thread_has_retired_another_reclaims(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f);
    bide_hazard_seat *rests = bide_hazard_join(&f.domain);
    bide_hazard_seat *scans = bide_hazard_join(&f.domain);
    retire_new(&f, rests, 2 * BIDE_HAZARDS);
    assert_int_equal(f.reclaimed, 0);
    assert_int_equal(bide_hazard_scan(&f.domain, scans), 0);
    assert_int_equal(f.reclaimed, 2 * BIDE_HAZARDS);
    bide_hazard_leave(&f.domain, rests);
    bide_hazard_leave(&f.domain, scans);
    bide_hazard_destroy(&f.domain);
}

static void what_weighs_more_is_scanned_sooner(void **state)
{
    (void)state;
    for (uint32_t weight = 1; weight <= 2 * HAZARDS_OF_ALL; weight *= 2) {
        fixture f;
        fixture_init(&f);
        bide_hazard_seat *seat = bide_hazard_join(&f.domain);
        for (uint32_t i = 0; i < 2 * HAZARDS_OF_ALL / weight; i++) {
            assert_int_equal(f.reclaimed, 0);
            object *object = new_object(&f);
            bide_hazard_retire_weighing(&f.domain, seat, &object->retired, object, reclaim, weight);
        }
        assert_int_equal(f.reclaimed, 2 * HAZARDS_OF_ALL / weight);
        bide_hazard_leave(&f.domain, seat);
        bide_hazard_destroy(&f.domain);
    }
}

static void a_thread_that_leaves_leaves_what_others_protect_to_the_next_scan(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f);
    bide_hazard_seat *reader = bide_hazard_join(&f.domain);
    bide_hazard_seat *writer = bide_hazard_join(&f.domain);
    object *object = new_object(&f);
    atomic_store(&f.source, object);
    bide_hazard_protect(reader, 0, &f.source);
    atomic_store(&f.source, NULL);
    bide_hazard_retire(&f.domain, writer, &object->retired, object, reclaim);
    retire_new(&f, writer, 3);
    bide_hazard_leave(&f.domain, writer);
    assert_int_equal(f.reclaimed, 3);
    writer = bide_hazard_join(&f.domain);
    assert_int_equal(bide_hazard_scan(&f.domain, writer), 1);
    bide_hazard_leave(&f.domain, writer);
    assert_int_equal(f.reclaimed, 3);
    bide_hazard_leave(&f.domain, reader); /* its own scan reclaims it */
    assert_int_equal(f.reclaimed, 4);
    bide_hazard_destroy(&f.domain);
}

/* ---- A reclaim function that retires another object ---- */

typedef struct chain {
    bide_hazard_retired retired;
    struct chain *next;
    bide_hazard_domain *domain;
    bide_hazard_seat *seat;
    uint32_t *reclaimed;
} chain;

static void reclaim_and_retire_the_next(bide_hazard_retired *retired)
{
    chain *link = retired->object;
    ++*link->reclaimed;
    if (link->next != NULL)
        bide_hazard_retire(link->domain, link->seat, &link->next->retired, link->next,
                           reclaim_and_retire_the_next);
}

static void a_long_chain_is_reclaimed_in_a_small_stack(void **state)
{
    (void)state;
    enum { LONG = 100000 };
    fixture f;
    fixture_init(&f);
    chain *links = calloc(LONG, sizeof *links);
    assert_non_null(links);
    bide_hazard_seat *seat = bide_hazard_join(&f.domain);
    for (uint32_t i = 0; i < LONG; i++)
        links[i] = (chain){.next = i + 1 < LONG ? &links[i + 1] : NULL,
                           .domain = &f.domain,
                           .seat = seat,
                           .reclaimed = &f.reclaimed};
    bide_hazard_retire(&f.domain, seat, &links[0].retired, &links[0], reclaim_and_retire_the_next);
    while (bide_hazard_scan(&f.domain, seat) != 0)
        ;
    assert_int_equal(f.reclaimed, LONG);
    bide_hazard_leave(&f.domain, seat);
    bide_hazard_destroy(&f.domain);
    free(links);
}

/* ---- A stack ---- */

typedef struct shared {
    fixture f;
    bide_atomic(uint64_t) sum; /* of the popped values, less the pushed: 0 at the end */
    bide_atomic(uint32_t) wrong;
    bide_atomic(uint32_t) made;
    bide_atomic(uint32_t) reclaimed;
} shared;

static shared *the;

static void reclaim_shared(bide_hazard_retired *retired)
{
    object *object = retired->object;
    object->inverse = object->value; /* a later reader finds it wrong */
    atomic_fetch_add(&the->reclaimed, 1);
    free(object);
}

static void push(uint64_t value)
{
    object *object = calloc(1, sizeof *object);
    if (object == NULL)
        return;
    object->value = value;
    object->inverse = ~value;
    void *head = atomic_load(&the->f.source);
    do
        object->next = head;
    while (!bide_atomic_compare_exchange_weak(&the->f.source, &head, object, release, relaxed));
    atomic_fetch_sub(&the->sum, value);
    atomic_fetch_add(&the->made, 1);
}

static void pop(bide_hazard_seat *seat)
{
    object *head;
    void *expected;
    do {
        head = bide_hazard_protect(seat, 0, &the->f.source);
        if (head == NULL)
            return;
        expected = head;
    } while (!bide_atomic_compare_exchange_weak(&the->f.source, &expected, head->next, acquire,
                                                relaxed));
    bide_hazard_clear(seat, 0);
    if (head->inverse != ~head->value)
        atomic_fetch_add(&the->wrong, 1);
    atomic_fetch_add(&the->sum, head->value);
    bide_hazard_retire(&the->f.domain, seat, &head->retired, head, reclaim_shared);
}

static void *use_the_stack(void *argument)
{
    uint64_t random = *(uint64_t *)argument;
    uint32_t rounds = rounds_of(100000);
    bide_hazard_seat *seat = bide_hazard_join(&the->f.domain);
    for (uint32_t i = 0; i < rounds && seat != NULL; i++) {
        uint64_t number = testing_random(&random);
        if (number % 2 == 0) {
            push(number);
        } else if (number % 256 == 1) {
            /* Leaves and rejoins; each thread has a seat. */
            bide_hazard_leave(&the->f.domain, seat);
            seat = bide_hazard_join(&the->f.domain);
        } else {
            pop(seat);
        }
    }
    if (seat == NULL) {
        atomic_fetch_add(&the->wrong, 1);
        return NULL;
    }
    bide_hazard_leave(&the->f.domain, seat);
    return NULL;
}

static void nothing_that_is_read_is_reclaimed(void **state)
{
    (void)state;
    pthread_t threads[SEATS];
    uint64_t seeds[SEATS], seed = testing_seed();
    static shared shared;
    the = &shared;
    fixture_init(&shared.f);
    for (uint32_t i = 0; i < SEATS; i++) {
        seeds[i] = seed + i;
        start_thread(&threads[i], use_the_stack, &seeds[i]);
    }
    for (uint32_t i = 0; i < SEATS; i++)
        join_thread(threads[i]);
    bide_hazard_seat *seat = bide_hazard_join(&shared.f.domain);
    while (atomic_load(&shared.f.source) != NULL)
        pop(seat);
    bide_hazard_leave(&shared.f.domain, seat);
    bide_hazard_destroy(&shared.f.domain);
    assert_int_equal(atomic_load(&shared.wrong), 0);
    assert_int_equal(atomic_load(&shared.sum), 0);
    assert_int_equal(atomic_load(&shared.reclaimed), atomic_load(&shared.made));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_protected_stays_until_it_is_cleared),
        cmocka_unit_test(there_is_never_more_garbage_than_is_promised),
        cmocka_unit_test(garbage_grows_with_the_domain_and_not_with_its_square),
        cmocka_unit_test(what_a_thread_has_retired_another_reclaims),
        cmocka_unit_test(what_weighs_more_is_scanned_sooner),
        cmocka_unit_test(a_thread_that_leaves_leaves_what_others_protect_to_the_next_scan),
        cmocka_unit_test(a_long_chain_is_reclaimed_in_a_small_stack),
        cmocka_unit_test(nothing_that_is_read_is_reclaimed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
