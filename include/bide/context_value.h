/*
 * Values that travel with the context: a trace id, a tenant, whom a request comes from. They are
 * typed, and inherited by all that runs below. Floor: coroutine.
 *
 *     typedef bide_context_key(struct trace) trace_key_type;
 *     static const trace_key_type trace_key = BIDE_CONTEXT_KEY("trace");
 *
 *     bide_try(bide_with_value(&self->traced, &trace_key, &self->trace, serve(&self->serving)));
 *
 *     // anywhere below serve: a child, a branch, a coroutine of a scope, a forked child
 *     const struct trace *trace = bide_context_get(bide_this_context(), &trace_key);    // or NULL
 *
 * A key is known by its address: one that several files share is `extern`. The value is not copied;
 * it is read by whatever thread runs below, so it does not change meanwhile. Nothing is allocated:
 * the operation holds a link of the list that begins in the context. A context is copied with its
 * list, so moves, deadlines, stop callbacks, branches and roots have it too.
 *
 * The link and the value stay until the operation has ended. All that is awaited, and all that a
 * scope joins, has ended by then. Code that outlives the operation must not have the list.
 * bide_spawn, and bide_scope_spawn_in in a scope of an outer coroutine, copy the context that they
 * are given. Give those bide_context_without_values(bide_this_context()), and the values anew.
 *
 * Why it is correct: a list is constant, and what it consists of is written before it is shared.
 *
 * Source: the values of Go's contexts, and Python's context variables.
 */
#ifndef BIDE_CONTEXT_VALUE_H
#define BIDE_CONTEXT_VALUE_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_context_key_ {
    const char *name; /* for inspection */
} bide_context_key_;

/*
 * A key for values of `type`, to be a constant with the initialiser BIDE_CONTEXT_KEY(name). Each use
 * is a type of its own: give it a name by a typedef if the key is declared more than once.
 * Threads: any may use the key.
 */
#define bide_context_key(type)       \
    struct {                         \
        bide_context_key_ key;       \
        const type *(*typed_)(void); \
    }

/*
 * The initialiser of a key. `name` is a string, for people.
 * Threads: any may use the key.
 */
#define BIDE_CONTEXT_KEY(name) \
    {                          \
        {name}, NULL           \
    }

/* A link of a context's list. Constant while it is in one. */
struct bide_context_value {
    const bide_context_key_ *key;
    const void *value;
    const bide_context_value *outer; /* or NULL */
};

/* One operation with a value. The caller's memory until the wait has ended. */
typedef struct bide_with_value_operation {
    bide_awaiter awaiter;
    bide_awaiter *inner;
    int status;
    bide_frame frame; /* awaits `inner` */
    bide_context context;
    bide_context_value value;
} bide_with_value_operation;

BIDE_PASSES_RESULT
BIDE_MUST_AWAIT
bide_awaiter *bide_with_value_(bide_with_value_operation *operation, const bide_context_key_ *key,
                               const void *value, bide_awaiter *inner);

const void *bide_context_get_(const bide_context *context, const bide_context_key_ *key);

/*
 * Runs `inner` (a task, or any operation) in the awaiting coroutine's context, in which
 * bide_context_get of `key` is `value` from now on: a pointer to a value of the key's type, or NULL,
 * which hides an outer one. Ends with its status. `operation`, `*value` and `*key` stay until then.
 * Threads: any. Errors: those of `inner`. Suspends: if `inner` does. Cancel-safe: as its inner
 * operation is. Progress: that of `inner`.
 */
#define bide_with_value(operation, key_, value, inner) \
    BIDE_WITH_VALUE_(operation, key_, value, inner)
#define BIDE_WITH_VALUE_(operation, key_, value, inner) \
    bide_with_value_((operation), &(key_)->key, (1 ? (value) : (key_)->typed_()), (inner))

/*
 * The value of `key` that the innermost bide_with_value has given, as a pointer to const; NULL if
 * there is none. It stays as long as what runs in the context.
 * Threads: any, while the context stays. Progress: wait-free, linear in the values of the context.
 */
#define bide_context_get(context, key_) \
    ((__typeof__((key_)->typed_()))bide_context_get_((context), &(key_)->key))

/*
 * A copy without values: for what may outlive the operations that have given them.
 * Threads: any, while the context stays. Progress: wait-free.
 */
BIDE_INLINE bide_context bide_context_without_values(const bide_context *context)
{
    bide_context without = *context;
    without.values = NULL;
    return without;
}

BIDE_EXTERN_C_END

#endif
