/*
 * Data of sockets in buffers of one pool. lent_test.c receives it by bide_recv_provided, and receiver_test.c by
 * receivers. Each has the functions that are declared here, and the tests at the end hold for both.
 */
#ifndef BIDE_TESTS_IO_CHUNK_TESTING_H
#define BIDE_TESTS_IO_CHUNK_TESTING_H

#include "runner.h"

enum { SIZE = 64, MANY = 24 };

typedef struct fixture {
    world *world;
    char *memory;
    bide_buffer_pool pool;
    bide_descriptor sockets[MANY], others[MANY];
    int opened;
    struct runner runners[MANY];
    bide_io_operation operations[MANY]; /* of lent_test.c */
    bide_receiver receivers[MANY];      /* of receiver_test.c */
} fixture;

/* ---- What differs ---- */

static void chunks_begin(fixture *f, int i); /* the socket is open */
static void chunks_end(fixture *f, int i);   /* the socket is about to be closed, or is closed */

/* Awaits the next chunk. Then its bytes, and their release; and how many more are kept. */
static bide_awaiter *receive(fixture *f, int i);
static char *data_of(fixture *f, int i);
static size_t size_of(const fixture *f, int i);
static void give_back(fixture *f, int i);
static unsigned kept_of(const fixture *f, int i);

/* ---- The fixture ---- */

static inline fixture *begin_fixture(world *world, unsigned buffers)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = world;
    f->memory = malloc((size_t)SIZE * buffers + 1);
    assert_non_null(f->memory);
    bide_buffer_pool_init(&f->pool, f->memory + 1, SIZE, buffers); /* (an unaligned address) */
    return f;
}

static inline void open_pairs(fixture *f, int count)
{
    for (; f->opened < count; f->opened++) {
        world_socket_pair(f->world, &f->sockets[f->opened], &f->others[f->opened]);
        chunks_begin(f, f->opened);
    }
}

static inline void end_fixture(fixture *f)
{
    for (int i = 0; i < f->opened; i++) {
        if (i % 2 == 0)
            bide_close(&f->sockets[i]);
        chunks_end(f, i);
        bide_close(&f->sockets[i]);
        bide_close(&f->others[i]);
    }
    turn(f->world);
    assert_int_equal(f->pool.in_use, 0);
    bide_buffer_pool_destroy(&f->pool);
    free(f->memory);
    free(f);
}

static inline void send_text(fixture *f, int i, const char *text)
{
    world_send(f->world, &f->others[i], text, strlen(text));
}

static inline void check_text(fixture *f, int i, const char *text)
{
    char *data = data_of(f, i);
    assert_int_equal(size_of(f, i), strlen(text));
    assert_memory_equal(data, text, strlen(text));
    assert_true(data >= f->pool.memory && data < f->pool.memory + (size_t)SIZE * f->pool.count);
}

/* Waits for the next chunk. Returns the status. */
static inline int next(fixture *f, int i)
{
    return world_wait(f->world, receive(f, i));
}

/* ---- Tests ---- */

static inline void idle_receivers_hold_no_buffer(void **state)
{
    fixture *f = begin_fixture(world_of(state), 1);
    open_pairs(f, MANY);
    for (int i = 0; i < MANY; i++)
        begin(f->world, &f->runners[i], receive(f, i));
    turn(f->world);
    assert_int_equal(f->pool.in_use, 0);
    for (int i = MANY; i-- > 0;) {
        send_text(f, i, "here");
        assert_int_equal(end(f->world, &f->runners[i]), 0);
        check_text(f, i, "here");
        give_back(f, i);
    }
    end_fixture(f);
}

/* Each socket's bytes count up. */
struct storm {
    fixture *f;
    unsigned sent[MANY], got[MANY];
    bool waits[MANY], holds[MANY];
};

static inline void storm_check(struct storm *storm, int i)
{
    for (size_t at = 0; at < size_of(storm->f, i); at++)
        assert_int_equal((unsigned char)data_of(storm->f, i)[at], (unsigned char)storm->got[i]++);
}

static inline void storm_take_end(struct storm *storm, int i)
{
    int status = end(storm->f->world, &storm->f->runners[i]);
    storm->waits[i] = false;
    storm->holds[i] = status == 0;
    assert_true(status == 0 || status == -ECANCELED);
    if (status == 0)
        storm_check(storm, i);
}

static inline void storm_release(struct storm *storm, int i)
{
    give_back(storm->f, i);
    storm->holds[i] = false;
}

static inline void storm_step(struct storm *storm, unsigned drawn, int sockets)
{
    fixture *f = storm->f;
    int i = (int)(drawn % (unsigned)sockets);
    unsigned char byte = (unsigned char)storm->sent[i];
    switch (drawn >> 8 & 3) {
    case 0:
        if (storm->sent[i] - storm->got[i] < 1000)
            world_send(f->world, &f->others[i], &byte, 1), storm->sent[i]++;
        break;
    case 1:
        if (!storm->waits[i] && !storm->holds[i]) {
            begin(f->world, &f->runners[i], receive(f, i));
            storm->waits[i] = true;
        }
        break;
    case 2:
        if (storm->waits[i])
            stop(&f->runners[i]);
        break;
    default:
        turn(f->world);
        break;
    }
    for (int n = 0; n < sockets; n++) {
        if (storm->holds[n] && (drawn >> (12 + n) & 1) != 0)
            storm_release(storm, n);
        if (storm->waits[n] && f->runners[n].has_ended)
            storm_take_end(storm, n);
    }
}

/* Data, stop requests and released buffers in random order: each byte arrives once, in order. */
static inline void storm_of_chunks(world *world, unsigned buffers)
{
    enum { SOCKETS = 8 };
    fixture *f = begin_fixture(world, buffers);
    struct storm storm = {.f = f};
    uint64_t random = testing_seed();
    uint32_t rounds = rounds_of(4000);
    open_pairs(f, SOCKETS);
    for (uint32_t round = 0; round < rounds; round++) {
        storm_step(&storm, (unsigned)testing_random(&random), SOCKETS);
        assert_in_range(f->pool.in_use, 0, buffers);
    }
    for (int n = 0; n < SOCKETS; n++) {
        if (storm.waits[n])
            stop(&f->runners[n]);
        /* (one that is waiting for a buffer gets those of the others, before or after its stop) */
        if (storm.holds[n])
            storm_release(&storm, n);
    }
    for (int n = 0; n < SOCKETS; n++) {
        if (storm.waits[n])
            storm_take_end(&storm, n);
        if (storm.holds[n])
            storm_release(&storm, n);
    }
    /* (first what has arrived and is kept: it occupies the buffers) */
    for (int turns = 0; turns < 4; turns++) {
        turn(f->world);
        for (int n = 0; n < SOCKETS; n++) {
            while (turns < 3 ? kept_of(f, n) != 0 : storm.got[n] != storm.sent[n]) {
                assert_int_equal(next(f, n), 0);
                assert_int_not_equal(size_of(f, n), 0);
                storm_check(&storm, n);
                give_back(f, n);
            }
        }
    }
    end_fixture(f);
}

#endif
