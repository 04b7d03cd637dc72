/* The table of weaker orders. */
#ifndef BIDE_CHECK_WEAKEN_H
#define BIDE_CHECK_WEAKEN_H

#include "command.h"

/*
 * Makes each order weaker in turn, and prints what is found. False if nothing is found and no
 * reason is given, or if something is found with the orders of the source.
 */
bool weaken_all(const main_options *o, const bide_check_suite *suite);

#endif
