// The headers from C++: operations are begun and waited for from a C++ program, over the library in C.

#include "bide/bide.h"

#include <cstdio>

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::printf("%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
            return 1;                                                            \
        }                                                                        \
    } while (0)

int main()
{
    bide_event event;
    bide_event_waiter event_waiter;
    bide_event_init(&event, false);
    bide_event_set(&event);
    CHECK(bide_sync_wait(bide_event_wait(&event_waiter, &event)) == 0);

    bide_sequence_barrier barrier;
    bide_sequence_waiter waiter;
    bide_sequence_barrier_init(&barrier, bide_sequence_initial());
    bide_sequence_barrier_publish(&barrier, 7);
    CHECK(bide_sync_wait(bide_sequence_barrier_wait_until_published(&waiter, &barrier, 5)) == 0);
    CHECK(waiter.published == 7);

    int numbers[4];
    bide_ring(int) ring;
    CHECK(bide_ring_init(&ring, numbers, 4));
    CHECK(bide_ring_at(&ring, 6) == &numbers[2]);

    bide_run_loop loop;
    bide_run_loop_init(&loop);
    CHECK(bide_run_loop_wait(&loop, bide_event_wait(&event_waiter, &event)) == 0);
    return 0;
}
