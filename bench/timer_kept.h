/*
 * The two measurements of timers as they are kept, by a clock of the benchmark's own: of one way to keep them. Before it
 * is included NAME(name) is how its functions are called, TIMERS(name) and TIMERS_TYPE are the timers'.
 */

static TIMERS_TYPE NAME(timers);
static bide_sleep *NAME(sleeps);
static uint64_t NAME(now);

static void NAME(insert)(size_t i, uint64_t time)
{
    bide_timer_init(&NAME(sleeps)[i].timer, time);
    TIMERS(insert)(&NAME(timers), &NAME(sleeps)[i].timer);
}

/* Asks what is due each millisecond up to `until`; what comes is set again, if `again`. Returns how many came. */
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
    TIMERS(take_due)(&NAME(timers), NAME(now), &due); /* it knows the time */
}

/* After half a minute, so that some have come and the others are where they are then. */
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
        size_t which = i * 7919 % live; /* in another order than they lie in */
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
