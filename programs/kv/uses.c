/* Times and frequencies of use. uses.h has the model. */
#include "uses.h"

static uint32_t step_of(int64_t now)
{
    return (uint32_t)((uint64_t)now / USES_STEP);
}

static uint32_t minute_of(int64_t now)
{
    return (uint32_t)((uint64_t)now / 60000) & UINT16_MAX;
}

static uint32_t frequency_bits(unsigned counter, int64_t now)
{
    return minute_of(now) << 8 | counter;
}

uint32_t uses_begin(const struct uses *uses, int64_t now)
{
    return uses->are_counted ? frequency_bits(USES_FIRST, now) : step_of(now);
}

/* A counter that is USES_FIRST or less always increases. */
static bool counts_again(const struct uses *uses, unsigned counter)
{
    const double unit = 1.0 / (1ULL << 53);
    double above = counter > USES_FIRST ? counter - USES_FIRST : 0;
    return counter < USES_MAX && (double)(uses->draw(uses->draw_of) >> 11) * unit *
                                         (above * (double)uses->log_factor + 1) <
                                     1;
}

uint32_t uses_add(const struct uses *uses, uint32_t used, int64_t now)
{
    if (!uses->are_counted)
        return step_of(now);
    unsigned counter = uses_frequency(uses, used, now);
    return frequency_bits(counter + counts_again(uses, counter), now);
}

int64_t uses_idle_time(uint32_t used, int64_t now)
{
    uint32_t steps = step_of(now) - used;
    return (int32_t)steps < 0 ? 0 : (int64_t)steps * USES_STEP; /* (the clock was set) */
}

unsigned uses_frequency(const struct uses *uses, uint32_t used, int64_t now)
{
    unsigned counter = used & USES_MAX;
    uint32_t minutes = (minute_of(now) - (used >> 8)) & UINT16_MAX;
    size_t decrease = uses->decay_time != 0 ? minutes / uses->decay_time : 0;
    return decrease < counter ? counter - (unsigned)decrease : 0;
}
