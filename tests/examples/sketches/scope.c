/* The sketches of bide/scope.h. */
#include <bide/bide.h>

enum { JOBS = 20 };

struct step {
    bide_task task;
    int ends_with;
    bool ran;
};

bide_coroutine(step_body)
{
    bide_begin(step_body, struct step * self);
    self->ran = true;
    bide_return(self->ends_with);
    bide_end();
}

static bide_awaiter *reader(struct step *step)
{
    step->ends_with = 0;
    step->ran = false;
    return bide_task_init(&step->task, &step_body);
}

static bide_awaiter *writer(struct step *step)
{
    return reader(step);
}

static bide_awaiter *job(struct step *step)
{
    step->ran = false;
    return bide_task_init(&step->task, &step_body);
}

struct both {
    bide_task task;
    bide_scope scope;
    bide_branch reads, writes;
    struct step reader, writer;
};

bide_coroutine(both_body)
{
    bide_begin(both_body, struct both * self);
    // sketch 1
    bide_end();
}

struct many {
    bide_task task;
    bide_scope scope;
    bide_scope_next_operation next;
    bide_branch *ended;
    int status, failed;
    bide_branch branches[JOBS];
    struct step jobs[JOBS];
};

bide_coroutine(many_body)
{
    bide_begin(many_body, struct many * self);
    // sketch 2
    bide_end();
}

int main(void)
{
    struct both both;
    struct many many = {.failed = 0};
    if (bide_sync_wait(bide_task_init(&both.task, &both_body)) != 0)
        return 1;
    if (!both.reader.ran || !both.writer.ran)
        return 2;
    for (int i = 0; i < JOBS; i++)
        many.jobs[i].ends_with = i % 4 == 1 ? -EIO : 0;
    if (bide_sync_wait(bide_task_init(&many.task, &many_body)) != -EIO)
        return 3;
    return many.failed == JOBS / 4 && many.status == -ENOENT ? 0 : 4;
}
