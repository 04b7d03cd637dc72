#!/bin/sh
# Measures the LMAX Disruptor that waits: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/idle.sh
set -eu

cd "$(dirname "$0")/../.."
for strategy in yielding blocking busyspin; do
    for consumers in 1 3; do
        sh bench/peers/disruptor.sh idle "$consumers" "$strategy"
    done
done
