/*
 * Seeded bugs: mutual exclusion, and initialization and publication under it.
 */
#include "seeded.h"

typedef struct state {
    bide_atomic(uint32_t) wants[2];
    bide_atomic(uint32_t) turn;
    bide_atomic(uint32_t) lock, serving;
    bide_atomic(uint32_t) sequence, left, right;
    bide_atomic(int *) object;
    int inside;
} state;

static void use_what_is_locked(state *s)
{
    s->inside++;
}

static void both_were_inside(void *p)
{
    bide_check_assert(((state *)p)->inside == 2);
}

/* A scenario of two threads with this state. */
#define TWO(id, text, found, one, other, last) \
    static const bide_check_scenario id = {    \
        .name = (text),                        \
        .size = sizeof(state),                 \
        .threads = {one, other},               \
        .finish = (last),                      \
        .expected = BIDE_CHECK_##found,        \
    }

/*
 * Dekker's mutual exclusion. Each thread must see that the other wants to enter, or be seen by the
 * other: acquire and release do not give that.
 */
#define DEKKER(name, store_order, load_order, fence)                   \
    static void name(state *s, unsigned self)                          \
    {                                                                  \
        unsigned other = 1 - self;                                     \
        bide_atomic_store(&s->wants[self], 1, store_order);            \
        fence;                                                         \
        while (bide_atomic_load(&s->wants[other], load_order) != 0) {  \
            if (bide_atomic_load(&s->turn, load_order) != self) {      \
                bide_atomic_store(&s->wants[self], 0, store_order);    \
                while (bide_atomic_load(&s->turn, load_order) != self) \
                    bide_cpu_relax();                                  \
                bide_atomic_store(&s->wants[self], 1, store_order);    \
                fence;                                                 \
            }                                                          \
            bide_cpu_relax();                                          \
        }                                                              \
        use_what_is_locked(s);                                         \
        bide_atomic_store(&s->turn, other, store_order);               \
        bide_atomic_store(&s->wants[self], 0, store_order);            \
    }                                                                  \
    static void name##_0(void *p)                                      \
    {                                                                  \
        name(p, 0);                                                    \
    }                                                                  \
    static void name##_1(void *p)                                      \
    {                                                                  \
        name(p, 1);                                                    \
    }

DEKKER(dekker_weak, release, acquire, (void)0)
DEKKER(dekker_strong, seq_cst, seq_cst, (void)0)
DEKKER(dekker_fenced, release, acquire, bide_atomic_fence(seq_cst))

TWO(dekker_bug, "dekker_with_acquire_and_release", RACE, dekker_weak_0, dekker_weak_1,
    both_were_inside);
TWO(dekker_mended, "dekker_with_seq_cst", NOTHING, dekker_strong_0, dekker_strong_1,
    both_were_inside);
TWO(dekker_fences, "dekker_with_fences", NOTHING, dekker_fenced_0, dekker_fenced_1,
    both_were_inside);

/* Peterson's: the same requirement, with an order of precedence. */
#define PETERSON(name, store_order, load_order)                       \
    static void name(state *s, unsigned self)                         \
    {                                                                 \
        unsigned other = 1 - self;                                    \
        bide_atomic_store(&s->wants[self], 1, store_order);           \
        bide_atomic_store(&s->turn, other, store_order);              \
        while (bide_atomic_load(&s->wants[other], load_order) != 0 && \
               bide_atomic_load(&s->turn, load_order) == other)       \
            bide_cpu_relax();                                         \
        use_what_is_locked(s);                                        \
        bide_atomic_store(&s->wants[self], 0, store_order);           \
    }                                                                 \
    static void name##_0(void *p)                                     \
    {                                                                 \
        name(p, 0);                                                   \
    }                                                                 \
    static void name##_1(void *p)                                     \
    {                                                                 \
        name(p, 1);                                                   \
    }

PETERSON(peterson_weak, release, acquire)
PETERSON(peterson_strong, seq_cst, seq_cst)

TWO(peterson_bug, "peterson_with_acquire_and_release", RACE, peterson_weak_0, peterson_weak_1,
    both_were_inside);
TWO(peterson_mended, "peterson_with_seq_cst", NOTHING, peterson_strong_0, peterson_strong_1,
    both_were_inside);

/* A spin lock. */
static void spin_lock(state *s)
{
    while (bide_atomic_exchange(&s->lock, 1, acquire) != 0) {
        while (bide_atomic_load(&s->lock, relaxed) != 0)
            bide_cpu_relax();
    }
}

static void spin_unlock(state *s)
{
    bide_atomic_store(&s->lock, 0, release);
}

static void spin_relaxed(void *p)
{
    state *s = p;
    spin_lock(s);
    use_what_is_locked(s);
    bide_atomic_store(&s->lock, 0, relaxed);
}

static void spin_released(void *p)
{
    spin_lock(p);
    use_what_is_locked(p);
    spin_unlock(p);
}

TWO(spin_bug, "spinlock_with_relaxed_unlock", RACE, spin_relaxed, spin_relaxed, both_were_inside);
TWO(spin_mended, "spinlock_with_release", NOTHING, spin_released, spin_released, both_were_inside);

/* A ticket lock, which serves in the order of arrival. */
#define TICKET(name, load_order)                                     \
    static void name(void *p)                                        \
    {                                                                \
        state *s = p;                                                \
        uint32_t mine = bide_atomic_fetch_add(&s->lock, 1, relaxed); \
        while (bide_atomic_load(&s->serving, load_order) != mine)    \
            bide_cpu_relax();                                        \
        use_what_is_locked(s);                                       \
        bide_atomic_store(&s->serving, mine + 1, release);           \
    }

TICKET(ticket_relaxed, relaxed)
TICKET(ticket_acquired, acquire)

TWO(ticket_bug, "ticket_lock_with_relaxed_look", RACE, ticket_relaxed, ticket_relaxed,
    both_were_inside);
TWO(ticket_mended, "ticket_lock_with_acquire", NOTHING, ticket_acquired, ticket_acquired,
    both_were_inside);

/* Double-checked locking. Without acquire, the pointer may be visible before the object. */
#define GET_OBJECT(name, load_order, initialise)                \
    static int *name(state *s)                                  \
    {                                                           \
        int *object = bide_atomic_load(&s->object, load_order); \
        if (object == NULL) {                                   \
            spin_lock(s);                                       \
            object = bide_atomic_load(&s->object, relaxed);     \
            if (object == NULL) {                               \
                object = bide_check_alloc(sizeof *object);      \
                initialise;                                     \
                bide_atomic_store(&s->object, object, release); \
            }                                                   \
            spin_unlock(s);                                     \
        }                                                       \
        return object;                                          \
    }

/* Only the marks report the plain accesses of these functions. */
#define NOT_INSTRUMENTED __attribute__((no_sanitize("thread"), noinline))

GET_OBJECT(get_early, relaxed, *object = 42)
GET_OBJECT(get_in_time, acquire, *object = 42)
NOT_INSTRUMENTED GET_OBJECT(get_early_marked, relaxed,
                            bide_plain_store(object, 42)) NOT_INSTRUMENTED
    GET_OBJECT(get_in_time_marked, acquire, bide_plain_store(object, 42))

        static void check_early(void *p)
{
    bide_check_assert(*get_early(p) == 42);
}

static void check_in_time(void *p)
{
    bide_check_assert(*get_in_time(p) == 42);
}

NOT_INSTRUMENTED static void check_early_marked(void *p)
{
    bide_check_assert(bide_plain_load(get_early_marked(p)) == 42);
}

NOT_INSTRUMENTED static void check_in_time_marked(void *p)
{
    bide_check_assert(bide_plain_load(get_in_time_marked(p)) == 42);
}

static void free_object(void *p)
{
    bide_check_free(bide_atomic_load(&((state *)p)->object, relaxed));
}

TWO(checked_bug, "double_checked_locking_without_acquire", RACE, check_early, check_early,
    free_object);
TWO(checked_mended, "double_checked_locking_with_acquire", NOTHING, check_in_time, check_in_time,
    free_object);
TWO(marked_bug, "double_checked_locking_without_acquire_marked", RACE, check_early_marked,
    check_early_marked, free_object);
TWO(marked_mended, "double_checked_locking_with_acquire_marked", NOTHING, check_in_time_marked,
    check_in_time_marked, free_object);

/*
 * A sequence lock: a reader that sees the same even number before and after has read the work of
 * one writer.
 */
#define SEQUENCE_LOCK(name, writers_fence, readers_fence)          \
    static void name##_write(void *p)                              \
    {                                                              \
        state *s = p;                                              \
        bide_atomic_store(&s->sequence, 1, relaxed);               \
        writers_fence;                                             \
        bide_atomic_store(&s->left, 1, relaxed);                   \
        bide_atomic_store(&s->right, 1, relaxed);                  \
        bide_atomic_store(&s->sequence, 2, release);               \
    }                                                              \
    static void name##_read(void *p)                               \
    {                                                              \
        state *s = p;                                              \
        uint32_t before = bide_atomic_load(&s->sequence, acquire); \
        uint32_t left = bide_atomic_load(&s->left, relaxed);       \
        uint32_t right = bide_atomic_load(&s->right, relaxed);     \
        readers_fence;                                             \
        uint32_t after = bide_atomic_load(&s->sequence, relaxed);  \
        bool is_whole = before == after && before % 2 == 0;        \
        bide_check_assert(!is_whole || left == right);             \
    }

SEQUENCE_LOCK(no_writers_fence, (void)0, bide_atomic_fence(acquire))
SEQUENCE_LOCK(no_readers_fence, bide_atomic_fence(release), (void)0)
SEQUENCE_LOCK(both_fences, bide_atomic_fence(release), bide_atomic_fence(acquire))

TWO(torn_by_writer, "sequence_lock_without_the_writers_fence", ASSERTION, no_writers_fence_write,
    no_writers_fence_read, NULL);
TWO(torn_by_reader, "sequence_lock_without_the_readers_fence", ASSERTION, no_readers_fence_write,
    no_readers_fence_read, NULL);
TWO(not_torn, "sequence_lock_with_fences", NOTHING, both_fences_write, both_fences_read, NULL);

const bide_check_scenario *const seeded_locks[] = {&dekker_bug,
                                                   &dekker_mended,
                                                   &dekker_fences,
                                                   &peterson_bug,
                                                   &peterson_mended,
                                                   &spin_bug,
                                                   &spin_mended,
                                                   &ticket_bug,
                                                   &ticket_mended,
                                                   &checked_bug,
                                                   &checked_mended,
                                                   &marked_bug,
                                                   &marked_mended,
                                                   &torn_by_writer,
                                                   &torn_by_reader,
                                                   &not_torn,
                                                   NULL};
