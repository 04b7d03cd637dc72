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
    evicting->keys.now += 10 * KEYSPACE_USE_STEP;
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

/* Peeking at a key is no use. */
static void a_use_is_a_find_or_a_change(void **state)
{
    struct evicting evicting;
    char text[NUMBER_SIZE];
    fill_keys(&evicting);
    struct entry *found = find_number(&evicting, 1);
    evicting.keys.now += 5 * KEYSPACE_USE_STEP;
    assert_int_equal(keyspace_idle_time(&evicting.keys, found), 5 * KEYSPACE_USE_STEP);
    assert_non_null(keyspace_peek(&evicting.keys, name_of(text, 1)));
    assert_int_equal(keyspace_idle_time(&evicting.keys, found), 5 * KEYSPACE_USE_STEP);
    find_number(&evicting, 1);
    assert_int_equal(keyspace_idle_time(&evicting.keys, found), 0);
    evicting.keys.now += 2 * KEYSPACE_USE_STEP;
    found = keyspace_upsert(&evicting.keys, name_of(text, 1), 100, false);
    assert_int_equal(keyspace_idle_time(&evicting.keys, found), 0);
    evicting.keys.now -= KEYSPACE_USE_STEP; /* the clock is set back */
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
    assert_false(eviction_read(bytes_of("allkeys-lfu"), &policy));
    assert_false(eviction_read(bytes_of(""), &policy));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lru_evicts_keys_that_are_not_used),
        cmocka_unit_test(volatile_lru_evicts_keys_with_an_expiry_that_are_not_used),
        cmocka_unit_test(a_use_is_a_find_or_a_change),
        cmocka_unit_test(volatile_ttl_evicts_in_the_order_of_the_expiries),
        cmocka_unit_test(random_policies_evict_any),
        cmocka_unit_test(without_a_policy_no_key_is_evicted),
        cmocka_unit_test(a_choice_has_a_bound_in_steps),
        cmocka_unit_test(policies_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
