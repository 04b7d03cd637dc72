/*
 * Hazard pointers: one thread reads an object that another replaces and retires; a hazard that
 * moves, and one that is set to another object; a thread that leaves while another reads.
 */
#include "bide/check.h"
#include "bide/hazard.h"

typedef struct object {
    bide_hazard_retired retired;
    int data;
} object;

typedef struct state {
    bide_hazard_domain domain;
    bide_hazard_seat seats[3];
    bide_hazard_seat *early;    /* since the setup */
    bide_hazard_seat *scanning; /* for the scenario in which a reclaim retires another object */
    bide_atomic(void *) source;
    bide_atomic(void *) other;
} state;

static void reclaim(bide_hazard_retired *retired)
{
    object *object = retired->object;
    bide_plain_store(&object->data, -1); /* so that an unordered write is detected too */
    bide_check_free(object);
}

static object *new_object(int data)
{
    object *object = bide_check_alloc(sizeof *object);
    object->data = data;
    return object;
}

static void setup(void *p)
{
    state *s = p;
    bide_hazard_init(&s->domain, s->seats, 2);
    bide_atomic_init(&s->source, new_object(1));
}

static void finish(void *p)
{
    state *s = p;
    void *last = bide_atomic_load(&s->source, relaxed);
    if (last != NULL)
        bide_check_free(last);
    /* No retired object is protected. */
    bide_hazard_seat *seat = bide_hazard_join(&s->domain);
    s->scanning = seat;
    bide_check_assert(seat != NULL);
    while (bide_hazard_scan(&s->domain, seat) != 0)
        bide_check_assert(seat->retired != NULL);
    bide_hazard_leave(&s->domain, seat);
    bide_hazard_destroy(&s->domain);
}

static void read_it(void *p)
{
    state *s = p;
    bide_hazard_seat *seat = bide_hazard_join(&s->domain);
    bide_check_assert(seat != NULL);
    object *object = bide_hazard_protect(seat, 0, &s->source);
    if (object != NULL) {
        int data = bide_plain_load(&object->data);
        bide_check_assert(data == 1 || data == 2);
    }
    bide_hazard_leave(&s->domain, seat);
}

static void replace(state *s, bide_hazard_seat *seat, object *other)
{
    /* acq_rel: publishes the object, and its protector sees it. */
    object *old = bide_atomic_exchange(&s->source, other, acq_rel);
    if (old != NULL)
        bide_hazard_retire(&s->domain, seat, &old->retired, old, reclaim);
}

static void replace_it(void *p)
{
    state *s = p;
    bide_hazard_seat *seat = bide_hazard_join(&s->domain);
    replace(s, seat, new_object(2));
    bide_hazard_leave(&s->domain, seat);
}

static const bide_check_scenario replaced = {
    .name = "a_reader_reads_what_another_thread_retires",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {read_it, replace_it},
    .finish = finish,
};

/* ---- One thread leaves an object, another reclaims it ---- */

static void replace_and_replace(void *p)
{
    state *s = p;
    bide_hazard_seat *seat = bide_hazard_join(&s->domain);
    replace(s, seat, new_object(2));
    bide_hazard_leave(&s->domain, seat);
    seat = bide_hazard_join(&s->domain); /* takes over the objects that were left */
    replace(s, seat, NULL);
    bide_hazard_leave(&s->domain, seat);
}

static const bide_check_scenario left = {
    .name = "what_is_left_is_reclaimed_by_another",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {read_it, replace_and_replace},
    .finish = finish,
};

static void remove_it(void *p)
{
    state *s = p;
    bide_hazard_seat *seat = bide_hazard_join(&s->domain);
    replace(s, seat, NULL);
    bide_hazard_leave(&s->domain, seat);
}

/*
 * The setup's reader protects it, and two threads retire and leave; the second may reclaim the
 * objects that the first has left.
 */
static void setup_reader(void *p)
{
    state *s = p;
    bide_hazard_init(&s->domain, s->seats, 2);
    bide_atomic_init(&s->source, new_object(1));
    s->early = bide_hazard_join(&s->domain);
    bide_check_assert(bide_hazard_protect(s->early, 0, &s->source) != NULL);
}

static void read_on_and_leave(void *p)
{
    state *s = p;
    object *object = bide_atomic_load(&s->early->hazards[0], relaxed);
    bide_check_assert(bide_plain_load(&object->data) == 1);
    bide_hazard_leave(&s->domain, s->early);
}

static const bide_check_scenario leaves = {
    .name = "the_reader_leaves_while_another_retires_and_leaves",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_reader,
    .threads = {read_on_and_leave, remove_it},
    .finish = finish,
};

/* ---- A hazard that moves ---- */

static void move_and_read(void *p)
{
    state *s = p;
    object *object = bide_atomic_load(&s->early->hazards[0], relaxed);
    bide_hazard_set(s->early, 1, object);
    bide_hazard_clear(s->early, 0);
    bide_check_assert(bide_plain_load(&object->data) == 1);
    bide_hazard_clear(s->early, 1);
}

static const bide_check_scenario moved = {
    .name = "a_hazard_moves_to_a_higher_index",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_reader,
    .threads = {move_and_read, remove_it},
    .finish = finish,
};

/* ---- A hazard that is set to another object ---- */

static void setup_two(void *p)
{
    setup_reader(p);
    bide_atomic_init(&((state *)p)->other, new_object(2));
}

static void read_and_read_the_other(void *p)
{
    state *s = p;
    object *object = bide_atomic_load(&s->early->hazards[0], relaxed);
    bide_check_assert(bide_plain_load(&object->data) == 1);
    object = bide_hazard_protect(s->early, 0, &s->other);
    bide_check_assert(bide_plain_load(&object->data) == 2);
}

static void finish_two(void *p)
{
    bide_check_free(bide_atomic_load(&((state *)p)->other, relaxed));
    finish(p);
}

static const bide_check_scenario another = {
    .name = "a_hazard_is_set_to_another_object",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {read_and_read_the_other, remove_it},
    .finish = finish_two,
};

/* ---- An object that is not counted was scanned ---- */

enum { WEIGHT = 2 * BIDE_HAZARDS }; /* so that the domain gets it at once */

static void retire(state *s, object *old)
{
    bide_hazard_retire_weighing(&s->domain, s->early, &old->retired, old, reclaim, WEIGHT);
}

/* One object has been retired. */
static void setup_retired(void *p)
{
    state *s = p;
    bide_hazard_init(&s->domain, s->seats, 3);
    bide_atomic_init(&s->source, new_object(1));
    s->early = bide_hazard_join(&s->domain);
    retire(s, new_object(2));
}

static void retire_it(void *p)
{
    state *s = p;
    retire(s, bide_atomic_exchange(&s->source, NULL, acq_rel));
}

static void scan(void *p)
{
    state *s = p;
    bide_hazard_seat *seat = bide_hazard_join(&s->domain);
    bide_check_assert(bide_hazard_scan(&s->domain, seat) == 0);
}

static void finish_counted(void *p)
{
    state *s = p;
    size_t weight = bide_atomic_load(&s->domain.weight, relaxed);
    bide_check_assert(bide_atomic_load(&s->domain.retired, relaxed) == NULL || weight == WEIGHT);
    finish(p);
}

static const bide_check_scenario counted = {
    .name = "a_scan_as_another_thread_retires",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_retired,
    .threads = {retire_it, scan},
    .finish = finish_counted,
};

/* ---- A third scans ---- */

static void setup_shared(void *p)
{
    state *s = p;
    bide_hazard_init(&s->domain, s->seats, 3);
    bide_atomic_init(&s->source, new_object(1));
    s->early = bide_hazard_join(&s->domain);
}

static void scan_what_there_is(void *p)
{
    state *s = p;
    bide_hazard_seat *seat = bide_hazard_join(&s->domain);
    (void)bide_hazard_scan(&s->domain, seat);
}

static const bide_check_scenario scanned = {
    .name = "a_reader_reads_what_another_thread_retires_and_a_third_scans",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_shared,
    .threads = {read_it, retire_it, scan_what_there_is},
    .finish = finish,
};

/* ---- A reclaim retires another object ---- */

typedef struct chained {
    bide_hazard_retired retired;
    state *state;
    object *next;
} chained;

static void reclaim_chained(bide_hazard_retired *retired)
{
    chained *first = retired->object;
    state *s = first->state;
    bide_hazard_retire(&s->domain, s->scanning, &first->next->retired, first->next, reclaim);
    bide_check_free(first);
}

static void retire_chained(void *p)
{
    state *s = p;
    bide_hazard_seat *seat = bide_hazard_join(&s->domain);
    chained *first = bide_check_alloc(sizeof *first);
    first->state = s;
    s->scanning = seat;
    first->next = bide_atomic_exchange(&s->source, NULL, acq_rel);
    bide_hazard_retire(&s->domain, seat, &first->retired, first, reclaim_chained);
    bide_hazard_leave(&s->domain, seat);
}

static void setup_chained(void *p)
{
    state *s = p;
    bide_hazard_init(&s->domain, s->seats, 3);
    bide_atomic_init(&s->source, new_object(1));
    s->early = bide_hazard_join(&s->domain);
    bide_check_assert(bide_hazard_protect(s->early, 0, &s->source) != NULL);
}

/* The final scan is done by another seat than the left one. */
static void finish_chained(void *p)
{
    state *s = p;
    bide_check_assert(bide_hazard_join(&s->domain) != NULL);
    finish(p);
}

static const bide_check_scenario chain = {
    .name = "what_is_reclaimed_retires_another_that_is_read",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_chained,
    .threads = {read_on_and_leave, retire_chained},
    .finish = finish_chained,
};

/* ---- Seats that are borrowed: the only one goes from thread to thread ---- */

static void setup_one_seat(void *p)
{
    state *s = p;
    bide_hazard_init(&s->domain, s->seats, 1);
    bide_atomic_init(&s->source, new_object(1));
}

static void setup_two_seats(void *p)
{
    state *s = p;
    bide_hazard_init(&s->domain, s->seats, 2);
    bide_atomic_init(&s->source, new_object(1));
}

/* As a queue does: what a hazard protects still, and is found again, is not protected again. */
static void borrow_and_read(void *p)
{
    state *s = p;
    bide_hazard_seat *seat = bide_hazard_borrow_(&s->domain);
    void *held = bide_atomic_load(&seat->hazards[0], relaxed);
    void *found = bide_atomic_load(&s->source, relaxed);
    object *object = found == held ? found : bide_hazard_protect(seat, 0, &s->source);
    if (object != NULL) {
        int data = bide_plain_load(&object->data);
        bide_check_assert(data == 1 || data == 2);
    }
    bide_hazard_release_(&s->domain, seat);
}

static void borrow_and_read_twice(void *p)
{
    borrow_and_read(p);
    borrow_and_read(p);
}

static void borrow_and_replace(void *p)
{
    state *s = p;
    bide_hazard_seat *seat = bide_hazard_borrow_(&s->domain);
    replace(s, seat, new_object(2));
    bide_hazard_release_(&s->domain, seat);
}

static void borrow_and_remove(void *p)
{
    state *s = p;
    bide_hazard_seat *seat = bide_hazard_borrow_(&s->domain);
    replace(s, seat, NULL);
    bide_hazard_release_(&s->domain, seat);
}

static void finish_borrowed(void *p)
{
    state *s = p;
    for (size_t i = 0; i < s->domain.count; i++) {
        bide_check_assert(s->seats[i].retired == NULL);
        for (size_t j = 0; j < BIDE_HAZARDS; j++)
            bide_hazard_clear(&s->seats[i], j);
    }
    finish(s);
}

static const bide_check_scenario borrowed = {
    .name = "the_only_seat_is_borrowed_by_a_reader_and_by_another_that_retires",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_seat,
    .threads = {borrow_and_read, borrow_and_replace},
    .finish = finish_borrowed,
};
static const bide_check_scenario borrowed_hazard = {
    .name = "a_hazard_stays_set_in_a_seat_that_is_given_back",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_seats,
    .threads = {borrow_and_read_twice, borrow_and_read, borrow_and_remove},
    .finish = finish_borrowed,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &replaced, &left,  &leaves,   &moved,           &another, &counted,
        &scanned,  &chain, &borrowed, &borrowed_hazard, NULL};
    static const char *const files[] = {"hazard.h", "hazard.c", NULL};
    static const bide_check_reason reasons[] = {
        {"take_all", "exchange", "&domain->retired", "relaxed",
         "the fence X behind it acquires too; ThreadSanitizer knows no fences"},
        {0}};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
