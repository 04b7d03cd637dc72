// The other translation unit of cppcoro_test.cpp: without the alias, `cppcoro` is free for other names.
#define BIDE_CPPCORO_ALIAS 0
#include "bide/cppcoro.hpp"

namespace cppcoro
{
// (as cppcoro's own would be)
template <class T>
struct task {
    T value;
};
} // namespace cppcoro

bide::cppcoro::task<int> of_the_other_unit(bide::cppcoro::shared_task<int> shared,
                                           bide::cppcoro::async_manual_reset_event &event);

bide::cppcoro::task<int> of_the_other_unit(bide::cppcoro::shared_task<int> shared,
                                           bide::cppcoro::async_manual_reset_event &event)
{
    cppcoro::task<int> one{1};
    co_await event;
    co_return one.value + co_await shared;
}
