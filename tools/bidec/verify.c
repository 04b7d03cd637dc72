/*
 * Assertions about the tree of a function.
 *
 * 1. The tokens of a node contain those of its parts.
 * 2. A node with a part that awaits, awaits.
 * 3. A break or continue is inside of its loop or switch.
 * 4. The scope of a node is that of the node around it, or inside of that.
 * 5. Each await, yield and async_for that awaits is translated once: it has one suspension point.
 */
#include "bidec.h"

#include <assert.h>

static bool is_inside(const struct scope *in, const struct scope *outer_scope)
{
    while (in != NULL && in != outer_scope)
        in = in->up;
    return in != NULL;
}

/* Returns how many suspension points the node and its parts have. */
static unsigned verify_node(const struct node *node, const struct scope *around)
{
    unsigned points = node->kind == E_AWAIT || node->kind == S_YIELD || node->kind == S_SELECT ||
                      (node->kind == S_EACH && synchronous_generator(node) == NULL);
    const struct node *const parts[] = {node->a, node->b, node->c, node->d};
    assert(node->first <= node->end && node->end < token_count);
    assert(is_inside(node->scope, around));
    assert(node->around == NULL ||
           (node->around->first < node->first && node->end <= node->around->end));
    for (size_t i = 0; i < 4; i++) {
        if (parts[i] == NULL)
            continue;
        assert(node->first <= parts[i]->first && parts[i]->end <= node->end);
        assert(node->awaits || !parts[i]->awaits);
        points += verify_node(parts[i], node->scope);
    }
    for (const struct node *part = node->list; part != NULL; part = part->next) {
        assert(node->first <= part->first && part->end <= node->end);
        assert(node->awaits || !part->awaits);
        points += verify_node(part, node->scope);
    }
    for (const struct declarator *d = node->declarators; d != NULL; d = d->next) {
        assert(node->first <= d->first && d->end <= node->end);
        assert(node->awaits || d->initialiser == NULL || !d->initialiser->awaits);
        points += d->initialiser != NULL ? verify_node(d->initialiser, node->scope) : 0;
    }
    return points;
}

unsigned verify_tree(void)
{
    assert(scope == function->scope && deferred == 0);
    assert(function->scope->up == NULL);
    return verify_node(function->body, function->scope);
}

void verify_translation(unsigned points)
{
    unsigned cleanups = 0;
    assert(point_count() == points);
    for (const struct cleanup *c = last_cleanup; c != NULL; c = c->previous)
        cleanups++;
    for (const struct cleanup *c = last_cleanup; c != NULL; c = c->previous)
        assert(c->number == cleanups-- && is_inside(c->scope, function->scope));
}
