#!/usr/bin/env bash
# A chat room: each message is delivered to all members. Each server on one processor, the members (chat_client.c) on
# another, in turns. JSON lines on stdout: medians of the lines delivered per second, and of the server's processor time
# for each.
# Usage: bench/chat.sh [SUBJECT...]; CHAT_TURNS and CHAT_SECONDS (a turn) in the environment make it longer or shorter.
set -eu

cd "$(dirname "$0")/.."
turns=${CHAT_TURNS:-5}
seconds=${CHAT_SECONDS:-0.6}
client=build/bench/chat_client
export NODE_PATH=/usr/share/nodejs:/usr/lib/nodejs
if ! command -v taskset >/dev/null 2>&1 || [ "$(nproc)" -lt 2 ]; then
    echo "chat.sh: skipped: two processors and taskset are needed" >&2
    exit 0
fi
if ! [ -x "$client" ] || ! [ -x build/programs/chat ]; then
    echo "chat.sh: skipped: the chat is not built (it needs llhttp: node-llhttp)" >&2
    exit 0
fi

. bench/common.sh

directory=$(mktemp -d)
server=
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    server=
}
trap 'stop; rm -rf "$directory"' EXIT
trap 'exit 1' HUP INT TERM
mkfifo "$directory/line"

command_of() {
    case $1 in
    bide-*) echo "env BIDE_IO=${1#bide-} build/programs/chat --rate 1000000" ;;
    node-ws)
        if node -e "require('ws')" 2>/dev/null; then
            echo "node bench/peers/chat_node.js"
        else
            echo "node-ws is skipped: it is not installed" >&2
        fi
        ;;
    *) echo "there is no subject $1" >&2 ;;
    esac
}

# turn COMMAND MEMBERS SIZE: the client's line.
turn() {
    # shellcheck disable=SC2086 # a program and its arguments
    taskset -c 0 $1 >"$directory/line" </dev/null &
    server=$!
    exec 3<"$directory/line"
    read -r line <&3
    timeout 20 taskset -c 1 "$client" "${line##* }" "$2" "$3" "$seconds" "$server" || true
    exec 3<&-
    stop
}

[ $# -gt 0 ] || set -- bide-uring bide-epoll node-ws
for size in 50 500; do
    for members in 10 200; do
        round=0
        while [ "$round" -lt "$turns" ]; do
            for subject; do
                command=$(command_of "$subject")
                [ -z "$command" ] || turn "$command" "$members" "$size" >>"$directory/$subject-$members-$size"
            done
            round=$((round + 1))
        done
        for subject; do
            figures=$directory/$subject-$members-$size
            [ -s "$figures" ] || continue
            params="\"members\": $members, \"size\": $size"
            figure chat "$subject" "$(median "$figures" 2)" lines/s "$params"
            figure chat "$subject" "$(median "$figures" 4)" us "$params, \"of\": \"processor\""
        done
    done
done
