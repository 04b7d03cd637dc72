/*
 * The platform table inside a scenario: threads sleep on words and are woken, as the system does
 * it.
 *
 * For each word that is slept on there is a hidden one, with a bit for each thread that sleeps on
 * it, and a bit for each that has been woken. A thread chooses whether it will sleep. If so, it
 * enlists, by a read-modify-write of the hidden word, and looks at the word itself, which must be
 * as expected; if not, it only looks, and the word must have changed. Where it is not so the
 * execution goes no further: the other choice shows that. (To enlist first, and leave the list if
 * the word has changed, would be one choice less. But then all orders are run in which threads
 * enlist and leave that never sleep.) In the system no wake comes between looking and sleeping.
 * Here one may, after the look or before it, and the sleep ends at once, as if it had come right
 * behind.
 *
 * A look sees at least what the wakes before it had seen, of this word; nothing else is ordered by
 * sleeping or waking, so a thread that relies on a sleep to see data is found out.
 *
 * A sleep may end for no reason, and, where there is a deadline, because time has passed: both are
 * explored.
 */
#include "bide/platform.h"

#include "locks.h"
#include "machine.h"
#include "orders.h"
#include "spin.h"

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

static uint64_t all_bits(unsigned thread)
{
    return sleeps_bit(thread) | woken_bit(thread);
}

/* Makes the thread one of the sleepers, or no longer. Returns what the word was. */
static uint64_t enlist(uintptr_t address, bide_check_site_ *site, bool sleeps)
{
    unsigned self = execution_thread();
    reference load;
    operation op = {.site = site, .step = STEP_PARK, .is_rmw = true, .is_silent = true};
    uint64_t sleepers = machine_load(&op, address, 8, HIDDEN_SLEEPERS, NULL, &load);
    machine_store(&op, address, 8, HIDDEN_SLEEPERS,
                  (sleepers & ~all_bits(self)) | (sleeps ? sleeps_bit(self) : 0), &load);
    return sleepers;
}

void sleepers_enlist(uintptr_t address, bide_check_site_ *site)
{
    enlist(address, site, true);
}

int sleepers_wait(uintptr_t address, bide_check_site_ *site, bool has_deadline)
{
    unsigned self = execution_thread();
    /* 0: woken; 1: for no reason, if it may, or the deadline; 2: the deadline */
    bool may_fail = machine_may_be_spurious();
    operation op = {.site = site, .step = STEP_CHOICE, .may_fail = may_fail};
    unsigned count = 1 + may_fail + has_deadline;
    unsigned how = count > 1 ? machine_choose(&op, count) : 0;
    if (how != 0) {
        /* Unless it has been woken, after all, before it was gone. */
        bool woken = (enlist(address, site, false) & woken_bit(self)) != 0;
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
        if (n > count) {
            operation choice = {.site = site, .step = STEP_CHOICE};
            which = machine_choose(&choice, n);
        }
        for (unsigned t = 0; t < THREADS; t++) {
            if ((sleepers & sleeps_bit(t)) != 0 && which-- == 0)
                sleepers = (sleepers & ~sleeps_bit(t)) | woken_bit(t);
        }
        count--;
    }
    machine_store(&op, address, 8, HIDDEN_SLEEPERS, sleepers, &load);
}

static bide_check_site_ wait_site = {"", "bide_platform.wait", "*word", 0, 0};
static bide_check_site_ wake_site = {"", "bide_platform.wake", "*word", 0, 0};

/* What the wakes have seen that came before this thread's last step in the list of sleepers. */
static vector_clock seen_by_wakes(uintptr_t address)
{
    vector_clock seen = {{0}};
    const event *e = machine_last_use(address, HIDDEN_SLEEPERS);
    if (e != NULL && e->kind == EVENT_LOAD)
        e = is_initial(e->rf) ? NULL : execution_event(e->rf);
    if (e != NULL)
        seen = e->message; /* a copy: events move when there are more of them */
    return seen;
}

/* Looks at the word. */
static bool is_unchanged(bide_atomic(uint32_t) * word, uint32_t expected)
{
    operation op = {.site = &wait_site, .step = STEP_LOAD, .is_silent = true};
    vector_clock seen = seen_by_wakes((uintptr_t)word);
    return (uint32_t)machine_load_part(&op, (uintptr_t)word, sizeof *word, &seen) == expected;
}

static int check_wait(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline)
{
    if (!execution_is_running())
        return 0;
    operation op = {.site = &wait_site, .step = STEP_CHOICE};
    bool sleeps = machine_choose(&op, 2) == 0;
    if (sleeps)
        sleepers_enlist((uintptr_t)word, &wait_site);
    if (is_unchanged(word, expected) != sleeps)
        execution_halt();
    return sleeps ? sleepers_wait((uintptr_t)word, &wait_site, deadline != BIDE_FOREVER) : 0;
}

static void check_wake(bide_atomic(uint32_t) * word, uint32_t count)
{
    if (execution_is_running())
        sleepers_wake((uintptr_t)word, &wake_site, count);
}

/* Time stands still: what must not depend on it is not led to. */
static uint64_t check_now(void)
{
    spin_look_at_time();
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

const bide_platform_table bide_platform = {check_wait,  check_wake,   check_now,
                                           check_yield, check_misuse, NULL};

/*
 * More than one, so that threads look for work before they sleep: once, which shows all that a
 * second look could.
 */
unsigned bide_processors_(void);

unsigned bide_processors_(void)
{
    return 2;
}
