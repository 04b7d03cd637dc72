#!/bin/sh
# Measures Go's channels: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/channel.sh
set -eu

cd "$(dirname "$0")/../.."
program=$(sh bench/peers/go.sh channel)
[ -n "$program" ] || exit 0

"$program" 1
"$program" 2
