#!/bin/sh
# Measures crowds of goroutines and of tokio's tasks: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/crowd.sh
set -eu

cd "$(dirname "$0")/../.."
for peer in go tokio; do
    program=$(sh "bench/peers/$peer.sh" crowd)
    [ -z "$program" ] || "$program"
done
