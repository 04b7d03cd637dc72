#!/bin/sh
# Random reads of 4 KB, 32 in flight, from the page cache and past it (O_DIRECT), each program on one processor, in turns.
# JSON lines on stdout: medians of the reads per second. A program is called with FILE DIRECT DEPTH SECONDS and prints its
# reads per second.
# Usage: bench/file.sh [SUBJECT...]; FILE_TURNS and FILE_SECONDS (a turn) in the environment make it longer or shorter.
set -eu

cd "$(dirname "$0")/.."
turns=${FILE_TURNS:-5}
seconds=${FILE_SECONDS:-1}
depth=32
data=build/bench/file.data # (beside the programs: a directory in memory may know no O_DIRECT)
megabytes=256

run_fio() {
    # (the runtime is in whole seconds)
    taskset -c 0 fio --name=file --filename="$data" --readonly --rw=randread --bs=4k --ioengine=io_uring \
        --iodepth="$depth" --direct="$1" --runtime="$(echo "$seconds" | awk '{ print int($1 + 0.999) }')" --time_based \
        --iodepth_batch_submit="$depth" --iodepth_batch_complete_max="$depth" --gtod_reduce=1 --norandommap --invalidate=0 --thread --output-format=terse --terse-version=3 | cut -d ';' -f 8
}

# Whether the subject can be run here.
present() {
    case $1 in
    bide-*) [ -x build/bench/file_bide ] ;;
    raw-uring) [ -x build/bench/file_raw_uring ] ;;
    fio) command -v fio >/dev/null 2>&1 ;;
    *) false ;;
    esac
}

turn() {
    case $1 in
    bide-*) BIDE_IO=${1#bide-} taskset -c 0 build/bench/file_bide "$data" "$2" "$depth" "$seconds" ;;
    raw-uring) taskset -c 0 build/bench/file_raw_uring "$data" "$2" "$depth" "$seconds" ;;
    fio) run_fio "$2" ;;
    esac
}

directory=$(mktemp -d)
trap 'rm -rf "$directory" "$data"' EXIT
trap 'exit 1' HUP INT TERM

[ $# -gt 0 ] || set -- bide-uring bide-epoll raw-uring fio
subjects=
for subject; do
    if present "$subject"; then
        subjects="$subjects $subject"
    else
        echo "file.sh: $subject is skipped: it is not built, or not installed" >&2
    fi
done
[ -n "$subjects" ] || exit 0

dd if=/dev/urandom of="$data" bs=1M count="$megabytes" conv=fsync 2>/dev/null
status=0
for direct in 0 1; do
    for subject in $subjects; do
        : >"$directory/$subject"
    done
    cat "$data" >/dev/null
    round=0
    while [ "$round" -lt "$turns" ]; do
        for subject in $subjects; do
            turn "$subject" "$direct" >>"$directory/$subject" || status=1
        done
        round=$((round + 1))
    done
    for subject in $subjects; do
        if [ "$(wc -l <"$directory/$subject")" -lt "$turns" ]; then
            echo "file.sh: $subject failed with direct $direct" >&2
            status=1
            continue
        fi
        value=$(sort -n "$directory/$subject" | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }')
        printf '{"bench": "file", "subject": "%s", "value": %s, "unit": "ops/s", "params": {"direct": %s, "depth": %s}}\n' \
            "$subject" "$value" "$direct" "$depth"
    done
done
exit "$status"
