#!/bin/sh
# Runs the scenarios of a program with a limit on the executions of each: bounded_test.sh PROGRAM EXECUTIONS. A scenario
# that reaches the limit passes; the long tests finish it.
"$1" --executions "$2"
status=$?
[ "$status" -eq 3 ] || exit "$status"
