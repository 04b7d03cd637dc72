#!/bin/sh
# Measures Go's and tokio's channels: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/channel.sh
set -eu

cd "$(dirname "$0")/../.."
for peer in go tokio; do
    program=$(sh "bench/peers/$peer.sh" channel)
    [ -n "$program" ] || continue
    "$program" 1
    "$program" 2
done
