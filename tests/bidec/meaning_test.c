/*
 * An async function means what the same text means in C: commas, local types, pragmas, places that are written through
 * _Generic, jumps before a declaration, temporaries, and the order and the names of cleanups. Translated by bidec.
 */
#include "testing.h"

#include "bide/async.h"
#include "bide/sync_wait.h"
#include "torture.h"

#define PAUSE await bide_torture_pause(0)

/* Overwrites the dead part of the stack. */
static __attribute__((noinline)) void scrub(void)
{
    volatile unsigned char dead[1024];
    for (unsigned i = 0; i < sizeof dead; i++)
        dead[i] = 0x41;
}

async int id(int value)
{
    PAUSE;
    scrub();
    return value;
}

#define RUN(name, ...)                                        \
    ({                                                        \
        static struct async_##name frame;                     \
        bide_sync_wait(async_##name(&frame, ##__VA_ARGS__));  \
        frame.result;                                         \
    })

static int calls;

static int call(void)
{
    return ++calls;
}

/* ---- Commas ---- */

async int comma_returned(void)
{
    PAUSE;
    return call(), 5;
}

async int comma_after_await(void)
{
    return await id(1), 7;
}

struct two {
    int a, b;
};

async struct two comma_of_struct(void)
{
    struct two second = {3, 4};
    PAUSE;
    return call(), second;
}

async int comma_in_choice(int way)
{
    int value = way ? call(), 3 : await id(9);
    return way ? (void)await id(1), value : 0;
}

async int comma_at_the_end(void)
{
    int value = await id(1) + ({ call(); call(), 8; });
    return value;
}

static void test_commas(void **state)
{
    (void)state;
    assert_int_equal(RUN(comma_returned), 5);
    assert_int_equal(RUN(comma_after_await), 7);
    assert_int_equal(RUN(comma_of_struct).a, 3);
    assert_int_equal(RUN(comma_in_choice, 1), 3);
    assert_int_equal(RUN(comma_at_the_end), 9);
}

/* ---- Local types ---- */

async int attributes_of_types(void)
{
    struct behind {
        char a;
        int b;
    } __attribute__((packed));
    struct __attribute__((packed)) before {
        char a;
        int b;
    };
    typedef struct {
        char a;
        int b;
    } __attribute__((packed)) named;
    struct {
        char a;
        int b;
    } __attribute__((packed)) of_none;
    struct wide {
        char a;
    } __attribute__((aligned(32)));
    union __attribute__((aligned(64))) wider {
        char a;
    };
    enum __attribute__((packed)) small { A, B };
    struct behind object = {1, 2};
    PAUSE;
    assert_int_equal(sizeof(struct behind), 5);
    assert_int_equal(sizeof object, 5);
    assert_int_equal(sizeof(struct before), 5);
    assert_int_equal(sizeof(named), 5);
    assert_int_equal(sizeof of_none, 5);
    assert_int_equal(sizeof(struct wide), 32);
    assert_int_equal(sizeof(union wider), 64);
    assert_int_equal(sizeof(enum small), 1);
    return object.a + object.b;
}

async int pragma_in_a_body(void)
{
    struct loose {
        char a;
        int b;
    };
#pragma pack(push, 1)
    struct tight {
        char a;
        int b;
    };
#pragma pack(pop)
    struct loose_again {
        char a;
        int b;
    };
    PAUSE;
    assert_int_equal(sizeof(struct loose), 8);
    assert_int_equal(sizeof(struct tight), 5);
    assert_int_equal(sizeof(struct loose_again), 8);
    return 1;
}

#pragma pack(push, 1)
struct wire {
    char kind;
    int length;
};

async int packed_id(int value)
{
    char c = 1, *p = &c;
    PAUSE;
    return value + *p;
}

async int packed_file(void)
{
    char x = 0, *px = &x;
    int sum = 0;
    struct own {
        char a;
        int b;
    };
    for (int i = 0; i < 10; i++)
        sum += await packed_id(i) + *px;
    assert_int_equal(sizeof(struct own), 5);
    assert_int_equal(sizeof(struct wire), 5);
    return sum;
}
#pragma pack(pop)

struct outer_tag {
    int n[9];
};

async int tag_declared_in_a_body(void)
{
    struct outer_tag;
    struct holder {
        struct outer_tag *at;
        struct later *next;
    };
    struct outer_tag {
        char c[3];
    };
    struct later {
        char c[7];
    };
    struct outer_tag own = {"ab"};
    struct later other = {"abc"};
    struct holder holder = {&own, &other};
    PAUSE;
    return (int)(sizeof *holder.at * 10 + sizeof *holder.next);
}

enum { OTHER = 5 };

async int enumerators_of_a_condition(int n)
{
    int seen = 0;
    PAUSE;
    while (sizeof(enum { OTHER = 7 }) > 0 && n-- > 0)
        seen += OTHER;
    switch ((int)sizeof(enum { OTHER = 8 })) {
    default:
        seen += OTHER;
    }
    if (seen)
        seen += (int)sizeof(enum { OTHER = 9 }) * 0 + OTHER;
    return seen * 10 + OTHER;
}

async int bound_of_a_parameter(int i, int array[i++])
{
    PAUSE;
    return array[i];
}

static void test_types(void **state)
{
    static int array[] = {1, 2, 3};
    (void)state;
    assert_int_equal(RUN(attributes_of_types), 3);
    assert_int_equal(RUN(pragma_in_a_body), 1);
    assert_int_equal(RUN(packed_file), 55);
    assert_int_equal(RUN(tag_declared_in_a_body), 37);
    assert_int_equal(RUN(enumerators_of_a_condition, 2), (14 + 8 + 9) * 10 + 5);
    assert_int_equal(RUN(bound_of_a_parameter, 1, array), 3);
}

/* ---- Locals ---- */

async int place_beside_a_block(int k)
{
    int array[4] = {0}, i = k + 1;
    array[i] = (({ PAUSE; }), await id(7));
    return array[2] * 10 + array[3];
}

async int address_by_generic(void)
{
    int x = 1;
    int *p = &_Generic(x, int: x);
    PAUSE;
    scrub();
    *p = 42;
    PAUSE;
    return x;
}

async int written_by_generic(int x)
{
    _Generic(0, int: x) = 7;
    PAUSE;
    return x;
}

async int written_by_choice(int x)
{
    __builtin_choose_expr(1, x, 0) = 9;
    PAUSE;
    return x;
}

async int written_by_asm(int x)
{
    __asm__("" : "=r"((x)) : "0"(11));
    PAUSE;
    return x;
}

async int goto_before_the_declaration(int n)
{
    int rounds = 0;
again:
    if (rounds) {
        PAUSE;
        scrub();
        goto over;
    }
    int value = n * 2;
over:
    if (rounds++ < 1)
        goto again;
    return value;
}

static void test_locals(void **state)
{
    (void)state;
    assert_int_equal(RUN(place_beside_a_block, 1), 70);
    assert_int_equal(RUN(address_by_generic), 42);
    assert_int_equal(RUN(written_by_generic, 1), 7);
    assert_int_equal(RUN(written_by_choice, 1), 9);
    assert_int_equal(RUN(written_by_asm, 1), 11);
    assert_int_equal(RUN(goto_before_the_declaration, 4), 8);
}

/* ---- Blocks in blocks ---- */

#define MAX(x, y)                                                  \
    ({                                                             \
        __typeof__(x) x_ = (x);                                    \
        __typeof__(y) y_ = (y);                                    \
        x_ > y_ ? x_ : y_;                                         \
    })

async int block_in_a_block(void)
{
    int a = 3, b = 4, m = MAX(a, MAX(b, 3)) + await id(1);
    return m;
}

async int label_at_the_end(int n)
{
    return await id(1) + ({
               int value = n;
               PAUSE;
               if (value > 2)
                   goto end;
               value = 9;
           end:
               value + 1;
           });
}

/* ---- Temporaries and vectors ---- */

struct box {
    int a[4];
};

static struct box make(int n)
{
    return (struct box){{n, n + 1, n + 2, n + 3}};
}

static int sum(const int *at, int more)
{
    scrub();
    return at[0] + at[1] + at[2] + at[3] + more;
}

async struct box make_later(int n)
{
    PAUSE;
    return make(n);
}

async int sum_later(const int *at, int more)
{
    PAUSE;
    return sum(at, more);
}

async int element_of_a_temporary(void)
{
    return (await make_later(5)).a[await id(2)];
}

async int temporary_of_a_call(void)
{
    return sum(make(1).a, await id(100));
}

async int temporary_of_an_await(void)
{
    return sum((await make_later(1)).a, await id(100));
}

async int temporary_awaited(void)
{
    return await sum_later(make(1).a, 100);
}

async int temporary_in_a_choice(int way)
{
    return sum(way ? (await make_later(1)).a : make(20).a, 100);
}

/* The call's argument waits too, in a block. */
async int temporary_beside_a_block(int n)
{
    return n > 5 ? await id(0) : make(({
                                   int m = n;
                                   PAUSE;
                                   m;
                               })).a[await id(1)] +
                                    await id(100);
}

async int temporary_in_a_block(int n)
{
    return await id(0) + ({ sum(make(n).a, await id(100)); });
}

typedef int vector __attribute__((vector_size(16)));

async int elements_of_vectors(void)
{
    struct {
        vector v;
        int *p;
    } s = {{1, 2, 3, 4}, 0}, *at = &s;
    vector v = {1, 2, 3, 4};
    int plain[4] = {5, 6, 7, 8};
    s.p = plain;
    v[await id(2)] = 30;
    s.v[await id(1)] = await id(20);
    at->v[await id(0)] += 9;
    at->p[await id(3)] = 80;
    PAUSE;
    return v[await id(2)] + s.v[1] + at->v[await id(0)] + plain[3];
}

static void test_temporaries(void **state)
{
    (void)state;
    assert_int_equal(RUN(block_in_a_block), 5);
    assert_int_equal(RUN(label_at_the_end, 5), 7);
    assert_int_equal(RUN(label_at_the_end, 1), 11);
    assert_int_equal(RUN(element_of_a_temporary), 7);
    assert_int_equal(RUN(temporary_of_a_call), 110);
    assert_int_equal(RUN(temporary_of_an_await), 110);
    assert_int_equal(RUN(temporary_awaited), 110);
    assert_int_equal(RUN(temporary_in_a_choice, 1), 110);
    assert_int_equal(RUN(temporary_in_a_choice, 0), 186);
    assert_int_equal(RUN(temporary_beside_a_block, 5), 106);
    assert_int_equal(RUN(temporary_in_a_block, 1), 110);
    assert_int_equal(RUN(elements_of_vectors), 30 + 20 + 10 + 80);
}

/* ---- Cleanups ---- */

static char journal[64];

static void write_down(const char *object)
{
    size_t length = strlen(journal);
    journal[length] = *object;
    journal[length + 1] = 0;
}

#define OBJECT __attribute__((cleanup(write_down), unused)) char

/* 0: to the end; 1: continue; 2: break; 3: goto; 4: return */
async int cleanups_of_a_copied_block(int way)
{
    for (int i = 0; i < 1; i++) {
        OBJECT outer = 'o';
        PAUSE;
        if (way) {
            OBJECT inner = 'i';
            if (way == 1)
                continue;
            if (way == 2)
                break;
            if (way == 3)
                goto out;
            if (way == 4)
                return 4;
        }
        OBJECT last = 'l';
        PAUSE;
    }
    strcat(journal, "e");
out:
    return 0;
}

static int counter, other_counter;

async int deferred_names(void)
{
    for (int i = 0; i < 3; i++) {
        counter++;
        defer counter--;
        PAUSE;
        static int other_counter = 10;
        if (i == 1) {
            int counter = 10;
            if (counter > other_counter - 1)
                break;
        }
    }
    return counter;
}

async int deferred_static(int rounds)
{
    static int last;
    for (int i = 0; i < rounds; i++) {
        defer {
            static int times;
            last = ++times;
            for (int n = 0; n < 2; n++) {
                if (n == 1)
                    break;
            }
        }
        PAUSE;
        if (i == 1)
            continue;
        if (i == 2)
            break;
    }
    return last + other_counter;
}

static void test_cleanups(void **state)
{
    static const char *const expected[] = {"loe", "ioe", "ioe", "io", "io"};
    (void)state;
    for (int way = 0; way < 5; way++) {
        journal[0] = 0;
        (void)RUN(cleanups_of_a_copied_block, way);
        assert_string_equal(journal, expected[way]);
    }
    assert_int_equal(RUN(deferred_names), 0);
    assert_int_equal(RUN(deferred_static, 5), 3);
}

/* ---- Long expressions: the types of their parts ---- */

/* The same text with awaits and without, of operands of several types. */
#define TERMS(value)                                                                                                \
    (small + value(1) - letter * value(2) + (wide << value(3)) / 7 + (number - value(9)) / 2u) * 3 +                \
        (value(4) > 2 ? real * value(5) : small) - (value(0) ? 1 : text[value(1)] + (table + value(2))[1]) +        \
        (long)(number - value(8) - 1u > 1000u) * value(6) + (value(1) ? pairs[0] : pairs[1]).b * value(7)
#define MORE(value) ((TERMS(value)) / 4 + (TERMS(value)) * 2)
#define MOST(value) ((MORE(value)) - (MORE(value)) / 8 + (value(1) < 0 ? MORE(value) : 0.5 + TERMS(value)))

static const char *const text = "abc";
static const int table[] = {1, 2, 3, 4};
static const struct two pairs[] = {{1, 2}, {3, 4}};

async double long_expression(short small, char letter, long long wide, unsigned number, double real)
{
#define AWAITED(n) await id(n)
    return MOST(AWAITED);
}

async int long_choice(int n)
{
    unsigned char letter = 200;
    return n == 1   ? await id(1) + letter
           : n == 2 ? letter * await id(2)
           : n == 3 ? (await id(1) != 0 ? await id(2) : letter) + (await id(1) != 0 ? await id(2) : letter) + (await id(1) != 0 ? await id(2) : letter)
           : n == 4 ? 1u - await id(2) > 5 ? await id(40) : await id(41)
                    : await id(letter) - (n == 5 ? await id(letter + 5) : n == 6 ? await id(letter + 6) : await id(n));
}

static void test_long_expressions(void **state)
{
#define PLAIN(n) (n)
    short small = -5;
    char letter = 'q';
    long long wide = 123456789012;
    unsigned number = 3;
    double real = 1.25; /* all values are exact, so that it does not matter how they are rounded */
    (void)state;
    assert_true(RUN(long_expression, small, letter, wide, number, real) == MOST(PLAIN));
    static const int results[] = {201, 400, 6, 40, -5, -6, 193};
    for (int n = 1; n <= 7; n++)
        assert_int_equal(RUN(long_choice, n), results[n - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commas),  cmocka_unit_test(test_types),
        cmocka_unit_test(test_locals),  cmocka_unit_test(test_temporaries),
        cmocka_unit_test(test_cleanups), cmocka_unit_test(test_long_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
