#!/bin/sh
# Measures the LMAX Disruptor: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/ring.sh [topology [ring size, a power of two from 256 up]]
set -eu

cd "$(dirname "$0")/../.."
topologies=${1:-1-1 1-3 3-1 1-2-1}
ring=${2:-16384}

# One JVM for each case, so that no case inherits the profile of another.
for topology in $topologies; do
    for strategy in yielding blocking busyspin; do
        for batch in 1 10 256; do
            sh bench/peers/disruptor.sh ring "$topology" "$strategy" "$batch" "$ring"
        done
    done
done
