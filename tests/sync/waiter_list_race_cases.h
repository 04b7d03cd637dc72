/* The race of waiter_list_race_test.c for one type of sequence; included there once for each. */

#define BARRIER_     PASTE2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define WAITER_      PASTE2(bide_sequence_waiter, BIDE_SEQUENCE_BITS)
#define F_(name)     PASTE3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define TRAIT_(name) PASTE3(bide_sequence, BIDE_SEQUENCE_BITS, name)
#define RACE_(name)  PASTE3(race, BIDE_SEQUENCE_BITS, name)

enum { RACE_(_mocks) = (BIDE_SEQUENCE)-1 + 1, RACE_(_quarter) = (BIDE_SEQUENCE)-1 / 4 };

/*
 * A wait for one number, always the same, at an address of its own. The thread that swaps true into `busy` owns it
 * until it has ended.
 */
typedef struct RACE_(_mock) {
    bide_atomic(bool) busy;
    bide_frame frame; /* has no code: it is never resumed, only marked free */
    WAITER_ waiter;
    struct race *race;
} RACE_(_mock);

typedef struct RACE_(_shared) {
    struct race race;
    BARRIER_ barrier;
    RACE_(_mock) mocks[RACE_(_mocks)];
} RACE_(_shared);

static void RACE_(_free)(RACE_(_mock) * mock)
{
    race_count_end(mock->race, probe_result(&mock->waiter.waiting.listed.awaiter) == 0 &&
                                   !TRAIT_(_precedes)(mock->waiter.published, mock->waiter.target));
    bide_atomic_store(&mock->busy, false, release);
}

static void RACE_(_post)(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    (void)scheduler;
    (void)last;
    while (first != NULL) {
        bide_awaiter *next = first->link; /* before it is free */
        RACE_(_free)(bide_container_of(first->frame, RACE_(_mock), frame));
        first = next;
    }
}

static bide_scheduler RACE_(_scheduler) = {.post = RACE_(_post)};
static const bide_context RACE_(_context) = {.scheduler = &RACE_(_scheduler)};

/* The free mock that is nearest to `target`, going up or down from it by half the range; NULL if none. */
static RACE_(_mock) * RACE_(_take)(RACE_(_shared) * shared, BIDE_SEQUENCE target, bool up)
{
    for (int i = 0; i < RACE_(_mocks) / 2; i++) {
        BIDE_SEQUENCE at = (BIDE_SEQUENCE)(up ? target + i : target - i);
        RACE_(_mock) *mock = &shared->mocks[at];
        if (!bide_atomic_exchange(&mock->busy, true, acquire))
            return mock;
    }
    return NULL;
}

/* `at_once`: without checking whether it is ready, as if that had become true just after the check. */
static void RACE_(_wait)(RACE_(_shared) * shared, RACE_(_mock) * mock, bool at_once)
{
    if (mock == NULL)
        return;
    BIDE_SEQUENCE target = (BIDE_SEQUENCE)(mock - shared->mocks);
    bide_awaiter *awaiter = F_(_wait_until_published)(&mock->waiter, &shared->barrier, target);
    race_count_begin(mock->race);
    mock->frame.awaiter.ops = &bide_point_finished.ops;
    mock->frame.context = &RACE_(_context);
    bide_frame *next;
    if (at_once) {
        mock->frame.awaiter.link = awaiter;
        awaiter->frame = &mock->frame;
        next = awaiter->ops->suspend(awaiter, &mock->frame);
    } else {
        bide_budget_ = BIDE_BUDGET; /* each is a turn of its own: none yields */
        next = bide_frame_await(&mock->frame, awaiter);
    }
    if (next != NULL) {
        race_count_at_once(mock->race, next == &mock->frame);
        RACE_(_free)(mock);
    }
}

static void *RACE_(_consume)(void *argument)
{
    RACE_(_shared) *shared = argument;
    BIDE_SEQUENCE previous = 0;
    uint32_t spins = 0;
    while (!bide_atomic_load(&shared->race.stopping, relaxed)) {
        BIDE_SEQUENCE last = F_(_last_published)(&shared->barrier);
        if (last == previous) {
            wait_a_moment(&spins);
            continue;
        }
        previous = last;
        spins = 0;
        RACE_(_wait)
        (shared, RACE_(_take)(shared, (BIDE_SEQUENCE)(last + RACE_(_quarter)), true), false);
        RACE_(_wait)
        (shared, RACE_(_take)(shared, (BIDE_SEQUENCE)(last - RACE_(_quarter)), false), true);
    }
    bide_atomic_fetch_sub(&shared->race.consumers, 1, acq_rel);
    return NULL;
}

static void *RACE_(_produce)(void *argument)
{
    RACE_(_shared) *shared = argument;
    uint64_t random = shared->race.seed;
    BIDE_SEQUENCE sequence = 0;
    for (uint32_t lap = 0; lap < shared->race.laps; lap++) {
        BIDE_SEQUENCE previous;
        do {
            previous = sequence;
            sequence = (BIDE_SEQUENCE)(sequence + race_step(&shared->race, &random));
            F_(_publish)(&shared->barrier, sequence);
            random_moment(&random, 20);
        } while (sequence > previous); /* until it wraps */
    }
    bide_atomic_store(&shared->race.stopping, true, relaxed);
    uint32_t spins = 0;
    while (bide_atomic_load(&shared->race.consumers, acquire) != 0)
        wait_a_moment(&spins);
    /* Once around, for the remaining waiters. */
    for (int i = 0; i < RACE_(_mocks); i++)
        F_(_publish)(&shared->barrier, ++sequence);
    return NULL;
}

static void RACE_(_run)(uint32_t consumers, uint32_t laps, uint32_t greatest_step)
{
    RACE_(_shared) *shared = aligned_alloc(BIDE_CACHE_LINE, (sizeof *shared + BIDE_CACHE_LINE - 1) /
                                                                BIDE_CACHE_LINE * BIDE_CACHE_LINE);
    assert_non_null(shared);
    race_init(&shared->race, consumers, laps, greatest_step);
    F_(_init)(&shared->barrier, 0);
    for (int i = 0; i < RACE_(_mocks); i++) {
        bide_atomic_init(&shared->mocks[i].busy, false);
        shared->mocks[i].race = &shared->race;
    }

    pthread_t producer, threads[2];
    assert_true(consumers <= 2);
    start_thread(&producer, RACE_(_produce), shared);
    for (uint32_t i = 0; i < consumers; i++)
        start_thread(&threads[i], RACE_(_consume), shared);
    for (uint32_t i = 0; i < consumers; i++)
        join_thread(threads[i]);
    join_thread(producer);

    race_assert_ended(&shared->race);
    for (int i = 0; i < RACE_(_mocks); i++)
        assert_false(bide_atomic_load(&shared->mocks[i].busy, acquire));
    assert_true(shared->barrier.waiters.list.word <= BIDE_LIST_WATCHED_);
    free(shared);
}

#undef BARRIER_
#undef WAITER_
#undef F_
#undef TRAIT_
#undef RACE_
