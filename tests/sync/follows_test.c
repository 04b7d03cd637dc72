/*
 * Operations follow the stop source of the coroutine that awaits them: the table of follows/follows.h, on a test loop,
 * in virtual time. Prints a line for each row, and the table of those that complete instead.
 */
#include "follows/follows.h"

#include "bide/handle.h"

#include <errno.h>
#include <stdlib.h>

void *cell_new(cell *c, size_t size)
{
    void *memory = aligned_alloc(BIDE_CACHE_LINE,
                                 (size + BIDE_CACHE_LINE - 1) / BIDE_CACHE_LINE * BIDE_CACHE_LINE);
    if (memory == NULL || c->pieces_count == PIECES)
        abort();
    memset(memory, 0, size);
    return c->pieces[c->pieces_count++] = memory;
}

void cell_clean(cell *c, void (*clean)(cell *c))
{
    if (c->cleans_count == PIECES)
        abort();
    c->cleans[c->cleans_count++] = clean;
}

static bide_awaiter *begin(cell *c)
{
    const primitive *p = c->row->primitive;
    if (p == NULL)
        return c->row->begin(c);
    c->object = primitive_new_object(p);
    return p->begin(cell_new(c, p->waiter_size), c->object);
}

enum { SOON = 1000000 /* ns */, SEEDS = 50 /* a delay is drawn: it may be none */ };

static bide_awaiter *wrapped(cell *c, bide_awaiter *operation)
{
    switch (c->column) {
    case DEADLINE:
        return bide_with_deadline(&c->limited, c->loop.now + 10 * SOON, operation);
    case SIBLING:
        bide_branch_init(&c->branches[0], operation);
        bide_branch_init(&c->branches[1], bide_event_wait(&c->wait, &c->event));
        return bide_when_any(&c->when, c->branches, 2);
    case TOKEN:
        return bide_with_stop(&c->with_stop, &c->token, operation);
    default:
        return operation;
    }
}

bide_coroutine(awaiting_body)
{
    bide_begin(awaiting_body, cell * self);
    bide_await_status(self->status, wrapped(self, begin(self)));
    bide_end();
}

static void run_for(cell *c, uint64_t time)
{
    bide_sim_loop_run_until(&c->loop, c->loop.now + time);
}

static bool has_ended(cell *c)
{
    return c->status != WAITS;
}

/* What it ended with: itself, not a wrapper. */
static int own_status(const cell *c)
{
    return c->column == SIBLING ? c->branches[0].status : c->status;
}

static void act(cell *c)
{
    switch (c->column) {
    case ASKED:
        bide_stop_request(&c->stop);
        break;
    case DEADLINE:
        run_for(c, 20 * SOON);
        break;
    case SIBLING:
        bide_event_set(&c->event);
        break;
    case TOKEN:
        bide_stop_request(&c->token);
        break;
    default:
        break;
    }
    run_for(c, SOON);
}

static void cell_begin(cell *c, const row *row, column column, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    c->row = row;
    c->column = column;
    c->status = WAITS;
    bide_sim_loop_init(&c->loop, seed);
    if (bide_memory_io_create(&c->io, &c->loop, NULL) != 0)
        abort();
    bide_stop_source_init(&c->stop);
    bide_stop_source_init(&c->token);
    bide_event_init(&c->event, false);
    c->context = c->loop.context;
    c->context.stop = &c->stop;
    if (column == BEFORE)
        bide_stop_request(&c->stop);
    if (row->prepare != NULL)
        row->prepare(c);
    bide_spawn(&c->spawned, &c->context, bide_task_init(&c->task, &awaiting_body));
    run_for(c, SOON);
}

static void cell_end(cell *c)
{
    if (!bide_event_is_set(&c->spawned.ended))
        bide_destroy(&c->spawned.root.frame);
    while (c->cleans_count != 0)
        c->cleans[--c->cleans_count](c);
    run_for(c, SOON);
    bide_memory_io_destroy(c->io);
    bide_sim_loop_destroy(&c->loop);
    if (c->object != NULL)
        primitive_free_object(c->row->primitive, c->object);
    while (c->pieces_count != 0)
        free(c->pieces[--c->pieces_count]);
}

static const char *const names[COLUMNS] = {"asked", "deadline", "sibling", "token", "before"};

/* NULL: as the row says. Otherwise what is wrong. */
static const char *run_cell(const row *row, column column)
{
    static cell c;
    const char *wrong = NULL;
    uint64_t seed = 1;
    cell_begin(&c, row, column, seed);
    while (column != BEFORE && has_ended(&c) && seed++ < SEEDS) {
        cell_end(&c);
        cell_begin(&c, row, column, seed);
    }
    if (column != BEFORE && has_ended(&c))
        wrong = "it does not wait";
    act(&c);
    int expected = column == DEADLINE ? -ETIMEDOUT : -ECANCELED;
    if (wrong == NULL && row->completes == NULL) {
        if (!has_ended(&c))
            wrong = "it does not follow";
        else if (own_status(&c) != expected)
            wrong = "it ends with something else";
    } else if (wrong == NULL) {
        if (column != BEFORE && has_ended(&c))
            wrong = "it follows, though it says that it completes";
        if (row->end != NULL)
            row->end(&c);
        run_for(&c, SOON);
        if (wrong == NULL && !has_ended(&c))
            wrong = "it does not complete";
    }
    if (wrong != NULL)
        printf("# %s, %s: %s (%d)\n", row->operation, names[column], wrong,
               has_ended(&c) ? own_status(&c) : WAITS);
    cell_end(&c);
    return wrong;
}

static unsigned run_rows(const row *rows, size_t count)
{
    unsigned failed = 0;
    for (size_t i = 0; i < count; i++) {
        bool passes = true;
        for (column column = ASKED; column < COLUMNS; column++)
            passes &= run_cell(&rows[i], column) == NULL;
        failed += !passes;
        printf("%s - %s%s%s\n", passes ? "ok" : "not ok", rows[i].operation,
               rows[i].completes != NULL ? " completes: " : " follows",
               rows[i].completes != NULL ? rows[i].completes : "");
        fflush(stdout);
    }
    return failed;
}

int main(void)
{
    size_t count = rows_of_waits_count + rows_of_tasks_count + rows_of_io_count;
    unsigned failed = run_rows(rows_of_waits, rows_of_waits_count);
    failed += run_rows(rows_of_tasks, rows_of_tasks_count);
    failed += run_rows(rows_of_io, rows_of_io_count);
    printf("1..%zu\n# %zu cells\n", count, count * COLUMNS);
    return failed != 0;
}
