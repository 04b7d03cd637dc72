/*
 * says: take_ticket is called with its struct ticket here: give_back needs it afterwards
 */
#include <bide/async.h>
#include <bide/bide.h>

struct ticket {
    bide_awaiter awaiter;
};

BIDE_KEY_SCOPED(give_back);
BIDE_MUST_AWAIT
bide_awaiter *take_ticket(struct ticket *ticket, int number);

async int f(void)
{
    return await take_ticket(1); /* HERE */
}
