/* The interface of one library to the benchmark `layout`: the function LAYOUT_RUN. */
#include "../ring_bide.h"

uint64_t LAYOUT_RUN(const void *setting);

__attribute__((visibility("default"))) uint64_t LAYOUT_RUN(const void *setting)
{
    return ring_bide_run(setting);
}
