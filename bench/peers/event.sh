#!/bin/sh
# Measures goroutines and channels, and tokio's tasks: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/event.sh
set -eu

cd "$(dirname "$0")/../.."
program=$(sh bench/peers/go.sh event)
if [ -n "$program" ]; then
    "$program" 1
    "$program" 2
fi
program=$(sh bench/peers/rust.sh event tokio)
[ -z "$program" ] || "$program"
