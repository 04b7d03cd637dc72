/*
 * The counted queue: concurrent pushes, pops and closes, with nodes that are reused. No element is
 * lost, popped twice, out of order, or read after its node is reused, and all nodes are returned.
 */
#include "queue_nodes.h"

#include "bide/counted_queue.h"

typedef bide_counted_queue(uint64_t) number_queue;

enum { NUMBERS = 8, NOTHING = 0 };

typedef struct state {
    queue_nodes nodes;
    number_queue queue;
    uint64_t taken[BIDE_CHECK_THREADS + 1][NUMBERS]; /* the thread that popped it */
    uint32_t counts[BIDE_CHECK_THREADS + 1];
    int pushed[BIDE_CHECK_THREADS + 1]; /* the result of the push */
} state;

static int push(state *s, uint64_t number)
{
    return bide_counted_queue_push(&s->queue, nodes_cache(&s->nodes), &number);
}

static int pop(state *s)
{
    unsigned me = bide_check_thread();
    uint64_t number = NOTHING;
    int status = bide_counted_queue_pop(&s->queue, nodes_cache(&s->nodes), &number);
    if (status == 0) {
        bide_check_assert(number != NOTHING);
        s->taken[me][s->counts[me]++] = number;
    } else {
        bide_check_assert(status == -EAGAIN || status == -EPIPE);
    }
    return status;
}

static void setup(void *p)
{
    state *s = p;
    nodes_init(&s->nodes, bide_counted_queue_node_size(uint64_t), 2);
    bide_check_assert(bide_counted_queue_init(&s->queue, nodes_cache(&s->nodes)) == 0);
}

static void setup_one(void *p)
{
    setup(p);
    push(p, 1);
}

static void setup_two(void *p)
{
    setup_one(p);
    push(p, 2);
}

/*
 * Pops the rest. The numbers up to `count` were each popped once, and those of one producer (odd,
 * even) in order.
 */
static void finish_with(state *s, uint64_t count)
{
    uint32_t seen[NUMBERS + 1] = {0};
    uint64_t total = 0;
    while (pop(s) == 0)
        continue;
    for (unsigned i = 0; i <= BIDE_CHECK_THREADS; i++)
        for (uint32_t j = 0; j < s->counts[i]; j++, total++)
            seen[s->taken[i][j]]++;
    bide_check_assert(total == count);
    for (uint64_t number = 1; number <= count; number++)
        bide_check_assert(seen[number] == 1);
    bide_counted_queue_destroy(&s->queue, nodes_cache(&s->nodes));
    nodes_destroy(&s->nodes);
}

static void finish_one(void *p)
{
    finish_with(p, 1);
}

static void finish_two(void *p)
{
    finish_with(p, 2);
}

static void finish_three(void *p)
{
    finish_with(p, 3);
}

static void push_1(void *p)
{
    push(p, 1);
}

static void push_2(void *p)
{
    push(p, 2);
}

static void push_3(void *p)
{
    push(p, 3);
}

static void pop_one(void *p)
{
    pop(p);
}

static void pop_two(void *p)
{
    pop(p);
    pop(p);
}

#define SCENARIO(id, text, ...)             \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .cxx20_release_sequences = true, __VA_ARGS__}

SCENARIO(push_pop, "a_producer_pushes_while_a_consumer_pops", .setup = setup,
         .threads = {push_1, pop_one}, .finish = finish_one);
SCENARIO(push_push, "two_push", .setup = setup, .threads = {push_1, push_2}, .finish = finish_two);
SCENARIO(pop_pop, "two_pop", .setup = setup_two, .threads = {pop_one, pop_one},
         .finish = finish_two);
SCENARIO(pop_last, "two_pop_the_last", .setup = setup_one, .threads = {pop_one, pop_one},
         .finish = finish_one);
SCENARIO(pop_pushed, "two_pop_what_a_producer_pushes", .setup = setup,
         .threads = {push_1, pop_one, pop_one}, .finish = finish_one);
SCENARIO(push_pop_pop, "a_producer_pushes_while_two_pop", .setup = setup_two,
         .threads = {push_3, pop_one, pop_one}, .finish = finish_three);
SCENARIO(push_push_pop, "two_push_while_a_consumer_pops", .setup = setup_one,
         .threads = {push_2, push_3, pop_one}, .finish = finish_three);

/* ---- In order ---- */

static void push_1_2(void *p)
{
    push(p, 1);
    push(p, 2);
}

static void push_both(void *p)
{
    state *s = p;
    const uint64_t both[] = {1, 2};
    bide_check_assert(bide_counted_queue_push_many(&s->queue, nodes_cache(&s->nodes), both, 2) ==
                      2);
}

static void finish_in_order(void *p)
{
    state *s = p;
    bide_check_assert(s->counts[2] < 1 || s->taken[2][0] == 1);
    finish_two(p);
}

/* A node that was returned too early would be reused now. */
static void pop_and_push_4_and_finish(void *p)
{
    pop(p);
    push(p, 4);
    finish_with(p, 4);
}

SCENARIO(in_order, "what_a_producer_pushes_comes_in_its_order", .setup = setup,
         .threads = {push_1_2, pop_two}, .finish = finish_in_order);
SCENARIO(many, "a_batch_comes_in_its_order", .setup = setup, .threads = {push_both, pop_two},
         .finish = finish_in_order);
SCENARIO(many_push, "a_batch_and_an_element_are_pushed", .setup = setup,
         .threads = {push_both, push_3}, .finish = pop_and_push_4_and_finish);

/* ---- Nodes that are reused ---- */

static void pop_and_push(void *p)
{
    pop(p);
    push(p, 2);
}

static void pop_and_push_3(void *p)
{
    pop(p);
    push(p, 3);
}

SCENARIO(again, "a_node_is_used_again_while_a_consumer_pops", .setup = setup_one,
         .threads = {pop_and_push, pop_one}, .finish = finish_two);
static void push_pop_push(void *p)
{
    push(p, 1);
    pop(p);
    push(p, 2);
}

SCENARIO(again_both, "nodes_are_used_again_on_both_sides", .setup = setup_one,
         .threads = {pop_and_push, pop_and_push_3}, .finish = finish_three);

SCENARIO(again_empty, "a_node_is_used_again_in_which_a_consumer_found_nothing", .setup = setup,
         .threads = {push_pop_push, pop_one}, .finish = finish_two);

/* ---- Closing ---- */

static void close_it(void *p)
{
    state *s = p;
    bide_counted_queue_close(&s->queue, nodes_cache(&s->nodes));
}

static void push_or_not(void *p)
{
    state *s = p;
    s->pushed[bide_check_thread()] = push(s, 1);
}

static void pop_and_learn(void *p)
{
    state *s = p;
    if (pop(s) == -EPIPE)
        bide_check_assert(pop(s) == -EPIPE);
}

static void finish_closed(void *p)
{
    state *s = p;
    bide_check_assert(push(s, 7) == -EPIPE);
    bide_check_assert(s->pushed[2] == 0 || s->pushed[2] == -EPIPE);
    finish_with(s, s->pushed[2] == 0 ? 1 : 0);
}

SCENARIO(closed_push, "it_is_closed_while_a_producer_pushes", .setup = setup,
         .threads = {close_it, push_or_not}, .finish = finish_closed);
SCENARIO(closed_pop, "it_is_closed_while_a_producer_pushes_and_a_consumer_pops", .setup = setup,
         .threads = {close_it, push_or_not, pop_and_learn}, .finish = finish_closed);

/* Elements that were pushed before the close are visible to a thread that knows of the close. */
static void push_and_close(void *p)
{
    push(p, 1);
    close_it(p);
}

static void pop_until_closed(void *p)
{
    state *s = p;
    if (pop(s) == -EPIPE)
        bide_check_assert(s->counts[2] == 1);
    if (pop(s) == -EPIPE)
        bide_check_assert(s->counts[2] == 1);
}

SCENARIO(drained, "it_is_not_closed_before_it_is_empty", .setup = setup,
         .threads = {push_and_close, pop_until_closed}, .finish = finish_one);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &push_pop,   &push_push,   &pop_pop,    &pop_last, &push_pop_pop, &push_push_pop,
        &in_order,   &many,        &many_push,  &again,    &again_both,   &again_empty,
        &pop_pushed, &closed_push, &closed_pop, &drained,  NULL};
    static const char *const files[] = {"counted_queue.h", "counted_queue.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
