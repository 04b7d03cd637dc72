#!/usr/bin/env bash
# Reverse proxies, of TCP and of HTTP: each on one processor, with its server (nginx, with answers of a size) and its client
# (wrk) on another, in turns. `close` is one connection a request. No logs. JSON lines on stdout: medians of the requests a
# second, of the latency's 99th percentile, and of the processor time that a request takes of the proxy's (which moves less
# when others use the machine).
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
for program in taskset nginx wrk; do
    if ! command -v "$program" >/dev/null 2>&1 || [ "$(nproc)" -lt 2 ]; then
        echo "proxy.sh: skipped: two processors, taskset, nginx and wrk are needed" >&2
        exit 0
    fi
done
if ! [ -x build/examples/proxy ]; then
    echo "proxy.sh: skipped: build/examples/proxy is not built" >&2
    exit 0
fi
ulimit -n "$(ulimit -H -n)"

. bench/servers.sh # median

folder=$(mktemp -d)
proxy= web=
stop_all() {
    for process in $proxy $web; do
        kill -9 "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
}
trap 'stop_all; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

# Ports that were free a moment ago.
free_ports() {
    python3 -c '
import socket
sockets = [socket.socket() for _ in range(3)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in sockets])'
}
read -r web_port nginx_port haproxy_port <<<"$(free_ports)"

# ---- What they are proxies of ----

head -c 1024 /dev/zero | tr '\0' x >"$folder/1024"
head -c 102400 /dev/zero | tr '\0' x >"$folder/102400"
head -c 10485760 /dev/zero | tr '\0' x >"$folder/10485760"

# nginx_file NAME PORT TEXT: a configuration in one process, without logs.
nginx_file() {
    cat >"$folder/$1" <<END
daemon off; master_process off; pid $folder/$1.pid; error_log /dev/null;
events { worker_connections 8192; }
$3
END
}

http_head="access_log off; client_body_temp_path $folder/a; proxy_temp_path $folder/b; fastcgi_temp_path $folder/c;
    uwsgi_temp_path $folder/d; scgi_temp_path $folder/e; keepalive_requests 100000000; keepalive_timeout 60;"
nginx_file web.conf "$web_port" "http { $http_head sendfile on; open_file_cache max=10; tcp_nopush on;
    server { listen 127.0.0.1:$web_port backlog=4096; root $folder; } }"

mkfifo "$folder/line"
taskset -c 1 nginx -c "$folder/web.conf" -e /dev/null >/dev/null 2>&1 &
web=$!

# ---- The proxies ----

nginx_module=$(ls /usr/lib/nginx/modules/ngx_stream_module.so 2>/dev/null || true)
nginx_file nginx-tcp "$nginx_port" "stream { server { listen 127.0.0.1:$nginx_port backlog=4096; tcp_nodelay on;
    proxy_pass 127.0.0.1:$web_port; } }"
[ -z "$nginx_module" ] || sed -i "1i load_module $nginx_module;" "$folder/nginx-tcp"
nginx_file nginx-http "$nginx_port" "http { $http_head
    upstream web { server 127.0.0.1:$web_port; keepalive 64; keepalive_requests 100000000; }
    server { listen 127.0.0.1:$nginx_port backlog=4096; location / { proxy_pass http://web; proxy_http_version 1.1;
        proxy_set_header Connection \"\"; proxy_set_header Host \$host;
        proxy_set_header X-Forwarded-For \$proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto \$scheme;
        proxy_set_header X-Forwarded-Host \$host; } } }"
for mode in tcp http; do
    cat >"$folder/haproxy-$mode" <<END
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
    cat >"$folder/bide-$mode" <<END
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

# begin SUBJECT MODE: starts it as $proxy, and sets $port; empty if it does not run.
begin() {
    proxy= port=
    case $1 in
    bide-*)
        BIDE_IO=${1#bide-} taskset -c 0 build/examples/proxy "$folder/bide-$2" >"$folder/line" </dev/null &
        proxy=$!
        read -r line <"$folder/line" || true
        port=${line##* }
        ;;
    haproxy)
        command -v haproxy >/dev/null 2>&1 || return 0
        taskset -c 0 haproxy -db -q -f "$folder/haproxy-$2" >/dev/null 2>&1 &
        proxy=$! port=$haproxy_port
        ;;
    nginx)
        taskset -c 0 nginx -c "$folder/nginx-$2" -e /dev/null >/dev/null 2>&1 &
        proxy=$! port=$nginx_port
        ;;
    esac
    for _ in $(seq 200); do # until it listens
        if (exec 4<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return 0; fi
        sleep 0.02
    done
    echo "proxy.sh: $1 does not listen" >&2
    port=
}

end() {
    [ -z "$proxy" ] || kill -9 "$proxy" 2>/dev/null || true
    [ -z "$proxy" ] || wait "$proxy" 2>/dev/null || true
    proxy=
}

# Ticks of the processor that $proxy has had.
ticks() {
    awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$proxy/stat"
}

# Connections and size; the third makes it close each. One line: requests/s, p99 in us, processor in us a request.
load() {
    local before
    set -- "$1" "$2" "${3-keep-alive}"
    timeout 30 taskset -c 1 wrk -t1 -c "$1" -d 1s -H "Connection: $3" "http://127.0.0.1:$port/$2" >/dev/null
    before=$(ticks)
    timeout 60 taskset -c 1 wrk -t1 -c "$1" -d "${seconds%.*}s" --latency -H "Connection: $3" \
        "http://127.0.0.1:$port/$2" >"$folder/wrk"
    awk -v ticks=$(($(ticks) - before)) -v second="$(getconf CLK_TCK)" '
        function us(text) { return text ~ /us$/ ? text + 0 : text ~ /ms$/ ? text * 1000 : text * 1000000 }
        $1 == "99%" { p99 = us($2) }
        /requests in/ { count = $1 }
        /Non-2xx/ { bad = 1 }
        $1 == "Requests/sec:" { rate = $2 }
        END { if (count > 0 && !bad) print rate, p99, ticks * 1000000 / second / count }' "$folder/wrk"
}

[ $# -gt 0 ] || set -- bide-uring bide-epoll haproxy nginx
status=0
for mode in $modes; do
    cases=${PROXY_CASES-'50:1024 50:102400 10:10485760 1000:1024 50:1024:close'}
    for case in $cases; do
        rm -f "$folder"/figures-*
        for _ in $(seq "$turns"); do
            for subject; do
                begin "$subject" "$mode"
                # shellcheck disable=SC2046 # the case's parts
                [ -z "$port" ] || load $(echo "$case" | tr : ' ') >>"$folder/figures-$subject" || true
                end
            done
        done
        IFS=: read -r connections size how <<<"$case"
        params="\"mode\": \"$mode\", \"connections\": $connections, \"size\": $size"
        [ -z "$how" ] || params="$params, \"connection\": \"$how\""
        for subject; do
            figures=$folder/figures-$subject
            if [ ! -s "$figures" ] || [ "$(wc -l <"$figures")" -lt "$turns" ]; then
                echo "proxy.sh: $subject failed: $params" >&2
                status=1
                continue
            fi
            printf '{"bench": "proxy", "subject": "%s", "value": %s, "unit": "requests/s", "params": {%s}}\n' \
                "$subject" "$(median "$figures" 1)" "$params"
            printf '{"bench": "proxy", "subject": "%s", "value": %s, "unit": "us", "params": {%s, "of": "p99"}}\n' \
                "$subject" "$(median "$figures" 2)" "$params"
            printf '{"bench": "proxy", "subject": "%s", "value": %s, "unit": "us", "params": {%s, "of": "processor"}}\n' \
                "$subject" "$(median "$figures" 3)" "$params"
        done
    done
done
exit "$status"
