#!/bin/sh
# Tests the key-value server with redis-cli and redis-benchmark: kv_redis_test.sh PROGRAM
set -eu
kv=$1
if ! command -v redis-cli >/dev/null || ! command -v redis-benchmark >/dev/null; then
    echo "skipped: redis-cli and redis-benchmark (redis-tools) are not installed"
    exit 77
fi
directory=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true; rm -rf "$directory"' EXIT
failed=0

# (BIDE_ROUNDS times as many, a number or a share: tests/testing.h)
requests=$((20000 * ${BIDE_ROUNDS:-1}))

# expect WANTED ARGUMENT...: of redis-cli
expect() {
    wanted=$1
    shift
    got=$(timeout 60 redis-cli -p "$port" "$@" 2>&1)
    if [ "$got" != "$wanted" ]; then
        echo "redis-cli $*: '$got' instead of '$wanted'"
        failed=1
    fi
}

# (on the first alone where rounds are few, which is under the sanitizers of make check)
back_ends='epoll uring'
[ $((8 * ${BIDE_ROUNDS:-1})) -gt 0 ] || back_ends=epoll
for io in $back_ends; do
    mkfifo "$directory/line"
    BIDE_IO=$io "$kv" --port 0 --append-only "$directory/file-$io" --snapshot "$directory/snapshot-$io" >"$directory/line" &
    server=$!
    read -r line <"$directory/line"
    rm "$directory/line"
    port=${line##* }
    expect PONG PING
    expect OK SET a 'a b' EX 100
    expect 'a b' GET a
    expect 1 INCR n
    expect OK SAVE
    printf '\000\001binary' | timeout 60 redis-cli -p "$port" -x SET binary >/dev/null
    expect 8 STRLEN binary
    expect 3 DBSIZE
    seq 100000 | awk '{ print "SET key:" $1, $1 }' | timeout 120 redis-cli -p "$port" --pipe >"$directory/said" 2>&1
    grep -q 'errors: 0, replies: 100000' "$directory/said" || { cat "$directory/said"; failed=1; }
    expect 100003 DBSIZE
    expect 77777 GET key:77777
    [ "$(timeout 60 redis-cli -p "$port" --scan --pattern 'key:9999?' | sort | wc -l)" = 10 ] || { echo "scan"; failed=1; }
    for pipeline in 1 16; do
        timeout 120 redis-benchmark -p "$port" -n "$requests" -P "$pipeline" -r 1000 -t ping,set,get,incr,mset --csv >"$directory/said" 2>&1
        [ "$(grep -c '^"' "$directory/said")" = 7 ] && ! grep -qi error "$directory/said" || { cat "$directory/said"; failed=1; }
    done
    kill "$server"
    wait "$server" || { echo "$io: it ended with an error"; failed=1; }
    server=
done
exit $failed
