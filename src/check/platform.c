/*
 * The platform table inside a scenario: threads sleep on words and are woken, as the system does it.
 *
 * For each word that is slept on there is a hidden one, with a bit for each thread that sleeps on it, and a bit
 * for each that has been woken. A thread enlists, by a read-modify-write of the hidden word, then looks at the
 * word itself, and leaves the list if that has changed. In the system no wake comes in between. Here one may,
 * and it does no harm, except where it had to choose among sleepers and chose this one, who does not sleep: such
 * an execution does not exist, and goes no further (the bit "chosen" tells).
 *
 * Whoever looks sees at least what the wakes before it had seen, of this word; nothing else is ordered by sleeping
 * or waking, so who relies on a sleep to see data is found out.
 *
 * A sleep may end for no reason, and, where there is a deadline, because time has passed: both are explored.
 */
#include "bide/platform.h"

#include "locks.h"
#include "machine.h"
#include "orders.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t sleeps_bit(unsigned thread)
{
    return (uint64_t)1 << thread;
}

static uint64_t woken_bit(unsigned thread)
{
    return (uint64_t)1 << (thread + 16);
}

/* Woken, where others slept who were not. */
static uint64_t chosen_bit(unsigned thread)
{
    return (uint64_t)1 << (thread + 32);
}

static uint64_t all_bits(unsigned thread)
{
    return sleeps_bit(thread) | woken_bit(thread) | chosen_bit(thread);
}

/* Makes the thread one of the sleepers, or no longer. Returns what the word was; *load, if not NULL, is the step that
 * read it. */
static uint64_t enlist(uintptr_t address, bide_check_site_ *site, bool sleeps, reference *load)
{
    unsigned self = machine_thread();
    reference own;
    operation op = {.site = site, .step = STEP_PARK, .is_rmw = true, .is_silent = true};
    if (load == NULL)
        load = &own;
    uint64_t sleepers = machine_load(&op, address, 8, HIDDEN_SLEEPERS, NULL, load);
    machine_store(&op, address, 8, HIDDEN_SLEEPERS,
                  (sleepers & ~all_bits(self)) | (sleeps ? sleeps_bit(self) : 0), load);
    return sleepers;
}

void sleepers_enlist(uintptr_t address, bide_check_site_ *site, reference *load)
{
    enlist(address, site, true, load);
}

void sleepers_leave(uintptr_t address, bide_check_site_ *site)
{
    if ((enlist(address, site, false, NULL) & chosen_bit(machine_thread())) != 0)
        machine_halt();
}

int sleepers_wait(uintptr_t address, bide_check_site_ *site, bool has_deadline)
{
    unsigned self = machine_thread();
    /* 0: woken; 1: for no reason, if it may, or the deadline; 2: the deadline */
    bool may_fail = machine_may_be_spurious();
    operation op = {.site = site, .step = STEP_CHOICE, .may_fail = may_fail};
    unsigned count = 1 + may_fail + has_deadline;
    unsigned how = count > 1 ? machine_choose(&op, count) : 0;
    if (how != 0) {
        /* Unless it has been woken, after all, before it was gone. */
        bool woken = (enlist(address, site, false, NULL) & woken_bit(self)) != 0;
        return woken || (may_fail && how == 1) ? 0 : -ETIMEDOUT;
    }
    op = (operation){.site = site,
                     .step = STEP_PARKED,
                     .is_silent = true,
                     .wait = WAIT_UNTIL_BITS,
                     .expected = woken_bit(self),
                     .operand = has_deadline};
    machine_load(&op, address, 8, HIDDEN_SLEEPERS, NULL, NULL);
    return 0;
}

void sleepers_wake(uintptr_t address, bide_check_site_ *site, unsigned count)
{
    operation op = {.site = site,
                    .step = STEP_WAKE,
                    .order = bide_check_release_,
                    .is_rmw = true,
                    .is_silent = true};
    op.order_if_failed = op.order;
    reference load;
    uint64_t sleepers = machine_load(&op, address, 8, HIDDEN_SLEEPERS, NULL, &load);
    while (count != 0 && (sleepers & UINT16_MAX) != 0) {
        unsigned n = (unsigned)__builtin_popcount((uint16_t)sleepers), which = 0;
        bool is_chosen = n > count;
        if (is_chosen) {
            operation choice = {.site = site, .step = STEP_CHOICE};
            which = machine_choose(&choice, n);
        }
        for (unsigned t = 0; t < THREADS; t++) {
            if ((sleepers & sleeps_bit(t)) != 0 && which-- == 0)
                sleepers =
                    (sleepers & ~sleeps_bit(t)) | woken_bit(t) | (is_chosen ? chosen_bit(t) : 0);
        }
        count--;
    }
    machine_store(&op, address, 8, HIDDEN_SLEEPERS, sleepers, &load);
}

static bide_check_site_ wait_site = {"", "bide_platform.wait", "*word", 0, 0};
static bide_check_site_ wake_site = {"", "bide_platform.wake", "*word", 0, 0};

static int check_wait(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline)
{
    if (!machine_is_running())
        return 0;
    reference load;
    sleepers_enlist((uintptr_t)word, &wait_site, &load);
    operation op = {.site = &wait_site, .step = STEP_LOAD, .is_silent = true};
    const event *e = machine_event(load);
    vector_clock seen = {{0}}; /* a copy: events move when there are more of them */
    if (!is_initial(e->rf))
        seen = machine_event(e->rf)->message;
    if ((uint32_t)machine_load_part(&op, (uintptr_t)word, sizeof *word, &seen) != expected) {
        sleepers_leave((uintptr_t)word, &wait_site);
        return 0;
    }
    return sleepers_wait((uintptr_t)word, &wait_site, deadline != BIDE_FOREVER);
}

static void check_wake(bide_atomic(uint32_t) * word, uint32_t count)
{
    if (machine_is_running())
        sleepers_wake((uintptr_t)word, &wake_site, count);
}

/* Time stands still: what must not depend on it is not led to. */
static uint64_t check_now(void)
{
    machine_look_at_time();
    return 1;
}

static void check_yield(void)
{
    bide_check_relax_();
}

static void check_misuse(const char *what, const char *where, const char *file, unsigned line)
{
    bide_check_fail_(BIDE_CHECK_MISUSE, file, line, "%s: %s", where, what);
}

const bide_platform_table bide_platform = {check_wait, check_wake, check_now, check_yield,
                                           check_misuse, NULL};

/* More than one, so that threads look for work before they sleep: once, which shows all that a second look could. */
unsigned bide_processors_(void);

unsigned bide_processors_(void)
{
    return 2;
}
