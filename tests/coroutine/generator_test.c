/*
 * Generators: values come one at a time and in order, errors at the end; break and end run `finally`.
 */
#include "testing.h"

#include "bide/generator.h"

#include <errno.h>

struct count {
    bide_generator generator;
    int i, n;
    int error;
    int finals;
};

bide_generator_coroutine(count_body)
{
    bide_begin(count_body, struct count * self);
    for (self->i = 0; self->i < self->n; self->i++)
        bide_yield(&self->i);
    if (self->error != 0)
        bide_return(self->error);
    bide_finally();
    self->finals++;
    bide_end();
}

static bide_generator *count(struct count *self, int n, int error)
{
    self->n = n;
    self->error = error;
    self->finals = 0;
    return bide_generator_init(&self->generator, &count_body);
}

static void values_come_in_order_and_then_null_for_ever(void **state)
{
    (void)state;
    struct count frame;
    bide_generator *generator = count(&frame, 3, 0);
    for (int i = 0; i < 3; i++) {
        int *number = bide_generator_next(generator);
        assert_non_null(number);
        assert_int_equal(*number, i);
        assert_int_equal(frame.finals, 0);
    }
    for (int i = 0; i < 3; i++)
        assert_null(bide_generator_next(generator));
    assert_int_equal(bide_generator_error(generator), 0);
    assert_int_equal(frame.finals, 1);
}

static void nothing_runs_before_the_first_value_is_asked_for(void **state)
{
    (void)state;
    struct count frame = {.i = -7};
    bide_generator *generator = count(&frame, 3, 0);
    assert_int_equal(frame.i, -7);
    bide_generator_destroy(generator);
    assert_int_equal(frame.i, -7);
    assert_int_equal(frame.finals, 0);
    assert_int_equal(bide_generator_error(generator), -ECANCELED);
    assert_null(bide_generator_next(generator));
}

static void a_loop_takes_all_values(void **state)
{
    (void)state;
    struct count frame;
    int sum = 0, rounds = 0;
    bide_for (int *, number, count(&frame, 10, 0)) {
        sum += *number;
        rounds++;
    }
    assert_int_equal(sum, 45);
    assert_int_equal(rounds, 10);
    assert_int_equal(frame.finals, 1);
    bide_for (int *, number, count(&frame, 0, 0))
        sum += *number;
    assert_int_equal(sum, 45);
}

static void an_error_ends_the_loop_and_is_kept(void **state)
{
    (void)state;
    struct count frame;
    int rounds = 0;
    bide_for (int *, number, count(&frame, 2, -EIO))
        rounds += *number >= 0;
    assert_int_equal(rounds, 2);
    assert_int_equal(bide_generator_error(&frame.generator), -EIO);
    assert_int_equal(frame.finals, 1);
}

static void break_ends_the_generator(void **state)
{
    (void)state;
    struct count frame;
    int last = -1;
    bide_for (int *, number, count(&frame, 10, 0)) {
        last = *number;
        if (last == 4)
            break;
    }
    assert_int_equal(last, 4);
    assert_int_equal(frame.finals, 1);
    assert_true(bide_done(&frame.generator.frame));
    assert_int_equal(bide_generator_error(&frame.generator), -ECANCELED);
    assert_null(bide_generator_next(&frame.generator));
}

static void continue_goes_on_with_the_next_value(void **state)
{
    (void)state;
    struct count frame;
    int sum = 0;
    bide_for (int *, number, count(&frame, 6, 0)) {
        if (*number % 2 == 0)
            continue;
        sum += *number;
    }
    assert_int_equal(sum, 1 + 3 + 5);
}

static int min_first_at(bide_generator *numbers, int min)
{
    bide_for (int *, number, numbers) {
        if (*number >= min)
            return *number;
    }
    return -1;
}

static void return_leaves_it_where_it_stands_for_another_loop(void **state)
{
    (void)state;
    struct count frame;
    bide_generator *generator = count(&frame, 5, 0);
    assert_int_equal(min_first_at(generator, 1), 1);
    assert_int_equal(frame.finals, 0);
    assert_int_equal(min_first_at(generator, 1), 2);
    assert_int_equal(min_first_at(generator, 9), -1);
    assert_int_equal(frame.finals, 1);
    assert_int_equal(min_first_at(generator, 0), -1);
    assert_int_equal(frame.finals, 1);
}

static void loops_nest(void **state)
{
    (void)state;
    struct count outer, inner;
    int sum = 0, rounds = 0;
    bide_for (int *, a, count(&outer, 4, 0)) {
        bide_for (int *, b, count(&inner, *a, 0)) {
            if (*b == 2)
                break;
            sum += 10 * *a + *b;
            rounds++;
        }
    }
    assert_int_equal(rounds, 0 + 1 + 2 + 2);
    assert_int_equal(sum, 10 + 20 + 21 + 30 + 31);
    assert_int_equal(outer.finals, 1);
}

/* Yields from several places, in loops and blocks, and what it takes from another generator. */
struct words {
    bide_generator generator;
    struct count count;
    int *number;
    int i;
    char text[2];
};

static const char *const ABC[] = {"a", "b", "c"};

bide_generator_coroutine(words_body)
{
    bide_begin(words_body, struct words * self);
    bide_yield((void *)(uintptr_t)ABC[0]);
    while (true) {
        do {
            if (self->i++ == 2)
                break;
            bide_yield((void *)(uintptr_t)ABC[1]);
        } while (self->i < 5);
        if (self->i == 3)
            break;
    }
    for (count(&self->count, 2, 0);
         (self->number = bide_generator_next(&self->count.generator)) != NULL;) {
        self->text[0] = (char)('0' + *self->number);
        bide_yield(self->text);
    }
    switch (self->i) {
    case 3:
        break;
    default:
        bide_return(-EDOM);
    }
    bide_yield((void *)(uintptr_t)ABC[2]);
    bide_end();
}

static void yields_may_stand_in_loops_and_blocks(void **state)
{
    (void)state;
    struct words frame = {.i = 0};
    char said[16] = "";
    bide_for (const char *, word, bide_generator_init(&frame.generator, &words_body))
        strcat(said, word);
    assert_string_equal(said, "abb01c");
    assert_int_equal(bide_generator_error(&frame.generator), 0);
}

static void a_frame_may_be_used_again(void **state)
{
    (void)state;
    struct count frame;
    for (int round = 0; round < 3; round++) {
        int sum = 0;
        bide_for (int *, number, count(&frame, round, 0))
            sum += *number + 1;
        assert_int_equal(sum, round * (round + 1) / 2);
    }
}

static void where_it_stands_can_be_read(void **state)
{
    (void)state;
    struct count frame;
    bide_generator *generator = count(&frame, 1, 0);
    assert_int_equal(bide_frame_point(&generator->frame)->state, BIDE_AT_START);
    bide_generator_next(generator);
    assert_int_equal(bide_frame_point(&generator->frame)->state, BIDE_AT_YIELD);
    assert_string_equal(bide_frame_point(&generator->frame)->code->name, "count_body");
    bide_generator_next(generator);
    assert_int_equal(bide_frame_point(&generator->frame)->state, BIDE_AT_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_in_order_and_then_null_for_ever),
        cmocka_unit_test(nothing_runs_before_the_first_value_is_asked_for),
        cmocka_unit_test(a_loop_takes_all_values),
        cmocka_unit_test(an_error_ends_the_loop_and_is_kept),
        cmocka_unit_test(break_ends_the_generator),
        cmocka_unit_test(continue_goes_on_with_the_next_value),
        cmocka_unit_test(return_leaves_it_where_it_stands_for_another_loop),
        cmocka_unit_test(loops_nest),
        cmocka_unit_test(yields_may_stand_in_loops_and_blocks),
        cmocka_unit_test(a_frame_may_be_used_again),
        cmocka_unit_test(where_it_stands_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
