#!/bin/sh
# Builds the Go program of a benchmark, unless it is built, and prints its path; prints nothing if there is no Go.
# Usage: bench/peers/go.sh NAME
set -eu

cd "$(dirname "$0")/../.."
src=bench/peers/$1.go
out=build/bench/peers-go

if ! command -v go >/dev/null 2>&1; then
    echo "$1.sh: skipped, go is missing" >&2
    exit 0
fi

if [ ! -f "$out/$1" ] || [ "$src" -nt "$out/$1" ]; then
    mkdir -p "$out"
    GOCACHE="$PWD/$out/cache" GOFLAGS='' CGO_ENABLED=0 go build -o "$out/$1" "$src" >&2
fi
echo "$out/$1"
