#!/usr/bin/env bash
# Echo over TCP: each server on one processor, the client (echo_client.c) on another, in turns. JSON lines on stdout:
# medians of the requests per second, of the latency's 99th percentile, and of the server's processor time per request
# (which varies less when the machine has other load); on stderr also how busy the client was.
# Usage: bench/echo.sh [SUBJECT...]; ECHO_TURNS and ECHO_SECONDS (a turn) in the environment make it longer or shorter.
set -eu

cd "$(dirname "$0")/.."
turns=${ECHO_TURNS:-5}
seconds=${ECHO_SECONDS:-0.6}
client=build/bench/echo_client
if ! command -v taskset >/dev/null 2>&1 || [ "$(nproc)" -lt 2 ]; then
    echo "echo.sh: skipped: two processors and taskset are needed" >&2
    exit 0
fi
if ! [ -x "$client" ]; then
    echo "echo.sh: skipped: the client needs liburing (liburing-dev)" >&2
    exit 0
fi
ulimit -n "$(ulimit -H -n)"

. bench/servers.sh

directory=$(mktemp -d)
trap 'stop; rm -rf "$directory"' EXIT
trap 'exit 1' HUP INT TERM
mkfifo "$directory/line"

# turn SUBJECT CONNECTIONS SIZE: one line of the client's, or none when the server does not run.
turn() {
    start "$1" "$directory"
    if [ -n "$line" ]; then
        timeout 20 taskset -c 1 "$client" "${line##* }" "$2" "$3" 0.15 "$seconds" "$server" || true
    fi
    stop
}

[ $# -gt 0 ] || set -- bide-uring bide-epoll raw-uring raw-epoll libuv asio go tokio
subjects=
for subject; do
    program "$subject" >"$directory/$subject"
    [ ! -s "$directory/$subject" ] || subjects="$subjects $subject"
done

status=0
for size in 64 16384; do
    for connections in 50 1000; do
        for subject in $subjects; do
            : >"$directory/figures-$subject"
        done
        round=0
        while [ "$round" -lt "$turns" ]; do
            for subject in $subjects; do
                turn "$subject" "$connections" "$size" >>"$directory/figures-$subject"
            done
            round=$((round + 1))
        done
        for subject in $subjects; do
            figures=$directory/figures-$subject
            if ! has_turns echo.sh "$figures" "$turns" "$subject with $connections connections, $size bytes"; then
                status=1
                continue
            fi
            params="\"connections\": $connections, \"size\": $size"
            figure echo "$subject" "$(median "$figures" 2)" requests/s "$params"
            figure echo "$subject" "$(median "$figures" 6)" us "$params, \"of\": \"p99\""
            figure echo "$subject" "$(median "$figures" 14)" us "$params, \"of\": \"processor\""
            echo "echo.sh: $subject: the client was busy for $(median "$figures" 10) of its time," \
                "$(median "$figures" 12) answers a poll; p99.9 $(median "$figures" 8) us" >&2
        done
    done
done
exit "$status"
