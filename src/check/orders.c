/*
 * The table of known operations, and the steps by which an order becomes weaker.
 */
#include "orders.h"

#include "source_location.h"
#include "storage.h"

#include "bide/platform.h"

#include <string.h>

static known_operation *known;
static unsigned known_count, known_capacity;

static bool has_orders(const known_operation *k, effective_orders orders)
{
    return k->written.order == orders.order && k->written.order_if_failed == orders.order_if_failed;
}

/*
 * An inline function has a record in each file that includes it; the records are one operation. A
 * user's macro may contain several operations, which the compiler reports at one line; they differ in
 * their orders.
 */
static bool is_same_place(const known_operation *k, const bide_check_site_ *site, step_kind step,
                          effective_orders orders)
{
    if (k->site->file == source_location_unresolved || site->file == source_location_unresolved)
        return k->site == site && k->step == step &&
               has_orders(k, orders); /* identified by its code address alone */
    return k->step == step && has_orders(k, orders) && k->site->line == site->line &&
           strcmp(k->site->object, site->object) == 0 &&
           strcmp(k->site->function, site->function) == 0 && strcmp(k->site->file, site->file) == 0;
}

/* Returns the number, from 1, of the known operation; adds it if there is none. */
static unsigned known_as(bide_check_site_ *site, step_kind step, effective_orders orders)
{
    unsigned i = 0;
    while (i < known_count && !is_same_place(&known[i], site, step, orders))
        i++;
    if (i == known_count) {
        known = grown(known, &known_capacity, known_count + 1, sizeof *known);
        known[known_count++] = (known_operation){site, step, orders, orders};
    }
    return i + 1;
}

effective_orders orders_of(bide_check_site_ *site, step_kind step, int order, int order_if_failed)
{
    effective_orders orders = {(uint8_t)order, (uint8_t)order_if_failed};
    /* The orders of C11's atomics need not be constants, so one place may have several. */
    if (site->known_as == 0 || !has_orders(&known[site->known_as - 1], orders))
        site->known_as = known_as(site, step, orders);
    bide_assert(site->known_as <= known_count && known[site->known_as - 1].step == step);
    return known[site->known_as - 1].now;
}

known_operation *orders_known(unsigned *count)
{
    *count = known_count;
    return known;
}

/* Sets the orders that are one step weaker, and returns their number. */
static unsigned weaker_orders(step_kind step, int order, bool is_load_only, uint8_t out[2])
{
    switch (order) {
    case bide_check_heavy_:
        out[0] = bide_check_seq_cst_;
        out[1] = bide_check_light_;
        return 2;
    case bide_check_light_:
        out[0] = bide_check_relaxed_;
        return 1;
    case bide_check_seq_cst_:
        out[0] = is_load_only         ? bide_check_acquire_
                 : step == STEP_STORE ? bide_check_release_
                                      : bide_check_acq_rel_;
        return 1;
    case bide_check_acq_rel_:
        out[0] = bide_check_acquire_;
        out[1] = bide_check_release_;
        return 2;
    case bide_check_acquire_:
    case bide_check_release_:
        out[0] = bide_check_relaxed_;
        return 1;
    default:
        return 0;
    }
}

bool orders_weakening(unsigned n, weakening *w)
{
    for (unsigned i = 0; i < known_count; i++) {
        const known_operation *k = &known[i];
        unsigned orders = k->step == STEP_COMPARE_EXCHANGE ? 2 : 1;
        for (unsigned if_failed = 0; if_failed < orders; if_failed++) {
            uint8_t out[2];
            unsigned count =
                weaker_orders(k->step, if_failed ? k->written.order_if_failed : k->written.order,
                              k->step == STEP_LOAD || if_failed != 0, out);
            if (n < count) {
                *w = (weakening){i, if_failed != 0, out[n]};
                return true;
            }
            n -= count;
        }
    }
    return false;
}

void orders_weaken(const weakening *w)
{
    known_operation *k = &known[w->operation];
    if (w->if_failed)
        k->now.order_if_failed = w->to;
    else
        k->now.order = w->to;
    /* Only a compare-exchange has a second order. */
    if (k->step != STEP_COMPARE_EXCHANGE)
        k->now.order_if_failed = k->now.order;
}

void orders_restore(void)
{
    for (unsigned i = 0; i < known_count; i++)
        known[i].now = known[i].written;
}

const char *order_name(int order)
{
    static const char *const names[] = {"relaxed", "acquire", "release", "acq_rel",
                                        "seq_cst", "light",   "heavy"};
    return names[order];
}

const char *step_name(step_kind step)
{
    static const char *const names[] = {
        [STEP_INIT] = "init",
        [STEP_LOAD] = "load",
        [STEP_STORE] = "store",
        [STEP_EXCHANGE] = "exchange",
        [STEP_COMPARE_EXCHANGE] = "compare_exchange",
        [STEP_FETCH_ADD] = "fetch_add",
        [STEP_FETCH_SUB] = "fetch_sub",
        [STEP_FETCH_OR] = "fetch_or",
        [STEP_FETCH_AND] = "fetch_and",
        [STEP_FETCH_XOR] = "fetch_xor",
        [STEP_FETCH_NAND] = "fetch_nand",
        [STEP_FENCE] = "fence",
        [STEP_CHOICE] = "choose",
        [STEP_ALLOCATE] = "allocate",
        [STEP_PARK] = "enlist to sleep on",
        [STEP_PARKED] = "sleep on",
        [STEP_WAKE] = "wake those on",
        [STEP_LOCK] = "lock",
        [STEP_UNLOCK] = "unlock",
        [STEP_READ_LOCK] = "lock to read",
        [STEP_TAKE] = "take from",
        [STEP_GIVE] = "give to",
        [STEP_ARRIVE] = "arrive at",
        [STEP_PASS] = "pass",
        [STEP_ENTER] = "begin once",
        [STEP_FINISH] = "finish once",
        [STEP_SPAWN] = "spawn",
        [STEP_BEGIN] = "begin",
        [STEP_END] = "end",
        [STEP_JOIN] = "join",
        [STEP_POST] = "post",
        [STEP_AWAIT] = "await",
    };
    return names[step];
}
