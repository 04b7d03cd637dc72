#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int sleep_once(void)
{
    return await bide_sleep_for(BIDE_MILLISECONDS(1));
}

int main(void)
{
    FILE *file = tmpfile(); /* one of yours, for https://ui.perfetto.dev */
    async_frame(sleep_once) frame;
    if (file == NULL || bide_trace_start(file) != 0)
        return 1;
    int status = bide_sync_wait(async_sleep_once(&frame));
    bide_trace_stop();
    puts(ftell(file) > 100 ? "traced" : "too little");
    fclose(file);
    return status != 0;
}
