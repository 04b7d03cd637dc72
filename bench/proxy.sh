#!/usr/bin/env bash
# Reverse proxies for TCP and for HTTP: each on one processor, with its server (nginx, with responses of a fixed size) and
# its client (wrk) on another, in turns. `close` is one connection per request. No logs. JSON lines on stdout: medians of
# the requests per second, of the latency's 99th percentile, and of the proxy's processor time per request (which varies
# less when the machine has other load).
# Usage: bench/proxy.sh [-m tcp|http] [SUBJECT...]; PROXY_TURNS, PROXY_SECONDS (a turn) and PROXY_CASES in the environment.
set -eu

cd "$(dirname "$0")/.."
turns=${PROXY_TURNS:-3}
seconds=${PROXY_SECONDS:-1}
modes='tcp http'
if [ "${1-}" = -m ]; then
    modes=$2
    shift 2
fi
. bench/common.sh

needs proxy.sh nginx wrk
needs_built proxy.sh build/programs/proxy
ulimit -n "$(ulimit -H -n)"

directory=$(mktemp -d)
server= web=
# shellcheck disable=SC2086 # one or none, each
trap 'stop_all $server $web; rm -rf "$directory"' EXIT
trap 'exit 1' HUP INT TERM

read -r web_port nginx_port haproxy_port <<<"$(free_ports 3)"

# ---- The servers behind them ----

for size in 1024 102400 10485760; do
    so_many_bytes "$size" "$directory/$size"
done
nginx_http "$directory/web.conf" "access_log off; sendfile on; open_file_cache max=10; tcp_nopush on;
    server { listen 127.0.0.1:$web_port backlog=4096; root $directory; }"
mkfifo "$directory/line"
on_nginx 1 "$directory/web.conf"
web=$server server=

# ---- The proxies ----

nginx_module=$(ls /usr/lib/nginx/modules/ngx_stream_module.so 2>/dev/null || true)
nginx_file "$directory/nginx-tcp" "stream { server { listen 127.0.0.1:$nginx_port backlog=4096; tcp_nodelay on;
    proxy_pass 127.0.0.1:$web_port; } }"
[ -z "$nginx_module" ] || sed -i "1i load_module $nginx_module;" "$directory/nginx-tcp"
nginx_http "$directory/nginx-http" "access_log off;
    upstream web { server 127.0.0.1:$web_port; keepalive 64; keepalive_requests 100000000; }
    server { listen 127.0.0.1:$nginx_port backlog=4096; location / { proxy_pass http://web; proxy_http_version 1.1;
        proxy_set_header Connection \"\"; proxy_set_header Host \$host;
        proxy_set_header X-Forwarded-For \$proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto \$scheme;
        proxy_set_header X-Forwarded-Host \$host; } }"
for mode in tcp http; do
    cat >"$directory/haproxy-$mode" <<END
global
    maxconn 8192
    nbthread 1
defaults
    mode $mode
    timeout connect 5s
    timeout client 60s
    timeout server 60s
$([ "$mode" = tcp ] || printf '    option forwardfor\n    http-reuse always')
listen bench
    bind 127.0.0.1:$haproxy_port backlog 4096
$([ "$mode" = tcp ] || printf '    http-request set-header %s\n    http-request set-header %s' 'X-Forwarded-Proto http' \
        'X-Forwarded-Host %[req.hdr(Host)]')
    server one 127.0.0.1:$web_port pool-max-conn 64
END
    cat >"$directory/bide-$mode" <<END
log off
splice ${PROXY_SPLICE-on}
max-connections 8192
listen 127.0.0.1:0
mode $mode
to one
backend one
server 127.0.0.1:$web_port
END
done

# begin SUBJECT MODE: starts it as $server, and sets $port; empty if it does not start.
begin() {
    server= port=
    case $1 in
    bide-*)
        BIDE_IO=${1#bide-} taskset -c 0 build/programs/proxy "$directory/bide-$2" >"$directory/line" </dev/null &
        server=$!
        read -r line <"$directory/line" || true
        port=${line##* }
        ;;
    haproxy)
        command -v haproxy >/dev/null 2>&1 || return 0
        taskset -c 0 haproxy -db -q -f "$directory/haproxy-$2" >/dev/null 2>&1 &
        server=$! port=$haproxy_port
        ;;
    nginx)
        on_nginx 0 "$directory/nginx-$2"
        port=$nginx_port
        ;;
    esac
    until_it_listens proxy.sh "$1"
}

[ $# -gt 0 ] || set -- bide-uring bide-epoll haproxy nginx
status=0
for mode in $modes; do
    cases=${PROXY_CASES-'50:1024 50:102400 10:10485760 1000:1024 50:1024:close'}
    for case in $cases; do
        IFS=: read -r connections size how <<<"$case"
        rm -f "$directory"/figures-*
        for _ in $(seq "$turns"); do
            for subject; do
                begin "$subject" "$mode"
                [ -z "$port" ] || with_wrk "$server" "$directory/wrk" "$seconds" "$connections" "${how:-keep-alive}" \
                    "http://127.0.0.1:$port/$size" >>"$directory/figures-$subject" || true
                # shellcheck disable=SC2086 # one or none
                stop_all $server
                server=
            done
        done
        params="\"mode\": \"$mode\", \"connections\": $connections, \"size\": $size"
        [ -z "$how" ] || params="$params, \"connection\": \"$how\""
        for subject; do
            figures=$directory/figures-$subject
            if ! has_turns proxy.sh "$figures" "$turns" "$subject: $params"; then
                status=1
                continue
            fi
            figure proxy "$subject" "$(median "$figures" 1)" requests/s "$params"
            figure proxy "$subject" "$(median "$figures" 2)" us "$params, \"of\": \"p99\""
            figure proxy "$subject" "$(median "$figures" 3)" us "$params, \"of\": \"processor\""
        done
    done
done
exit "$status"
