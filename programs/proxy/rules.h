/*
 * Rules that change the header fields of forwarded messages.
 *
 *     fields that came, but for those of `set` and `remove` --> the proxy's own --> those of `set` and `add`
 *
 * Rules apply in their order, those of the listener before those of the backend: `set` and `remove` also drop what rules
 * before them have added.
 */
#ifndef PROXY_RULES_H
#define PROXY_RULES_H

#include "reading.h"

#include <bide/http_message.h>

/* One rule. */
struct rule {
    struct rule *next;
    unsigned line;
    bool replaces; /* it drops fields of this name */
    char *name;
    char *value; /* NULL: it adds none */
};

/* Parses "set NAME VALUE", "add NAME VALUE" or "remove NAME" into a list. False: an error, which is recorded. */
bool rules_read(struct reading *reading, struct rule **list);

/* False: a rule for requests is about a field that the proxy writes with this kind of `forwarded`. The error is recorded. */
bool rules_verify_forwarded(struct reading *reading, const struct rule *list,
                            enum forwarded forwarded);

/* True if fields of this name are dropped. */
bool rules_drop(const struct rule *list, bide_slice name);

/* True if the rule adds its field, and neither a later one nor one of the list `behind` drops it again. */
bool rule_adds(const struct rule *rule, const struct rule *behind);

/* Frees a list. */
void rules_free(struct rule *list);

#endif
