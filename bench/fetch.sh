#!/usr/bin/env bash
# The downloader (programs/fetch) beside curl, in turns: 500 files of 2 KB over parallel connections, and one of 300 MB, from
# a server on this machine, on both processors. Without a sync curl is the peer; with one, curl and then sync(1) of the same
# files. JSON lines on stdout: medians of the time in milliseconds, and of that as a part of what the peer took in the same
# turn.
# Usage: bench/fetch.sh [SUBJECT...]; FETCH_TURNS, and FETCH_KINDS (of "many big"), in the environment.
set -eu

cd "$(dirname "$0")/.."
. bench/common.sh
turns=${FETCH_TURNS:-7}
needs fetch.sh curl
needs_built fetch.sh build/programs/httpd # (which serves)

# (a folder in memory would sync nothing)
mkdir -p build/bench
folder=$(mktemp -d build/bench/fetch.XXXXXX)
server=
# shellcheck disable=SC2317 # it is called at the end
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' HUP INT TERM

mkdir "$folder/served" "$folder/served/many" "$folder/served/big"
head -c 1024000 /dev/urandom | split -b 2048 -a 3 -d - "$folder/served/many/"
head -c 314572800 /dev/urandom >"$folder/served/big/file"
build/programs/httpd --port 0 "$folder/served" >"$folder/line" 2>"$folder/said" </dev/null &
server=$!
port=
for try in $(seq 100); do
    port=$(awk '{ sub(/\/$/, ""); sub(/.*[^0-9]/, ""); print; exit }' "$folder/line")
    [ -z "$port" ] || break
    sleep 0.02
done
if [ -z "$port" ]; then
    cat "$folder/said" >&2
    exit 1
fi
for kind in many big; do
    for file in "$folder/served/$kind"/*; do
        echo "http://127.0.0.1:$port/$kind/${file##*/}"
    done >"$folder/$kind.urls"
    sed 's/.*/url = "&"\nremote-name/' "$folder/$kind.urls" >"$folder/$kind.curl"
done

# take SUBJECT KIND TO: fetches all of the kind's files into the folder.
take() {
    local synced=
    case $1 in *-synced) synced=--quiet ;; esac
    case $1 in
    fetch-*)
        local io=${1#fetch-}
        BIDE_IO=${io%-synced} build/programs/fetch --quiet ${synced:---no-sync} -j 50 -O "$3" --input "$folder/$2.urls"
        ;;
    curl*)
        (cd "$3" && curl -sS -Z --no-progress-meter --parallel-max 50 -K "$OLDPWD/$folder/$2.curl")
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
    rm -f "$folder"/*.times
    for round in $(seq "$turns"); do
        for subject in $subjects; do
            mkdir "$folder/to"
            begun=$(date +%s%N)
            take "$subject" "$kind" "$folder/to" >&2 || status=1
            ended=$(date +%s%N)
            if ! diff -rq "$folder/served/$kind" "$folder/to" >&2; then
                echo "fetch.sh: $subject did not take all" >&2
                status=1
            fi
            rm -r "$folder/to"
            sync -f "$folder"
            awk "BEGIN { print ($ended - $begun) / 1000000 }" >>"$folder/$subject.times"
        done
    done
    for subject in $subjects; do
        figure fetch "$subject" "$(median "$folder/$subject.times" 1)" ms "\"files\": \"$kind\""
        case $subject in
        *-synced) peer=curl-synced ;;
        *) peer=curl ;;
        esac
        if [ "$subject" != "$peer" ] && [ -s "$folder/$peer.times" ]; then
            paste -d ' ' "$folder/$subject.times" "$folder/$peer.times" | awk '{ print $1 / $2 }' >"$folder/parts"
            figure fetch "$subject" "$(median "$folder/parts" 1)" "of $peer" "\"files\": \"$kind\""
        fi
    done
done
exit "$status"
