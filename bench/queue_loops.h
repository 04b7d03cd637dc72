/*
 * The loops of a producer and a consumer in the benchmark `queue`. The file is included once for
 * each queue, so it has no include guard. Before it, QUEUE is defined as the queue's prefix, and
 * these exist:
 *
 *     QUEUE_handle                                          a thread's own state
 *     void QUEUE_enter(handle *, void *queue, role)         called first
 *     void QUEUE_leave(handle *)                            called last
 *     bool QUEUE_push(handle *, uint64_t value)             false: the queue is full
 *     bool QUEUE_pop(handle *, uint64_t *to)                false: the queue is empty
 *     size_t QUEUE_push_many(handle *, const uint64_t *from, size_t count)
 *     size_t QUEUE_pop_many(handle *, uint64_t *to, size_t count)
 *                                                           the number moved. A queue without such
 *                                                           functions defines QUEUE_IN_ONES instead,
 *                                                           for a loop
 *
 * In C++ it is the body of a class (peers/queue_loops.hpp), whose members have the same names
 * without the prefix.
 */
#ifdef __cplusplus
#define QUEUE_(name) name
#else
#define QUEUE_JOIN_(prefix, name) prefix##_##name
#define QUEUE_JOIN(prefix, name)  QUEUE_JOIN_(prefix, name)
#define QUEUE_(name)              QUEUE_JOIN(QUEUE, name)
#endif

#ifdef QUEUE_IN_ONES
static inline size_t QUEUE_(push_many)(QUEUE_(handle) * handle, const uint64_t *from, size_t count)
{
    size_t done = 0;
    while (done < count && QUEUE_(push)(handle, from[done]))
        done++;
    return done;
}

static inline size_t QUEUE_(pop_many)(QUEUE_(handle) * handle, uint64_t *to, size_t count)
{
    size_t done = 0;
    while (done < count && QUEUE_(pop)(handle, &to[done]))
        done++;
    return done;
}
#endif

static size_t QUEUE_(produce)(struct queue_run *run, uint64_t first)
{
    QUEUE_(handle) handle;
    uint64_t value = first;
    unsigned misses = 0;
    QUEUE_(enter)(&handle, run->queue, QUEUE_PRODUCER);
    if (run->batch == 1) {
        for (; !queue_stops(run); value++) {
            while (!QUEUE_(push)(&handle, value))
                queue_give_way(&misses);
            misses = 0;
        }
    } else {
        uint64_t values[QUEUE_MOST_BATCH];
        while (!queue_stops(run)) {
            for (size_t i = 0; i < run->batch; i++)
                values[i] = value++;
            for (size_t done = 0; done < run->batch;) {
                size_t pushed = QUEUE_(push_many)(&handle, values + done, run->batch - done);
                done += pushed;
                if (pushed != 0)
                    misses = 0;
                else
                    queue_give_way(&misses);
            }
        }
    }
    QUEUE_(leave)(&handle);
    return (size_t)(value - first);
}

static uint64_t QUEUE_(consume)(struct queue_run *run)
{
    QUEUE_(handle) handle;
    uint64_t value = 0, sum = 0;
    size_t seen = 0;
    unsigned misses = 0;
    QUEUE_(enter)(&handle, run->queue, QUEUE_CONSUMER);
    if (run->batch == 1) {
        for (;;) {
            if (QUEUE_(pop)(&handle, &value)) {
                sum += value;
                seen++;
                misses = 0;
            } else if (queue_is_over(run, &seen, &misses)) {
                break;
            }
        }
    } else {
        uint64_t values[QUEUE_MOST_BATCH];
        for (;;) {
            size_t popped = QUEUE_(pop_many)(&handle, values, run->batch);
            for (size_t i = 0; i < popped; i++)
                sum += values[i];
            seen += popped;
            if (popped != 0)
                misses = 0;
            else if (queue_is_over(run, &seen, &misses))
                break;
        }
    }
    QUEUE_(leave)(&handle);
    return sum;
}

#undef QUEUE_
#undef QUEUE_JOIN
#undef QUEUE_JOIN_
#undef QUEUE_IN_ONES
#undef QUEUE
