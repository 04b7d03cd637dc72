/* What one library of the benchmark `layout` gives to it: LAYOUT_RUN is its name for it. */
#include "../ring_bide.h"

uint64_t LAYOUT_RUN(const void *setting);

__attribute__((visibility("default"))) uint64_t LAYOUT_RUN(const void *setting)
{
    return ring_bide_run(setting);
}
