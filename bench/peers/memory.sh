#!/bin/sh
# Measures goroutines: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/memory.sh
set -eu

cd "$(dirname "$0")/../.."
src=bench/peers/memory.go
out=build/bench/peers-go

if ! command -v go >/dev/null 2>&1; then
    echo "memory.sh: skipped, go is missing" >&2
    exit 0
fi

if [ ! -f "$out/memory" ] || [ "$src" -nt "$out/memory" ]; then
    mkdir -p "$out"
    GOCACHE="$PWD/$out/cache" GOFLAGS='' CGO_ENABLED=0 go build -o "$out/memory" "$src" >&2
fi

# A process for each case: memory that goroutines have had stays with Go.
"$out/memory" 1
processors=$(getconf _NPROCESSORS_ONLN)
[ "$processors" -eq 1 ] || "$out/memory" "$processors"
