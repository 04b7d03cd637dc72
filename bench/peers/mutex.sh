#!/bin/sh
# Measures Go's sync.Mutex: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/mutex.sh
set -eu

cd "$(dirname "$0")/../.."
program=$(sh bench/peers/go.sh mutex)
[ -n "$program" ] || exit 0

# One goroutine or four; a process for each case.
"$program" uncontended
"$program" contended 0
"$program" contended 50
