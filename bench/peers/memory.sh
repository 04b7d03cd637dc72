#!/bin/sh
# Measures goroutines and tokio's tasks: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/memory.sh
set -eu

cd "$(dirname "$0")/../.."
program=$(sh bench/peers/go.sh memory)
if [ -n "$program" ]; then
    # A process for each case: Go keeps the memory of goroutines.
    "$program" 1
    processors=$(getconf _NPROCESSORS_ONLN)
    [ "$processors" -eq 1 ] || "$program" "$processors"
fi
program=$(sh bench/peers/rust.sh memory tokio)
[ -z "$program" ] || "$program"
