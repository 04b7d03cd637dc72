#!/bin/sh
# Measures crowds of goroutines and of tokio's tasks: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/crowd.sh
set -eu

cd "$(dirname "$0")/../.."
for peer in "go.sh crowd" "rust.sh crowd tokio"; do
    # shellcheck disable=SC2086 # a script and its arguments
    program=$(sh bench/peers/$peer)
    [ -z "$program" ] || "$program"
done
