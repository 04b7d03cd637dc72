#!/usr/bin/env bash
# Idle connections: the server's memory for each, and its processor time for all of them. JSON lines on stdout: bytes for
# each; microseconds of processor time in IDLE_SECONDS; and the number of times that its threads ran.
# Usage: bench/idle_connections.sh [SUBJECT...]; IDLE_COUNT and IDLE_SECONDS in the environment.
set -eu

cd "$(dirname "$0")/.."
client=build/bench/idle_connections_client
if ! command -v taskset >/dev/null 2>&1 || ! [ -x "$client" ]; then
    echo "idle_connections.sh: skipped: taskset is missing, or $client is not built" >&2
    exit 0
fi
ulimit -n "$(ulimit -H -n)"
count=${IDLE_COUNT:-10000}
seconds=${IDLE_SECONDS:-10}
[ "$(ulimit -n)" -gt $((count + 200)) ] || count=$(($(ulimit -n) - 200))

. bench/servers.sh

directory=$(mktemp -d)
trap 'stop; rm -rf "$directory"' EXIT
trap 'exit 1' HUP INT TERM
mkfifo "$directory/line"

[ $# -gt 0 ] || set -- bide-uring bide-epoll raw-uring raw-epoll libuv asio go tokio
status=0
for subject; do
    case $subject in
    bide-*) built build/bench/idle_connections_bide "env BIDE_IO=${subject#bide-}" ;;
    *) program "$subject" ;;
    esac >"$directory/$subject"
    [ -s "$directory/$subject" ] || continue
    start "$subject" "$directory"
    if [ -z "$line" ] ||
        ! timeout 120 taskset -c 1 "$client" "${line##* }" "$count" "$seconds" "$server" >"$directory/figures"; then
        echo "idle_connections.sh: $subject failed" >&2
        status=1
    else
        read -r _ each _ processor _ switches <"$directory/figures"
        params="\"connections\": $count"
        figure idle_connections "$subject" "$each" bytes "$params"
        params="$params, \"seconds\": $seconds"
        figure idle_connections "$subject" "$processor" us "$params, \"of\": \"processor\""
        figure idle_connections "$subject" "$switches" times "$params, \"of\": \"runs\""
    fi
    stop
done
exit "$status"
