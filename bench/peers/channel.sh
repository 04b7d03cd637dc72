#!/bin/sh
# Measures Go's and tokio's channels: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/channel.sh
set -eu

cd "$(dirname "$0")/../.."
for peer in "go.sh channel" "rust.sh channel tokio"; do
    # shellcheck disable=SC2086 # a script and its arguments
    program=$(sh bench/peers/$peer)
    [ -n "$program" ] || continue
    "$program" 1
    "$program" 2
done
