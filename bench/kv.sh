#!/usr/bin/env bash
# The key-value server (programs/kv) and redis-server, each on one processor, with redis-benchmark on another,
# in turns: 50 connections that SET and GET 100,000 keys of 3 bytes, with pipelines of 1 and 16, and with an append-only
# file that is synced before each reply, or none. JSON lines on stdout: medians of the requests a second, of the latency's
# 99th percentile, and of the server's processor time per request, which varies less when the machine has other load; and
# of the rate and that time relative to redis-server in the same turn.
# Usage: bench/kv.sh [SUBJECT...]; KV_TURNS, and KV_FILES (of "none always"), KV_PIPELINES (of "1 16") and KV_REQUESTS (a
# turn without a file) in the environment make it longer or shorter.
set -eu

cd "$(dirname "$0")/.."
turns=${KV_TURNS:-5}
connections=50
if ! command -v taskset >/dev/null 2>&1 || [ "$(nproc)" -lt 2 ]; then
    echo "kv.sh: skipped: two processors and taskset are needed" >&2
    exit 0
fi
if ! command -v redis-benchmark >/dev/null 2>&1; then
    echo "kv.sh: skipped: redis-benchmark (redis-tools) is missing" >&2
    exit 0
fi

# (a directory in memory would sync nothing)
mkdir -p build/bench
directory=$(mktemp -d build/bench/kv.XXXXXX)
server=
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    server=
    rm -rf "$directory"/data
}
trap 'stop; rm -rf "$directory"' EXIT
trap 'exit 1' HUP INT TERM

# start SUBJECT FILE: starts it on processor 0, as $server; sets $port, which stays empty if it does not answer.
start() {
    local file= try
    mkdir -p "$directory/data"
    port=
    case $1 in
    bide-*)
        [ "$2" = none ] || file="--append-only $directory/data/file --fsync $2"
        # shellcheck disable=SC2086 # words
        BIDE_IO=${1#bide-} taskset -c 0 build/programs/kv --port 0 $file >"$directory/line" 2>"$directory/said" </dev/null &
        server=$!
        for try in $(seq 100); do
            port=$(awk '{ print $NF }' "$directory/line")
            [ -z "$port" ] || return 0
            sleep 0.02
        done
        ;;
    redis)
        [ "$2" = none ] || file="--appendonly yes --appendfsync $2"
        port=$((20000 + RANDOM % 10000))
        # shellcheck disable=SC2086
        taskset -c 0 redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$directory/data" $file \
            >"$directory/said" 2>&1 </dev/null &
        server=$!
        for try in $(seq 100); do
            [ "$(redis-cli -p "$port" ping 2>/dev/null)" != PONG ] || return 0
            sleep 0.02
        done
        ;;
    esac
    cat "$directory/said" >&2
    port=
}

# The processor time of the server's threads, in nanoseconds.
ran() {
    cat "/proc/$server/task"/*/schedstat | awk '{ ran += $1 } END { printf "%.0f\n", ran }'
}

# turn SUBJECT FILE PIPELINE REQUESTS: a line for each of SET and GET: name, requests/s, p99 in us, processor us per request.
turn() {
    local test before line
    start "$1" "$2"
    if [ -n "$port" ]; then
        for test in set get; do
            before=$(ran)
            line=$(timeout 60 taskset -c 1 redis-benchmark -h 127.0.0.1 -p "$port" -c "$connections" -n "$4" -P "$3" \
                -r 100000 -t "$test" --csv 2>/dev/null | tail -n 1 | tr -d '"')
            [ -z "$line" ] || echo "$test,$line,$(($(ran) - before))" |
                awk -F , -v requests="$4" '{ print $1, $3, $8 * 1000, $NF / 1000 / requests }'
        done
    fi
    stop
}

# The median of column $2 of the file.
median() {
    cut -d ' ' -f "$2" "$1" | sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

# beside_redis FIGURES COLUMN: the median of the column relative to redis's, turn by turn.
beside_redis() {
    paste -d ' ' "$1" "$directory/redis-$test.figures" | awk -v column="$2" '{ print $column / $(NF / 2 + column) }' |
        sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

present() {
    case $1 in
    bide-*) [ -x build/programs/kv ] ;;
    redis) command -v redis-server >/dev/null 2>&1 ;;
    *) false ;;
    esac
}

[ $# -gt 0 ] || set -- bide-uring bide-epoll redis
subjects=
for subject; do
    if present "$subject"; then
        subjects="$subjects $subject"
    else
        echo "kv.sh: $subject is skipped: it is not built, or not installed" >&2
    fi
done

status=0
for file in ${KV_FILES:-none always}; do
    for pipeline in ${KV_PIPELINES:-1 16}; do
        requests=$((${KV_REQUESTS:-60000} * (pipeline > 1 ? 8 : 1)))
        # (a sync takes milliseconds)
        [ "$file" = none ] || requests=$((requests / 4))
        rm -f "$directory"/*.figures
        for round in $(seq "$turns"); do
            for subject in $subjects; do
                turn "$subject" "$file" "$pipeline" "$requests" >"$directory/turn"
                for test in set get; do
                    grep "^$test " "$directory/turn" >>"$directory/$subject-$test.figures" || true
                done
            done
        done
        for test in set get; do
            for subject in $subjects; do
                figures=$directory/$subject-$test.figures
                if [ "$(wc -l <"$figures")" -lt "$turns" ]; then
                    echo "kv.sh: $subject failed to $test with file $file, pipeline $pipeline" >&2
                    status=1
                    continue
                fi
                params="\"command\": \"$test\", \"pipeline\": $pipeline, \"file\": \"$file\""
                printf '{"bench": "kv", "subject": "%s", "value": %s, "unit": "requests/s", "params": {%s}}\n' \
                    "$subject" "$(median "$figures" 2)" "$params"
                printf '{"bench": "kv", "subject": "%s", "value": %s, "unit": "us", "params": {%s, "of": "p99"}}\n' \
                    "$subject" "$(median "$figures" 3)" "$params"
                printf '{"bench": "kv", "subject": "%s", "value": %s, "unit": "us", "params": {%s, "of": "processor"}}\n' \
                    "$subject" "$(median "$figures" 4)" "$params"
                beside=$(grep -c . "$directory/redis-$test.figures" 2>/dev/null || true)
                if [ "$subject" = redis ] || [ "${beside:-0}" -lt "$turns" ]; then
                    continue
                fi
                printf '{"bench": "kv", "subject": "%s", "value": %s, "unit": "of redis", "params": {%s, "of": "rate"}}\n' \
                    "$subject" "$(beside_redis "$figures" 2)" "$params"
                printf '{"bench": "kv", "subject": "%s", "value": %s, "unit": "of redis", "params": {%s, "of": "processor"}}\n' \
                    "$subject" "$(beside_redis "$figures" 4)" "$params"
            done
        done
    done
done
exit "$status"
