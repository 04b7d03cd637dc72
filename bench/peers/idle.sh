#!/bin/sh
# Measures an idle LMAX Disruptor: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/idle.sh
set -eu

cd "$(dirname "$0")/../.."
for strategy in yielding blocking busyspin; do
    for consumers in 1 3; do
        sh bench/peers/disruptor.sh idle "$consumers" "$strategy"
    done
done
