/*
 * The effect of separate cache lines for hot fields. Numbers pass through a ring on two threads
 * (ring_bide.h), in libraries whose structs are laid out as
 *
 *   own-lines    as in bide: the published sequence of a barrier has a cache line, and the list of
 *                waiters another; likewise the producer's words, and the words that other threads
 *                post to a run loop
 *   one-line     the same, but both words of a barrier are on one line
 *   packed       fields in sequence, so that barriers, sequencer and loop share lines with neighbours
 */
#include "bench.h"
#include "ring_bide.h"

uint64_t layout_own_lines_run(const void *setting);
uint64_t layout_one_line_run(const void *setting);
uint64_t layout_packed_run(const void *setting);

#define SUBJECT(name, run, topology, named, batch, items)                                         \
    {                                                                                             \
        name, run,                                                                                \
            &(const struct ring_setting){topology, RING_APART, batch, (items)*1000000ULL, false}, \
            "{\"topology\": \"" named "\", \"threads\": 2, \"batch\": " #batch                    \
            ", \"ring\": 16384}"                                                                  \
    }
#define LAYOUTS(topology, named, batch, items)                                   \
    SUBJECT("own-lines", layout_own_lines_run, topology, named, batch, items),   \
        SUBJECT("one-line", layout_one_line_run, topology, named, batch, items), \
        SUBJECT("packed", layout_packed_run, topology, named, batch, items)

int main(void)
{
    const bench_subject subjects[] = {
        LAYOUTS(RING_1_1, "1-1", 1, 4),    LAYOUTS(RING_1_1, "1-1", 10, 20),
        LAYOUTS(RING_1_1, "1-1", 256, 40), LAYOUTS(RING_1_3, "1-3", 1, 3),
        LAYOUTS(RING_1_3, "1-3", 10, 15),  LAYOUTS(RING_1_3, "1-3", 256, 20),
    };
    bench_run("layout", BENCH_ITEMS_PER_SECOND, subjects, sizeof subjects / sizeof subjects[0], 11);
    return 0;
}
