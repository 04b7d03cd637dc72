#!/bin/sh
# Measures how late Go and tokio are: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/latency.sh
set -eu

cd "$(dirname "$0")/../.."
for peer in "go.sh latency" "rust.sh latency tokio"; do
    # shellcheck disable=SC2086 # a script and its arguments
    program=$(sh bench/peers/$peer)
    [ -n "$program" ] || continue
    "$program"
done
