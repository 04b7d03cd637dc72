/* Where programs of this user listen, and what is known of them. */
#ifndef TOP_PLACES_H
#define TOP_PLACES_H

#include <stdbool.h>
#include <stddef.h>

enum { MAX_PLACE = 256, MAX_PLACES = 4096 };

/* The path at which the process of that number listens by itself. False: there is none. */
bool places_find(int process, char path[MAX_PLACE]);

/* The numbers of processes with a socket in the user's directory, in order; how many. */
size_t places_list(int processes[MAX_PLACES]);

/* Removes what such a process, which has ended, has left. */
void places_remove_left_over(int process);

#endif
