/*
 * The linked queue: a producer and a consumer, with nodes that the producer reuses.
 */
#include "queue_nodes.h"

#include "bide/linked_queue.h"

typedef bide_linked_queue(uint64_t) number_queue;

typedef struct state {
    queue_nodes nodes;
    number_queue queue;
    uint64_t expected; /* of the consumer: the next value */
    uint64_t pushed;   /* of the producer */
} state;

static void push(state *s)
{
    uint64_t number = s->pushed + 1;
    bide_check_assert(bide_linked_queue_push(&s->queue, nodes_cache(&s->nodes), &number) == 0);
    s->pushed = number;
}

static int pop(state *s)
{
    uint64_t number = 0;
    int status = bide_linked_queue_pop(&s->queue, nodes_cache(&s->nodes), &number);
    bide_check_assert(status == 0 ? number == s->expected++
                                  : status == -EAGAIN || status == -EPIPE);
    return status;
}

static void setup(void *p)
{
    state *s = p;
    nodes_init(&s->nodes, bide_linked_queue_node_size(uint64_t), 2);
    bide_check_assert(bide_linked_queue_init(&s->queue, nodes_cache(&s->nodes)) == 0);
    s->expected = 1;
}

static void finish(void *p)
{
    state *s = p;
    while (pop(s) == 0)
        continue;
    bide_check_assert(s->expected == s->pushed + 1);
    bide_linked_queue_destroy(&s->queue, nodes_cache(&s->nodes));
    nodes_destroy(&s->nodes);
}

static void push_two(void *p)
{
    push(p);
    push(p);
}

static void pop_three(void *p)
{
    pop(p);
    pop(p);
    pop(p);
}

static void push_two_and_close(void *p)
{
    push_two(p);
    bide_linked_queue_close(&((state *)p)->queue);
    uint64_t number = 3;
    bide_check_assert(bide_linked_queue_push(&((state *)p)->queue,
                                             nodes_cache(&((state *)p)->nodes), &number) == -EPIPE);
}

/* A consumer that sees the close has popped everything. */
static void pop_until_closed(void *p)
{
    state *s = p;
    for (int i = 0; i < 4; i++)
        if (pop(s) == -EPIPE) {
            bide_check_assert(s->expected == 3);
            return;
        }
}

static void push_both(void *p)
{
    state *s = p;
    const uint64_t both[] = {1, 2};
    bide_check_assert(bide_linked_queue_push_many(&s->queue, nodes_cache(&s->nodes), both, 2) == 2);
    s->pushed = 2;
}

/* A batch is visible as a whole, or not at all. */
static void pop_both(void *p)
{
    state *s = p;
    uint64_t numbers[3] = {0};
    ptrdiff_t count = bide_linked_queue_pop_many(&s->queue, nodes_cache(&s->nodes), numbers, 3);
    bide_check_assert(count == -EAGAIN || (count == 2 && numbers[0] == 1 && numbers[1] == 2));
    s->expected += count == 2 ? 2 : 0;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): initialisers */
#define SCENARIO(id, text, first, second)                                   \
    static const bide_check_scenario id = {.name = text,                    \
                                           .size = sizeof(state),           \
                                           .cxx20_release_sequences = true, \
                                           .setup = setup,                  \
                                           .threads = {first, second},      \
                                           .finish = finish}
/* NOLINTEND(bugprone-macro-parentheses) */

SCENARIO(pushed, "two_are_pushed_while_three_are_popped", push_two, pop_three);
SCENARIO(closed, "it_is_not_closed_before_it_is_empty", push_two_and_close, pop_until_closed);
SCENARIO(many, "a_batch_is_there_at_once", push_both, pop_both);

/* ---- Nodes return to the producer through the pool ---- */

static void setup_short(void *p)
{
    state *s = p;
    nodes_init(&s->nodes, bide_linked_queue_node_size(uint64_t), 0);
    bide_check_assert(bide_linked_queue_init(&s->queue, nodes_cache(&s->nodes)) == 0);
    s->expected = 1;
    bide_node_put(&s->nodes.caches[1], bide_node_get(nodes_cache(&s->nodes)));
}

static void push_and_try(void *p)
{
    state *s = p;
    push(s);
    uint64_t number = 2;
    int status = bide_linked_queue_push(&s->queue, nodes_cache(&s->nodes), &number);
    bide_check_assert(status == 0 || status == -ENOMEM);
    s->pushed += status == 0;
}

static void pop_and_flush(void *p)
{
    state *s = p;
    pop(s);
    bide_node_cache_flush(nodes_cache(&s->nodes));
}

static void finish_short(void *p)
{
    state *s = p;
    bide_node_cache *cache = nodes_cache(&s->nodes);
    for (uint32_t i = s->nodes.caches[1].count; i != 0; i--)
        bide_node_put(cache, bide_node_get(&s->nodes.caches[1]));
    while (pop(s) == 0)
        continue;
    bide_check_assert(s->expected == s->pushed + 1);
    bide_linked_queue_destroy(&s->queue, cache);
    bide_node_pool_destroy(&s->nodes.pool);
}

static const bide_check_scenario again = {.name = "a_node_comes_back_through_the_pool",
                                          .size = sizeof(state),
                                          .cxx20_release_sequences = true,
                                          .setup = setup_short,
                                          .threads = {push_and_try, pop_and_flush},
                                          .finish = finish_short};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&pushed, &closed, &many, &again, NULL};
    static const char *const files[] = {"linked_queue.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
