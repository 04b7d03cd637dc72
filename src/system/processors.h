/* The number of processors that this process may use, at least 1. */
#ifndef BIDE_SYSTEM_PROCESSORS_H
#define BIDE_SYSTEM_PROCESSORS_H

unsigned bide_processors_(void);

#endif
