/* Which keys each policy evicts, with a fixed seed and times of the test's own. */
#include "../../../programs/kv/eviction.h"

#include "testing.h"

#include <stdio.h>

enum { KEYS = 1000, SEED = 42 };

struct evicting {
    struct keyspace keys;
    uint64_t seed, steps;
};

static uint64_t next_random(void *argument)
{
    return testing_random(argument);
}

static struct bytes name_of(char text[NUMBER_SIZE], int64_t number)
{
    return (struct bytes){text, number_print(text, number)};
}

static struct entry *find_number(struct evicting *evicting, int64_t number)
{
    char text[NUMBER_SIZE];
    struct entry **link = keyspace_find(&evicting->keys, name_of(text, number));
    assert_non_null(link);
    return *link;
}

/* The numbers are keys. The even ones have an expiry, the later the smaller they are. All were used at the same time. */
static void fill_keys(struct evicting *evicting)
{
    const uint64_t key[2] = {1, 2};
    char text[NUMBER_SIZE];
    *evicting = (struct evicting){.seed = SEED};
    keyspace_init(&evicting->keys, key);
    evicting->keys.now = 1000000;
    evicting->keys.uses.log_factor = 10;
    evicting->keys.uses.decay_time = 1;
    evicting->keys.uses.draw = next_random;
    evicting->keys.uses.draw_of = &evicting->seed;
    for (int64_t i = 0; i < KEYS; i++) {
        struct entry *entry = keyspace_upsert(&evicting->keys, name_of(text, i), 0, false);
        assert_non_null(entry);
        if (i % 2 == 0)
            assert_true(keyspace_set_expiry(&evicting->keys, entry, INT64_MAX - i));
    }
}

/* Evicts a key and returns its number, or -1 if there is none. */
static int64_t evict(struct evicting *evicting, enum eviction policy)
{
    struct keyspace *keys = &evicting->keys;
    struct entry *entry =
        eviction_choose(keys, policy, next_random, &evicting->seed, &evicting->steps);
    int64_t number;
    if (entry == NULL)
        return -1;
    assert_true(number_read(entry_key(entry), &number));
    struct entry **link = keyspace_peek(keys, entry_key(entry));
    assert_ptr_equal(*link, entry);
    keyspace_remove(keys, link);
    return number;
}

static void end_keys(struct evicting *evicting)
{
    keyspace_free(&evicting->keys);
    assert_int_equal(memory_used, 0);
}

/* Evicts so many; returns how many of them are below `bound`. */
static size_t evict_below(struct evicting *evicting, enum eviction policy, size_t count,
                          int64_t bound)
{
    size_t below = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t number = evict(evicting, policy);
        assert_true(number >= 0);
        below += number < bound;
    }
    return below;
}

/* Half of the keys are found later. */
static void use_upper_half(struct evicting *evicting)
{
    evicting->keys.now += 10 * USES_STEP;
    for (int64_t i = KEYS / 2; i < KEYS; i++)
        find_number(evicting, i);
}

static void all_lru_evicts_keys_that_are_not_used(void **state)
{
    struct evicting evicting;
    fill_keys(&evicting);
    use_upper_half(&evicting);
    size_t idle = evict_below(&evicting, EVICTION_ALL_LRU, KEYS / 4, KEYS / 2);
    print_message("# %zu of %d\n", idle, KEYS / 4);
    assert_true(idle >= KEYS / 4 - 5);
    while (evict(&evicting, EVICTION_ALL_LRU) >= 0)
        continue;
    assert_int_equal(evicting.keys.keys.table.count, 0);
    end_keys(&evicting);
    (void)state;
}

static void volatile_lru_evicts_keys_with_an_expiry_that_are_not_used(void **state)
{
    struct evicting evicting;
    fill_keys(&evicting);
    use_upper_half(&evicting);
    size_t idle = evict_below(&evicting, EVICTION_VOLATILE_LRU, KEYS / 8, KEYS / 2);
    print_message("# %zu of %d\n", idle, KEYS / 8);
    assert_true(idle >= KEYS / 8 - 5);
    for (int64_t number = 0; number >= 0; number = evict(&evicting, EVICTION_VOLATILE_LRU))
        assert_int_equal(number % 2, 0);
    assert_int_equal(evicting.keys.keys.table.count, KEYS / 2);
    end_keys(&evicting);
    (void)state;
}

/* ---- Frequencies ---- */

/* Makes uses count, and uses half of the keys often. */
static void fill_counted(struct evicting *evicting)
{
    fill_keys(evicting);
    evicting->keys.uses.are_counted = true;
    for (int64_t i = 0; i < KEYS; i++)
        find_number(evicting, i)->used = uses_begin(&evicting->keys.uses, evicting->keys.now);
    for (int64_t i = KEYS / 2; i < KEYS; i++) {
        for (int use = 0; use < 20; use++) {
            evicting->keys.uses.last = NULL; /* another command */
            find_number(evicting, i);
        }
    }
}

static void lfu_evicts_keys_that_are_used_rarely(void **state)
{
    static const enum eviction policies[] = {EVICTION_ALL_LFU, EVICTION_VOLATILE_LFU};
    for (size_t i = 0; i < 2; i++) {
        struct evicting evicting;
        size_t count = i == 0 ? KEYS / 4 : KEYS / 8;
        fill_counted(&evicting);
        evicting.keys.now += 60000; /* the last use does not matter, but for the decrease */
        size_t rare = evict_below(&evicting, policies[i], count, KEYS / 2);
        print_message("# %zu of %zu\n", rare, count);
        assert_true(rare >= count - count / 20);
        while (evict(&evicting, policies[i]) >= 0)
            continue;
        assert_int_equal(evicting.keys.keys.table.count, i == 0 ? 0 : KEYS / 2);
        end_keys(&evicting);
    }
    (void)state;
}

/* The table of redis's configuration file: the counter after so many uses, on average. */
static void the_counter_grows_as_the_logarithm_of_the_uses(void **state)
{
    enum { TRIES = 50 };
    static const struct {
        size_t factor;
        int uses;
        unsigned counter;
    } cases[] = {{0, 100, 104},     {0, 1000, 255},   {1, 100, 18},  {1, 1000, 49},
                 {10, 100, 10},     {10, 1000, 18},   {100, 100, 8}, {100, 1000, 11},
                 {100, 100000, 49}, {10, 100000, 142}};
    uint64_t seed = SEED;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct uses uses = {.are_counted = true,
                                  .log_factor = cases[i].factor,
                                  .draw = next_random,
                                  .draw_of = &seed};
        double sum = 0;
        for (int at = 0; at < TRIES; at++) {
            uint32_t used = uses_begin(&uses, 0);
            for (int use = 0; use < cases[i].uses; use++)
                used = uses_add(&uses, used, 0);
            sum += uses_frequency(&uses, used, 0);
        }
        double mean = sum / TRIES;
        print_message("# factor %zu, %d uses: %.1f\n", cases[i].factor, cases[i].uses, mean);
        assert_true(mean >= cases[i].counter * 0.93 - 1 && mean <= cases[i].counter * 1.07 + 1);
    }
    (void)state;
}

static void minutes_without_a_use_decrease_the_counter(void **state)
{
    const int64_t minute = 60000, wraps = (INT64_C(1) << 16) * minute;
    struct uses uses = {.are_counted = true, .decay_time = 1};
    uint32_t used = uses_begin(&uses, wraps - minute);
    assert_int_equal(uses_frequency(&uses, used, wraps - 1), USES_FIRST);
    assert_int_equal(uses_frequency(&uses, used, wraps), USES_FIRST - 1);
    assert_int_equal(uses_frequency(&uses, used, wraps + 3 * minute), USES_FIRST - 4);
    assert_int_equal(uses_frequency(&uses, used, wraps + 100 * minute), 0);
    uses.decay_time = 3;
    assert_int_equal(uses_frequency(&uses, used, wraps + 4 * minute), USES_FIRST - 1);
    uses.decay_time = 0;
    assert_int_equal(uses_frequency(&uses, used, wraps + 100 * minute), USES_FIRST);
    (void)state;
}

/* Peeking at a key is no use. */
static void a_use_is_a_find_or_a_change(void **state)
{
    struct evicting evicting;
    char text[NUMBER_SIZE];
    fill_keys(&evicting);
    struct entry *found = find_number(&evicting, 1);
    evicting.keys.now += 5 * USES_STEP;
    assert_int_equal(keyspace_idle_time(&evicting.keys, found), 5 * USES_STEP);
    assert_non_null(keyspace_peek(&evicting.keys, name_of(text, 1)));
    assert_int_equal(keyspace_idle_time(&evicting.keys, found), 5 * USES_STEP);
    find_number(&evicting, 1);
    assert_int_equal(keyspace_idle_time(&evicting.keys, found), 0);
    evicting.keys.now += 2 * USES_STEP;
    found = keyspace_upsert(&evicting.keys, name_of(text, 1), 100, false);
    assert_int_equal(keyspace_idle_time(&evicting.keys, found), 0);
    evicting.keys.now -= USES_STEP; /* the clock is set back */
    assert_int_equal(keyspace_idle_time(&evicting.keys, found), 0);
    end_keys(&evicting);
    (void)state;
}

static void volatile_ttl_evicts_in_the_order_of_the_expiries(void **state)
{
    struct evicting evicting;
    fill_keys(&evicting);
    for (int64_t i = KEYS - 2; i >= 0; i -= 2)
        assert_int_equal(evict(&evicting, EVICTION_VOLATILE_TTL), i);
    assert_int_equal(evict(&evicting, EVICTION_VOLATILE_TTL), -1);
    assert_int_equal(evicting.keys.keys.table.count, KEYS / 2);
    end_keys(&evicting);
    (void)state;
}

/* Uses do not count, so about half are from each half. */
static void random_policies_evict_any(void **state)
{
    static const struct {
        enum eviction policy;
        int keys;
    } cases[] = {{EVICTION_ALL_RANDOM, KEYS}, {EVICTION_VOLATILE_RANDOM, KEYS / 2}};
    for (size_t i = 0; i < 2; i++) {
        struct evicting evicting;
        int count = cases[i].keys;
        fill_keys(&evicting);
        use_upper_half(&evicting);
        size_t lower = evict_below(&evicting, cases[i].policy, (size_t)count / 2, KEYS / 2);
        print_message("# %zu of %d\n", lower, count / 2);
        assert_true(lower >= (size_t)count / 5 && lower <= (size_t)count * 3 / 10);
        for (int left = count - count / 2; left > 0; left--) {
            int64_t number = evict(&evicting, cases[i].policy);
            assert_true(number >= 0 && (count == KEYS || number % 2 == 0));
        }
        assert_int_equal(evict(&evicting, cases[i].policy), -1);
        assert_int_equal(evicting.keys.keys.table.count, KEYS - count);
        end_keys(&evicting);
    }
    (void)state;
}

static void without_a_policy_no_key_is_evicted(void **state)
{
    struct evicting evicting;
    fill_keys(&evicting);
    assert_int_equal(evict(&evicting, EVICTION_NONE), -1);
    assert_int_equal(evicting.keys.keys.table.count, KEYS);
    end_keys(&evicting);
    (void)state;
}

/* Also in a table that has become sparse: it has 16 buckets for each entry at most. */
static void a_choice_has_a_bound_in_steps(void **state)
{
    for (int policy = 0; policy < EVICTION_POLICIES; policy++) {
        struct evicting evicting;
        fill_keys(&evicting);
        while (evict(&evicting, (enum eviction)policy) >= 0)
            continue;
        print_message("# %s: %llu steps\n", eviction_names[policy],
                      (unsigned long long)evicting.steps);
        assert_true(evicting.steps <= 2 * 32 * TABLE_DRAW_PLACES * KEYS);
        end_keys(&evicting);
    }
    (void)state;
}

static void policies_have_names(void **state)
{
    enum eviction policy;
    for (int i = 0; i < EVICTION_POLICIES; i++) {
        assert_true(eviction_read(bytes_of(eviction_names[i]), &policy));
        assert_int_equal(policy, i);
    }
    assert_true(eviction_read(bytes_of("AllKeys-LRU"), &policy));
    assert_int_equal(policy, EVICTION_ALL_LRU);
    assert_false(eviction_read(bytes_of("allkeys-ttl"), &policy));
    assert_false(eviction_read(bytes_of(""), &policy));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lru_evicts_keys_that_are_not_used),
        cmocka_unit_test(volatile_lru_evicts_keys_with_an_expiry_that_are_not_used),
        cmocka_unit_test(lfu_evicts_keys_that_are_used_rarely),
        cmocka_unit_test(the_counter_grows_as_the_logarithm_of_the_uses),
        cmocka_unit_test(minutes_without_a_use_decrease_the_counter),
        cmocka_unit_test(a_use_is_a_find_or_a_change),
        cmocka_unit_test(volatile_ttl_evicts_in_the_order_of_the_expiries),
        cmocka_unit_test(random_policies_evict_any),
        cmocka_unit_test(without_a_policy_no_key_is_evicted),
        cmocka_unit_test(a_choice_has_a_bound_in_steps),
        cmocka_unit_test(policies_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
