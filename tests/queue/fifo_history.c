/*
 * The checker of histories of a queue: looks for faults that no queue can have. A history without them is linearizable:
 * Henzinger, Sezgin, Vafeiadis, Aspect-Oriented Linearizability Proofs (2013); Bouajjani, Emmi, Enea, Hamza, On
 * Reducing Linearizability to State Reachability (2015). (For batches, whose elements are ordered although their stamps
 * are equal, each finding is a fault, but it is not proved that every fault is found.)
 *
 * Below, "before" is defined by fifo_precedes: it holds for any choice of moments. A value that was never popped is
 * popped after everything else.
 *
 *     never pushed     a value is popped that was not pushed
 *     popped twice     two pops have the same value
 *     popped early     the pop ended before the push began
 *     out of order     a was pushed before b, and b popped before a. The moments of the pushes put a in front of b, so
 *                      a must leave first
 *     not empty        a pop found the queue empty, but during the whole pop there was an element: at every instant a
 *                      value that had been pushed, and whose pop had not begun. It need not be one value all the time
 */
#include "queue/fifo_history.h"

/* An element of the history. */
typedef struct place {
    const fifo_operation *operation;
} place;

typedef struct element {
    const fifo_operation *push;
    const fifo_operation *pop; /* NULL: nobody has */
} element;

static uint64_t pop_began(const element *e)
{
    return e->pop != NULL ? e->pop->began : UINT64_MAX;
}

static uint64_t pop_ended(const element *e)
{
    return e->pop != NULL ? e->pop->ended : UINT64_MAX;
}

static int compare(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

/* By value, pushes first. */
static int by_value(const void *x, const void *y)
{
    const fifo_operation *a = ((const place *)x)->operation;
    const fifo_operation *b = ((const place *)y)->operation;
    return a->value != b->value ? compare(a->value, b->value) : (int)a->kind - (int)b->kind;
}

static int by_end_of_push(const void *x, const void *y)
{
    const element *a = x, *b = y;
    return compare(a->push->ended, b->push->ended);
}

/* By the beginning, in a batch by the place. */
static int by_beginning(const fifo_operation *a, const fifo_operation *b)
{
    return a->began != b->began ? compare(a->began, b->began) : compare((uintptr_t)a, (uintptr_t)b);
}

static int by_beginning_of_push(const void *x, const void *y)
{
    return by_beginning(((const element *)x)->push, ((const element *)y)->push);
}

static int by_beginning_of_pop(const void *x, const void *y)
{
    const element *a = x, *b = y;
    if (a->pop == NULL || b->pop == NULL)
        return (a->pop == NULL) - (b->pop == NULL);
    return by_beginning(a->pop, b->pop);
}

static fifo_verdict fault(fifo_fault fault, const fifo_operation *first,
                          const fifo_operation *second)
{
    return (fifo_verdict){fault, *first, *second};
}

static const fifo_verdict good;

/* ---- One value ---- */

/*
 * Pairs each push with its pop; `sorted` by value, pushes first. All operations with one value are neighbours, the push
 * in front: so a pop without one has none, and whatever follows a pair is one too many.
 */
static fifo_verdict pair(const place *sorted, size_t count, element *elements,
                         size_t *element_count)
{
    size_t pairs = 0;
    for (size_t i = 0; i < count; i++) {
        const fifo_operation *operation = sorted[i].operation;
        element *last = pairs != 0 ? &elements[pairs - 1] : NULL;
        bool is_first = last == NULL || last->push->value != operation->value;
        if (is_first && operation->kind == FIFO_POP)
            return fault(FIFO_NEVER_PUSHED, operation, operation);
        if (is_first) {
            elements[pairs++] = (element){.push = operation};
            continue;
        }
        if (operation->kind == FIFO_PUSH)
            return fault(FIFO_PUSHED_TWICE, last->push, operation);
        if (last->pop != NULL)
            return fault(FIFO_POPPED_TWICE, last->pop, operation);
        if (operation->ended < last->push->began)
            return fault(FIFO_POPPED_EARLY, operation, last->push);
        last->pop = operation;
    }
    *element_count = pairs;
    return good;
}

/* ---- Two values ---- */

static fifo_verdict out_of_order(const element *a, const element *b)
{
    return fault(FIFO_OUT_OF_ORDER, a->pop != NULL ? a->pop : a->push, b->pop);
}

/*
 * Finds an a that was pushed before b, and b popped before a, by the stamps. Each b is checked, in the order in which
 * their pushes began. The values that were pushed before b are a prefix of the values in the order in which their
 * pushes ended, and this prefix only grows. One of them is popped after b exactly if this holds for the one whose pop
 * began last.
 */
static fifo_verdict check_order(const element *by_end, const element *by_begin, size_t count)
{
    const element *latest = NULL;
    size_t before = 0;
    for (size_t i = 0; i < count; i++) {
        const element *b = &by_begin[i];
        for (; before < count && by_end[before].push->ended < b->push->began; before++)
            if (latest == NULL || pop_began(&by_end[before]) > pop_began(latest))
                latest = &by_end[before];
        if (latest != NULL && pop_ended(b) < pop_began(latest))
            return out_of_order(latest, b);
    }
    return good;
}

static bool pops_precede(const element *x, const element *y)
{
    return x->pop != NULL && (y->pop == NULL || fifo_precedes(x->pop, y->pop));
}

/*
 * The same if a batch determines at least one of the two orders: each pair in each batch is checked. For long
 * batches this takes more than O(n log n). Elements of one batch are neighbours, in its order.
 */
static fifo_verdict check_push_batches(const element *sorted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count && sorted[j].push->began == sorted[i].push->began; j++)
            if (pops_precede(&sorted[j], &sorted[i]))
                return out_of_order(&sorted[i], &sorted[j]);
    return good;
}

static fifo_verdict check_pop_batches(const element *sorted, size_t count)
{
    for (size_t i = 0; i < count && sorted[i].pop != NULL; i++)
        for (size_t j = i + 1; j < count && pop_began(&sorted[j]) == sorted[i].pop->began; j++)
            if (fifo_precedes(sorted[j].push, sorted[i].push))
                return out_of_order(&sorted[j], &sorted[i]);
    return good;
}

/* ---- Nothing there ---- */

/* From one stamp to the other there was an element at every instant. */
typedef struct span {
    uint64_t from, to;
    const element *first;
} span;

/*
 * A value is certainly in the queue from the end of its push to the beginning of its pop. `sorted` is in order of the
 * former. Overlapping intervals form one span, so the spans are disjoint, and in order.
 */
static size_t make_spans(const element *sorted, size_t count, span *spans)
{
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t from = sorted[i].push->ended, to = pop_began(&sorted[i]);
        if (from >= to)
            continue;
        if (made == 0 || spans[made - 1].to < from)
            spans[made++] = (span){from, to, &sorted[i]};
        else if (spans[made - 1].to < to)
            spans[made - 1].to = to;
    }
    return made;
}

/*
 * Spans are disjoint, so a pop that finds nothing is wrong exactly if it ran within one: this can only be the last span
 * that began before the pop.
 */
static fifo_verdict check_empty(const fifo_operation *empty, const span *spans, size_t count)
{
    size_t low = 0, high = count; /* spans below `low` began before, spans from `high` on did not */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans[middle].from < empty->began)
            low = middle + 1;
        else
            high = middle;
    }
    if (low != 0 && spans[low - 1].to > empty->ended)
        return fault(FIFO_NOT_EMPTY, spans[low - 1].first->push, empty);
    return good;
}

static fifo_verdict check_empties(const fifo_operation *operations, size_t count, const span *spans,
                                  size_t span_count)
{
    fifo_verdict verdict = good;
    for (size_t i = 0; i < count && verdict.fault == FIFO_GOOD; i++)
        if (operations[i].kind == FIFO_EMPTY)
            verdict = check_empty(&operations[i], spans, span_count);
    return verdict;
}

/* ---- All ---- */

static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static fifo_verdict check_all(const fifo_operation *operations, size_t count, place *valued,
                              element *by_end, element *other, span *spans)
{
    size_t with_value = 0, elements = 0;
    for (size_t i = 0; i < count; i++)
        if (operations[i].kind != FIFO_EMPTY)
            valued[with_value++].operation = &operations[i];
    qsort(valued, with_value, sizeof *valued, by_value);
    fifo_verdict verdict = pair(valued, with_value, by_end, &elements);
    if (verdict.fault != FIFO_GOOD)
        return verdict;

    memcpy(other, by_end, elements * sizeof *other);
    qsort(by_end, elements, sizeof *by_end, by_end_of_push);
    qsort(other, elements, sizeof *other, by_beginning_of_push);
    verdict = check_order(by_end, other, elements);
    if (verdict.fault == FIFO_GOOD)
        verdict = check_push_batches(other, elements);
    qsort(other, elements, sizeof *other, by_beginning_of_pop);
    if (verdict.fault == FIFO_GOOD)
        verdict = check_pop_batches(other, elements);
    if (verdict.fault == FIFO_GOOD)
        verdict = check_empties(operations, count, spans, make_spans(by_end, elements, spans));
    return verdict;
}

fifo_verdict fifo_history_check(const fifo_operation *operations, size_t count)
{
    place *valued = must(calloc(count + 1, sizeof *valued));
    element *by_end = must(calloc(count + 1, sizeof *by_end));
    element *other = must(calloc(count + 1, sizeof *other));
    span *spans = must(calloc(count + 1, sizeof *spans));
    fifo_verdict verdict = check_all(operations, count, valued, by_end, other, spans);
    free(valued);
    free(by_end);
    free(other);
    free(spans);
    return verdict;
}

static void print_operation(const fifo_operation *operation)
{
    static const char *const names[] = {"push", "pop", "pop of nothing,"};
    printf("# %s", names[operation->kind]);
    if (operation->kind != FIFO_EMPTY)
        printf(" %#llx,", (unsigned long long)operation->value);
    printf(" %llu to %llu\n", (unsigned long long)operation->began,
           (unsigned long long)operation->ended);
}

void fifo_verdict_print(const fifo_verdict *verdict)
{
    static const char *const names[] = {
        "good",         "pushed twice", "never pushed", "popped twice",
        "popped early", "out of order", "not empty",
    };
    if (verdict->fault == FIFO_GOOD)
        return;
    printf("# %s:\n", names[verdict->fault]);
    print_operation(&verdict->first);
    print_operation(&verdict->second);
}
