/*
 * The reader-writer lock: concurrent readers and writers, downgrading, upgrading, hand-overs that race with
 * cancellation and closing, and memory that is freed as early as allowed. waiter_queue_check.c
 * checks the queue.
 */
#include "kept.h"

#include "bide/check.h"
#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/rw_lock.h"
#include "bide/stop.h"
#include "bide/task.h"

/* A coroutine that has enlisted in the setup. */
struct early {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    bide_rw_lock_waiter lock;
    bool writes;
    int status;
};

typedef struct state {
    bide_rw_lock lock;
    bide_rw_lock_waiter holder;
    bide_rw_lock *allocated;
    struct early *early[2];
    bide_rw_lock_waiter upgradable;
    struct upgrader *upgrader;
    int data;
    int users;
} state;

static void setup(void *p)
{
    bide_rw_lock_init(&((state *)p)->lock);
}

static void finish_free(void *p)
{
    bide_rw_lock_waiter lock;
    bide_check_assert(bide_rw_lock_try_write(&lock, &((state *)p)->lock));
}

static void read_it(void *p)
{
    state *s = p;
    bide_rw_lock_waiter lock;
    bide_check_assert(bide_check_await(bide_rw_lock_read(&lock, &s->lock)) == 0);
    bide_check_assert(s->data >= 0);
    bide_rw_lock_unlock(&lock);
}

static void try_to_read(void *p)
{
    state *s = p;
    bide_rw_lock_waiter lock;
    if (bide_rw_lock_try_read(&lock, &s->lock)) {
        bide_check_assert(s->data >= 0);
        bide_rw_lock_unlock(&lock);
    }
}

static void write_it(void *p)
{
    state *s = p;
    bide_rw_lock_waiter lock;
    bide_check_assert(bide_check_await(bide_rw_lock_write(&lock, &s->lock)) == 0);
    s->data++;
    bide_rw_lock_unlock(&lock);
}

static void write_and_read(void *p)
{
    state *s = p;
    bide_rw_lock_waiter lock;
    bide_check_assert(bide_check_await(bide_rw_lock_write(&lock, &s->lock)) == 0);
    int data = ++s->data;
    bide_rw_lock_downgrade(&lock);
    bide_check_assert(s->data == data);
    bide_rw_lock_unlock(&lock);
}

static const bide_check_scenario written_and_read = {
    .name = "a_writer_and_a_reader",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {write_it, read_it},
    .finish = finish_free,
};

static const bide_check_scenario read_by_two = {
    .name = "a_writer_and_two_that_try_to_read",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {write_it, try_to_read, try_to_read},
    .finish = finish_free,
};

static const bide_check_scenario downgraded = {
    .name = "a_downgraded_writer_reads_on",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {write_and_read, read_it},
    .finish = finish_free,
};

static const bide_check_scenario downgraded_and_written = {
    .name = "a_downgraded_writer_reads_on_before_another_writes",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {write_and_read, write_it},
    .finish = finish_free,
};

/* ---- Upgrading ---- */

static void upgrade_it(void *p)
{
    state *s = p;
    bide_rw_lock_waiter lock;
    bide_check_assert(bide_check_await(bide_rw_lock_upgradable_read(&lock, &s->lock)) == 0);
    int data = s->data;
    bide_check_assert(bide_check_await(bide_rw_lock_upgrade(&lock)) == 0);
    bide_check_assert(s->data == data);
    s->data++;
    bide_rw_lock_unlock(&lock);
}

static void try_to_upgrade_it(void *p)
{
    state *s = p;
    bide_rw_lock_waiter lock;
    if (!bide_rw_lock_try_upgradable_read(&lock, &s->lock))
        return;
    int data = s->data;
    if (bide_rw_lock_try_upgrade(&lock)) {
        bide_check_assert(s->data == data);
        s->data++;
        bide_rw_lock_downgrade_to_upgradable(&lock);
        bide_check_assert(s->data == data + 1);
    }
    bide_rw_lock_unlock(&lock);
}

static void finish_two(void *p)
{
    bide_check_assert(((state *)p)->data == 2);
    finish_free(p);
}

static const bide_check_scenario upgraded_and_read = {
    .name = "one_upgrades_and_one_reads",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {upgrade_it, read_it},
    .finish = finish_free,
};

static const bide_check_scenario upgraded_and_written = {
    .name = "one_upgrades_and_no_writer_comes_in_between",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {upgrade_it, write_it},
    .finish = finish_two,
};

static const bide_check_scenario upgraded_twice = {
    .name = "two_upgrade_one_after_the_other",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {upgrade_it, upgrade_it},
    .finish = finish_two,
};

static const bide_check_scenario tried_to_upgrade = {
    .name = "one_tries_to_upgrade_beside_one_that_reads_and_one_that_does_too",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {try_to_upgrade_it, try_to_read, try_to_upgrade_it},
    .finish = finish_free,
};

/* ---- One holds it, others are in line ---- */

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    if (self->writes)
        bide_await_status(self->status, bide_rw_lock_write(&self->lock, &self->state->lock));
    else
        bide_await_status(self->status, bide_rw_lock_read(&self->lock, &self->state->lock));
    if (self->status == 0) {
        if (self->writes)
            self->state->data++;
        else
            bide_check_assert(self->state->data >= 0);
        bide_rw_lock_unlock(&self->lock);
    }
    bide_end();
}

static void enlist_in(state *s, int index, bool writes, bide_scheduler *scheduler)
{
    struct early *early = s->early[index] = bide_check_alloc(sizeof *early);
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){scheduler, &early->stop, NULL, NULL, NULL};
    early->state = s;
    early->writes = writes;
    early->status = 1;
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
}

static void enlist(state *s, int index, bool writes)
{
    enlist_in(s, index, writes, &bide_inline_scheduler);
}

/* Readers hold it, a writer waits, and a reader is behind the writer. */
static void setup_line(void *p)
{
    state *s = p;
    setup(p);
    bide_check_assert(bide_rw_lock_try_read(&s->holder, &s->lock));
    enlist(s, 0, true);
    enlist(s, 1, false);
}

static void unlock_it(void *p)
{
    bide_rw_lock_unlock(&((state *)p)->holder);
}

static void stop_first(void *p)
{
    bide_stop_request(&((state *)p)->early[0]->stop);
}

static void close_it(void *p)
{
    bide_rw_lock_close(&((state *)p)->lock);
}

static void finish_one(state *s, int index, int otherwise)
{
    struct early *early = s->early[index];
    bide_check_assert(bide_done(&early->task.frame));
    bide_check_assert(early->status == 0 || early->status == otherwise);
    bide_check_free(early);
}

static void finish_cancelled(void *p)
{
    state *s = p;
    bide_check_assert(s->data == (s->early[0]->status == 0));
    finish_one(s, 0, -ECANCELED);
    finish_one(s, 1, 0);
    finish_free(p);
}

static const bide_check_scenario cancelled = {
    .name = "the_writer_in_line_is_asked_to_stop_and_the_reader_goes_on",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_line,
    .threads = {unlock_it, stop_first},
    .finish = finish_cancelled,
};

static void finish_closed(void *p)
{
    state *s = p;
    bide_rw_lock_waiter lock;
    finish_one(s, 0, -EPIPE);
    finish_one(s, 1, -EPIPE);
    bide_check_assert(!bide_rw_lock_is_locked(&s->lock));
    bide_check_assert(bide_check_await(bide_rw_lock_read(&lock, &s->lock)) == -EPIPE);
}

static const bide_check_scenario closed = {
    .name = "it_is_closed_while_it_is_handed_over",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_line,
    .threads = {unlock_it, close_it},
    .finish = finish_closed,
};

/* A writer holds it, and two readers wait. */
static void setup_readers(void *p)
{
    state *s = p;
    setup(p);
    bide_check_assert(bide_rw_lock_try_write(&s->holder, &s->lock));
    enlist(s, 0, false);
    enlist(s, 1, false);
}

static void downgrade_it(void *p)
{
    state *s = p;
    s->data = 1;
    bide_rw_lock_downgrade(&s->holder);
    bide_check_assert(s->data == 1);
    bide_rw_lock_unlock(&s->holder);
}

static void finish_readers(void *p)
{
    state *s = p;
    finish_one(s, 0, -ECANCELED);
    finish_one(s, 1, 0);
    finish_free(p);
}

static const bide_check_scenario downgraded_with_line = {
    .name = "readers_in_line_go_on_with_a_downgraded_writer",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_readers,
    .threads = {downgrade_it, stop_first, try_to_read},
    .finish = finish_readers,
};

static void only_downgrade_it(void *p)
{
    bide_rw_lock_downgrade(&((state *)p)->holder);
}

/* They read while the other still reads. */
static void finish_reading(void *p)
{
    finish_one(p, 0, -ECANCELED);
    finish_one(p, 1, 0);
    unlock_it(p);
    finish_free(p);
}

static const bide_check_scenario read_together = {
    .name = "readers_in_line_do_not_wait_until_a_downgraded_writer_unlocks_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_readers,
    .threads = {only_downgrade_it, stop_first},
    .finish = finish_reading,
};

/* ---- One upgrades while another reads, and a writer is in line ---- */

static void setup_upgradable(void *p)
{
    state *s = p;
    setup(p);
    bide_check_assert(bide_rw_lock_try_read(&s->holder, &s->lock));
    bide_check_assert(bide_rw_lock_try_upgradable_read(&s->upgradable, &s->lock));
    enlist(s, 0, true);
}

static void upgrade_before_the_line(void *p)
{
    state *s = p;
    bide_check_assert(bide_check_await(bide_rw_lock_upgrade(&s->upgradable)) == 0);
    bide_check_assert(s->data == 0);
    s->data++;
    bide_rw_lock_unlock(&s->upgradable);
}

static void finish_upgraded(void *p)
{
    finish_one(p, 0, 0);
    finish_two(p);
}

static const bide_check_scenario upgraded_before_the_line = {
    .name = "an_upgrade_passes_the_line_when_the_last_reader_unlocks",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_upgradable,
    .threads = {upgrade_before_the_line, unlock_it},
    .finish = finish_upgraded,
};

/* An upgrade that a close ends sees what was written before the close. */
static void upgrade_in_vain(void *p)
{
    state *s = p;
    bide_check_assert(bide_check_await(bide_rw_lock_upgrade(&s->upgradable)) == -EPIPE);
    bide_check_assert(s->users == 1);
}

static void write_and_close(void *p)
{
    ((state *)p)->users = 1;
    close_it(p);
}

static void finish_in_vain(void *p)
{
    state *s = p;
    finish_one(s, 0, -EPIPE);
    bide_rw_lock_unlock(&s->upgradable);
    bide_rw_lock_unlock(&s->holder);
    bide_check_assert(!bide_rw_lock_is_locked(&s->lock));
}

static const bide_check_scenario upgrade_closed = {
    .name = "it_is_closed_while_one_upgrades_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_upgradable,
    .threads = {upgrade_in_vain, write_and_close},
    .finish = finish_in_vain,
};

/* A coroutine that upgrades what `upgradable` holds; then it unlocks it. */
struct upgrader {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    int status;
};

bide_coroutine(upgrader_body)
{
    bide_begin(upgrader_body, struct upgrader * self);
    bide_await_status(self->status, bide_rw_lock_upgrade(&self->state->upgradable));
    if (self->status == 0)
        self->state->data++;
    bide_rw_lock_unlock(&self->state->upgradable);
    bide_end();
}

static void begin_upgrade(state *s, bide_scheduler *scheduler)
{
    struct upgrader *upgrader = s->upgrader = bide_check_alloc(sizeof *upgrader);
    bide_stop_source_init(&upgrader->stop);
    upgrader->context = (bide_context){scheduler, &upgrader->stop, NULL, NULL, NULL};
    upgrader->state = s;
    upgrader->status = 1;
    bide_start(&upgrader->task.frame, &upgrader_body, &upgrader->context);
    bide_resume(&upgrader->task.frame);
}

static void setup_upgrade(void *p)
{
    setup_upgradable(p);
    begin_upgrade(p, &bide_inline_scheduler);
}

static void stop_upgrade(void *p)
{
    bide_stop_request(&((state *)p)->upgrader->stop);
}

static void finish_stopped_upgrade(void *p)
{
    state *s = p;
    bide_check_assert(bide_done(&s->upgrader->task.frame));
    bide_check_assert(s->upgrader->status == 0 || s->upgrader->status == -ECANCELED);
    bide_check_assert(s->data == 1 + (s->upgrader->status == 0));
    bide_check_free(s->upgrader);
    finish_one(s, 0, 0);
    finish_free(p);
}

static const bide_check_scenario upgrade_cancelled = {
    .name = "an_upgrade_is_asked_to_stop_while_the_last_reader_unlocks",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_upgrade,
    .threads = {unlock_it, stop_upgrade},
    .finish = finish_stopped_upgrade,
};

/* The upgrade was admitted. It is destroyed before it runs, and what it held before is unlocked. */
static void setup_kept_upgrade(void *p)
{
    setup_upgradable(p);
    begin_upgrade(p, &kept);
}

static void finish_destroyed_upgrade(void *p)
{
    state *s = p;
    bide_rw_lock_waiter lock;
    bide_check_assert(s->early[0]->status == 1);
    bide_destroy(&s->upgrader->task.frame);
    bide_check_assert(s->upgrader->status == 1);
    bide_check_assert(s->upgradable.holds == BIDE_RW_LOCK_MAY_UPGRADE_);
    bide_check_free(s->upgrader);
    bide_check_assert(!bide_rw_lock_try_write(&lock, &s->lock));
    bide_rw_lock_unlock(&s->upgradable);
    finish_one(s, 0, 0);
    finish_free(p);
}

static const bide_check_scenario upgrade_destroyed = {
    .name = "an_upgrade_is_destroyed_that_was_let_in",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_kept_upgrade,
    .threads = {unlock_it, try_to_read},
    .finish = finish_destroyed_upgrade,
};

/* ---- Destroyed before it runs ---- */

static void setup_kept_writer(void *p)
{
    state *s = p;
    setup(p);
    bide_check_assert(bide_rw_lock_try_read(&s->holder, &s->lock));
    enlist_in(s, 0, true, &kept);
    enlist(s, 1, false);
}

/* The writer got the lock. The reader behind it continues when the writer is destroyed. */
static void finish_destroyed(void *p)
{
    state *s = p;
    bide_check_assert(s->early[1]->status == 1);
    bide_destroy(&s->early[0]->task.frame);
    bide_check_assert(s->early[0]->status == 1);
    bide_check_free(s->early[0]);
    finish_one(s, 1, 0);
    finish_free(p);
}

static const bide_check_scenario destroyed = {
    .name = "a_writer_is_destroyed_that_was_let_in",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_kept_writer,
    .threads = {unlock_it, try_to_read},
    .finish = finish_destroyed,
};

/* ---- The memory is freed as early as allowed ---- */

static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_rw_lock_init(s->allocated);
    s->users = 2;
}

/* The last user frees the lock directly after its unlock. */
static void use_and_free(void *p)
{
    state *s = p;
    bide_rw_lock_waiter lock;
    bide_check_await(bide_rw_lock_write(&lock, s->allocated));
    bool last = --s->users == 0;
    bide_rw_lock_unlock(&lock);
    if (last)
        bide_check_free(s->allocated);
}

static void read_and_use_and_free(void *p)
{
    state *s = p;
    bide_rw_lock_waiter lock;
    bide_check_await(bide_rw_lock_read(&lock, s->allocated));
    bide_rw_lock_unlock(&lock);
    use_and_free(p);
}

static const bide_check_scenario freed = {
    .name = "the_last_to_unlock_it_frees_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {use_and_free, read_and_use_and_free},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &written_and_read,
        &read_by_two,
        &downgraded,
        &downgraded_and_written,
        &cancelled,
        &closed,
        &downgraded_with_line,
        &freed,
        &read_together,
        &destroyed,
        &upgraded_and_read,
        &upgraded_and_written,
        &upgraded_twice,
        &tried_to_upgrade,
        &upgraded_before_the_line,
        &upgrade_closed,
        &upgrade_cancelled,
        &upgrade_destroyed,
        NULL,
    };
    static const char *const files[] = {"rw_lock.h", "rw_lock.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
