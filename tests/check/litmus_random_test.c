/*
 * The checker against the oracle: random programs, for which both must find the same outcomes and
 * the same number of executions. The checker explores each execution once, so the numbers are
 * equal, not only bounded. Choices, sleeps, wakes and fences that order nothing are inserted
 * between the operations, and change nothing.
 */
#include "testing.h"

#include "litmus.h"
#include "oracle.h"

#include <inttypes.h>

enum { PROGRAMS = 6000 };

/* The limit on the oracle's candidates of one program. */
static const double max_candidates = 30000;

static uint32_t up_to(uint64_t *random, uint32_t max)
{
    return (uint32_t)(testing_random(random) % (max + 1));
}

/*
 * The ingredients of a program. Errors that need several operations of one kind would be rare if
 * all programs had every ingredient.
 */
typedef struct style {
    uint32_t locations;
    uint32_t sc;        /* of 8 operations, how many are always seq_cst */
    bool is_strong;     /* the others are never relaxed */
    bool is_simple;     /* loads and stores only, so that there can be more of them */
    bool is_fenced;     /* most of them are followed by a seq_cst fence */
    bool is_asymmetric; /* a fence is light or heavy */
} style;

static litmus_kind random_kind(uint64_t *random, bool is_simple)
{
    static const litmus_kind others[] = {
        LITMUS_FETCH_ADD, LITMUS_EXCHANGE,         LITMUS_FENCE,
        LITMUS_FENCE,     LITMUS_COMPARE_EXCHANGE, LITMUS_COMPARE_EXCHANGE_WEAK,
    };
    if (is_simple || up_to(random, 13) < 8)
        return up_to(random, 1) != 0 ? LITMUS_LOAD : LITMUS_STORE;
    return others[up_to(random, sizeof others / sizeof others[0] - 1)];
}

/* Any order that a load, a store, or a read-modify-write may have. */
static litmus_order random_order(uint64_t *random, bool reads, bool writes)
{
    litmus_order order;
    do
        order = (litmus_order)up_to(random, LITMUS_SC);
    while ((order == LITMUS_ACQ && !reads) || (order == LITMUS_REL && !writes) ||
           (order == LITMUS_AR && !(reads && writes)));
    return order;
}

static litmus_order asymmetric_order(uint64_t *random)
{
    static const litmus_order orders[] = {LITMUS_LIGHT, LITMUS_LIGHT, LITMUS_HEAVY, LITMUS_SC};
    return orders[up_to(random, sizeof orders / sizeof orders[0] - 1)];
}

static litmus_op random_op(uint64_t *random, const style *style)
{
    litmus_op op = {.kind = random_kind(random, style->is_simple)};
    bool is_fence = op.kind == LITMUS_FENCE;
    op.location = is_fence ? 0 : up_to(random, style->locations - 1);
    do
        op.order = random_order(random, is_fence || litmus_is_read(op.kind),
                                is_fence || op.kind != LITMUS_LOAD);
    while (style->is_strong && op.order == LITMUS_RLX);
    if (up_to(random, 7) < style->sc)
        op.order = LITMUS_SC;
    if (is_fence && style->is_asymmetric)
        op.order = asymmetric_order(random);
    if (op.kind != LITMUS_LOAD && !is_fence)
        op.value = op.kind == LITMUS_FETCH_ADD ? up_to(random, 2) : up_to(random, 3);
    if (litmus_is_compare_exchange(op.kind)) {
        op.expected = up_to(random, 2);
        op.order_if_failed = random_order(random, true, false);
    }
    return op;
}

static void add_op(litmus_program *program, uint32_t thread, litmus_op op)
{
    if (program->counts[thread] < LITMUS_OPS)
        program->ops[thread][program->counts[thread]++] = op;
}

/* Any operations, anywhere. */
static void fill(litmus_program *program, uint64_t *random, const style *style)
{
    litmus_op fence = {.kind = LITMUS_FENCE, .order = LITMUS_SC};
    uint32_t left = 4 + up_to(random, style->is_simple ? 7 : 5);
    for (uint32_t t = 0; left != 0; left--) {
        add_op(program, t, random_op(random, style));
        if (style->is_asymmetric)
            fence.order = asymmetric_order(random);
        if (style->is_fenced && up_to(random, 3) != 0)
            add_op(program, t, fence);
        t = up_to(random, 1) != 0 ? t : (t + 1) % program->threads;
    }
}

/*
 * Message passing, with x as the message: any operations on y between the store to x and the load,
 * which comes after a load of y. Release sequences and fences matter there, and it is rare by
 * chance.
 */
static void fill_with_message(litmus_program *program, uint64_t *random, const style *style)
{
    static const litmus_op send = {.kind = LITMUS_STORE, .value = 1};
    static const litmus_op receive = {.kind = LITMUS_LOAD};
    uint32_t last = program->threads - 1;
    program->locations = 2;
    add_op(program, 0, send);
    for (uint32_t left = 2 + up_to(random, 3); left != 0; left--) {
        litmus_op op = random_op(random, style);
        op.location = op.kind != LITMUS_FENCE;
        add_op(program, up_to(random, last - 1), op);
    }
    litmus_op look = {.kind = LITMUS_LOAD, .location = 1};
    look.order = up_to(random, 3) != 0 ? LITMUS_ACQ : LITMUS_RLX;
    add_op(program, last, look);
    if (look.order == LITMUS_RLX)
        add_op(program, last, (litmus_op){.kind = LITMUS_FENCE, .order = LITMUS_ACQ});
    add_op(program, last, receive);
}

/*
 * Two seq_cst operations on one location, and a path from the first to an operation on another
 * location: whether that orders them depends on the operations between. This is rare by chance too.
 */
static void fill_with_detour(litmus_program *program, uint64_t *random, const style *style)
{
    static const litmus_op first = {.kind = LITMUS_STORE, .value = 1, .order = LITMUS_SC};
    static const litmus_op pass = {.kind = LITMUS_STORE, .value = 2, .order = LITMUS_REL};
    static const litmus_op taken = {.kind = LITMUS_LOAD, .order = LITMUS_ACQ};
    static const litmus_op last = {.kind = LITMUS_LOAD, .location = 1, .order = LITMUS_SC};
    static const litmus_op other = {
        .kind = LITMUS_STORE, .location = 1, .value = 1, .order = LITMUS_SC};
    program->threads = 3;
    program->locations = 2;
    add_op(program, 0, first);
    if (up_to(random, 1) != 0)
        add_op(program, 0, random_op(random, style));
    add_op(program, 0, pass);
    add_op(program, 1, taken);
    if (up_to(random, 3) == 0)
        add_op(program, 1, random_op(random, style));
    add_op(program, 1, last);
    add_op(program, 2, other);
    if (up_to(random, 1) != 0)
        add_op(program, 2, (litmus_op){.kind = LITMUS_FENCE, .order = LITMUS_SC});
    add_op(program, 2, (litmus_op){.kind = LITMUS_LOAD, .order = LITMUS_SC});
}

static void random_program(litmus_program *program, uint64_t *random)
{
    do {
        memset(program, 0, sizeof *program);
        program->threads = 2 + up_to(random, 2);
        program->locations = 1 + (1 + up_to(random, 4)) / 2; /* rarely 1 */
        program->spurious = up_to(random, 2);
        program->cxx20 = up_to(random, 3) == 0;
        program->initialised = up_to(random, 1) != 0;
        style style = {
            .locations = program->locations,
            .sc = up_to(random, 2) * 3,
            .is_strong = up_to(random, 3) == 0,
            .is_simple = up_to(random, 1) != 0,
            .is_fenced = up_to(random, 3) == 0,
            .is_asymmetric = up_to(random, 1) != 0,
        };
        if (up_to(random, 2) != 0)
            fill(program, random, &style);
        else if (program->locations == 2 && up_to(random, 1) != 0)
            fill_with_detour(program, random, &style);
        else
            fill_with_message(program, random, &style);
    } while (oracle_cost(program) > max_candidates);
}

/* ---- Operations that order nothing ---- */

static bool has_heavy_fence(const litmus_program *program)
{
    for (uint32_t t = 0; t < program->threads; t++) {
        for (uint32_t i = 0; i < program->counts[t]; i++) {
            if (program->ops[t][i].kind == LITMUS_FENCE && program->ops[t][i].order == LITMUS_HEAVY)
                return true;
        }
    }
    return false;
}

/*
 * True if the insertion is allowed there. The program counts a sleep that may end spuriously as one
 * of the failures.
 */
static bool is_allowed(const litmus_program *program, litmus_sprinkle sprinkle, bool has_heavy)
{
    return (sprinkle != LITMUS_LIGHT_FENCE || !has_heavy) &&
           (sprinkle != LITMUS_SLEEP || program->spurious == 0);
}

/*
 * Inserts a few of them, to limit the executions; returns the factor by which there are more. 0: it
 * is not known.
 */
static uint64_t sprinkle(const litmus_program *program, uint64_t *random, litmus_sprinkled *into)
{
    bool has_heavy = has_heavy_fence(program), is_known = true;
    uint32_t choices = 0, wakes = 0;
    memset(into, 0, sizeof *into);
    for (uint32_t t = 0; t < program->threads; t++) {
        for (uint32_t i = 0; i <= program->counts[t]; i++) {
            litmus_sprinkle s = (litmus_sprinkle)up_to(random, LITMUS_SPRINKLES - 1);
            if (up_to(random, 1) == 0 || !is_allowed(program, s, has_heavy) ||
                (s == LITMUS_CHOICE && choices++ >= 2) || (s == LITMUS_WAKE_ALL && wakes++ >= 2))
                continue;
            into->before[t][i] = s;
            is_known = is_known && s != LITMUS_WAKE_ALL;
        }
    }
    return is_known ? UINT64_C(1) << (choices < 2 ? choices : 2) : 0;
}

static void print_sprinkled(const litmus_program *program, const litmus_sprinkled *sprinkled)
{
    for (uint32_t t = 0; t < program->threads; t++) {
        printf("#  ");
        for (uint32_t i = 0; i <= program->counts[t]; i++)
            printf(" %s;", litmus_sprinkle_name(sprinkled->before[t][i]));
        printf("\n");
    }
}

/* Insertions change nothing: the outcomes are the same, and so is the number of executions. */
static void agree_sprinkled(const litmus_program *program, const litmus_outcomes *without,
                            uint64_t *random)
{
    litmus_sprinkled sprinkled;
    litmus_outcomes with;
    uint64_t times = sprinkle(program, random, &sprinkled);
    bool nothing_found = litmus_explore_sprinkled(program, &sprinkled, &with);
    if (!nothing_found || !litmus_same_outcomes(&with, without) ||
        (times != 0 && with.executions != without->executions * times)) {
        char text[512];
        litmus_print(program, text, sizeof text);
        printf("# %s\n", text);
        print_sprinkled(program, &sprinkled);
        printf("# %" PRIu64 " executions, without them %" PRIu64 "\n", with.executions,
               without->executions);
        litmus_print_difference("sprinkled", &with, "plain", without);
        fail();
    }
    litmus_free_outcomes(&with);
}

/* What is drawn is among the outcomes. */
static void agree_sampled(const litmus_program *program, const litmus_outcomes *all,
                          uint64_t *random)
{
    bide_check_sampling sampling = {.runs = 10, .seed = testing_random(random)};
    for (; sampling.depth < 4; sampling.depth++) {
        litmus_outcomes drawn;
        bool is_among = litmus_sample(program, &sampling, &drawn);
        for (size_t i = 0; i < drawn.count; i++)
            is_among = is_among && litmus_has_outcome(all, drawn.texts[i]);
        if (!is_among) {
            char text[512];
            litmus_print(program, text, sizeof text);
            printf("# %s, seed %" PRIu64 ", depth %u\n", text, sampling.seed, sampling.depth);
            litmus_print_difference("sampled", &drawn, "oracle", all);
            fail();
        }
        litmus_free_outcomes(&drawn);
    }
}

static void agree(const litmus_program *program, uint64_t *random)
{
    litmus_outcomes checked, by_axioms;
    oracle_explore(program, &by_axioms);
    bool nothing_found = litmus_explore(program, &checked);
    if (!nothing_found || !litmus_same_outcomes(&checked, &by_axioms) ||
        checked.executions != by_axioms.executions) {
        char text[512];
        litmus_print(program, text, sizeof text);
        printf("# litmus_test '%s'\n", text);
        printf("# %" PRIu64 " executions, of the oracle %" PRIu64 "\n", checked.executions,
               by_axioms.executions);
        litmus_print_difference("checker", &checked, "oracle", &by_axioms);
        fail();
    }
    agree_sprinkled(program, &by_axioms, random);
    agree_sampled(program, &by_axioms, random);
    litmus_free_outcomes(&checked);
    litmus_free_outcomes(&by_axioms);
}

static void the_checker_agrees_with_the_axioms_on_random_programs(void **state)
{
    (void)state;
    uint32_t programs = rounds_of(PROGRAMS);
    uint64_t random = testing_seed();
    for (uint32_t i = 0; i < programs; i++) {
        litmus_program program;
        random_program(&program, &random);
        agree(&program, &random);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checker_agrees_with_the_axioms_on_random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
