/* Misuse of descriptors is detected. It neither hangs nor affects other descriptors. */
#define _GNU_SOURCE
#include "world.h"

#include "misuse.h"

/*
 * Misuse is in a process with a world of its own, and its parent has none at that time. A thread of a pool in the
 * parent may be in malloc at the fork. The allocator of AddressSanitizer takes its locks at no fork (clang 14), so
 * in the child the first thread that allocates would wait for ever.
 */
static void need_world(void)
{
    void *state;
    world_begin(&state);
    bool is_there = ((world *)state)->context != NULL;
    world_end(&state);
    if (!is_there)
        skip();
}

static world *begin(void)
{
    void *state;
    world_begin(&state);
    return state;
}

static void end(world *world)
{
    if (world->memory != NULL)
        bide_memory_io_destroy(world->memory);
    else if (world->pool != NULL)
        bide_thread_pool_destroy(world->pool);
    else
        bide_loop_destroy(world->loop);
}

static void use(world *world, bide_descriptor *one, bide_descriptor *other)
{
    bide_io_operation operation;
    char byte = 'x';
    assert_int_equal(world_wait(world, bide_socket_pair(&operation, one, other)), 0);
    assert_int_equal(world_wait(world, bide_send(&operation, one, &byte, 1)), 0);
    assert_int_equal(world_wait(world, bide_recv(&operation, other, &byte, 1)), 0);
}

static void destroy_with_the_newest_overwritten(void)
{
    bide_descriptor one, other;
    world *world = begin();
    use(world, &one, &other);
    bide_descriptor_init_closed(&other);
    end(world);
}

static void destroy_with_an_older_one_overwritten(void)
{
    bide_descriptor one, other;
    world *world = begin();
    use(world, &one, &other);
    bide_descriptor_init_closed(&one);
    end(world);
}

/* (a frame on the stack of a function that has returned, or from an allocator) */
static void destroy_with_its_memory_used_for_something_else(void)
{
    bide_descriptor one, other;
    world *world = begin();
    use(world, &one, &other);
    memset(&other, 0x55, sizeof other);
    end(world);
}

/* The previous descriptors are not closed. */
static void make_others_of_the_same_structs(void)
{
    bide_descriptor one, other;
    world *world = begin();
    use(world, &one, &other);
    use(world, &one, &other);
    end(world);
}

static void use_on_another_loop(void)
{
    bide_descriptor one, other;
    bide_io_operation operation;
    bide_loop *second;
    world *world = begin();
    use(world, &one, &other);
    assert_int_equal(bide_loop_create(&second, NULL), 0);
    bide_loop_wait(second, bide_send(&operation, &one, "x", 1));
}

static void an_overwritten_descriptor_is_reported(void **state)
{
    static const char told[] = "a descriptor was overwritten while it belonged to a loop";
    (void)state;
    need_world();
    assert_true(
        misuse_aborts_naming(destroy_with_the_newest_overwritten, told, "the end of that loop"));
    assert_true(
        misuse_aborts_naming(destroy_with_an_older_one_overwritten, told, "the end of that loop"));
    assert_true(misuse_aborts_naming(destroy_with_its_memory_used_for_something_else, told,
                                     "the end of that loop"));
    assert_true(misuse_aborts_naming(make_others_of_the_same_structs, told, "another descriptor"));
}

static void one_loop_has_a_descriptor(void **state)
{
    (void)state;
    need_world();
    assert_true(misuse_aborts_naming(use_on_another_loop, "a descriptor is used on two loops",
                                     "bide_send"));
}

static void a_struct_that_was_closed_or_released_is_made_another(void **state)
{
    bide_descriptor one, other;
    world *world = world_of(state);
    for (int round = 0; round < 3; round++) {
        use(world, &one, &other);
        world_close(world, bide_descriptor_release(&one));
        assert_int_equal(bide_close(&other), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overwritten_descriptor_is_reported),
        cmocka_unit_test(one_loop_has_a_descriptor),
        world_test(a_struct_that_was_closed_or_released_is_made_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
