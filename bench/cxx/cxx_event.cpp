// Ping-pong with auto-reset events for one waiter, by two tasks of bide on one run loop or on one each.

#include "cxx.h"

#include "bide/bide.hpp"
#include "bide/single_consumer_event.h"

namespace
{

struct shared {
    bide_single_consumer_auto_event ping, pong;
    uint64_t turns = 0;
};

bide::task<> serve(shared &s, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        bide_single_consumer_auto_event_set(&s.ping);
        (co_await bide::wait(bide_single_consumer_auto_event_wait, &s.pong)).value();
    }
}

bide::task<> answer(shared &s, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        (co_await bide::wait(bide_single_consumer_auto_event_wait, &s.ping)).value();
        s.turns++;
        bide_single_consumer_auto_event_set(&s.pong);
    }
}

uint64_t run(uint64_t n, unsigned loops, bench_idling idling)
{
    static bench_party parties[2];
    shared s;
    bide_single_consumer_auto_event_init(&s.ping, false);
    bide_single_consumer_auto_event_init(&s.pong, false);
    bide::task<> first = serve(s, n), second = answer(s, n);
    parties[0].awaiter = first.awaiter();
    parties[0].loop = 0;
    parties[1].awaiter = second.awaiter();
    parties[1].loop = loops - 1;
    bench_loops_run(parties, 2, idling);
    return s.turns;
}

} // namespace

const struct cxx_event PEER(cxx_event) = {run};
