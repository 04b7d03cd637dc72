// The lock-free queue with split reference counts: producers push numbers, consumers pop them, each thread with a cache
// of nodes of its own. Every number is popped once.
#include <bide/bide.hpp>
#include <atomic>
#include <iostream>
#include <thread>
#include <vector>

static bide_node_pool pool;
static bide_counted_queue(int) queue;

int main()
{
    enum { PRODUCERS = 2, CONSUMERS = 2, EACH = 10000 };
    std::atomic<long> sum = 0, popped = 0;
    bide_node_cache own;
    if (bide_node_pool_init(&pool, &bide_heap, bide_counted_queue_node_size(int), 64, 100000) != 0)
        return 1;
    bide_node_cache_init(&own, &pool);
    if (bide_counted_queue_init(&queue, &own) != 0)
        return 1;

    std::vector<std::thread> threads;
    for (int p = 0; p < PRODUCERS; p++)
        threads.emplace_back([p] {
            bide_node_cache cache;
            bide_node_cache_init(&cache, &pool);
            for (int i = 1; i <= EACH; i++) {
                int number = p * EACH + i;
                while (bide_counted_queue_push(&queue, &cache, &number) != 0)
                    std::this_thread::yield(); // no node is free
            }
            bide_node_cache_flush(&cache);
        });
    for (int c = 0; c < CONSUMERS; c++)
        threads.emplace_back([&] {
            bide_node_cache cache;
            bide_node_cache_init(&cache, &pool);
            while (popped.load() < PRODUCERS * EACH) {
                int number;
                if (bide_counted_queue_pop(&queue, &cache, &number) != 0) {
                    std::this_thread::yield();
                    continue;
                }
                sum += number;
                popped++;
            }
            bide_node_cache_flush(&cache);
        });
    for (auto &thread : threads)
        thread.join();
    long count = PRODUCERS * EACH;
    std::cout << popped << " numbers, their sum is "
              << (sum == count * (count + 1) / 2 ? "right" : "wrong") << '\n';
    bide_counted_queue_destroy(&queue, &own);
    bide_node_cache_flush(&own);
    bide_node_pool_destroy(&pool);
}
