/*
 * A pool whose workers each have a loop. Coroutines move between workers, their descriptors stay with
 * their owner, and nothing is lost, no matter how and where an operation ends.
 */
#define _GNU_SOURCE
#include "world.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

enum { THREADS = 4, MOST = 64, PIECE = 700 };

typedef struct crew {
    bide_thread_pool *pool;
    bide_context context;
    int descriptors;
} crew;

static crew *crew_of(void **state, unsigned threads)
{
    static crew only;
    bide_io_pool_options options = {
        .threads = {.threads = threads},
        .loop = {.kind = world_kind()},
    };
    (void)state;
    setenv("BIDE_IO_WITHOUT", world_is("uring-polls") ? "futex" : "", 1);
    only.descriptors = count_descriptors();
    int status = bide_io_pool_create(&only.pool, &options);
    if (status < 0 && options.loop.kind == BIDE_LOOP_URING) {
        printf("# no io_uring: %s\n", strerror(-status));
        skip();
    }
    assert_int_equal(status, 0);
    only.context = (bide_context){.scheduler = bide_thread_pool_scheduler(only.pool)};
    return &only;
}

static void end_crew(crew *crew)
{
    bide_thread_pool_destroy(crew->pool);
    /* (descriptors that wake loops are kept for later loops) */
    assert_in_range(count_descriptors(), crew->descriptors,
                    crew->descriptors + KEPT_DESCRIPTORS * THREADS);
}

/* Keeps the worker busy, so that other coroutines are stolen. */
static void keep_busy(uint64_t *random)
{
    for (uint64_t i = testing_random(random) % 2000; i != 0; i--)
        bide_cpu_relax();
}

/* ---- Conversations ---- */

struct talker {
    bide_task task;
    bide_spawned spawned;
    bide_scheduler *scheduler;
    bide_descriptor *socket;
    bide_io_operation operation;
    bide_schedule_operation turn;
    uint64_t random;
    uint32_t rounds, round;
    size_t at;
    bool asks;
    char out[PIECE], in[PIECE];
};

static bool is_echo(const struct talker *self)
{
    return memcmp(self->out, self->in, PIECE) == 0;
}

bide_coroutine(talker_body)
{
    bide_begin(talker_body, struct talker * self);
    for (; self->round < self->rounds; self->round++) {
        if (self->asks) {
            memset(self->out, (int)self->round, PIECE);
            bide_try(bide_send(&self->operation, self->socket, self->out, PIECE));
        }
        for (self->at = 0; self->at < PIECE; self->at += self->operation.count) {
            bide_try(
                bide_recv(&self->operation, self->socket, self->in + self->at, PIECE - self->at));
            if (self->operation.count == 0)
                bide_return(-ENODATA);
        }
        keep_busy(&self->random);
        if (testing_random(&self->random) % 4 == 0)
            bide_await(bide_schedule(&self->turn, self->scheduler));
        if (!self->asks)
            bide_try(bide_send(&self->operation, self->socket, self->in, PIECE));
        else if (!is_echo(self))
            bide_return(-EBADMSG);
    }
    bide_finally();
    bide_close(self->socket); /* on its own loop or another */
    bide_end();
}

static void spawn(crew *crew, bide_spawned *spawned, bide_awaiter *task)
{
    bide_spawn(spawned, &crew->context, task);
}

static int join(bide_spawned *spawned)
{
    bide_event_wait_blocking(&spawned->ended, BIDE_FOREVER);
    return spawned->root.status;
}

static void conversations_continue_while_their_coroutines_are_stolen(void **state)
{
    crew *crew = crew_of(state, THREADS);
    static struct talker talkers[MOST];
    static bide_descriptor sockets[MOST];
    uint64_t seed = testing_seed();
    for (unsigned i = 0; i < MOST; i += 2) {
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                         0);
        for (unsigned j = i; j < i + 2; j++) {
            bide_descriptor_init(&sockets[j], fds[j - i]);
            talkers[j] = (struct talker){.scheduler = crew->context.scheduler,
                                         .socket = &sockets[j],
                                         .random = seed + j,
                                         .rounds = rounds_of(200),
                                         .asks = j == i};
        }
    }
    for (unsigned i = 0; i < MOST; i++)
        spawn(crew, &talkers[i].spawned, bide_task_init(&talkers[i].task, &talker_body));
    for (unsigned i = 0; i < MOST; i++)
        assert_int_equal(join(&talkers[i].spawned), 0);
    bide_thread_pool_stats counts;
    bide_thread_pool_get_stats(crew->pool, &counts);
    printf("# %llu runs, %llu steals, %llu sleeps\n", (unsigned long long)counts.runs,
           (unsigned long long)counts.steals, (unsigned long long)counts.sleeps);
    end_crew(crew);
}

/* ---- Both directions of a descriptor, by different coroutines ---- */

enum { STREAM = 1 << 20 };

struct half {
    bide_task task;
    bide_spawned spawned;
    bide_scheduler *scheduler;
    bide_descriptor *socket;
    bide_io_operation operation;
    bide_schedule_operation turn;
    uint64_t random;
    size_t at;
    bool sends;
    uint32_t sum;
    unsigned char piece[PIECE];
};

static void fill(struct half *self)
{
    for (unsigned i = 0; i < PIECE; i++) {
        self->piece[i] = (unsigned char)testing_random(&self->random);
        self->sum = self->sum * 31 + self->piece[i];
    }
}

static void add(struct half *self)
{
    for (size_t i = 0; i < self->operation.count; i++)
        self->sum = self->sum * 31 + self->piece[i];
}

bide_coroutine(half_body)
{
    bide_begin(half_body, struct half * self);
    for (; self->at < STREAM / PIECE * PIECE; self->at += self->operation.count) {
        if (self->sends) {
            fill(self);
            bide_try(bide_send(&self->operation, self->socket, self->piece, PIECE));
        } else {
            bide_try(bide_recv(&self->operation, self->socket, self->piece, PIECE));
            add(self);
        }
        if (testing_random(&self->random) % 8 == 0)
            bide_await(bide_schedule(&self->turn, self->scheduler));
    }
    bide_end();
}

static void both_directions_of_a_descriptor_work_at_once(void **state)
{
    crew *crew = crew_of(state, THREADS);
    static struct half halves[4];
    bide_descriptor sockets[2];
    int fds[2];
    uint64_t seed = testing_seed();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    for (unsigned i = 0; i < 4; i++) {
        bide_descriptor_init(&sockets[i / 2], fds[i / 2]);
        halves[i] = (struct half){.scheduler = crew->context.scheduler,
                                  .socket = &sockets[i / 2],
                                  .random = seed + i,
                                  .sends = i % 2 == 0};
    }
    for (unsigned i = 0; i < 4; i++)
        spawn(crew, &halves[i].spawned, bide_task_init(&halves[i].task, &half_body));
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(join(&halves[i].spawned), 0);
    assert_int_equal(halves[0].sum, halves[3].sum);
    assert_int_equal(halves[2].sum, halves[1].sum);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(bide_close(&sockets[i]), 0); /* on a thread outside the pool. */
    end_crew(crew);
}

/* ---- Ends of all kinds ---- */

enum { STOPPED, TIMED_OUT, CLOSED, ENDS };

struct waiter {
    bide_task task;
    bide_spawned spawned;
    bide_scheduler *scheduler;
    bide_descriptor *socket;
    bide_io_operation operation;
    bide_with_stop_operation with_stop;
    bide_with_deadline_operation limited;
    bide_schedule_operation turn;
    bide_stop_source source;
    uint64_t random;
    int how, status;
    char byte;
};

static bide_awaiter *wrap(struct waiter *self)
{
    bide_awaiter *inner = bide_recv(&self->operation, self->socket, &self->byte, 1);
    if (self->how == TIMED_OUT)
        return bide_with_deadline(
            &self->limited, bide_platform.now() + testing_random(&self->random) % 100000, inner);
    return bide_with_stop(&self->with_stop, &self->source, inner);
}

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    if (testing_random(&self->random) % 2 == 0)
        bide_await(bide_schedule(&self->turn, self->scheduler));
    bide_await_status(self->status, wrap(self));
    bide_end();
}

struct ender {
    bide_task task;
    bide_spawned spawned;
    bide_scheduler *scheduler;
    bide_schedule_operation turn;
    struct waiter *waiter;
    uint64_t random;
};

bide_coroutine(ender_body)
{
    bide_begin(ender_body, struct ender * self);
    keep_busy(&self->random);
    if (testing_random(&self->random) % 2 == 0)
        bide_await(bide_schedule(&self->turn, self->scheduler));
    if (self->waiter->how == STOPPED)
        bide_stop_request(&self->waiter->source);
    else if (self->waiter->how == CLOSED)
        bide_close(self->waiter->socket);
    bide_end();
}

static void each_wait_ends_as_it_was_ended(void **state)
{
    enum { WAITERS = 12 };
    crew *crew = crew_of(state, THREADS);
    uint64_t seed = testing_seed();
    unsigned ends[ENDS] = {0};
    for (uint32_t round = 0; round < rounds_of(300); round++) {
        static struct waiter waiters[WAITERS];
        static struct ender enders[WAITERS];
        static bide_descriptor sockets[WAITERS];
        int others[WAITERS];
        for (unsigned i = 0; i < WAITERS; i++) {
            int fds[2];
            assert_int_equal(
                socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
            bide_descriptor_init(&sockets[i], fds[0]);
            others[i] = fds[1];
            waiters[i] = (struct waiter){.scheduler = crew->context.scheduler,
                                         .socket = &sockets[i],
                                         .random = seed + round * 100 + i,
                                         .how = (int)(testing_random(&seed) % ENDS)};
            enders[i] = (struct ender){
                .scheduler = crew->context.scheduler, .waiter = &waiters[i], .random = seed + i};
            bide_stop_source_init(&waiters[i].source);
        }
        for (unsigned i = 0; i < WAITERS; i++) {
            spawn(crew, &waiters[i].spawned, bide_task_init(&waiters[i].task, &waiter_body));
            /* An ender that closes starts once the descriptor is in use. */
            if (waiters[i].how != CLOSED)
                spawn(crew, &enders[i].spawned, bide_task_init(&enders[i].task, &ender_body));
        }
        for (unsigned i = 0; i < WAITERS; i++) {
            if (waiters[i].how == CLOSED) {
                while (bide_atomic_load(&sockets[i].io, relaxed) == NULL)
                    sched_yield();
                spawn(crew, &enders[i].spawned, bide_task_init(&enders[i].task, &ender_body));
            }
        }
        for (unsigned i = 0; i < WAITERS; i++) {
            assert_int_equal(join(&enders[i].spawned), 0);
            assert_int_equal(join(&waiters[i].spawned), 0);
            int status = waiters[i].status;
            ends[waiters[i].how]++;
            if (waiters[i].how == CLOSED)
                assert_true(status == -EPIPE || status == -EBADF);
            else
                assert_int_equal(status, waiters[i].how == STOPPED ? -ECANCELED : -ETIMEDOUT);
            bide_close(&sockets[i]);
            close(others[i]);
        }
    }
    printf("# stopped %u, timed out %u, closed %u\n", ends[STOPPED], ends[TIMED_OUT], ends[CLOSED]);
    end_crew(crew);
}

/* ---- A descriptor that is used while another worker closes it ---- */

struct user {
    bide_task task;
    bide_spawned spawned;
    bide_descriptor *socket;
    bide_io_operation operation;
    bide_with_deadline_operation limited;
    int status;
    char byte;
};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    do {
        bide_await_status(
            self->status,
            bide_with_deadline(&self->limited, bide_platform.now() + 3000,
                               bide_recv(&self->operation, self->socket, &self->byte, 1)));
    } while (self->status == -ETIMEDOUT);
    bide_end();
}

/* Closes it when it is in use, or beside its first operation: then it may belong to no loop yet. */
struct closer {
    bide_task task;
    bide_spawned spawned;
    struct user *user;
    bide_sleep sleep;
    uint64_t random;
    bool is_early;
    int status;
};

bide_coroutine(closer_body)
{
    bide_begin(closer_body, struct closer * self);
    while (!self->is_early && bide_descriptor_is_open(self->user->socket) &&
           bide_atomic_load(&self->user->socket->io, relaxed) == NULL)
        bide_await(bide_sleep_for(&self->sleep, 1 + testing_random(&self->random) % 10000));
    self->status = bide_close(self->user->socket);
    bide_end();
}

static void one_that_is_used_meanwhile_is_closed_in_one_step(void **state)
{
    enum { PAIRS = 6, CLOSERS = 2 };
    crew *crew = crew_of(state, THREADS);
    uint64_t seed = testing_seed();
    for (uint32_t round = 0; round < rounds_of(300); round++) {
        static struct user users[PAIRS];
        static struct closer closers[PAIRS][CLOSERS];
        static bide_descriptor sockets[PAIRS];
        int others[PAIRS];
        for (unsigned i = 0; i < PAIRS; i++) {
            int fds[2];
            assert_int_equal(
                socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
            bide_descriptor_init(&sockets[i], fds[0]);
            others[i] = fds[1];
            users[i] = (struct user){.socket = &sockets[i]};
            spawn(crew, &users[i].spawned, bide_task_init(&users[i].task, &user_body));
            for (unsigned j = 0; j < CLOSERS; j++) {
                uint64_t random = testing_random(&seed);
                closers[i][j] = (struct closer){
                    .user = &users[i], .random = random >> 1, .is_early = (random & 1) != 0};
                spawn(crew, &closers[i][j].spawned,
                      bide_task_init(&closers[i][j].task, &closer_body));
            }
        }
        for (unsigned i = 0; i < PAIRS; i++) {
            unsigned closed = 0;
            for (unsigned j = 0; j < CLOSERS; j++) {
                assert_int_equal(join(&closers[i][j].spawned), 0);
                assert_true(closers[i][j].status == 0 || closers[i][j].status == -EBADF);
                closed += closers[i][j].status == 0;
            }
            assert_int_equal(join(&users[i].spawned), 0);
            assert_int_equal(closed, 1);
            assert_true(users[i].status == -EPIPE || users[i].status == -EBADF);
            assert_false(bide_descriptor_is_open(&sockets[i]));
            close(others[i]);
        }
    }
    end_crew(crew);
}

/* Nobody uses it: it gets a home, or is closed before. */
static void a_home_is_given_while_another_worker_closes_the_descriptor(void **state)
{
    crew *crew = crew_of(state, THREADS);
    unsigned given = 0;
    uint32_t rounds = rounds_of(3000);
    for (uint32_t round = 0; round < rounds; round++) {
        static struct user user;
        static struct closer closer;
        static bide_descriptor socket;
        int fds[2];
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        bide_descriptor_init(&socket, fds[0]);
        user.socket = &socket;
        closer = (struct closer){.user = &user, .is_early = true};
        spawn(crew, &closer.spawned, bide_task_init(&closer.task, &closer_body));
        for (uint32_t i = 0; i < round % 64; i++)
            bide_cpu_relax();
        int status = bide_io_pool_assign(crew->pool, round % THREADS, &socket);
        assert_int_equal(join(&closer.spawned), 0);
        assert_int_equal(closer.status, 0);
        assert_true(status == 0 || status == -EBADF);
        given += status == 0;
        close(fds[1]);
    }
    printf("# %u of %u were given a home\n", given, (unsigned)rounds);
    end_crew(crew);
}

/* ---- Two workers that close each other's descriptors ---- */

struct swapper {
    bide_task task;
    bide_spawned spawned;
    bide_scheduler *scheduler;
    bide_descriptor own, *other;
    bide_schedule_operation turn;
    bide_io_operation operation;
    bide_latch *both;
    bide_latch_waiter latch;
    char byte;
};

bide_coroutine(swapper_body)
{
    bide_begin(swapper_body, struct swapper * self);
    bide_try(bide_recv(&self->operation, &self->own, &self->byte, 1));
    bide_latch_count_down(self->both);
    bide_try(bide_latch_wait(&self->latch, self->both));
    bide_await(bide_schedule(&self->turn, self->scheduler));
    bide_close(self->other);
    bide_end();
}

static void workers_that_close_each_others_descriptors_do_not_deadlock(void **state)
{
    crew *crew = crew_of(state, 2);
    for (uint32_t round = 0; round < rounds_of(1000); round++) {
        static struct swapper swappers[2];
        bide_latch both;
        int fds[2];
        bide_latch_init(&both, 2);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                         0);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(write(fds[i], "x", 1), 1);
            swappers[i] = (struct swapper){.scheduler = crew->context.scheduler, .both = &both};
            bide_descriptor_init(&swappers[i].own, fds[i]);
            swappers[i].other = &swappers[1 - i].own;
        }
        for (int i = 0; i < 2; i++)
            spawn(crew, &swappers[i].spawned, bide_task_init(&swappers[i].task, &swapper_body));
        for (int i = 0; i < 2; i++)
            assert_int_equal(join(&swappers[i].spawned), 0);
    }
    end_crew(crew);
}

/* ---- Files, what opens, and what begins outside ---- */

struct worker_of_files {
    bide_task task;
    bide_spawned spawned;
    bide_file_operation file;
    bide_io_operation operation;
    bide_descriptor opened, listener, client, accepted;
    bide_address address;
    const char *path;
    char text[16];
};

bide_coroutine(files_body)
{
    bide_begin(files_body, struct worker_of_files * self);
    bide_descriptor_init_closed(&self->opened);
    bide_descriptor_init_closed(&self->listener);
    bide_descriptor_init_closed(&self->client);
    bide_descriptor_init_closed(&self->accepted);
    bide_try(bide_open(&self->file, &self->opened, self->path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    bide_try(bide_write_at(&self->file, &self->opened, "abcdef", 6, 0));
    bide_try(bide_sync(&self->file, &self->opened, BIDE_SYNC_DATA));
    bide_try(bide_read_at(&self->file, &self->opened, self->text, 4, 2));
    if (memcmp(self->text, "cdef", 4) != 0)
        bide_return(-EBADMSG);
    bide_try(bide_unlink(&self->file, self->path, 0));
    bide_address_ip(&self->address, "127.0.0.1", 0);
    bide_try(bide_listen(&self->operation, &self->listener, &self->address, 4));
    bide_local_address(&self->listener, &self->address);
    bide_try(bide_connect(&self->operation, &self->client, &self->address));
    bide_try(bide_accept(&self->operation, &self->listener, &self->accepted, NULL));
    bide_try(bide_send(&self->operation, &self->client, "hello", 5));
    bide_try(bide_recv(&self->operation, &self->accepted, self->text, sizeof self->text));
    if (self->operation.count != 5)
        bide_return(-EBADMSG);
    bide_finally();
    bide_close(&self->opened);
    bide_close(&self->listener);
    bide_close(&self->client);
    bide_close(&self->accepted);
    bide_end();
}

static void files_and_connections_are_opened_and_used_anywhere(void **state)
{
    enum { TASKS = 8 };
    crew *crew = crew_of(state, THREADS);
    static struct worker_of_files all[TASKS];
    char paths[TASKS][64];
    for (int i = 0; i < TASKS; i++) {
        snprintf(paths[i], sizeof paths[i], "/tmp/bide-io-pool-%d-%d", (int)getpid(), i);
        all[i].path = paths[i];
        spawn(crew, &all[i].spawned, bide_task_init(&all[i].task, &files_body));
    }
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(join(&all[i].spawned), 0);
    end_crew(crew);
}

/* It runs on this thread until its first wait. */
static void an_operation_started_outside_continues_in_the_pool(void **state)
{
    crew *crew = crew_of(state, 2);
    for (uint32_t round = 0; round < rounds_of(200); round++) {
        struct waiter waiter = {.random = 1, .how = STOPPED};
        bide_descriptor socket;
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                         0);
        bide_descriptor_init(&socket, fds[0]);
        assert_int_equal(write(fds[1], "x", 1), 1);
        assert_int_equal(bide_sync_wait_in(&crew->context,
                                           bide_recv(&waiter.operation, &socket, &waiter.byte, 1)),
                         0);
        assert_int_equal(waiter.byte, 'x');
        assert_int_equal(bide_close(&socket), 0);
        assert_int_equal(bide_close(&socket), -EBADF);
        close(fds[1]);
    }
    end_crew(crew);
}

static void bytes_that_come_from_outside_wake_a_pool_that_sleeps(void **state)
{
    crew *crew = crew_of(state, THREADS);
    static struct waiter waiters[THREADS];
    static bide_descriptor sockets[THREADS];
    int others[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                         0);
        bide_descriptor_init(&sockets[i], fds[0]);
        others[i] = fds[1];
    }
    for (uint32_t round = 0; round < rounds_of(100); round++) {
        for (unsigned i = 0; i < THREADS; i++) {
            waiters[i] = (struct waiter){.scheduler = crew->context.scheduler,
                                         .socket = &sockets[i],
                                         .random = round + i,
                                         .how = STOPPED};
            bide_stop_source_init(&waiters[i].source);
            spawn(crew, &waiters[i].spawned, bide_task_init(&waiters[i].task, &waiter_body));
        }
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(write(others[i], "y", 1), 1);
        for (unsigned i = 0; i < THREADS; i++) {
            assert_int_equal(join(&waiters[i].spawned), 0);
            assert_int_equal(waiters[i].status, 0);
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        bide_close(&sockets[i]);
        close(others[i]);
    }
    end_crew(crew);
}

static void receiving_into_a_leased_buffer_is_rejected(void **state)
{
    crew *crew = crew_of(state, 1);
    static char memory[4 * 64];
    bide_buffer_pool buffers;
    bide_receiver receiver;
    bide_io_operation operation;
    bide_descriptor socket;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    bide_descriptor_init(&socket, fds[0]);
    bide_buffer_pool_init(&buffers, memory, 64, 4);
    assert_int_equal(
        bide_sync_wait_in(&crew->context, bide_recv_provided(&operation, &socket, &buffers)),
        -ENOTSUP);
    bide_receiver_init(&receiver, &socket, &buffers, 1);
    assert_int_equal(bide_sync_wait_in(&crew->context, bide_receiver_next(&receiver)), -ENOTSUP);
    bide_receiver_destroy(&receiver);
    bide_buffer_pool_destroy(&buffers);
    bide_close(&socket);
    close(fds[1]);
    end_crew(crew);
}

static void a_pool_that_cannot_be_made_leaves_nothing(void **state)
{
    struct rlimit before, limit;
    bide_thread_pool *pool;
    bide_io_pool_options options = {.threads = {.threads = THREADS}};
    (void)state;
    options.loop.kind = world_kind();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int descriptors = count_descriptors();
    for (rlim_t more = 0; more < 4; more++) {
        limit = before;
        limit.rlim_cur = (rlim_t)descriptors + more;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        int status = bide_io_pool_create(&pool, &options);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (status == 0)
            bide_thread_pool_destroy(pool);
    }
    assert_in_range(count_descriptors(), descriptors, descriptors + KEPT_DESCRIPTORS * THREADS);
    options.threads.threads = 1u << 20;
    assert_int_equal(bide_io_pool_create(&pool, &options), -EINVAL);
}

/* ---- Loops of a pool ---- */

struct io_uring;
struct io_uring_params;

static int rings_left = -1; /* that the kernel allows; negative: any number */

__attribute__((weak)) int __real_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                                                            struct io_uring_params *parameters);
int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                                      struct io_uring_params *parameters);
int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                                      struct io_uring_params *parameters)
{
    if (rings_left == 0)
        return -ENOMEM;
    if (rings_left > 0)
        rings_left--;
    return __real_io_uring_queue_init_params(entries, ring, parameters);
}

static void a_pool_says_what_its_workers_use(void **state)
{
    static const char *const names[THREADS + 1] = {BY_READINESS_NAME, "mixed", "mixed", "mixed",
                                                   "uring"};
    bide_io_pool_options options = {.threads = {.threads = THREADS}};
    bide_thread_pool *pool;
    (void)state;
    assert_int_equal(bide_io_pool_create(&pool, &options), 0);
    bide_loop_back_end back_end = bide_io_pool_backend(pool);
    bide_thread_pool_destroy(pool);
    if (strcmp(back_end.name, "uring") != 0) {
        printf("# no io_uring\n");
        skip();
    }
    for (int rings = 0; rings <= THREADS; rings++) {
        rings_left = rings;
        int status = bide_io_pool_create(&pool, &options);
        rings_left = -1;
        assert_int_equal(status, 0);
        back_end = bide_io_pool_backend(pool);
        bide_thread_pool_destroy(pool);
        assert_string_equal(back_end.name, names[rings]);
        assert_int_equal(back_end.error, rings < THREADS ? -ENOMEM : 0);
    }
}

static void create_and_destroy_loops(unsigned count)
{
    static const bide_loop_options options = {.kind = BY_READINESS};
    static bide_loop *loops[200];
    assert_true(count <= sizeof loops / sizeof *loops);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(bide_loop_create(&loops[i], &options), 0);
    for (unsigned i = 0; i < count; i++)
        bide_loop_destroy(loops[i]);
}

/* The descriptors that wake them are kept for later loops, all of them. */
static void many_loops_leave_no_more_descriptors_each_time(void **state)
{
    (void)state;
    create_and_destroy_loops(150);
    int descriptors = count_descriptors();
    for (int i = 0; i < 3; i++)
        create_and_destroy_loops(150);
    assert_int_equal(count_descriptors(), descriptors);
}

/* (first, while no descriptor is kept for later loops) */
static void a_pool_takes_no_number_of_a_closed_standard_stream(void **state)
{
    bide_io_pool_options options = {
        .threads = {.threads = 2},
        .loop = {.kind = world_is_by_readiness() ? world_kind() : BIDE_LOOP_ANY}};
    bide_thread_pool *pool;
    int saved[3], taken = 0;
    (void)state;
    fflush(NULL);
    for (int number = 0; number < 3; number++) {
        saved[number] = fcntl(number, F_DUPFD_CLOEXEC, 10);
        close(number);
    }
    int status = bide_io_pool_create(&pool, &options);
    for (int number = 0; number < 3; number++)
        taken += fcntl(number, F_GETFD) >= 0;
    if (status == 0)
        bide_thread_pool_destroy(pool);
    for (int number = 0; number < 3; number++) {
        if (saved[number] >= 0) {
            dup2(saved[number], number);
            close(saved[number]);
        }
    }
    assert_int_equal(status, 0);
    assert_int_equal(taken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_takes_no_number_of_a_closed_standard_stream),
        cmocka_unit_test(a_pool_says_what_its_workers_use),
        cmocka_unit_test(many_loops_leave_no_more_descriptors_each_time),
        cmocka_unit_test(conversations_continue_while_their_coroutines_are_stolen),
        cmocka_unit_test(both_directions_of_a_descriptor_work_at_once),
        cmocka_unit_test(each_wait_ends_as_it_was_ended),
        cmocka_unit_test(one_that_is_used_meanwhile_is_closed_in_one_step),
        cmocka_unit_test(a_home_is_given_while_another_worker_closes_the_descriptor),
        cmocka_unit_test(workers_that_close_each_others_descriptors_do_not_deadlock),
        cmocka_unit_test(files_and_connections_are_opened_and_used_anywhere),
        cmocka_unit_test(an_operation_started_outside_continues_in_the_pool),
        cmocka_unit_test(bytes_that_come_from_outside_wake_a_pool_that_sleeps),
        cmocka_unit_test(receiving_into_a_leased_buffer_is_rejected),
        cmocka_unit_test(a_pool_that_cannot_be_made_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
