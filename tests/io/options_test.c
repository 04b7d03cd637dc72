/*
 * Options of sockets, before and after they are connected or bound: they do what the bare calls do. Then what they are
 * good for: addresses and hop limits that come with datagrams, groups, segments, connected datagram sockets.
 */
#define _GNU_SOURCE
#include "runner.h"

#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef TCP_FASTOPEN_CONNECT
#define TCP_FASTOPEN_CONNECT 30
#endif

/* ---- Compared with the calls ---- */

typedef struct option_row {
    bide_option option;
    int level, name, level_6, name_6;
    int values[3];
} option_row;

#define BOTH(level, name) level, name, level, name

static const option_row rows[] = {
    {BIDE_OPTION_NO_DELAY, BOTH(IPPROTO_TCP, TCP_NODELAY), {1, 0, 1}},
    {BIDE_OPTION_KEEP_ALIVE, BOTH(SOL_SOCKET, SO_KEEPALIVE), {1, 0, 1}},
    {BIDE_OPTION_KEEP_IDLE, BOTH(IPPROTO_TCP, TCP_KEEPIDLE), {30, 0, -1}},
    {BIDE_OPTION_KEEP_INTERVAL, BOTH(IPPROTO_TCP, TCP_KEEPINTVL), {30, 0, 5}},
    {BIDE_OPTION_KEEP_COUNT, BOTH(IPPROTO_TCP, TCP_KEEPCNT), {3, 0, 5}},
    {BIDE_OPTION_USER_TIMEOUT, BOTH(IPPROTO_TCP, TCP_USER_TIMEOUT), {3000, 0, -1}},
    {BIDE_OPTION_RECV_BUFFER, BOTH(SOL_SOCKET, SO_RCVBUF), {30000, 1, 50000}},
    {BIDE_OPTION_SEND_BUFFER, BOTH(SOL_SOCKET, SO_SNDBUF), {30000, 1, 50000}},
    {BIDE_OPTION_BROADCAST, BOTH(SOL_SOCKET, SO_BROADCAST), {1, 0, 1}},
    {BIDE_OPTION_REUSE_PORT, BOTH(SOL_SOCKET, SO_REUSEPORT), {1, 0, 1}},
    {BIDE_OPTION_REUSE_ADDRESS, BOTH(SOL_SOCKET, SO_REUSEADDR), {1, 0, 1}},
    {BIDE_OPTION_MARK, BOTH(SOL_SOCKET, SO_MARK), {7, 0, 9}},
    {BIDE_OPTION_HOP_LIMIT, IPPROTO_IP, IP_TTL, IPPROTO_IPV6, IPV6_UNICAST_HOPS, {17, 0, 256}},
    {BIDE_OPTION_TRAFFIC_CLASS, IPPROTO_IP, IP_TOS, IPPROTO_IPV6, IPV6_TCLASS, {16, 0, 8}},
    {BIDE_OPTION_PACKET_INFO, IPPROTO_IP, IP_PKTINFO, IPPROTO_IPV6, IPV6_RECVPKTINFO, {1, 0, 1}},
    {BIDE_OPTION_RECV_HOP_LIMIT,
     IPPROTO_IP,
     IP_RECVTTL,
     IPPROTO_IPV6,
     IPV6_RECVHOPLIMIT,
     {1, 0, 1}},
    {BIDE_OPTION_MULTICAST_HOPS,
     IPPROTO_IP,
     IP_MULTICAST_TTL,
     IPPROTO_IPV6,
     IPV6_MULTICAST_HOPS,
     {3, 1, 300}},
    {BIDE_OPTION_MULTICAST_LOOP,
     IPPROTO_IP,
     IP_MULTICAST_LOOP,
     IPPROTO_IPV6,
     IPV6_MULTICAST_LOOP,
     {0, 1, 0}},
    {BIDE_OPTION_SEGMENT_SIZE, BOTH(IPPROTO_UDP, UDP_SEGMENT), {500, 0, 70000}},
    {BIDE_OPTION_RECV_SEGMENTS, BOTH(IPPROTO_UDP, UDP_GRO), {1, 0, 1}},
    {BIDE_OPTION_FAST_OPEN, BOTH(IPPROTO_TCP, TCP_FASTOPEN), {5, 0, 1}},
    {BIDE_OPTION_FAST_OPEN_CONNECT, BOTH(IPPROTO_TCP, TCP_FASTOPEN_CONNECT), {1, 0, 1}},
};

static bool compare_option(const option_row *row, int family, int type)
{
    bool same = true;
    int bare = socket(family, type | SOCK_CLOEXEC, 0), fd = socket(family, type | SOCK_CLOEXEC, 0);
    int level = family == AF_INET6 ? row->level_6 : row->level,
        name = family == AF_INET6 ? row->name_6 : row->name;
    bide_descriptor own;
    if (bare < 0 || fd < 0) { /* (there is no version 6) */
        if (bare >= 0)
            close(bare);
        if (fd >= 0)
            close(fd);
        return true;
    }
    bide_descriptor_init(&own, fd);
    for (int i = 0; i < 3; i++) {
        int bare_value = 0, own_value = 0, asked = 0;
        socklen_t size = sizeof bare_value;
        int bare_status =
            setsockopt(bare, level, name, &row->values[i], sizeof row->values[i]) == 0 ? 0 : -errno;
        int own_status = bide_set_socket_option(&own, row->option, row->values[i]);
        int bare_get = getsockopt(bare, level, name, &bare_value, &size) == 0 ? 0 : -errno;
        size = sizeof own_value;
        getsockopt(fd, level, name, &own_value, &size);
        int own_get = bide_socket_option(&own, row->option, &asked);
        if (bare_status != own_status || bare_value != own_value || bare_get != own_get ||
            (own_get == 0 && asked != bare_value)) {
            printf("# option %d, family %d, type %d, value %d: bare %d, %d (%d), own %d, %d (%d)\n",
                   (int)row->option, family, type, row->values[i], bare_status, bare_value,
                   bare_get, own_status, asked, own_get);
            same = false;
        }
    }
    close(bare);
    bide_close(&own);
    return same;
}

static void options_are_those_of_the_calls(void **state)
{
    static const int families[] = {AF_INET, AF_INET6}, types[] = {SOCK_STREAM, SOCK_DGRAM};
    unsigned differ = 0;
    (void)world_of_the_system(state, "it compares with the system");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int j = 0; j < 4; j++)
            differ += !compare_option(&rows[i], families[j / 2], types[j % 2]);
    }
    assert_int_equal(differ, 0);
}

static void lingering_has_one_number(void **state)
{
    bide_descriptor own;
    struct linger linger;
    socklen_t size = sizeof linger;
    int value = 7;
    (void)world_of_the_system(state, "its sockets have no such option");
    bide_descriptor_init(&own, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    assert_int_equal(bide_socket_option(&own, BIDE_OPTION_LINGER, &value), 0);
    assert_int_equal(value, -1);
    for (int seconds = 5; seconds >= -1; seconds--) {
        assert_int_equal(bide_set_socket_option(&own, BIDE_OPTION_LINGER, seconds), 0);
        assert_int_equal(bide_socket_option(&own, BIDE_OPTION_LINGER, &value), 0);
        assert_int_equal(value, seconds);
        assert_int_equal(
            getsockopt(bide_descriptor_fd(&own), SOL_SOCKET, SO_LINGER, &linger, &size), 0);
        assert_int_equal(linger.l_onoff != 0, seconds >= 0);
    }
    bide_close(&own);
}

/* ---- Before connect and bind ---- */

static void listen_on_loopback(world *world, bide_descriptor *listener, bide_address *address,
                               const bide_socket_options *options)
{
    bide_io_operation operation;
    assert_int_equal(bide_address_parse(address, "127.0.0.1:0"), 0);
    assert_int_equal(
        world_wait(world, bide_listen_using(&operation, listener, address, 5, 0, options)), 0);
    assert_int_equal(bide_local_address(listener, address), 0);
}

static void a_connection_has_its_options_from_the_start(void **state)
{
    world *world = world_of_the_system(state, "it has no options before connect");
    static const bide_option_value values[] = {
        {BIDE_OPTION_NO_DELAY, 1}, {BIDE_OPTION_RECV_BUFFER, 20000}, {BIDE_OPTION_HOP_LIMIT, 9}};
    bide_descriptor listener, connection, accepted;
    bide_io_operation operation;
    bide_address address, local, peer;
    int value;
    char text[BIDE_ADDRESS_TEXT];
    assert_int_equal(bide_address_parse(&local, "127.0.0.2:0"), 0);
    bide_socket_options options = {.values = values, .count = 3, .local = &local};
    listen_on_loopback(world, &listener, &address, NULL);
    assert_int_equal(
        world_wait(world, bide_connect_using(&operation, &connection, &address, &options)), 0);
    assert_int_equal(world_wait(world, bide_accept(&operation, &listener, &accepted, &peer)), 0);
    bide_address_print(&peer, text, sizeof text);
    assert_memory_equal(text, "127.0.0.2:", 10);
    assert_int_equal(bide_socket_option(&connection, BIDE_OPTION_NO_DELAY, &value), 0);
    assert_int_not_equal(value, 0);
    assert_int_equal(bide_socket_option(&connection, BIDE_OPTION_HOP_LIMIT, &value), 0);
    assert_int_equal(value, 9);
    /* a close without a farewell */
    assert_int_equal(bide_set_socket_option(&connection, BIDE_OPTION_LINGER, 0), 0);
    assert_int_equal(bide_close(&connection), 0);
    assert_int_equal(world_wait(world, bide_recv(&operation, &accepted, text, sizeof text)),
                     -ECONNRESET);
    bide_close(&accepted);
    bide_close(&listener);
}

static void an_option_that_cannot_be_set_opens_nothing(void **state)
{
    world *world = world_of_the_system(state, "it has no options before connect");
    static const bide_option_value wrong = {BIDE_OPTION_KEEP_COUNT, 0};
    const bide_socket_options no_device = {.device = "no-such-device"},
                              no_value = {.values = &wrong, .count = 1};
    bide_descriptor descriptor;
    bide_io_operation operation;
    bide_address address;
    assert_int_equal(bide_address_parse(&address, "127.0.0.1:0"), 0);
    int status =
        world_wait(world, bide_connect_using(&operation, &descriptor, &address, &no_device));
    assert_true(status == -ENODEV || status == -EPERM);
    assert_false(bide_descriptor_is_open(&descriptor));
    assert_int_equal(
        world_wait(world, bide_connect_using(&operation, &descriptor, &address, &no_value)),
        -EINVAL);
    assert_int_equal(
        world_wait(world, bide_listen_using(&operation, &descriptor, &address, 1, 0, &no_value)),
        -EINVAL);
    assert_false(bide_descriptor_is_open(&descriptor));
    status = world_wait(world, bide_bind_using(&operation, &descriptor, &address, 0, &no_device));
    assert_true(status == -ENODEV || status == -EPERM);
    assert_false(bide_descriptor_is_open(&descriptor));
}

static void in_memory_there_are_no_options_before(void **state)
{
    world *world = world_of(state);
    const bide_socket_options none = {.count = 0};
    bide_descriptor descriptor;
    bide_io_operation operation;
    bide_address address;
    if (!world_is("memory"))
        skip();
    assert_int_equal(bide_address_parse(&address, "127.0.0.1:7"), 0);
    assert_int_equal(
        world_wait(world, bide_connect_using(&operation, &descriptor, &address, &none)),
        -EOPNOTSUPP);
    assert_int_equal(
        world_wait(world, bide_listen_using(&operation, &descriptor, &address, 1, 0, &none)),
        -EOPNOTSUPP);
    assert_int_equal(
        world_wait(world, bide_bind_using(&operation, &descriptor, &address, 0, &none)),
        -EOPNOTSUPP);
    assert_int_equal(world_wait(world, bide_bind(&operation, &descriptor, &address, 0)), 0);
    assert_int_equal(bide_join_group(&descriptor, &address, 0), -EOPNOTSUPP);
    bide_close(&descriptor);
}

/* ---- Connected datagram sockets ---- */

static void bind_receiver(world *world, bide_descriptor *receiver, bide_address *address,
                          const char *text, const bide_socket_options *options)
{
    bide_io_operation operation;
    assert_int_equal(bide_address_parse(address, text), 0);
    assert_int_equal(world_wait(world, bide_bind_using(&operation, receiver, address, 0, options)),
                     0);
    assert_int_equal(bide_local_address(receiver, address), 0);
}

static void a_datagram_socket_may_be_connected(void **state)
{
    world *world = world_of_the_system(state, "it has no options before connect");
    const bide_socket_options datagrams = {.type = SOCK_DGRAM};
    bide_descriptor receiver, sender;
    bide_io_operation operation;
    bide_datagram datagram;
    bide_address address, from;
    char text[8];
    bind_receiver(world, &receiver, &address, "127.0.0.1:0", NULL);
    assert_int_equal(
        world_wait(world, bide_connect_using(&operation, &sender, &address, &datagrams)), 0);
    assert_int_equal(world_wait(world, bide_send(&operation, &sender, "abc", 3)), 0);
    assert_int_equal(
        world_wait(world, bide_recv_from(&datagram, &receiver, text, sizeof text, &from)), 0);
    assert_int_equal(datagram.operation.count, 3);
    assert_int_equal(world_wait(world, bide_send_to(&datagram, &receiver, "defg", 4, &from)), 0);
    assert_int_equal(world_wait(world, bide_recv(&operation, &sender, text, sizeof text)), 0);
    assert_int_equal(operation.count, 4);
    bide_close(&receiver);
    assert_int_equal(world_wait(world, bide_send(&operation, &sender, "x", 1)), 0);
    assert_int_equal(world_wait(world, bide_recv(&operation, &sender, text, sizeof text)),
                     -ECONNREFUSED);
    bide_close(&sender);
}

/* ---- What comes with a datagram ---- */

typedef struct received {
    struct msghdr message;
    struct iovec bytes;
    char data[4096];
    _Alignas(size_t) char control[BIDE_PACKET_CONTROL];
} received;

static size_t receive(world *world, bide_descriptor *receiver, received *it, bide_packet_info *info)
{
    bide_io_operation operation;
    memset(it, 0, sizeof *it);
    it->bytes = (struct iovec){it->data, sizeof it->data};
    it->message.msg_iov = &it->bytes;
    it->message.msg_iovlen = 1;
    it->message.msg_control = it->control;
    it->message.msg_controllen = sizeof it->control;
    assert_int_equal(world_wait(world, bide_recvmsg(&operation, receiver, &it->message, 0)), 0);
    assert_int_equal(it->message.msg_flags & MSG_CTRUNC, 0);
    bide_packet_info_get(info, &it->message);
    return operation.count;
}

static void datagrams_come_with_their_address(world *world, const char *any, const char *to,
                                              const char *shown)
{
    static const bide_option_value values[] = {{BIDE_OPTION_PACKET_INFO, 1},
                                               {BIDE_OPTION_RECV_HOP_LIMIT, 1}};
    const bide_socket_options options = {.values = values, .count = 2};
    bide_descriptor receiver, sender;
    bide_io_operation operation;
    bide_datagram datagram;
    bide_address address, target, here;
    bide_packet_info info;
    static received it;
    char text[BIDE_ADDRESS_TEXT];
    assert_int_equal(bide_address_ip(&here, any, 0), 0);
    int status = world_wait(world, bide_bind_using(&operation, &receiver, &here, 0, &options));
    if (status == -EAFNOSUPPORT || status == -EADDRNOTAVAIL) {
        printf("# %s: %s\n", any, strerror(-status));
        return;
    }
    assert_int_equal(status, 0);
    assert_int_equal(bide_local_address(&receiver, &address), 0);
    assert_int_equal(bide_address_ip(&target, to, bide_address_port(&address)), 0);
    assert_int_equal(bide_address_ip(&here, to, 0), 0);
    status = world_wait(world, bide_bind(&operation, &sender, &here, 0));
    if (status != 0) {
        printf("# %s: %s\n", to, strerror(-status));
        bide_close(&receiver);
        return;
    }
    assert_int_equal(bide_set_socket_option(&sender, BIDE_OPTION_HOP_LIMIT, 17), 0);
    assert_int_equal(world_wait(world, bide_send_to(&datagram, &sender, "abc", 3, &target)), 0);
    assert_int_equal(receive(world, &receiver, &it, &info), 3);
    assert_true(info.has_to);
    bide_address_print(&info.to, text, sizeof text);
    assert_string_equal(text, shown);
    assert_int_not_equal(info.interface, 0);
    assert_int_equal(info.hop_limit, 17);
    assert_int_equal(info.segment_size, 0);
    bide_close(&sender);
    bide_close(&receiver);
}

static void a_datagram_comes_with_the_address_that_it_was_sent_to(void **state)
{
    world *world = world_of_the_system(state, "its datagrams have no control data");
    datagrams_come_with_their_address(world, "0.0.0.0", "127.0.0.3", "127.0.0.3:0");
    datagrams_come_with_their_address(world, "::", "::1", "[::1]:0");
}

static void a_message_without_control_data_says_nothing(void **state)
{
    bide_packet_info info;
    struct msghdr message;
    (void)state;
    memset(&message, 0, sizeof message);
    bide_packet_info_get(&info, &message);
    assert_false(info.has_to);
    assert_int_equal(info.interface, 0);
    assert_int_equal(info.hop_limit, -1);
    assert_int_equal(info.segment_size, 0);
}

/* ---- Groups ---- */

static void a_group_is_joined_and_left(void **state)
{
    world *world = world_of_the_system(state, "it has no groups");
    bide_descriptor receiver, sender;
    bide_address address, group, local;
    bide_datagram datagram;
    bide_io_operation operation;
    char text[8];
    unsigned loopback = if_nametoindex("lo");
    bind_receiver(world, &receiver, &address, "0.0.0.0:0", NULL);
    assert_int_equal(bide_address_ip(&group, "239.66.7.8", bide_address_port(&address)), 0);
    assert_int_equal(bide_address_parse(&local, "127.0.0.1:0"), 0);
    assert_int_equal(world_wait(world, bide_bind(&operation, &sender, &local, 0)), 0);
    int status = bide_join_group(&receiver, &group, loopback);
    if (status == 0)
        status = bide_set_socket_option(&sender, BIDE_OPTION_MULTICAST_INTERFACE, (int)loopback);
    if (status == 0)
        status = bide_set_socket_option(&sender, BIDE_OPTION_MULTICAST_LOOP, 1);
    if (status == 0)
        status = world_wait(world, bide_send_to(&datagram, &sender, "abc", 3, &group));
    if (status == 0) {
        bide_with_deadline_operation
            limited; /* (a kernel that takes it may still deliver it nowhere) */
        status = world_wait(world,
                            bide_with_timeout(&limited, BIDE_SECONDS(5),
                                              bide_recv(&operation, &receiver, text, sizeof text)));
    }
    if (status == 0) {
        assert_int_equal(operation.count, 3);
        assert_int_equal(bide_join_group(&receiver, &group, loopback), -EADDRINUSE);
        assert_int_equal(bide_leave_group(&receiver, &group, loopback), 0);
        assert_int_equal(bide_leave_group(&receiver, &group, loopback), -EADDRNOTAVAIL);
        assert_int_equal(bide_join_group(&receiver, &address, loopback), -EINVAL);
    }
    bide_close(&receiver);
    bide_close(&sender);
    assert_int_equal(bide_join_group(&receiver, &group, loopback), -EBADF);
    if (status != 0) {
        printf("# no groups on the loopback interface: %s\n", strerror(-status));
        skip();
    }
}

/* ---- Segments ---- */

static void a_send_may_be_several_datagrams(void **state)
{
    world *world = world_of_the_system(state, "it has no segments");
    const bide_socket_options datagrams = {.type = SOCK_DGRAM};
    bide_descriptor receiver, sender;
    bide_io_operation operation;
    bide_address address;
    bide_packet_info info;
    static received it;
    static const char data[250];
    static const size_t sizes[] = {100, 100, 50};
    bind_receiver(world, &receiver, &address, "127.0.0.1:0", NULL);
    assert_int_equal(
        world_wait(world, bide_connect_using(&operation, &sender, &address, &datagrams)), 0);
    int status = bide_set_socket_option(&sender, BIDE_OPTION_SEGMENT_SIZE, 100);
    if (status == 0)
        status = world_wait(world, bide_send(&operation, &sender, data, sizeof data));
    if (status == 0) {
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(receive(world, &receiver, &it, &info), sizes[i]);
        if (bide_set_socket_option(&receiver, BIDE_OPTION_RECV_SEGMENTS, 1) == 0) {
            assert_int_equal(world_wait(world, bide_send(&operation, &sender, data, sizeof data)),
                             0);
            for (size_t got = 0, count; got < sizeof data; got += count) {
                count = receive(world, &receiver, &it, &info);
                assert_int_not_equal(count, 0);
                assert_true(count <= 100 || info.segment_size == 100);
            }
        }
    }
    bide_close(&receiver);
    bide_close(&sender);
    if (status != 0) {
        printf("# no segments: %s\n", strerror(-status));
        skip();
    }
}

/* ---- Fast open ---- */

static void bytes_may_go_with_the_request_to_connect(void **state)
{
    world *world = world_of_the_system(state, "it has no such option");
    static const bide_option_value queue = {BIDE_OPTION_FAST_OPEN, 5},
                                   fast = {BIDE_OPTION_FAST_OPEN_CONNECT, 1};
    const bide_socket_options of_listener = {.values = &queue, .count = 1},
                              of_client = {.values = &fast, .count = 1};
    bide_descriptor listener, connection, accepted;
    bide_io_operation operation;
    bide_address address;
    char text[8];
    listen_on_loopback(world, &listener, &address, &of_listener);
    int status =
        world_wait(world, bide_connect_using(&operation, &connection, &address, &of_client));
    if (status == 0) {
        assert_int_equal(world_wait(world, bide_send(&operation, &connection, "abc", 3)), 0);
        assert_int_equal(world_wait(world, bide_accept(&operation, &listener, &accepted, NULL)), 0);
        assert_int_equal(world_wait(world, bide_recv(&operation, &accepted, text, sizeof text)), 0);
        assert_int_equal(operation.count, 3);
        bide_close(&accepted);
    }
    bide_close(&connection);
    bide_close(&listener);
    if (status != 0) {
        printf("# no fast open: %s\n", strerror(-status));
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(options_are_those_of_the_calls),
        world_test(lingering_has_one_number),
        world_test(a_connection_has_its_options_from_the_start),
        world_test(an_option_that_cannot_be_set_opens_nothing),
        world_test(in_memory_there_are_no_options_before),
        world_test(a_datagram_socket_may_be_connected),
        world_test(a_datagram_comes_with_the_address_that_it_was_sent_to),
        world_test(a_message_without_control_data_says_nothing),
        world_test(a_group_is_joined_and_left),
        world_test(a_send_may_be_several_datagrams),
        world_test(bytes_may_go_with_the_request_to_connect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
