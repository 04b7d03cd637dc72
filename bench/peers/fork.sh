#!/bin/sh
# Measures rayon's join: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/fork.sh
set -eu

cd "$(dirname "$0")/../.."
program=$(sh bench/peers/rust.sh fork rayon)
[ -z "$program" ] || "$program"
