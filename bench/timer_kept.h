/*
 * The two measurements for one timer container, with a clock of the benchmark's own. The including
 * file defines NAME(name), which gives the functions their names, and TIMERS(name) and TIMERS_TYPE,
 * the container's functions and type.
 */

static TIMERS_TYPE NAME(timers);
static bide_sleep *NAME(sleeps);
static uint64_t NAME(now);

static void NAME(insert)(size_t i, uint64_t time)
{
    bide_timer_init(&NAME(sleeps)[i].timer, time);
    TIMERS(insert)(&NAME(timers), &NAME(sleeps)[i].timer);
}

/*
 * Polls for due timers each millisecond up to `until`; with `again`, each is started again. Returns
 * the number that expired.
 */
static size_t NAME(run_until)(uint64_t until, int again)
{
    size_t count = 0;
    for (; NAME(now) < until; NAME(now) += MILLISECOND) {
        bide_awaiter_chain due = {NULL, NULL};
        if (TIMERS(next)(&NAME(timers)) > NAME(now))
            continue;
        TIMERS(take_due)(&NAME(timers), NAME(now), &due);
        for (bide_awaiter *next, *first = due.first; first != NULL; first = next, count++) {
            next = first->link;
            if (again)
                NAME(insert)
                ((size_t)((bide_sleep *)(void *)first - NAME(sleeps)),
                 NAME(now) + bench_timer_away());
        }
    }
    return count;
}

static void NAME(begin)(size_t live)
{
    bide_awaiter_chain due = {NULL, NULL};
    NAME(sleeps) = allocate(live, sizeof *NAME(sleeps));
    TIMERS(init)(&NAME(timers));
    NAME(now) = 1000 * SECOND + bench_timer_draw() * 1000;
    TIMERS(take_due)(&NAME(timers), NAME(now), &due); /* sets the container's time */
}

/*
 * Runs half a minute first, so that some timers have expired and the others have moved to their
 * places.
 */
static double NAME(restart)(size_t live, size_t count)
{
    NAME(begin)(live);
    for (size_t i = 0; i < live; i++)
        NAME(insert)(i, NAME(now) + bench_timer_away());
    NAME(run_until)(NAME(now) + 30 * SECOND, 1);
    double begun = bench_now();
    for (size_t i = 0; i < count; i++) {
        size_t which = bench_timer_draw() % live;
        if (!TIMERS(remove)(&NAME(timers), &NAME(sleeps)[which].timer))
            bench_fail("timer", "a timer was not set");
        NAME(insert)(which, NAME(now) + bench_timer_away());
    }
    double took = bench_now() - begun;
    free(NAME(sleeps));
    return took / (double)count;
}

static double NAME(fire)(size_t live)
{
    NAME(begin)(live);
    for (size_t i = 0; i < live; i++) {
        size_t which = i * 7919 % live; /* in another order than in memory */
        NAME(insert)
        (which,
         NAME(now) + bench_timer_draw() % 10000 * MILLISECOND + bench_timer_draw() % MILLISECOND);
    }
    double begun = bench_now();
    size_t count = NAME(run_until)(NAME(now) + 10001 * MILLISECOND + 1, 0);
    double took = bench_now() - begun;
    if (count != live)
        bench_fail("timer", "a timer was lost");
    free(NAME(sleeps));
    return took / (double)live;
}

#undef NAME
#undef TIMERS
#undef TIMERS_TYPE
