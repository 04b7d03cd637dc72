#include <bide/bide.h>
#include <stdio.h>

struct sleeper {
    bide_task task;
    bide_sleep sleep;
};

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    bide_try(bide_sleep_for(&self->sleep, BIDE_MILLISECONDS(1)));
    bide_end();
}

int main(void)
{
    FILE *file = tmpfile(); /* one of yours, for https://ui.perfetto.dev */
    struct sleeper sleeper;
    if (file == NULL || bide_trace_start(file) != 0)
        return 1;
    int status = bide_sync_wait(bide_task_init(&sleeper.task, &sleeper_body));
    bide_trace_stop();
    puts(ftell(file) > 100 ? "traced" : "too little");
    fclose(file);
    return status != 0;
}
