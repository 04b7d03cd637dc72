/* The sketch of bide/select_set.h. */
#include <bide/bide.h>

enum { CLIENTS = 10, JOBS = 100 };

typedef bide_channel_slot(int) job_slot;
typedef bide_channel(int) job_channel;

struct client {
    bide_select_member member;
    bide_channel_waiter recv;
    job_channel jobs;
    job_slot memory[4];
    int job;
};

static struct client clients[CLIENTS];
static bool stop;
static int sum, served;

static bide_awaiter *next_job(struct client *client)
{
    return bide_channel_recv(&client->recv, &client->jobs, &client->job);
}

static void serve(struct client *client)
{
    sum += client->job;
    stop = ++served == JOBS;
}

struct server {
    bide_task task;
    bide_select_set set;
    bide_select_member *member;
};

bide_coroutine(server_body)
{
    bide_begin(server_body, struct server * self);
    // sketch 1
    bide_end();
}

struct sender {
    bide_task task;
    bide_channel_waiter send;
    int i;
};

bide_coroutine(sender_body)
{
    bide_begin(sender_body, struct sender * self);
    bide_channel_close(&clients[0].jobs);
    for (self->i = 0; self->i < JOBS; self->i++)
        bide_try(
            bide_channel_send(&self->send, &clients[1 + self->i % (CLIENTS - 1)].jobs, &self->i));
    bide_end();
}

int main(void)
{
    struct server server;
    struct sender sender;
    bide_when both;
    bide_branch branches[2];
    for (int i = 0; i < CLIENTS; i++)
        bide_channel_init(&clients[i].jobs, clients[i].memory, 4);
    bide_branch_init(&branches[0], bide_task_init(&server.task, &server_body));
    bide_branch_init(&branches[1], bide_task_init(&sender.task, &sender_body));
    if (bide_sync_wait(bide_when_all(&both, branches, 2)) != 0)
        return 1;
    for (int i = 0; i < CLIENTS; i++)
        bide_channel_destroy(&clients[i].jobs);
    return sum == JOBS * (JOBS - 1) / 2 ? 0 : 2;
}
