/*
 * The platform table inside of a scenario: threads sleep on words and are woken, as by the system.
 *
 * 1. Each word that is slept on has a hidden word, with a bit for each thread that sleeps on it, and a
 *    bit for each thread that has been woken.
 * 2. A thread chooses whether it will sleep. If it will, it enlists with a read-modify-write of the
 *    hidden word, and then reads the word itself, which must have the expected value. If it will not,
 *    it only reads the word, which must have another value. Otherwise the execution ends here, since
 *    the other choice covers it. The alternative is to enlist first, and to leave the list if the
 *    word has changed; it saves the choice, but explores all orders in which threads enlist and leave
 *    without a sleep.
 *    A sampled execution is not given up for that. There the thread enlists, reads the word, and
 *    leaves the list if it has another value. No other thread takes a step meanwhile, so no wake is
 *    spent on a thread that does not sleep.
 * 3. The system allows no wake between the read of the word and the sleep. Here a wake may come
 *    between them; the sleep then ends at once, as if the wake had come directly after it.
 * 4. The read of the word sees at least the stores to it that earlier wakes had seen. Sleeps and wakes
 *    order nothing else, so a thread that relies on a sleep to see data is a finding.
 * 5. A sleep may end spuriously, and, if it has a deadline, because of the time. Both are explored.
 */
#include "bide/platform.h"

#include "locks.h"
#include "machine.h"
#include "orders.h"
#include "sample.h"
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

/* Adds the thread to the sleepers, or removes it. Returns the previous value of the word. */
static uint64_t update_sleeper(uintptr_t address, bide_check_site_ *site, bool sleeps)
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
    update_sleeper(address, site, true);
}

int sleepers_wait(uintptr_t address, bide_check_site_ *site, bool has_deadline)
{
    unsigned self = execution_thread();
    /* 0: woken; 1: spuriously, if it may, or by the deadline; 2: by the deadline */
    bool may_fail = machine_may_be_spurious();
    operation op = {.site = site, .step = STEP_CHOICE, .may_fail = may_fail};
    unsigned count = 1 + may_fail + has_deadline;
    unsigned how = count > 1 ? machine_choose(&op, count) : 0;
    if (how != 0) {
        /* A wake that came before the thread left the list takes precedence. */
        bool woken = (update_sleeper(address, site, false) & woken_bit(self)) != 0;
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

/* The clock of the wakes that came before this thread's last step in the list of sleepers. */
static vector_clock seen_by_wakes(uintptr_t address)
{
    vector_clock seen = {{0}};
    const event *e = machine_last_use(address, HIDDEN_SLEEPERS);
    if (e != NULL && e->kind == EVENT_LOAD)
        e = is_initial(e->rf) ? NULL : execution_event(e->rf);
    if (e != NULL)
        seen = e->message; /* a copy: events move when more are added */
    return seen;
}

static bool is_unchanged(bide_atomic(uint32_t) * word, uint32_t expected)
{
    operation op = {.site = &wait_site, .step = STEP_LOAD, .is_silent = true};
    vector_clock seen = seen_by_wakes((uintptr_t)word);
    return (uint32_t)machine_load_part(&op, (uintptr_t)word, sizeof *word, &seen) == expected;
}

/* Enlists the running thread if the word has the expected value. */
static bool enlist_if_unchanged(bide_atomic(uint32_t) * word, uint32_t expected)
{
    sleepers_enlist((uintptr_t)word, &wait_site);
    sample_hold(true);
    bool sleeps = is_unchanged(word, expected);
    if (!sleeps)
        update_sleeper((uintptr_t)word, &wait_site, false);
    sample_hold(false);
    return sleeps;
}

static int check_wait(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline)
{
    bool has_deadline = deadline != BIDE_FOREVER;
    if (!execution_is_running())
        return 0;
    if (the_checker.samples)
        return enlist_if_unchanged(word, expected)
                   ? sleepers_wait((uintptr_t)word, &wait_site, has_deadline)
                   : 0;
    operation op = {.site = &wait_site, .step = STEP_CHOICE};
    bool sleeps = machine_choose(&op, 2) == 0;
    if (sleeps)
        sleepers_enlist((uintptr_t)word, &wait_site);
    if (is_unchanged(word, expected) != sleeps)
        execution_halt();
    return sleeps ? sleepers_wait((uintptr_t)word, &wait_site, has_deadline) : 0;
}

static void check_wake(bide_atomic(uint32_t) * word, uint32_t count)
{
    if (execution_is_running())
        sleepers_wake((uintptr_t)word, &wake_site, count);
}

/* Time does not pass, so code must not wait for a time to come. */
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
 * More than one, so that threads look for work before they sleep. They look once; further looks show
 * nothing new.
 */
unsigned bide_processors_(void);

unsigned bide_processors_(void)
{
    return 2;
}

/* No scenario forks. */
extern uint32_t bide_generation_;
uint32_t bide_generation_;
