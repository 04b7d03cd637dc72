/*
 * The list of live roots: roots are added, removed and freed while a thread walks the list in
 * batches. The other scenarios do not touch the list.
 */
#include "../../src/coroutine/roots.h"

#include "bide/check.h"

typedef struct state {
    bide_root standing;
    bide_root second;
} state;

static void setup(void *p)
{
    state *s = p;
    bide_short_lock_init_(&bide_roots_[0].lock);
    bide_roots_[0].first = NULL;
    bide_roots_add_(&s->standing);
    bide_roots_add_(&s->second);
}

static void come_and_go(void *p)
{
    (void)p;
    bide_root *root = bide_check_alloc(sizeof *root);
    bide_roots_add_(root);
    bide_roots_remove_(root);
    bide_check_free(root);
}

static void go(void *p)
{
    bide_roots_remove_(&((state *)p)->second);
}

/* In batches of one, so that the list changes in between. */
static void look(void *p)
{
    state *s = p;
    const bide_root_links_ *links;
    unsigned met = 0;
    unsigned others = 0;
    bide_roots_enter_(&bide_roots_[0]);
    while (bide_roots_next_(&bide_roots_[0], &links, 1) == 1) {
        met += links == &s->standing.links;
        others += links != &s->standing.links;
    }
    bide_roots_leave_(&bide_roots_[0]);
    bide_check_assert(met == 1);
    bide_check_assert(others <= 2);
}

static void only_the_standing_one_is_left(void *p)
{
    state *s = p;
    bide_check_assert(bide_roots_[0].first == &s->standing.links);
    bide_check_assert(s->standing.links.next == NULL);
    bide_check_assert(s->standing.links.place == &bide_roots_[0].first);
}

static const bide_check_scenario looked_at = {
    .name = "a_root_that_stays_is_met_once_while_others_come_and_go",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {come_and_go, look},
};

static const bide_check_scenario left = {
    .name = "a_root_goes_while_the_list_is_looked_at",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {go, look},
    .finish = only_the_standing_one_is_left,
};

static const bide_check_scenario begun_and_ended = {
    .name = "a_root_begins_and_ends_while_another_ends",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {come_and_go, go},
    .finish = only_the_standing_one_is_left,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&looked_at, &left, &begun_and_ended, NULL};
    static const char *const files[] = {"roots.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
