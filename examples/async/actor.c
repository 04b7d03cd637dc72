/* An account that only one coroutine accesses: the others send it messages and wait for replies. */
#include <bide/async.h>
#include <bide/loop.h>
#include <stdio.h>

typedef bide_oneshot(long) reply;

struct message {
    long amount;
    reply *reply; /* the balance, or -1: insufficient */
};
typedef bide_channel(struct message) mailbox;
typedef bide_channel_slot(struct message) mailbox_slot;

async int account(mailbox *mail)
{
    struct message message;
    long balance = 0;
    while (await bide_channel_recv(mail, &message) == 0) {
        long left = balance + message.amount;
        if (left >= 0)
            balance = left;
        else
            left = -1;
        bide_oneshot_send(message.reply, &left);
    }
    return 0;
}

async long ask(mailbox *mail, long amount)
{
    reply answer;
    long balance;
    bide_oneshot_init(&answer);
    struct message message = {amount, &answer};
    try await bide_channel_send(mail, &message);
    try await bide_oneshot_recv(&answer, &balance);
    return balance;
}

async int client(mailbox *mail, long amount, int *refused)
{
    for (int i = 0; i < 1000; i++)
        *refused += await ask(mail, amount) == -1;
    return 0;
}

async int main(void)
{
    mailbox_slot slots[8];
    mailbox mail;
    int refused = 0;
    bide_scope scope;
    bide_channel_init(&mail, slots, 8);
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    if (spawn(&scope, account(&mail)) < 0)
        return -ENOMEM;
    try await all(client(&mail, 3, &refused), client(&mail, 2, &refused),
                  client(&mail, 1, &refused));
    try await all(client(&mail, -4, &refused), client(&mail, -4, &refused));
    printf("balance %ld, %d refused\n", await ask(&mail, 0), refused);
    bide_channel_close(&mail);
    return await bide_scope_join(&scope);
}
