/* The exploration of all execution graphs of the_checker's scenario. */
#ifndef BIDE_CHECK_EXPLORE_H
#define BIDE_CHECK_EXPLORE_H

void explore_all(void);

#endif
