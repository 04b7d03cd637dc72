/*
 * Liveness: which locals of the step function are saved at each suspension.
 *
 * A local is live where a path leads to a use of its value. The sets of live locals are found backwards
 * through the tree, whose loops, labels and jumps are the flow graph: what is live behind a statement
 * gives what is live before it. Loops and labels keep their set for the next pass; passes are made until
 * no set grows.
 *
 * Where the tree does not say in which order something happens, more is taken to be live: behind an await,
 * a whole expression may read each local that it names outside of what is awaited. Only a statement
 * `name = value;` and a declaration with an initialiser end a value. The locals of a block begin with it,
 * so none of them is live before its {, nor at a jump into the block from outside.
 *
 * So that the saves do not grow with the product of locals and awaits, those that are saved most often
 * are members of the frame, if all are more than SAVES for an await.
 */
#include "bidec.h"

#include <stdint.h>
#include <stdlib.h>

enum { BITS = 64, SAVES = 24, MAX_PASSES = 200 };
static const size_t max_bits = (size_t)1 << 29; /* of the sets of all suspensions: 64 MB */

typedef uint64_t *live_set;
struct flow {
    live_set before; /* at the beginning of a loop, at a label, at the cases of a switch */
    live_set after;  /* behind a loop or a switch: where a break goes */
    live_set next;   /* where a continue goes */
};

static struct symbol **locals; /* those with a number; the first has 1 */
static int local_count, local_room;
static size_t words; /* of a set */
static live_set unused;
static bool grows; /* in this pass */
static struct node *switch_around;

/* ---- Sets ---- */

static live_set new_set(void)
{
    return allocate((words + 1) * sizeof(uint64_t)); /* one word to link those that are not used */
}

static live_set take_copy(const uint64_t *of)
{
    live_set set = unused;
    if (set == NULL)
        set = new_set();
    else
        memcpy(&unused, set + words, sizeof unused);
    memcpy(set, of, words * sizeof *set);
    return set;
}

static void give_back(live_set set)
{
    memcpy(set + words, &unused, sizeof unused);
    unused = set;
}

/* Returns whether the set grew. */
static bool add_set(live_set to, const uint64_t *from)
{
    uint64_t more = 0;
    for (size_t i = 0; i < words; i++) {
        more |= from[i] & ~to[i];
        to[i] |= from[i];
    }
    return more != 0;
}

static bool has(const uint64_t *set, int number)
{
    return (set[(size_t)number / BITS] >> ((unsigned)number % BITS) & 1) != 0;
}

static void add(live_set set, const struct symbol *symbol)
{
    set[(size_t)symbol->number / BITS] |= (uint64_t)1 << ((unsigned)symbol->number % BITS);
}

static void end_value(live_set set, const struct symbol *symbol)
{
    if (symbol != NULL && symbol->number != 0)
        set[(size_t)symbol->number / BITS] &= ~((uint64_t)1 << ((unsigned)symbol->number % BITS));
}

static void end_scope(live_set set, const struct scope *in)
{
    for (const struct symbol *s = in->awaits ? in->symbols : NULL; s != NULL; s = s->next)
        end_value(set, s);
}

static void use_tokens(live_set live, int first, int end)
{
    for (int i = first; i < end; i++) {
        if (tokens[i].symbol != NULL && tokens[i].symbol->number != 0)
            add(live, tokens[i].symbol);
    }
}

static struct flow *flow_of(struct node *node)
{
    if (node->flow == NULL) {
        node->flow = allocate(sizeof *node->flow);
        node->flow->before = new_set();
        node->flow->after = new_set();
        node->flow->next = new_set();
    }
    return node->flow;
}

/* ---- The flow ---- */

static void flow_statement(struct node *node, live_set live);

/* The statements from the last to the first. */
static void flow_list(struct node *list, live_set live)
{
    static struct node **stack;
    static size_t depth, room;
    const size_t base = depth;
    for (struct node *s = list; s != NULL; s = s->next) {
        if (depth == room) {
            room = room * 2 + 64;
            stack = realloc(stack, room * sizeof(void *));
            if (stack == NULL)
                abort();
        }
        stack[depth++] = s;
    }
    while (depth > base)
        flow_statement(stack[--depth], live);
}

static void note_suspension(struct node *node, const uint64_t *live)
{
    if (node->flow == NULL) {
        node->flow = allocate(sizeof *node->flow);
        node->flow->before = new_set();
    }
    add_set(node->flow->before, live);
}

/* Adds what is live at the beginning of each block in an expression, whose jumps go anywhere. */
static void flow_blocks(struct node *node, const uint64_t *live, live_set inside_all)
{
    if (node == NULL)
        return;
    if (node->kind == E_BLOCK) {
        live_set inside = take_copy(live);
        flow_list(node->a->list, inside);
        end_scope(inside, node->a->scope);
        add_set(inside_all, inside);
        give_back(inside);
        return;
    }
    flow_blocks(node->a, live, inside_all);
    flow_blocks(node->b, live, inside_all);
    flow_blocks(node->c, live, inside_all);
    for (struct node *part = node->list; part != NULL; part = part->next)
        flow_blocks(part, live, inside_all);
}

enum { EXACT_AWAITS = 64 }; /* in a whole expression; the others take all its names */
static unsigned awaits_noted;

/* What an await awaits has been read when it suspends; the other names of the whole expression may be read later. */
static void note_awaits(struct node *node, const struct node *whole_node, const uint64_t *behind,
                        const uint64_t *all)
{
    if (node == NULL || !node->awaits || node->kind == E_BLOCK)
        return;
    if (node->kind == E_AWAIT && ++awaits_noted > EXACT_AWAITS) {
        note_suspension(node, all);
    } else if (node->kind == E_AWAIT) {
        live_set live = take_copy(behind);
        use_tokens(live, whole_node->first, node->first);
        use_tokens(live, node->end, whole_node->end);
        note_suspension(node, live);
        give_back(live);
    }
    note_awaits(node->a, whole_node, behind, all);
    note_awaits(node->b, whole_node, behind, all);
    note_awaits(node->c, whole_node, behind, all);
    for (struct node *part = node->list; part != NULL; part = part->next)
        note_awaits(part, whole_node, behind, all);
}

static void flow_expression(struct node *node, live_set live)
{
    if (node == NULL)
        return;
    live_set behind = take_copy(live), with_names = take_copy(live);
    use_tokens(with_names, node->first, node->end);
    flow_blocks(node, with_names, behind);
    awaits_noted = 0;
    live_set all = take_copy(behind);
    add_set(all, with_names);
    note_awaits(node, node, behind, all);
    give_back(all);
    add_set(live, behind);
    add_set(live, with_names);
    give_back(behind);
    give_back(with_names);
}

/* `name = value;` ends the value that the local had. */
static void flow_assignment(struct node *node, live_set live)
{
    const struct node *place = node->kind == E_ASSIGN && token_is(node->sign, "=") ? node->a : NULL;
    if (place != NULL && place->kind == E_TOKENS && place->end == place->first + 1 &&
        tokens[place->first].symbol != NULL && tokens[place->first].symbol->number != 0) {
        end_value(live, tokens[place->first].symbol);
        node = node->b;
    }
    flow_expression(node, live);
}

static void flow_declarators(struct declarator *d, live_set live)
{
    if (d == NULL)
        return;
    flow_declarators(d->next, live);
    if (d->initialiser != NULL)
        end_value(live, d->symbol);
    flow_expression(d->initialiser, live);
    use_tokens(live, d->first, d->name);
    use_tokens(live, d->name + 1, d->end);
}

static void flow_if(struct node *node, live_set live)
{
    if (node->c == NULL) {
        live_set after = take_copy(live);
        flow_statement(node->b, live);
        add_set(live, after);
        give_back(after);
    } else {
        live_set other = take_copy(live);
        flow_statement(node->b, live);
        flow_statement(node->c, other);
        add_set(live, other);
        give_back(other);
    }
    flow_expression(node->a, live);
}

static void flow_loop(struct node *node, live_set live)
{
    struct flow *f = flow_of(node);
    memcpy(f->after, live, words * sizeof *live);
    if (node->kind == S_DO) {
        add_set(live, f->before);
        flow_expression(node->a, live);
        memcpy(f->next, live, words * sizeof *live);
        flow_statement(node->b, live);
        grows |= add_set(f->before, live);
        return;
    }
    memcpy(f->next, f->before, words * sizeof *live);
    if (node->kind == S_FOR)
        flow_expression(node->c, f->next);
    live_set inside = take_copy(f->next);
    flow_statement(node->kind == S_WHILE ? node->b : node->d, inside);
    if (node->kind == S_EACH) {
        end_value(inside, node->declarators->symbol);
        if (node->b != NULL)
            use_tokens(live, node->b->first, node->b->end);
    }
    add_set(live, inside);
    give_back(inside);
    if (node->kind == S_EACH)
        grows |= add_set(f->before, live); /* the suspension's set, too */
    flow_expression(node->kind == S_WHILE ? node->a : node->kind == S_FOR ? node->b : NULL, live);
    grows |= add_set(f->before, live);
    if (node->kind == S_EACH)
        flow_expression(node->a, live);
    if (node->kind == S_FOR && node->a != NULL)
        flow_statement(node->a, live);
    if (node->kind != S_WHILE)
        end_scope(live, node->scope);
}

static void flow_switch(struct node *node, live_set live)
{
    struct flow *f = flow_of(node);
    struct node *outer_switch = switch_around;
    memcpy(f->after, live, words * sizeof *live);
    switch_around = node;
    live_set inside = take_copy(live);
    flow_statement(node->b, inside);
    give_back(inside);
    switch_around = outer_switch;
    add_set(live, f->before);
    flow_expression(node->a, live);
}

/* Ends the values of the scopes from `in` to one that contains `node`: a jump from there enters them. */
static void end_entered_scopes(live_set live, const struct scope *in, const struct node *node)
{
    for (; in != NULL; in = in->up) {
        const struct scope *s = node->scope;
        while (s != NULL && s != in)
            s = s->up;
        if (s == in)
            return;
        end_scope(live, in);
    }
}

static void flow_label(struct node *node, live_set live)
{
    if (node->a != NULL)
        flow_statement(node->a, live);
    if (!token_is(node->first, "case") && !token_is(node->first, "default")) {
        grows |= add_set(flow_of(node)->before, live);
        return;
    }
    if (switch_around == NULL)
        return; /* the compiler rejects it */
    live_set from = take_copy(live);
    end_entered_scopes(from, node->scope, switch_around);
    add_set(switch_around->flow->before, from);
    give_back(from);
}

/* One of its statements runs, or none; its operations and its place are before all of them. */
static void flow_select(struct node *node, live_set live)
{
    live_set after = take_copy(live);
    for (struct node *part = node->list; part != NULL; part = part->next) {
        live_set inside = take_copy(after);
        flow_statement(part->b, inside);
        add_set(live, inside);
        give_back(inside);
    }
    give_back(after);
    flow_expression(node->a, live);
    note_suspension(node, live);
    for (struct node *part = node->list; part != NULL; part = part->next)
        flow_expression(part->a, live);
}

static void flow_statement(struct node *node, live_set live)
{
    switch (node->kind) {
    case S_EXPRESSION:
        flow_assignment(node->a, live);
        break;
    case S_DECLARATION:
        flow_declarators(node->declarators, live);
        use_tokens(live, node->specifiers->first, node->specifiers->end);
        break;
    case S_BLOCK:
        flow_list(node->list, live);
        if (node->scope != function->scope)
            end_scope(live, node->scope);
        break;
    case S_IF:
        flow_if(node, live);
        break;
    case S_WHILE:
    case S_DO:
    case S_FOR:
    case S_EACH:
        flow_loop(node, live);
        break;
    case S_SWITCH:
        flow_switch(node, live);
        break;
    case S_LABEL:
        flow_label(node, live);
        break;
    case S_GOTO:
        if (node->target == NULL)
            break; /* an error, which is reported later */
        memcpy(live, flow_of(node->target)->before, words * sizeof *live);
        end_entered_scopes(live, node->target->scope, node);
        break;
    case S_BREAK:
        memcpy(live, flow_of(node->around)->after, words * sizeof *live);
        break;
    case S_CONTINUE:
        memcpy(live, flow_of(node->around)->next, words * sizeof *live);
        break;
    case S_RETURN:
        memset(live, 0, words * sizeof *live);
        flow_expression(node->a, live);
        break;
    case S_YIELD:
        note_suspension(node, live);
        flow_expression(node->a, live);
        break;
    case S_SELECT:
        flow_select(node, live);
        break;
    case S_DEFER: /* what it names is in memory */
        break;
    default:
        use_tokens(live, node->first, node->end);
        break;
    }
}

/* ---- The function ---- */

static struct node **labels; /* a table by name */
static size_t label_room, label_count;
static struct node **suspensions;
static size_t suspension_count;

static struct node **label_place(int name)
{
    uint32_t hash = 5381;
    for (unsigned i = 0; i < tokens[name].length; i++)
        hash = hash * 33 ^ (unsigned char)tokens[name].at[i];
    size_t place = hash % label_room;
    while (labels[place] != NULL &&
           (tokens[labels[place]->first].length != tokens[name].length ||
            memcmp(tokens[labels[place]->first].at, tokens[name].at, tokens[name].length) != 0))
        place = (place + 1) % label_room;
    return &labels[place];
}

static bool is_named_label(const struct node *node)
{
    return node->kind == S_LABEL && !token_is(node->first, "case") &&
           !token_is(node->first, "default");
}

enum task { COUNT, NOTE, RESOLVE };

/* A jump in what the parser does not take apart, such as a block in a _Generic. */
static bool has_hidden_jump;

static void find_hidden_jumps(const struct node *node)
{
    bool is_opaque = node->kind == E_TOKENS || node->kind == E_SIZEOF || node->kind == S_COPIED;
    for (int i = node->first; is_opaque && i < node->end; i++)
        has_hidden_jump |= token_is(i, "goto") || token_is(i, "break") || token_is(i, "continue");
}

static void walk(struct node *node, enum task task)
{
    if (node == NULL)
        return;
    if (is_named_label(node)) {
        label_count += task == COUNT;
        if (task == NOTE)
            *label_place(node->first) = node;
    } else if (node->kind == S_GOTO && task == RESOLVE) {
        node->target = *label_place(node->first + 1);
    } else if (node->kind == E_AWAIT || node->kind == S_YIELD || node->kind == S_EACH ||
               node->kind == S_SELECT) {
        if (task == NOTE)
            suspensions[suspension_count] = node;
        suspension_count += task != RESOLVE;
    }
    if (task == COUNT)
        find_hidden_jumps(node);
    for (struct declarator *d = node->declarators; d != NULL; d = d->next)
        walk(d->initialiser, task);
    walk(node->a, task);
    walk(node->b, task);
    walk(node->c, task);
    walk(node->d, task);
    for (struct node *part = node->list; part != NULL; part = part->next)
        walk(part, task);
}

void resolve_gotos(struct node *node)
{
    label_count = suspension_count = 0;
    has_hidden_jump = false;
    walk(node, COUNT);
    label_room = label_count * 2 + 1;
    labels = allocate(label_room * sizeof(void *));
    suspensions = allocate((suspension_count + 1) * sizeof(void *));
    suspension_count = 0;
    walk(node, NOTE);
    walk(node, RESOLVE);
}

static void number_locals(struct scope *in)
{
    if (!in->awaits)
        return;
    for (struct symbol *s = in->symbols; s != NULL; s = s->next) {
        if (!s->is_local)
            continue;
        if ((size_t)(local_count + 1) * suspension_count > max_bits) {
            s->is_local = false;
            continue;
        }
        if (local_count + 1 >= local_room) {
            local_room = local_room * 2 + 64;
            locals = realloc(locals, (size_t)local_room * sizeof(void *));
            if (locals == NULL)
                abort();
        }
        s->number = ++local_count;
        locals[local_count] = s;
    }
    for (struct scope *inner = in->inner; inner != NULL; inner = inner->next)
        number_locals(inner);
}

static size_t *counts; /* the suspensions at which each local is live */

static int by_count(const void *left, const void *right)
{
    const struct symbol *const *a = left, *const *b = right;
    size_t x = counts[(*a)->number], y = counts[(*b)->number];
    return x < y ? 1 : x > y ? -1 : (*a)->number - (*b)->number;
}

/* Makes those members that are saved most often, until the others are few enough. */
static void limit_saves(void)
{
    size_t all = 0, limit = SAVES * suspension_count;
    for (size_t n = 0; n < suspension_count; n++) {
        for (size_t i = 0; suspensions[n]->flow != NULL && i < words; i++)
            all += (size_t)__builtin_popcountll(suspensions[n]->flow->before[i]);
    }
    if (all <= limit)
        return;
    counts = allocate(((size_t)local_count + 1) * sizeof *counts);
    for (size_t n = 0; n < suspension_count; n++) {
        for (int i = 1; suspensions[n]->flow != NULL && i <= local_count; i++)
            counts[i] += has(suspensions[n]->flow->before, i);
    }
    struct symbol **sorted = allocate((size_t)local_count * sizeof(void *));
    memcpy(sorted, locals + 1, (size_t)local_count * sizeof(void *));
    qsort(sorted, (size_t)local_count, sizeof(void *), by_count);
    for (int i = 0; i < local_count && all > limit; i++) {
        sorted[i]->is_local = false;
        all -= counts[sorted[i]->number];
    }
}

void find_live_locals(struct node *node)
{
    local_count = 0;
    unused = NULL;
    switch_around = NULL;
    number_locals(function->scope);
    words = (size_t)local_count / BITS + 1;
    if (local_count == 0)
        return;
    live_set live = new_set();
    unsigned pass = 0;
    do {
        grows = false;
        memset(live, 0, words * sizeof *live);
        flow_statement(node, live);
    } while (grows && ++pass < MAX_PASSES);
    for (size_t n = 0; (grows || has_hidden_jump) && n < suspension_count; n++) {
        for (int i = 1; suspensions[n]->flow != NULL && i <= local_count; i++)
            add(suspensions[n]->flow->before, locals[i]); /* print_saves takes the visible ones */
    }
    limit_saves();
}

/*
 * Saves the locals that are live at a suspension, or, with `back`, loads them. The names are those of one
 * function, so all that are visible there differ.
 */
void print_saves(struct text *out, const struct node *at_node, bool back)
{
    const int token = at_node->first;
    for (size_t i = 0; local_count != 0 && at_node->flow != NULL && i < words; i++) {
        for (uint64_t bits = at_node->flow->before[i]; bits != 0; bits &= bits - 1) {
            struct symbol *s = locals[(int)(i * BITS) + __builtin_ctzll(bits)];
            if (!s->is_local || s->scope->first > token || s->scope->last < token)
                continue;
            s->is_saved = true;
            if (!back && s->declarator->is_parameter && !s->is_written)
                continue; /* the member has the value still */
            if (back)
                text_print(out, "%s = bide_self->%s; ", s->member, s->member);
            else
                text_print(out, "bide_self->%s = %s; ", s->member, s->member);
        }
    }
}
