/*
 * The rates of the proxy's clients (programs/proxy/clients.c), with times of the test's own.
 */
#define _GNU_SOURCE
#include "../../../programs/proxy/clients.h"
#include "testing.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define SECOND UINT64_C(1000000000)

enum { ROOM = CLIENT_ROWS * CLIENTS_OF_ROW };

static bide_address address_of(const char *text)
{
    bide_address address;
    assert_int_equal(bide_address_ip(&address, text, 80), 0);
    return address;
}

/* One of 2^24 addresses. */
static bide_address numbered(uint32_t number)
{
    bide_address address = address_of("10.0.0.0");
    address.any.v4.sin_addr.s_addr = htonl(10u << 24 | number);
    return address;
}

static struct clients *create(void)
{
    struct clients *clients = clients_create();
    assert_non_null(clients);
    return clients;
}

static void a_burst_is_granted_and_then_the_rate(void **state)
{
    (void)state;
    enum { RATE = 4, BURST = 3 };
    struct clients *clients = create();
    bide_address client = address_of("192.0.2.1");
    uint64_t now = 12345;
    for (int i = 0; i < BURST; i++)
        assert_int_equal(clients_take(clients, &client, RATE, BURST, now), 0);
    /* a refusal takes nothing, and the time that it tells is right */
    for (int i = 0; i < 5; i++)
        assert_int_equal(clients_take(clients, &client, RATE, BURST, now), SECOND / RATE);
    assert_int_equal(clients_take(clients, &client, RATE, BURST, now + SECOND / RATE - 1), 1);
    now += SECOND / RATE;
    assert_int_equal(clients_take(clients, &client, RATE, BURST, now), 0);
    assert_int_equal(clients_take(clients, &client, RATE, BURST, now), SECOND / RATE);
    now += 1000 * SECOND; /* no more than a burst is saved */
    for (int i = 0; i < BURST; i++)
        assert_int_equal(clients_take(clients, &client, RATE, BURST, now), 0);
    assert_int_equal(clients_take(clients, &client, RATE, BURST, now), SECOND / RATE);
    free(clients);
}

/* Whether the second one has the bucket of the first. */
static bool share(const char *one, const char *other)
{
    struct clients *clients = create();
    bide_address first = address_of(one), second = address_of(other);
    assert_int_equal(clients_take(clients, &first, 1, 1, SECOND), 0);
    bool is_shared = clients_take(clients, &second, 1, 1, SECOND) != 0;
    free(clients);
    return is_shared;
}

static void clients_are_told_apart_by_address(void **state)
{
    (void)state;
    assert_true(share("192.0.2.1", "192.0.2.1"));
    assert_false(share("192.0.2.1", "192.0.2.2"));
    assert_true(share("2001:db8::1", "2001:db8::2"));
    assert_false(share("2001:db8::1", "2001:db8:0:1::1"));
    assert_false(share("0.0.0.0", "::"));
}

static void a_client_without_an_address_has_no_limit(void **state)
{
    (void)state;
    struct clients *clients = create();
    bide_address none = {.length = 0}, local;
    assert_int_equal(bide_address_parse(&local, "unix:/x"), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(clients_take(clients, &none, 1, 1, SECOND), 0);
        assert_int_equal(clients_take(clients, &local, 1, 1, SECOND), 0);
    }
    free(clients);
}

static void of_more_clients_than_there_is_room_for_the_fullest_are_forgotten(void **state)
{
    (void)state;
    enum { BURST = 1000 };
    struct clients *clients = create();
    bide_address spender = address_of("192.0.2.1");
    for (int i = 0; i < BURST; i++)
        assert_int_equal(clients_take(clients, &spender, 1, BURST, SECOND), 0);
    /*
     * Each of these takes one token: their buckets are fuller than the spender's. They are so many that each row
     * is filled, whatever the seed.
     */
    for (uint32_t i = 0; i < 8 * ROOM; i++) {
        bide_address client = numbered(i);
        assert_int_equal(clients_take(clients, &client, 1, BURST, SECOND), 0);
    }
    assert_true(clients_take(clients, &spender, 1, BURST, SECOND) > 0);
    unsigned used = 0;
    for (int i = 0; i < ROOM; i++)
        used += clients->rows[i / CLIENTS_OF_ROW][i % CLIENTS_OF_ROW].address != 0;
    assert_int_equal(used, ROOM);
    free(clients);
}

static void the_greatest_rates_do_not_overflow(void **state)
{
    (void)state;
    enum { MAX = 1000000 };
    struct clients *clients = create();
    bide_address client = address_of("192.0.2.1");
    uint64_t now = UINT64_MAX / 4;
    for (int i = 0; i < 10; i++)
        assert_int_equal(clients_take(clients, &client, 1, MAX, now), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(clients_take(clients, &client, MAX, MAX, now + MAX * SECOND), 0);
    free(clients);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_is_granted_and_then_the_rate),
        cmocka_unit_test(clients_are_told_apart_by_address),
        cmocka_unit_test(a_client_without_an_address_has_no_limit),
        cmocka_unit_test(of_more_clients_than_there_is_room_for_the_fullest_are_forgotten),
        cmocka_unit_test(the_greatest_rates_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
