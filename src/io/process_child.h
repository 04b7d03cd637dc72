/* A child that sets itself up before it executes its program: process.c, process_child.c. */
#ifndef BIDE_SRC_IO_PROCESS_CHILD_H
#define BIDE_SRC_IO_PROCESS_CHILD_H

#include "bide/process.h"

/*
 * Linux has handles of processes, and a child's steps are its system calls. Other systems, and -Dplatform=posix, have
 * neither handles nor cgroups nor death signals, and the steps are calls of the C library.
 */
#ifndef BIDE_HAS_PIDFD
#ifdef __linux__
#define BIDE_HAS_PIDFD 1
#else
#define BIDE_HAS_PIDFD 0
#endif
#endif

/* The descriptors that the child gets: duplicates that the parent has opened, close-on-exec. */
typedef struct process_descriptors {
    int first;         /* all of these are at or above it; the child's numbers are below */
    const int *theirs; /* of its three streams; negative: closed */
    const int *copies; /* of options->fds */
} process_descriptors;

/*
 * Starts a child with options->setup. Returns its pid, or a negative errno; then there is no child, and
 * `step` says where it failed. Blocks until the child has executed its program.
 */
int bide_process_child_start_(const bide_process_options *options,
                              const process_descriptors *descriptors, bide_process_step *step);

#endif
