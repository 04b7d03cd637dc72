#!/usr/bin/env bash
# Web servers for files: programs/httpd and nginx with one worker, each on one processor, with its client on another, in
# turns. Both open each file again, write a log in the combined format through a buffer, and use sendfile without TLS. JSON
# lines on stdout: medians of the requests per second, of the latency's 99th percentile, and of the server's processor time
# per request (which varies less when the machine has other load).
# With -m slow: 1,000 slow connections of slowhttptest, of each kind; and the time of curl meanwhile, with new connections.
# Usage: bench/httpd.sh [-m plain|tls|slow] [SUBJECT...]; HTTPD_TURNS, HTTPD_SECONDS (a turn) and HTTPD_CASES in the
# environment.
set -eu

cd "$(dirname "$0")/.."
turns=${HTTPD_TURNS:-3}
seconds=${HTTPD_SECONDS:-1}
modes='plain tls slow'
if [ "${1-}" = -m ]; then
    modes=$2
    shift 2
fi
. bench/common.sh

needs httpd.sh nginx wrk openssl
needs_built httpd.sh build/programs/httpd
ulimit -n "$(ulimit -H -n)"

directory=$(mktemp -d)
server= slow=
# shellcheck disable=SC2086 # one or none, each
stop() {
    stop_all $server $slow
    server= slow=
}
trap 'stop; rm -rf "$directory"' EXIT
trap 'exit 1' HUP INT TERM

# ---- The files ----

mkdir "$directory/www"
so_many_bytes 1024 "$directory/www/1024"
so_many_bytes 1048576 "$directory/www/1048576"
own_certificate "$directory"
nginx_port=$(free_ports 1)

# site MODE LISTEN MORE: nginx's configuration for a mode.
site() {
    nginx_http "$directory/nginx-$1" "access_log $directory/nginx.log combined buffer=128k flush=1s; sendfile on; tcp_nopush on;
    default_type text/plain; client_header_timeout 10; client_body_timeout 30; send_timeout 30;
    server { listen 127.0.0.1:$nginx_port $2 backlog=4096; root $directory/www; $3 }"
}
site plain '' ''
site tls ssl "ssl_certificate $directory/cert.pem; ssl_certificate_key $directory/key.pem; ssl_protocols TLSv1.2 TLSv1.3;"

# begin SUBJECT MODE: starts it as $server, and sets $port; empty if it does not start.
begin() {
    local secure=
    port=
    rm -f "$directory"/*.log
    case $1 in
    bide-*)
        [ "$2" = plain ] || secure="--tls-cert $directory/cert.pem --tls-key $directory/key.pem"
        : >"$directory/line"
        # shellcheck disable=SC2086 # words
        taskset -c 0 build/programs/httpd --back-end "${1#bide-}" --log "$directory/bide.log" $secure "$directory/www" \
            >"$directory/line" </dev/null &
        server=$!
        for _ in $(seq 200); do
            port=$(awk 'NR == 1 { print $NF }' "$directory/line")
            [ -z "$port" ] || break
            sleep 0.02
        done
        ;;
    nginx)
        on_nginx 0 "$directory/nginx-$2"
        port=$nginx_port
        ;;
    esac
    until_it_listens httpd.sh "$1"
}

# ---- Requests a second ----

# print_figure SUBJECT COLUMN UNIT PARAMS
print_figure() {
    figure httpd "$1" "$(median "$directory/figures-$1" "$2")" "$3" "$4"
}

# ---- Slow connections ----

# slow KIND: the 99th percentile of 200 curls, in us, during 1,000 connections that are slow in this way; and the number served.
beside_slow() {
    local kind
    case $1 in
    headers) kind='-H -i 5' ;;
    body) kind='-B -i 5 -s 8192' ;;
    read) kind='-X -w 10 -y 20 -n 5 -z 32 -k 1' ;;
    esac
    # shellcheck disable=SC2086 # words
    taskset -c 1 slowhttptest $kind -c 1000 -r 500 -l 60 -u "http://127.0.0.1:$port/1048576" >"$directory/slow" 2>&1 &
    slow=$!
    for _ in $(seq 500); do # until most are open
        [ "$(find "/proc/$server/fd" -lname 'socket:*' 2>/dev/null | wc -l)" -lt 900 ] || break
        sleep 0.02
    done
    for _ in $(seq 200); do
        taskset -c 1 curl -s -o "$directory/got" --max-time 10 -w '%{http_code} %{time_total}\n' "http://127.0.0.1:$port/1024"
    done >"$directory/curls"
    kill "$slow" 2>/dev/null || true
    wait "$slow" 2>/dev/null || true
    slow=
    awk '$1 == 200 { print $2 * 1000000 }' "$directory/curls" | sort -n |
        awk '{ value[NR] = $1 } END { if (NR == 200) print value[198] }'
}

# ---- All of it ----

[ $# -gt 0 ] || set -- bide-uring bide-epoll nginx
status=0
measure() { # MODE CASE
    local connections size how scheme=http params
    IFS=: read -r connections size how <<<"$2"
    [ "$1" = plain ] || scheme=https
    rm -f "$directory"/figures-*
    for _ in $(seq "$turns"); do
        for subject in $subjects; do
            begin "$subject" "$1"
            [ -z "$port" ] || with_wrk "$server" "$directory/wrk" "$seconds" "$connections" "${how:-keep-alive}" \
                "$scheme://127.0.0.1:$port/$size" >>"$directory/figures-$subject" || true
            stop
        done
    done
    params="\"mode\": \"$1\", \"connections\": $connections, \"size\": $size"
    [ -z "$how" ] || params="$params, \"connection\": \"$how\""
    for subject in $subjects; do
        if ! has_turns httpd.sh "$directory/figures-$subject" "$turns" "$subject: $params"; then
            status=1
            continue
        fi
        print_figure "$subject" 1 requests/s "$params"
        print_figure "$subject" 2 us "$params, \"of\": \"p99\""
        print_figure "$subject" 3 us "$params, \"of\": \"processor\""
    done
}

subjects=$*
for mode in $modes; do
    if [ "$mode" != slow ]; then
        for case in ${HTTPD_CASES-50:1024 10:1048576 50:1024:close}; do
            measure "$mode" "$case"
        done
        continue
    fi
    if ! command -v slowhttptest >/dev/null 2>&1; then
        echo "httpd.sh: slow connections are skipped: slowhttptest is missing" >&2
        continue
    fi
    for subject in $subjects; do
        for kind in headers body read; do
            begin "$subject" plain
            [ -z "$port" ] || beside_slow "$kind" >"$directory/figures-$subject"
            stop
            if [ -s "$directory/figures-$subject" ]; then
                print_figure "$subject" 1 us "\"mode\": \"slow\", \"slow\": \"$kind\", \"of\": \"p99 of curl\""
            else
                echo "httpd.sh: $subject: not all curls were served beside slow $kind" >&2
                status=1
            fi
        done
    done
done
exit "$status"
