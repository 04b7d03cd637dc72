/* Litmus programs (litmus.h): their texts, sets of outcomes, and the scenario that the checker explores. */
#include "litmus.h"

#include "bide/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kind_letters[] = "RWXACcF";
static const char location_letters[] = "xyzw";
static const char *const order_names[] = {"rlx", "acq", "rel", "ar", "sc", "light", "heavy"};

bool litmus_is_compare_exchange(litmus_kind kind)
{
    return kind == LITMUS_COMPARE_EXCHANGE || kind == LITMUS_COMPARE_EXCHANGE_WEAK;
}

bool litmus_is_read(litmus_kind kind)
{
    return kind != LITMUS_STORE && kind != LITMUS_FENCE;
}

/* ---- As text ---- */

static void fail(const char *what, const char *where)
{
    fprintf(stderr, "litmus: %s, at '%s'\n", what, where);
    abort();
}

/* Returns the next word, up to a space or the end of an operation; moves *text past it. */
static const char *next_word(const char **text, char word[8])
{
    *text += strspn(*text, " ");
    size_t length = strcspn(*text, " ;|");
    if (length == 0 || length >= 8)
        fail("no word", *text);
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length;
    return word;
}

static litmus_order next_order(const char **text)
{
    char word[8];
    next_word(text, word);
    for (int i = 0; i < LITMUS_ORDERS; i++) {
        if (strcmp(word, order_names[i]) == 0)
            return (litmus_order)i;
    }
    fail("no order", word);
    return LITMUS_RLX;
}

static uint32_t next_number(const char **text)
{
    char word[8];
    return (uint32_t)strtoul(next_word(text, word), NULL, 10);
}

static uint32_t index_in(const char *letters, const char *word)
{
    const char *found = strchr(letters, word[0]);
    if (found == NULL || word[1] != '\0')
        fail("no such letter", word);
    return (uint32_t)(found - letters);
}

static litmus_op next_op(const char **text)
{
    char word[8];
    litmus_op op = {.kind = (litmus_kind)index_in(kind_letters, next_word(text, word))};
    if (op.kind != LITMUS_FENCE)
        op.location = index_in(location_letters, next_word(text, word));
    if (litmus_is_compare_exchange(op.kind))
        op.expected = next_number(text);
    if (op.kind != LITMUS_LOAD && op.kind != LITMUS_FENCE)
        op.value = next_number(text);
    op.order = next_order(text);
    if (litmus_is_compare_exchange(op.kind))
        op.order_if_failed = next_order(text);
    return op;
}

/* Reads the options before a program; returns the beginning of the program. */
static const char *parse_settings(litmus_program *program, const char *text)
{
    if (strncmp(text, "init: ", 6) == 0) {
        program->initialised = true;
        text += 6;
    }
    if (strncmp(text, "C++20: ", 7) == 0) {
        program->cxx20 = true;
        text += 7;
    }
    if (strncmp(text, "spurious ", 9) == 0) {
        char *end;
        program->spurious = (unsigned)strtoul(text + 9, &end, 10);
        text = end + strlen(": ");
    }
    return text;
}

void litmus_parse(litmus_program *program, const char *text)
{
    memset(program, 0, sizeof *program);
    program->threads = 1;
    text = parse_settings(program, text);
    for (;;) {
        uint32_t t = program->threads - 1;
        if (program->counts[t] == LITMUS_OPS)
            fail("too many operations", text);
        litmus_op op = next_op(&text);
        program->ops[t][program->counts[t]++] = op;
        if (op.kind != LITMUS_FENCE && op.location >= program->locations)
            program->locations = op.location + 1;
        text += strspn(text, " ");
        if (*text == '\0')
            return;
        if (*text++ == '|' && program->threads++ == LITMUS_THREADS)
            fail("too many threads", text);
    }
}

static int print_op(const litmus_op *op, char *text, size_t size)
{
    char letter = kind_letters[op->kind], where = location_letters[op->location];
    const char *order = order_names[op->order];
    if (op->kind == LITMUS_FENCE)
        return snprintf(text, size, "F %s", order);
    if (op->kind == LITMUS_LOAD)
        return snprintf(text, size, "R %c %s", where, order);
    if (!litmus_is_compare_exchange(op->kind))
        return snprintf(text, size, "%c %c %u %s", letter, where, op->value, order);
    return snprintf(text, size, "%c %c %u %u %s %s", letter, where, op->expected, op->value, order,
                    order_names[op->order_if_failed]);
}

void litmus_print(const litmus_program *program, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s%s", program->initialised ? "init: " : "",
                                   program->cxx20 ? "C++20: " : "");
    if (program->spurious != 0)
        used += (size_t)snprintf(text + used, size - used, "spurious %u: ", program->spurious);
    for (uint32_t t = 0; t < program->threads; t++) {
        for (uint32_t i = 0; i < program->counts[t] && used + 40 < size; i++) {
            const char *before = i > 0 ? "; " : t > 0 ? " | " : "";
            used += (size_t)snprintf(text + used, size - used, "%s", before);
            used += (size_t)print_op(&program->ops[t][i], text + used, size - used);
        }
    }
}

static char *describe_number(char *to, uint32_t number)
{
    return to + sprintf(to, number < 10 ? "%u" : "(%u)", number);
}

void litmus_describe(const litmus_program *program, const litmus_results *results,
                     char text[LITMUS_TEXT])
{
    /* At most 8 operations a thread, each of up to 5 bytes; programs are far smaller. */
    char whole[LITMUS_THREADS * LITMUS_OPS * 5 + LITMUS_LOCATIONS * 4 + 2], *to = whole;
    for (uint32_t t = 0; t < program->threads; t++) {
        for (uint32_t i = 0; i < program->counts[t]; i++) {
            litmus_kind kind = program->ops[t][i].kind;
            if (!litmus_is_read(kind))
                continue;
            to = describe_number(to, results->read[t][i]);
            if (litmus_is_compare_exchange(kind))
                *to++ = results->succeeded[t][i] ? '+' : '-';
        }
    }
    if (to != whole)
        *to++ = ' ';
    for (uint32_t i = 0; i < program->locations; i++)
        to = describe_number(to, results->last[i]);
    *to = '\0';
    if (to - whole >= LITMUS_TEXT)
        fail("the outcome is too long", whole);
    strcpy(text, whole);
}

/* ---- Sets of outcomes ---- */

/* Returns the position of the text, or the one at which it would be inserted. */
static size_t place_of(const litmus_outcomes *outcomes, const char *text)
{
    size_t low = 0, high = outcomes->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(outcomes->texts[middle], text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const litmus_outcomes *outcomes, size_t place, const char *text)
{
    return place < outcomes->count && strcmp(outcomes->texts[place], text) == 0;
}

bool litmus_has_outcome(const litmus_outcomes *outcomes, const char *text)
{
    return is_at(outcomes, place_of(outcomes, text), text);
}

void litmus_add_outcome(litmus_outcomes *outcomes, const char *text)
{
    size_t place = place_of(outcomes, text);
    if (is_at(outcomes, place, text))
        return;
    if (outcomes->count == outcomes->capacity) {
        outcomes->capacity = outcomes->capacity * 2 + 16;
        void *larger = realloc(outcomes->texts, outcomes->capacity * sizeof *outcomes->texts);
        if (larger == NULL)
            abort();
        outcomes->texts = larger;
    }
    memmove(&outcomes->texts[place + 1], &outcomes->texts[place],
            (outcomes->count - place) * sizeof *outcomes->texts);
    outcomes->count++;
    snprintf(outcomes->texts[place], LITMUS_TEXT, "%s", text);
}

bool litmus_same_outcomes(const litmus_outcomes *a, const litmus_outcomes *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        if (strcmp(a->texts[i], b->texts[i]) != 0)
            return false;
    }
    return a->count == b->count;
}

void litmus_free_outcomes(litmus_outcomes *outcomes)
{
    free(outcomes->texts);
    memset(outcomes, 0, sizeof *outcomes);
}

static void print_missing(const char *name, const litmus_outcomes *a, const litmus_outcomes *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (!litmus_has_outcome(b, a->texts[i]))
            printf("#   only %s: %s\n", name, a->texts[i]);
    }
}

void litmus_print_difference(const char *name_a, const litmus_outcomes *a, const char *name_b,
                             const litmus_outcomes *b)
{
    print_missing(name_a, a, b);
    print_missing(name_b, b, a);
}

/* ---- As a scenario ---- */

typedef struct litmus_state {
    bide_atomic(uint32_t) locations[LITMUS_LOCATIONS];
    bide_atomic(uint32_t) own[LITMUS_THREADS];
    bide_atomic(uint32_t) shared;
    litmus_results results;
} litmus_state;

static const litmus_program *running;
static const litmus_sprinkled *running_sprinkled;

/*
 * Returns the source location of an operation. The checker keeps the orders that it met first at a
 * location, so each place in the program, and each kind of operation and set of orders, has its
 * own.
 */
static bide_check_site_ *site_of(uint32_t thread, uint32_t index, const litmus_op *op)
{
    enum { MOST = LITMUS_THREADS * LITMUS_OPS * LITMUS_KINDS * LITMUS_ORDERS * LITMUS_ORDERS };
    static bide_check_site_ sites[MOST];
    uint32_t i = (thread * LITMUS_OPS + index) * LITMUS_KINDS + op->kind;
    i = (i * LITMUS_ORDERS + op->order) * LITMUS_ORDERS + op->order_if_failed;
    if (sites[i].file == NULL)
        sites[i] = (bide_check_site_){"litmus", "thread", "object", i + 1, 0};
    return &sites[i];
}

static void run_op(litmus_state *s, uint32_t thread, uint32_t index)
{
    const litmus_op *op = &running->ops[thread][index];
    bide_check_site_ *site = site_of(thread, index, op);
    bide_atomic(uint32_t) *object = &s->locations[op->location];
    uint32_t *read = &s->results.read[thread][index];
    uint64_t found = op->expected;
    int order = (int)op->order;
    switch (op->kind) {
    case LITMUS_LOAD:
        *read = (uint32_t)bide_check_load_(site, object, sizeof *object, order);
        break;
    case LITMUS_STORE:
        bide_check_store_(site, object, sizeof *object, op->value, order);
        break;
    case LITMUS_EXCHANGE:
        *read = (uint32_t)bide_check_exchange_(site, object, sizeof *object, op->value, order);
        break;
    case LITMUS_FETCH_ADD:
        *read = (uint32_t)bide_check_fetch_(site, object, sizeof *object, '+', op->value, order);
        break;
    case LITMUS_COMPARE_EXCHANGE:
    case LITMUS_COMPARE_EXCHANGE_WEAK:
        s->results.succeeded[thread][index] = bide_check_compare_exchange_(
            site, object, sizeof *object, &found, op->value, order, (int)op->order_if_failed,
            op->kind == LITMUS_COMPARE_EXCHANGE_WEAK);
        *read = (uint32_t)found;
        break;
    default:
        bide_check_fence_(site, order);
        break;
    }
}

static void initialise(void *state)
{
    static bide_check_site_ sites[LITMUS_LOCATIONS] = {
        {"litmus", "initialise", "x", 1, 0},
        {"litmus", "initialise", "y", 2, 0},
        {"litmus", "initialise", "z", 3, 0},
        {"litmus", "initialise", "w", 4, 0},
    };
    litmus_state *s = state;
    for (uint32_t i = 0; i < running->locations; i++)
        bide_check_init_(&sites[i], &s->locations[i], sizeof s->locations[i], 0);
}

const char *litmus_sprinkle_name(litmus_sprinkle sprinkle)
{
    static const char *const names[] = {
        "nothing",       "a choice",         "a relaxed fence",
        "a light fence", "a sleep too late", "a sleep for a while",
        "a wake",        "a wake of all",
    };
    return names[sprinkle];
}

static void run_sprinkle(litmus_state *s, uint32_t thread, uint32_t index)
{
    static bide_check_site_ relaxed = {"litmus", "sprinkle", "relaxed", 1, 0};
    static bide_check_site_ light = {"litmus", "sprinkle", "light", 2, 0};
    bide_atomic(uint32_t) *own = &s->own[thread];
    switch (running_sprinkled->before[thread][index]) {
    case LITMUS_CHOICE:
        (void)bide_check_choose(2);
        break;
    case LITMUS_RELAXED_FENCE:
        bide_check_fence_(&relaxed, bide_check_relaxed_);
        break;
    case LITMUS_LIGHT_FENCE:
        bide_check_fence_(&light, bide_check_light_);
        break;
    case LITMUS_NO_SLEEP:
        bide_platform.wait(own, 1, BIDE_FOREVER);
        break;
    case LITMUS_SLEEP:
        bide_platform.wait(own, 0, 1);
        break;
    case LITMUS_WAKE:
        bide_platform.wake(own, 1);
        break;
    case LITMUS_WAKE_ALL:
        bide_platform.wake(&s->shared, UINT32_MAX);
        break;
    default:
        break;
    }
}

static void run_thread(void *state)
{
    uint32_t thread = bide_check_thread() - 1;
    for (uint32_t i = 0; i <= running->counts[thread]; i++) {
        if (running_sprinkled != NULL)
            run_sprinkle(state, thread, i);
        if (i < running->counts[thread])
            run_op(state, thread, i);
    }
}

static void finish(void *state)
{
    static bide_check_site_ sites[LITMUS_LOCATIONS] = {
        {"litmus", "finish", "x", 1, 0},
        {"litmus", "finish", "y", 2, 0},
        {"litmus", "finish", "z", 3, 0},
        {"litmus", "finish", "w", 4, 0},
    };
    litmus_state *s = state;
    char text[LITMUS_TEXT];
    for (uint32_t i = 0; i < running->locations; i++)
        s->results.last[i] = (uint32_t)bide_check_load_(
            &sites[i], &s->locations[i], sizeof s->locations[i], bide_check_relaxed_);
    litmus_describe(running, &s->results, text);
    bide_check_note("%s", text);
}

static bide_check_scenario scenario_of(const litmus_program *program)
{
    bide_check_scenario scenario = {
        .name = "litmus",
        .size = sizeof(litmus_state),
        .setup = program->initialised ? initialise : NULL,
        .finish = finish,
        .max_spurious = program->spurious,
        .never_spurious = program->spurious == 0,
        .cxx20_release_sequences = program->cxx20,
    };
    for (uint32_t t = 0; t < program->threads; t++)
        scenario.threads[t] = run_thread;
    return scenario;
}

/* Moves the outcomes; returns false, and prints a line, if there is a finding. */
static bool collect(bide_check_result *result, litmus_outcomes *outcomes)
{
    bool nothing_found = result->finding == BIDE_CHECK_NOTHING;
    memset(outcomes, 0, sizeof *outcomes);
    for (size_t i = 0; i < result->outcomes_count; i++)
        litmus_add_outcome(outcomes, result->outcomes[i]);
    outcomes->executions = result->executions;
    if (!nothing_found)
        printf("# the checker finds: %s\n", result->message);
    bide_check_result_free(result);
    return nothing_found;
}

bool litmus_explore(const litmus_program *program, litmus_outcomes *outcomes)
{
    return litmus_explore_sprinkled(program, NULL, outcomes);
}

bool litmus_explore_sprinkled(const litmus_program *program, const litmus_sprinkled *sprinkled,
                              litmus_outcomes *outcomes)
{
    bide_check_scenario scenario = scenario_of(program);
    bide_check_result result;
    running = program;
    running_sprinkled = sprinkled;
    bide_check_explore(&scenario, &result);
    return collect(&result, outcomes);
}

bool litmus_sample(const litmus_program *program, const bide_check_sampling *sampling,
                   litmus_outcomes *outcomes)
{
    bide_check_scenario scenario = scenario_of(program);
    bide_check_result result;
    running = program;
    running_sprinkled = NULL;
    bide_check_sample(&scenario, sampling, &result);
    return collect(&result, outcomes);
}
