/* The sketches of bide/channel.h. */
#include <bide/bide.h>

struct job {
    int number;
};

// sketch 1

struct worker {
    bide_task task;
    struct job job;
    bide_channel_waiter send, receive, reserve;
    bide_channel_permit permit;
};

static bool makes;

static bool make_job(struct job *job)
{
    job->number = 2;
    return makes;
}

bide_coroutine(worker_body)
{
    bide_begin(worker_body, struct worker * self);
    self->job.number = 1;
    // sketch 3
    // sketch 5
    bide_end();
}

int main(void)
{
    struct worker worker;
    struct job job;
    // sketch 2
    for (int i = 0; i < 100; i++) {
        makes = i % 2 == 0;
        if (bide_sync_wait(bide_task_init(&worker.task, &worker_body)) != 0)
            return 1;
        if ((bide_channel_try_recv(&jobs, &job) == 0) != makes || (makes && job.number != 2))
            return 2;
    }
    bide_channel_destroy(&jobs);
    return 0;
}
