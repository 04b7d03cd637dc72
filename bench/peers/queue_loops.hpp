// The loops of the benchmark `queue` around a queue in C++: a class of handles, which has
//
//     queue                                a type; a run's queue is one
//     handle(queue &, queue_role)
//     bool push(uint64_t), bool pop(uint64_t &)
//     size_t push_many(const uint64_t *from, size_t count)
//     size_t pop_many(uint64_t *to, size_t count)           or neither of the two: then a loop
#ifndef BENCH_PEERS_QUEUE_LOOPS_HPP
#define BENCH_PEERS_QUEUE_LOOPS_HPP

#include "../queue_subject.h"

#include <new>

template <class Handle>
class queue_loops
{
    using queue = typename Handle::queue;
    // Storage for a handle, on its thread's stack.
    class handle
    {
      public:
        Handle *operator->()
        {
            return std::launder(reinterpret_cast<Handle *>(memory_));
        }

      private:
        alignas(Handle) unsigned char memory_[sizeof(Handle)];
    };

    static void enter(handle *self, void *of, enum queue_role role)
    {
        new (self) Handle(*static_cast<queue *>(of), role);
    }

    static void leave(handle *self)
    {
        (*self)->~Handle();
    }

    static bool push(handle *self, uint64_t value)
    {
        return (*self)->push(value);
    }

    static bool pop(handle *self, uint64_t *to)
    {
        return (*self)->pop(*to);
    }

    static size_t push_many(handle *self, const uint64_t *from, size_t count)
    {
        if constexpr (requires { (*self)->push_many(from, count); })
            return (*self)->push_many(from, count);
        size_t done = 0;
        while (done < count && (*self)->push(from[done]))
            done++;
        return done;
    }

    static size_t pop_many(handle *self, uint64_t *to, size_t count)
    {
        if constexpr (requires { (*self)->pop_many(to, count); })
            return (*self)->pop_many(to, count);
        size_t done = 0;
        while (done < count && (*self)->pop(to[done]))
            done++;
        return done;
    }

#include "../queue_loops.h"

    template <auto make>
    static void *create(unsigned producers, unsigned consumers)
    {
        return make(producers, consumers);
    }

    static void destroy(void *of)
    {
        delete static_cast<queue *>(of);
    }

  public:
    // `make` returns a new queue.
    template <queue *(*make)(unsigned producers, unsigned consumers)>
    static constexpr queue_subject subject(const char *name, enum queue_kind kind)
    {
        return {name, kind, create<make>, destroy, produce, consume};
    }
};

#endif
