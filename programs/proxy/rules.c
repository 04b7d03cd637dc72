/* Rules for header fields. Used at startup and by reloads; a list is constant after that. */
#define _GNU_SOURCE
#include "rules.h"
#include "fields.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Fields that the proxy always writes itself, or that are of one hop. */
static const char *const own_fields[] = {"Connection",
                                         "Content-Length",
                                         "Date",
                                         "Expect",
                                         "Host",
                                         "Keep-Alive",
                                         "Proxy-Authenticate",
                                         "Proxy-Authorization",
                                         "Proxy-Connection",
                                         "TE",
                                         "Trailer",
                                         "Transfer-Encoding",
                                         "Upgrade"};

static bool is_field_name(const char *name)
{
    static const char valid[] = "!#$%&'*+-.^_`|~0123456789"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return *name != '\0' && name[strspn(name, valid)] == '\0';
}

static bool is_field_value(const char *value)
{
    for (; *value != '\0'; value++)
        if (((unsigned char)*value < ' ' && *value != '\t') || *value == 0x7f)
            return false;
    return true;
}

static bool is_own_field(const char *name)
{
    for (size_t i = 0; i < sizeof own_fields / sizeof own_fields[0]; i++)
        if (strcasecmp(name, own_fields[i]) == 0)
            return true;
    return false;
}

bool rules_read(struct reading *reading, struct rule **list)
{
    const char *action = reading->words[1], *name = reading->words[2];
    bool adds = strcmp(action, "add") == 0, removes = strcmp(action, "remove") == 0;
    if (!adds && !removes && strcmp(action, "set") != 0)
        return reading_fail(reading, reading->line, "'%s' is none of set, add, remove", action);
    if (reading->count != (removes ? 3 : 4))
        return reading_fail(reading, reading->line, "usage: %s %s NAME%s", reading->words[0],
                            action, removes ? "" : " VALUE");
    if (!is_field_name(name))
        return reading_fail(reading, reading->line, "'%s' is not the name of a field", name);
    if (is_own_field(name))
        return reading_fail(reading, reading->line, "the proxy writes '%s' itself", name);
    if (!removes && !is_field_value(reading->words[3]))
        return reading_fail(reading, reading->line, "the value of '%s' is not valid", name);
    while (*list != NULL)
        list = &(*list)->next;
    *list = reading_allocate(sizeof **list);
    (*list)->line = reading->line;
    (*list)->replaces = !adds;
    (*list)->name = reading_copy(name);
    (*list)->value = removes ? NULL : reading_copy(reading->words[3]);
    return true;
}

bool rules_verify_forwarded(struct reading *reading, const struct rule *list,
                            enum forwarded forwarded)
{
    for (; list != NULL; list = list->next) {
        bide_slice name = {list->name, strlen(list->name)};
        if (fields_is_forwarded(forwarded, name))
            return reading_fail(reading, list->line, "the proxy writes '%s' itself", list->name);
    }
    return true;
}

bool rules_drop(const struct rule *list, bide_slice name)
{
    for (; list != NULL; list = list->next)
        if (list->replaces && bide_http_is(name, list->name))
            return true;
    return false;
}

bool rule_adds(const struct rule *rule, const struct rule *behind)
{
    bide_slice name = {rule->name, strlen(rule->name)};
    return rule->value != NULL && !rules_drop(rule->next, name) && !rules_drop(behind, name);
}

void rules_free(struct rule *list)
{
    struct rule *next;
    for (; list != NULL; list = next) {
        next = list->next;
        free(list->name);
        free(list->value);
        free(list);
    }
}
