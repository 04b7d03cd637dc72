#!/bin/sh
# Measures goroutines: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/memory.sh
set -eu

cd "$(dirname "$0")/../.."
program=$(sh bench/peers/go.sh memory)
[ -n "$program" ] || exit 0

# A process for each case: memory that goroutines have had stays with Go.
"$program" 1
processors=$(getconf _NPROCESSORS_ONLN)
[ "$processors" -eq 1 ] || "$program" "$processors"
