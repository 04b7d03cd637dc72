#!/usr/bin/env bash
# The downloader (programs/fetch) and curl, in turns: 500 files of 2 KB over parallel connections, and one of 300 MB, from a
# server on this machine, on both processors. Without a sync the peer is curl; with a sync, curl followed by sync(1) of the
# same files. JSON lines on stdout: medians of the time in milliseconds, and of the time relative to the peer's in the same
# turn.
# Usage: bench/fetch.sh [SUBJECT...]; FETCH_TURNS, and FETCH_KINDS (of "many big"), in the environment.
set -eu

cd "$(dirname "$0")/.."
. bench/common.sh
turns=${FETCH_TURNS:-7}
needs fetch.sh curl
needs_built fetch.sh build/programs/httpd # (which serves)

# (a directory in memory would sync nothing)
mkdir -p build/bench
directory=$(mktemp -d build/bench/fetch.XXXXXX)
server=
# shellcheck disable=SC2317 # called by the trap
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$directory"
}
trap stop EXIT
trap 'exit 1' HUP INT TERM

mkdir "$directory/served" "$directory/served/many" "$directory/served/big"
head -c 1024000 /dev/urandom | split -b 2048 -a 3 -d - "$directory/served/many/"
head -c 314572800 /dev/urandom >"$directory/served/big/file"
build/programs/httpd --port 0 "$directory/served" >"$directory/line" 2>"$directory/said" </dev/null &
server=$!
port=
for try in $(seq 100); do
    port=$(awk '{ sub(/\/$/, ""); sub(/.*[^0-9]/, ""); print; exit }' "$directory/line")
    [ -z "$port" ] || break
    sleep 0.02
done
if [ -z "$port" ]; then
    cat "$directory/said" >&2
    exit 1
fi
for kind in many big; do
    for file in "$directory/served/$kind"/*; do
        echo "http://127.0.0.1:$port/$kind/${file##*/}"
    done >"$directory/$kind.urls"
    sed 's/.*/url = "&"\nremote-name/' "$directory/$kind.urls" >"$directory/$kind.curl"
done

# take SUBJECT KIND TO: fetches all files of the kind into the directory.
take() {
    local synced=
    case $1 in *-synced) synced=--quiet ;; esac
    case $1 in
    fetch-*)
        local io=${1#fetch-}
        BIDE_IO=${io%-synced} build/programs/fetch --quiet ${synced:---no-sync} -j 50 -O "$3" --input "$directory/$2.urls"
        ;;
    curl*)
        (cd "$3" && curl -sS -Z --no-progress-meter --parallel-max 50 -K "$OLDPWD/$directory/$2.curl")
        [ -z "$synced" ] || sync "$3"/* "$3"
        ;;
    esac
}

present() {
    case $1 in
    fetch-*) [ -x build/programs/fetch ] ;;
    curl | curl-synced) true ;;
    *) false ;;
    esac
}

[ $# -gt 0 ] || set -- fetch-uring fetch-epoll curl fetch-uring-synced fetch-epoll-synced curl-synced
subjects=
for subject; do
    if present "$subject"; then
        subjects="$subjects $subject"
    else
        echo "fetch.sh: $subject is skipped: it is not built" >&2
    fi
done

status=0
for kind in ${FETCH_KINDS:-many big}; do
    rm -f "$directory"/*.times
    for round in $(seq "$turns"); do
        for subject in $subjects; do
            mkdir "$directory/to"
            begun=$(date +%s%N)
            take "$subject" "$kind" "$directory/to" >&2 || status=1
            ended=$(date +%s%N)
            if ! diff -rq "$directory/served/$kind" "$directory/to" >&2; then
                echo "fetch.sh: $subject did not take all" >&2
                status=1
            fi
            rm -r "$directory/to"
            sync -f "$directory"
            awk "BEGIN { print ($ended - $begun) / 1000000 }" >>"$directory/$subject.times"
        done
    done
    for subject in $subjects; do
        figure fetch "$subject" "$(median "$directory/$subject.times" 1)" ms "\"files\": \"$kind\""
        case $subject in
        *-synced) peer=curl-synced ;;
        *) peer=curl ;;
        esac
        if [ "$subject" != "$peer" ] && [ -s "$directory/$peer.times" ]; then
            paste -d ' ' "$directory/$subject.times" "$directory/$peer.times" | awk '{ print $1 / $2 }' >"$directory/parts"
            figure fetch "$subject" "$(median "$directory/parts" 1)" "of $peer" "\"files\": \"$kind\""
        fi
    done
done
exit "$status"
