#!/bin/sh
# Measures tokio's timers: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/timer.sh
set -eu

cd "$(dirname "$0")/../.."
program=$(sh bench/peers/rust.sh timer tokio)
[ -z "$program" ] || "$program"
