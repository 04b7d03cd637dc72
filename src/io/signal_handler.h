/* The signal handler of the library: its installation, its counts, and its semaphore (signal_handler.c). */
#ifndef BIDE_IO_SIGNAL_HANDLER_H
#define BIDE_IO_SIGNAL_HANDLER_H

#include <stdbool.h>
#include <stdint.h>

enum { SIGNAL_COUNT = 65 }; /* Linux: 1 to 64 */

/* All of these are called under the lock of signal.c, except the post and the wait. */

/* True if a thread's own instruction, or call, raises this signal. */
bool bide_signal_handler_is_raised_(int number);

/* Initializes what a process needs once. 0 or a negative errno. */
int bide_signal_handler_init_(void);

/* Installs the handler, and saves the previous action. -EBUSY: there is another handler. */
int bide_signal_handler_install_(int number);

/* True if the handler is still installed. */
bool bide_signal_handler_is_installed_(int number);

/* True if the process ignored the signal before the handler was installed. */
bool bide_signal_handler_was_ignored_(int number);

/* Restores the previous action. False: another handler is installed, and stays. */
bool bide_signal_handler_restore_(int number);

/* How often the handler ran for this signal. Acquires the writes before those signals. */
uint32_t bide_signal_handler_count_(int number);

/* The semaphore that the handler posts after it has counted. */
void bide_signal_handler_post_(void);
void bide_signal_handler_wait_(void);

/* In a child of fork: resets the counts and the semaphore. The actions have been restored. */
void bide_signal_handler_reset_(void);

#endif
