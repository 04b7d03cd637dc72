#!/bin/sh
# The scenarios of a program, no more than so many executions of each: bounded_test.sh PROGRAM EXECUTIONS. What is not
# finished with so many has passed as far as it got; the long tests finish it.
"$1" --executions "$2"
status=$?
[ "$status" -eq 3 ] || exit "$status"
