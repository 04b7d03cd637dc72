#!/usr/bin/env bash
# Short connections, 64 at a time, each of which echoes one byte: the servers of `echo`, each on one processor, the client
# (accept_client.c) on another, in turns. JSON lines on stdout: medians of the connections per second, of the 99th
# percentile of the time until the answer, and of the server's processor time per connection.
# Usage: bench/accept.sh [SUBJECT...]; ACCEPT_TURNS and ACCEPT_SECONDS (a turn) in the environment.
set -eu

cd "$(dirname "$0")/.."
turns=${ACCEPT_TURNS:-5}
seconds=${ACCEPT_SECONDS:-0.6}
client=build/bench/accept_client
if ! command -v taskset >/dev/null 2>&1 || [ "$(nproc)" -lt 2 ] || ! [ -x "$client" ]; then
    echo "accept.sh: skipped: two processors, taskset and $client are needed" >&2
    exit 0
fi

. bench/servers.sh

directory=$(mktemp -d)
trap 'stop; rm -rf "$directory"' EXIT
trap 'exit 1' HUP INT TERM
mkfifo "$directory/line"

[ $# -gt 0 ] || set -- bide-uring bide-epoll raw-uring raw-epoll libuv asio go tokio
subjects=
for subject; do
    program "$subject" >"$directory/$subject"
    [ ! -s "$directory/$subject" ] || subjects="$subjects $subject"
    : >"$directory/figures-$subject"
done

round=0
while [ "$round" -lt "$turns" ]; do
    for subject in $subjects; do
        start "$subject" "$directory"
        [ -z "$line" ] || timeout 20 taskset -c 1 "$client" "${line##* }" 64 0.1 "$seconds" "$server" \
            >>"$directory/figures-$subject" || true
        stop
    done
    round=$((round + 1))
done

status=0
for subject in $subjects; do
    figures=$directory/figures-$subject
    if ! has_turns accept.sh "$figures" "$turns" "$subject"; then
        status=1
        continue
    fi
    print() {
        figure accept "$subject" "$(median "$figures" "$1")" "$2" "\"at_once\": 64$3"
    }
    print 2 'connections/s' ''
    print 4 us ', "of": "p99"'
    print 6 us ', "of": "processor"'
done
exit "$status"
