/* Finds the sockets of the monitors of this user's programs. */
#ifndef TOP_PLACES_H
#define TOP_PLACES_H

#include <stdbool.h>
#include <stddef.h>

enum { PATH_SIZE = 256, MAX_PLACES = 4096 };

/* Sets the default path of a process's monitor. False: there is no socket. */
bool places_find(int process, char path[PATH_SIZE]);

/*
 * Whether a monitor at that path may be one of this user. Root may look at programs of all users, each at
 * a path that ends with the process's number: there it must be the process's owner.
 */
bool places_trust(const char *path, unsigned user);

/* Lists the processes with a socket in the user's directory, in order; returns their number. */
size_t places_list(int processes[MAX_PLACES]);

/* Removes the socket of such a process if the process has ended. */
void places_remove_left_over(int process);

#endif
