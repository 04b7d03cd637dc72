#!/bin/sh
# Measures Rust's async functions: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/await.sh
set -eu

cd "$(dirname "$0")/../.."
program=$(sh bench/peers/rust.sh await tokio)
[ -z "$program" ] || "$program"
