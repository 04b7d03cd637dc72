#!/bin/sh
# Measures goroutines and channels: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/event.sh
set -eu

cd "$(dirname "$0")/../.."
program=$(sh bench/peers/go.sh event)
[ -n "$program" ] || exit 0

"$program" 1
"$program" 2
