#!/bin/sh
# Runs a program of conversations while libfiu makes functions of the C library fail at random, with any of their errors:
# failing_test.sh PROGRAM. (close and munmap are excluded: libfiu would skip the call, and its object would be left.)
set -u

program=$1
passed=0
failed=0

if ! command -v fiu-run >/dev/null 2>&1; then
    echo "# fiu-run is missing (fiu-utils, libfiu-dev)"
    exit 77
fi
if ! fiu-run -x true >/dev/null 2>&1; then
    echo "# fiu-run does not run here"
    exit 77
fi

# run WORLD PROBABILITY [PARAMETER] NAME...: these functions fail with that probability.
run() {
    world=$1
    probability=$2
    shift 2
    for name; do
        set -- "$@" -c "enable_random name=$name,probability=$probability"
        shift
    done
    if BIDE_IO=$world timeout 120 fiu-run -x "$@" "$program" >"$output" 2>&1; then
        passed=$((passed + 1))
    else
        echo "# FAILED ($?): $world, $*"
        failed=$((failed + 1))
    fi
    sed 's/^/# /' "$output"
}

output=$(mktemp)
trap 'rm -f "$output"' EXIT

for world in epoll uring; do
    run "$world" 0.02 libc/mm/malloc libc/mm/calloc libc/mm/realloc
    run "$world" 0.02 posix/io/net/socket posix/io/net/bind posix/io/net/listen posix/io/net/connect
    run "$world" 0.02 posix/mm/mmap posix/mm/madvise posix/io/oc/open
    run "$world" 0.01 'posix/io/net/*' 'posix/io/rw/*' 'libc/mm/*'
done
run epoll 0.02 posix/io/net/recv posix/io/net/send
run epoll 0.3 posix/io/rw/read/reduce posix/io/rw/write/reduce

echo "1..1"
if [ "$failed" -ne 0 ]; then
    echo "not ok 1 - $failed of $((passed + failed)) failed"
    exit 1
fi
echo "ok 1 - $passed ways to fail"
