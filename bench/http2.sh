#!/usr/bin/env bash
# HTTP/2 servers, without logs: each on one processor, h2load on another, in turns. With prior knowledge: examples/web; with
# HTTP2_TLS=yes in the environment, over TLS 1.3 with ALPN: programs/httpd, which opens each file again. JSON lines on
# stdout: medians of the requests per second; of the latency, from h2load's log: the median, 99th and 99.9th percentile,
# and the maximum, including the start, when all connections are new; and of the server's processor time per request
# (which varies less when the machine has other load).
# Usage: bench/http2.sh [SUBJECT...]; HTTP2_TURNS, HTTP2_SECONDS (a turn) and HTTP2_CASES in the environment.
set -eu

cd "$(dirname "$0")/.."
secure=${HTTP2_TLS:-no}
turns=${HTTP2_TURNS:-3}
seconds=${HTTP2_SECONDS:-1}
. bench/common.sh

needs http2.sh nginx h2load openssl
needs_built http2.sh build/examples/web
needs_built http2.sh build/programs/httpd
ulimit -n "$(ulimit -H -n)"

directory=$(mktemp -d)
server=
trap 'stop_all $server; rm -rf "$directory"' EXIT
trap 'exit 1' HUP INT TERM

mkdir "$directory/files"
mkfifo "$directory/line"
so_many_bytes 1024 "$directory/files/1024"
so_many_bytes 1048576 "$directory/files/1048576"
nginx_port=$(free_ports 1)
if [ "$secure" = yes ]; then
    scheme=https
    own_certificate "$directory"
    kind="ssl http2 backlog=4096; ssl_certificate $directory/cert.pem; ssl_certificate_key $directory/key.pem;
        ssl_protocols TLSv1.2 TLSv1.3"
    cache=off
else
    scheme=http
    kind='http2 backlog=4096'
    cache=max=10
fi
nginx_http "$directory/nginx.conf" "access_log off; sendfile on; open_file_cache $cache;
    server { listen 127.0.0.1:$nginx_port $kind; root $directory/files;
        location /hello/ { default_type text/plain; return 200 \"hello, you\n\"; } }"

# begin SUBJECT: starts it as $server, and sets $port; empty if it does not start.
begin() {
    server='' port=''
    case $1 in
    bide-*)
        if [ "$secure" = yes ]; then
            set -- "$1" programs/httpd --tls-cert "$directory/cert.pem" --tls-key "$directory/key.pem" "$directory/files"
        else
            set -- "$1" examples/web "$directory/files"
        fi
        BIDE_IO=${1#bide-} taskset -c 0 "build/$2" "${@:3}" >"$directory/line" </dev/null &
        server=$!
        read -r line <"$directory/line" || true
        port=${line##* }
        ;;
    nginx)
        on_nginx 0 "$directory/nginx.conf"
        port=$nginx_port
        ;;
    esac
    until_it_listens http2.sh "$1"
}

# Path, connections, streams, requests/s of each connection (none: as many as are answered). One line: requests/s, times in us,
# processor in us a request.
load() {
    local before
    before=$(ran "$server")
    rm -f "$directory/log" # (h2load adds to it)
    timeout 60 taskset -c 1 h2load -D "$seconds" -c "$2" -m "$3" ${4:+--rps="$4"} --log-file="$directory/log" \
        "$scheme://127.0.0.1:$port$1" >"$directory/h2load"
    before=$(($(ran "$server") - before))
    cut -f 3 "$directory/log" | sort -n >"$directory/times"
    awk -v ran="$before" '
        FILENAME ~ /times$/ { time[++count] = $1; next }
        $1 == "finished" { rate = $4 + 0 }
        /^status codes:/ { good = $3 + 0 }
        function at(share) { return time[int((count - 1) * share) + 1] }
        END { if (good > 0) print rate, at(0.5), at(0.99), at(0.999), at(1), ran / good }' "$directory/times" "$directory/h2load"
}

[ $# -gt 0 ] || set -- bide-uring bide-epoll nginx
files='/1024,10,100 /1048576,10,10'
if [ "$secure" = yes ]; then
    cases=${HTTP2_CASES:-/1024,1,1 $files /1024,100,10}
else
    cases=${HTTP2_CASES:-/hello/you,1,1 /hello/you,10,100 /hello/you,10,100,5000 /hello/you,100,10 $files}
fi
for _ in $(seq "$turns"); do
    for subject; do
        begin "$subject"
        for case in $cases; do
            IFS=, read -r path connections streams rate <<<"$case"
            [ -z "$port" ] ||
                load "$path" "$connections" "$streams" "$rate" >>"$directory/figures-$subject-${case//\//-}" || true
        done
        # shellcheck disable=SC2086 # one or none
        stop_all $server
        server=
    done
done
status=0
for subject; do
    for case in $cases; do
        figures=$directory/figures-$subject-${case//\//-}
        IFS=, read -r path connections streams rate <<<"$case"
        params="\"path\": \"$path\", \"connections\": $connections, \"streams\": $streams, \"rate\": ${rate:-0}, \"scheme\": \"$scheme\""
        if ! has_turns http2.sh "$figures" "$turns" "$subject: $params"; then
            status=1
            continue
        fi
        figure http2 "$subject" "$(median "$figures" 1)" requests/s "$params"
        column=2
        for unit in 'us p50' 'us p99' 'us p99.9' 'us longest' 'us cpu/request'; do
            figure http2 "$subject" "$(median "$figures" $column)" "$unit" "$params"
            column=$((column + 1))
        done
    done
done
exit "$status"
