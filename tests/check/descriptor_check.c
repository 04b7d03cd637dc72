/*
 * A descriptor that belongs to no io is used for the first time and closed by several threads of a
 * group. Each io's thread is a lock here: a thread holds that of its own io, and hands it over while it
 * waits for another thread. The requests themselves are in mail_check.c.
 */
#include "bide/check.h"
#include "bide/check_pthread.h"
#include "bide/errors.h"

#include "../../src/io/operation.h"

#include <errno.h>

enum { IOS = 2, NUMBER = 3 };

typedef struct state {
    bide_io ios[IOS];
    pthread_mutex_t threads[IOS];
    bide_descriptor descriptor;
    bool is_waited_for; /* an operation waits on the descriptor */
    bool number_is_open;
    unsigned begun, ended;     /* operations */
    unsigned closes, releases; /* that succeeded */
} state;

static state *only;

/* ---- Threads of the io ---- */

static void enter(unsigned own)
{
    if (own < IOS)
        pthread_mutex_lock(&only->threads[own]);
}

static void leave(unsigned own)
{
    if (own < IOS)
        pthread_mutex_unlock(&only->threads[own]);
}

static unsigned own_io(void)
{
    return bide_check_thread() - 1; /* the third thread has none */
}

void bide_io_call_remote_(bide_io *io, void (*run)(bide_io *io, void *argument), void *argument)
{
    unsigned own = own_io();
    unsigned other = (unsigned)(io - only->ios);
    bide_check_assert(other < IOS);
    if (own == other) {
        run(io, argument);
        return;
    }
    leave(own);
    enter(other);
    run(io, argument);
    leave(other);
    enter(own);
}

/* ---- An io that performs no operation ---- */

/* What waits ends. */
static void release(bide_io *io, bide_descriptor *descriptor)
{
    bide_check_assert(io_of(descriptor) == io);
    only->ended += only->is_waited_for;
    only->is_waited_for = false;
}

static const bide_io_table table = {.name = "none", .release = release};

static const struct bide_io_group_ group = {NULL};

int bide_io_close_number_(bide_io *io, int fd)
{
    (void)io;
    bide_check_assert(fd == NUMBER && only->number_is_open && !only->is_waited_for);
    only->number_is_open = false;
    return 0;
}

static void setup(void *p)
{
    state *s = only = p;
    for (unsigned i = 0; i < IOS; i++) {
        s->ios[i].table = &table;
        s->ios[i].group = &group;
        pthread_mutex_init(&s->threads[i], NULL);
    }
    bide_descriptor_init(&s->descriptor, NUMBER);
    s->number_is_open = true;
}

/* ---- What the threads do ---- */

/* As operation.c begins one, on its owner's thread. */
static void begin_there(bide_io *io, void *argument)
{
    state *s = argument;
    if (!bide_descriptor_is_open(&s->descriptor))
        return;
    bide_io *owner = bide_descriptor_claim_(io, &s->descriptor);
    bide_check_assert(owner == NULL || owner == io);
    if (owner == NULL)
        return;
    bide_io_adopt(io, &s->descriptor);
    bide_check_assert(s->number_is_open && bide_descriptor_fd(&s->descriptor) == NUMBER);
    s->begun += !s->is_waited_for;
    s->is_waited_for = true;
}

static void use(void *p)
{
    state *s = p;
    unsigned own = own_io();
    enter(own);
    if (bide_descriptor_is_open(&s->descriptor)) {
        bide_io *owner = bide_descriptor_claim_(&s->ios[own], &s->descriptor);
        if (owner != NULL)
            bide_io_call_remote_(owner, begin_there, s);
    }
    leave(own);
}

static void close_it(void *p)
{
    state *s = p;
    unsigned own = own_io();
    enter(own);
    int result = bide_close(&s->descriptor);
    leave(own);
    bide_check_assert(result == 0 || result == -EBADF);
    if (result == 0)
        s->closes++; /* (a race, if two succeed) */
}

static void release_it(void *p)
{
    state *s = p;
    unsigned own = own_io();
    enter(own);
    int result = bide_descriptor_release(&s->descriptor);
    leave(own);
    bide_check_assert(result == NUMBER || result == -EBADF);
    if (result == NUMBER) {
        bide_check_assert(s->number_is_open && !s->is_waited_for);
        s->releases++;
    }
}

static void finish(void *p)
{
    const state *s = p;
    bide_check_assert(s->closes + s->releases == 1);
    bide_check_assert(s->number_is_open == (s->releases == 1));
    bide_check_assert(!s->is_waited_for && s->begun == s->ended);
    bide_check_assert(!bide_descriptor_is_open(&s->descriptor));
    bide_check_assert(io_of(&s->descriptor) == NULL && s->descriptor.place == NULL);
    for (unsigned i = 0; i < IOS; i++)
        bide_check_assert(s->ios[i].descriptors == NULL);
}

static const bide_check_scenario use_and_close = {
    .name = "a_first_use_and_a_close",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {use, close_it},
    .finish = finish,
};

static const bide_check_scenario use_and_release = {
    .name = "a_first_use_and_a_release",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {use, release_it},
    .finish = finish,
};

static const bide_check_scenario two_closes = {
    .name = "two_closes",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {close_it, close_it},
    .finish = finish,
};

static const bide_check_scenario two_uses_and_a_close = {
    .name = "two_first_uses_and_a_close_outside",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {use, use, close_it},
    .finish = finish,
};

static const bide_check_scenario use_and_two_closes = {
    .name = "a_first_use_and_two_closes",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {use, close_it, close_it},
    .finish = finish,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&use_and_close,        &use_and_release,
                                                     &two_closes,           &use_and_two_closes,
                                                     &two_uses_and_a_close, NULL};
    static const char *const files[] = {"descriptor.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
