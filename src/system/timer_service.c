/*
 * The timer service: a thread that keeps time for coroutines of the inline scheduler for which no
 * thread waits (../coroutine/inline_timers.c). It is started by the first such timer, and stopped at
 * the end of the program.
 */
#define _GNU_SOURCE
#include "timer_service.h"

#include "../coroutine/inline_timers.h"
#include "threads.h"

static pthread_t timer_service_thread; /* of the last start */

static void *timer_service_main(void *argument)
{
    (void)argument;
    bide_serve_timers_();
    return NULL;
}

static void timer_service_undo(void *argument)
{
    (void)argument; /* the only thread was not started */
}

static int timer_service_start(void)
{
    return bide_threads_start_(&timer_service_thread, 1, timer_service_main, NULL,
                               timer_service_undo);
}

void bide_offer_timer_service_(void)
{
    bide_start_timer_service_ = timer_service_start;
}

/* Joins the thread at the end of the program, unless it is inside a coroutine. */
__attribute__((destructor)) static void timer_service_stop(void)
{
    if (bide_end_timer_service_())
        pthread_join(timer_service_thread, NULL);
}
