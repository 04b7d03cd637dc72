/*
 * Looking up records, and the names of addresses.
 *
 *     by c-ares        a query for the records of the name; an address has a name in "arpa"
 *     by the system    getnameinfo on a thread, for addresses alone: names.c
 *     on a test loop   the world answers
 *
 * An operation belongs to its scheduler's thread. The argument for threads is that of names.c and
 * names_cares.c.
 */
#define _GNU_SOURCE
#include "names.h"

#include "bide/coroutine.h"
#include "bide/handle.h"

#include "../io/operation.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

unsigned bide_names_record_type_(bide_record_kind kind)
{
    enum { PTR = 12, TXT = 16, SRV = 33 };
    return kind == BIDE_RECORD_SRV ? SRV : kind == BIDE_RECORD_TXT ? TXT : PTR;
}

void bide_names_add_record_(bide_resolve_records_operation *operation,
                            const bide_name_record *record)
{
    char *text = operation->text + operation->used;
    if (operation->count == BIDE_RECORDS_MAX ||
        record->size >= sizeof operation->text - operation->used) {
        operation->omitted++;
        return;
    }
    if (text != record->text)
        memcpy(text, record->text, record->size);
    text[record->size] = '\0';
    operation->used += record->size + 1;
    unsigned at = operation->count++;
    for (; at != 0 && operation->records[at - 1].priority > record->priority; at--)
        operation->records[at] = operation->records[at - 1];
    operation->records[at] = *record;
    operation->records[at].text = text;
}

/* ---- The name of an address: RFC 1035, 3.5, and RFC 3596, 2.5 ---- */

static void records_name_v4(char *name, size_t size, const uint8_t *bytes)
{
    snprintf(name, size, "%u.%u.%u.%u.in-addr.arpa", bytes[3], bytes[2], bytes[1], bytes[0]);
}

static void records_name_v6(char *name, const uint8_t *bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 15; i >= 0; i--) {
        *name++ = digits[bytes[i] & 15];
        *name++ = '.';
        *name++ = digits[bytes[i] >> 4];
        *name++ = '.';
    }
    memcpy(name, "ip6.arpa", sizeof "ip6.arpa");
}

/* Names the address; one of version 4 that is written as one of version 6 is one of version 4. */
static int records_name_address(bide_resolve_records_operation *operation)
{
    BIDE_STATIC_ASSERT(sizeof operation->reverse >= 16 * 4 + sizeof "ip6.arpa",
                       "there is room for 32 digits");
    const bide_address *address = &operation->address;
    const uint8_t *v6 = address->any.v6.sin6_addr.s6_addr;
    if (address->any.generic.sa_family == AF_INET)
        records_name_v4(operation->reverse, sizeof operation->reverse,
                        (const uint8_t *)&address->any.v4.sin_addr);
    else if (address->any.generic.sa_family != AF_INET6)
        return -EINVAL;
    else if (IN6_IS_ADDR_V4MAPPED(&address->any.v6.sin6_addr))
        records_name_v4(operation->reverse, sizeof operation->reverse, v6 + 12);
    else
        records_name_v6(operation->reverse, v6);
    operation->name = operation->reverse;
    return 0;
}

/* ---- The operation ---- */

static int records_ask_world(bide_resolve_records_operation *operation, const bide_context *context)
{
    const bide_io_calls *calls = io_calls(io_of_context(context));
    const bide_name_record *found;
    bool is_reverse = operation->kind == BIDE_RECORD_PTR_;
    if (calls == NULL || calls->resolve_records == NULL)
        return -ENOTSUP;
    int count = calls->resolve_records(io_of_context(context), is_reverse ? NULL : operation->name,
                                       &operation->address, (unsigned)operation->kind, &found,
                                       &operation->resolving.delay);
    for (int i = 0; i < count; i++)
        bide_names_add_record_(operation, &found[i]);
    return count < 0 ? count : count == 0 ? -ENOENT : 0;
}

static int records_check_name(const bide_resolve_records_operation *operation)
{
    size_t length = operation->name != NULL ? strnlen(operation->name, NAMES_HOST_MAX + 1) : 0;
    bool is_kind = operation->kind == BIDE_RECORD_SRV || operation->kind == BIDE_RECORD_TXT;
    return length == 0 || length > NAMES_HOST_MAX || !is_kind ? -EINVAL : 0;
}

static int records_start(bide_resolve_records_operation *operation, const bide_context *context)
{
    bool is_reverse = operation->kind == BIDE_RECORD_PTR_;
    operation->count = operation->omitted = 0;
    operation->used = 0;
    int error = is_reverse ? records_name_address(operation) : records_check_name(operation);
    if (error != 0)
        return error;
    if (context->scheduler->environment != NULL)
        return records_ask_world(operation, context);
    if (operation->resolving.names->blocking == NULL)
        return bide_names_cares_create_query_(operation, context);
    return is_reverse
               ? bide_names_request_start_(operation->resolving.names, NULL, &operation->address,
                                           &operation->resolving.request)
               : -ENOTSUP;
}

static void records_take_answer(bide_resolve_records_operation *operation)
{
    const bide_resolving_ *it = &operation->resolving;
    if (it->status == 0 && it->request != NULL)
        bide_names_add_record_(operation, &(bide_name_record){.text = it->request->host,
                                                              .size = strlen(it->request->host)});
    if (it->status != 0)
        operation->count = 0;
}

bide_coroutine(records_body)
{
    bide_begin(records_body, bide_resolve_records_operation * self);
    self->resolving.status = records_start(self, bide_this_context());
    if (bide_names_has_to_wait_(&self->resolving)) {
        int status;
        bide_await_status(status, bide_names_wait_(&self->resolving));
        bide_names_end_wait_(&self->resolving, status);
    }
    records_take_answer(self);
    bide_return(self->resolving.status);
    bide_finally();
    bide_names_resolving_end_(&self->resolving);
    bide_end();
}

bide_awaiter *bide_resolve_records(bide_resolve_records_operation *operation, bide_names *names,
                                   const char *name, bide_record_kind kind)
{
    bide_names_resolving_init_(&operation->resolving, names);
    operation->name = name;
    operation->kind = kind == BIDE_RECORD_PTR_ ? (bide_record_kind)0 : kind;
    return bide_task_init(&operation->task, &records_body);
}

bide_awaiter *bide_resolve_reverse(bide_resolve_records_operation *operation, bide_names *names,
                                   const bide_address *address)
{
    bide_names_resolving_init_(&operation->resolving, names);
    operation->name = NULL;
    operation->kind = BIDE_RECORD_PTR_;
    operation->address = *address;
    return bide_task_init(&operation->task, &records_body);
}
