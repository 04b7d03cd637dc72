/* The thread of the inline scheduler's timers, which is started when it is needed. */
#ifndef BIDE_SCHEDULE_TIMER_SERVICE_H
#define BIDE_SCHEDULE_TIMER_SERVICE_H

/* Once, at program start. */
void bide_offer_timer_service_(void);

#endif
