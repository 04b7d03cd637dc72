#!/bin/sh
# Measures Go's goroutines, tokio's tasks and Asio's handlers: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/pool.sh
set -eu

cd "$(dirname "$0")/../.."
for peer in "go.sh pool" "rust.sh pool tokio"; do
    # shellcheck disable=SC2086 # a script and its arguments
    program=$(sh bench/peers/$peer)
    [ -n "$program" ] || continue
    "$program" 1
    "$program" 2
done

src=bench/peers/pool_asio.cpp
out=build/bench/peers-asio
if ! command -v g++ >/dev/null 2>&1 || { [ ! -f /usr/include/asio.hpp ] && [ ! -f /usr/include/boost/asio.hpp ]; }; then
    echo "pool.sh: asio is skipped: g++ or Asio (libasio-dev, libboost-dev) is missing" >&2
    exit 0
fi
if [ ! -f "$out/pool" ] || [ "$src" -nt "$out/pool" ]; then
    mkdir -p "$out"
    g++ -std=c++20 -O2 -DNDEBUG -pthread -o "$out/pool" "$src" >&2
fi
"$out/pool" 1
"$out/pool" 2
