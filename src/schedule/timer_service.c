/*
 * The thread that keeps time for coroutines of the inline scheduler that no thread waits for
 * (../coroutine/inline_timers.c).
 */
#define _GNU_SOURCE
#include "timer_service.h"

#include "../coroutine/inline_timers.h"
#include "../system/threads.h"

static pthread_t thread; /* of the last start */

static void *serve(void *argument)
{
    (void)argument;
    bide_serve_timers_();
    return NULL;
}

static void give_up(void *argument)
{
    (void)argument; /* there is one thread, so none was started */
}

static int start(void)
{
    return bide_threads_start_(&thread, 1, serve, NULL, give_up);
}

void bide_offer_timer_service_(void)
{
    bide_start_timer_service_ = start;
}

/* So that nothing of the library is left at the end. A thread inside a coroutine is let be. */
__attribute__((destructor)) static void end(void)
{
    if (bide_end_timer_service_())
        pthread_join(thread, NULL);
}
