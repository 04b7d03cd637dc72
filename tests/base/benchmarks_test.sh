#!/bin/sh
# The benchmarks in C compile without a warning, except benchmarks that need packages: benchmarks_test.sh ROOT. They are built
# by `make bench` and `make check-long`, so that what changes a header need not wait for those.
set -eu
cd "$1"
if ! command -v gcc >/dev/null; then
    echo "skipped: gcc is not installed"
    exit 77
fi
options='-std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude -iquote bench -fsyntax-only'
sources=$(ls bench/*.c bench/peers/*.c | grep -v '/check\.c$\|/language_async\.c$\|/queue_ck\.c$\|/timer_uv\.c$\|/queue_urcu\.c$\|/echo_uv\.c$\|_uring\.c$\|/echo_client\.c$')
# shellcheck disable=SC2086 # lists of words
gcc $options $sources
# shellcheck disable=SC2086
gcc $options -DBIDE_CHECK=1 -DBIDE_CHECK_UNWATCHED=1 bench/check.c
echo "$(echo "$sources" | wc -l) sources"
