#!/usr/bin/env bash
# Servers of HTTP/2, with prior knowledge and without logs: each on one processor, h2load on another, in turns. JSON lines
# on stdout: medians of the requests a second, of h2load's longest time for a request, and of the processor time that a
# request takes of the server's (which moves less when others use the machine).
# Usage: bench/http2.sh [SUBJECT...]; HTTP2_TURNS, HTTP2_SECONDS (a turn) and HTTP2_CASES in the environment.
set -eu

cd "$(dirname "$0")/.."
turns=${HTTP2_TURNS:-3}
seconds=${HTTP2_SECONDS:-1}
for program in taskset nginx h2load; do
    if ! command -v "$program" >/dev/null 2>&1 || [ "$(nproc)" -lt 2 ]; then
        echo "http2.sh: skipped: two processors, taskset, nginx and h2load are needed" >&2
        exit 0
    fi
done
if ! [ -x build/examples/web ]; then
    echo "http2.sh: skipped: build/examples/web is not built" >&2
    exit 0
fi
ulimit -n "$(ulimit -H -n)"

folder=$(mktemp -d)
server=
end() {
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    server=
}
trap 'end; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

mkdir "$folder/files"
mkfifo "$folder/line"
head -c 1024 /dev/zero | tr '\0' x >"$folder/files/1024"
head -c 1048576 /dev/zero | tr '\0' x >"$folder/files/1048576"
nginx_port=$(python3 -c '
import socket
one = socket.socket()
one.bind(("127.0.0.1", 0))
print(one.getsockname()[1])')
cat >"$folder/nginx.conf" <<END
daemon off; master_process off; pid $folder/pid; error_log /dev/null;
events { worker_connections 8192; }
http { access_log off; client_body_temp_path $folder/a; proxy_temp_path $folder/b; fastcgi_temp_path $folder/c;
    uwsgi_temp_path $folder/d; scgi_temp_path $folder/e; keepalive_requests 100000000; sendfile on; open_file_cache max=10;
    server { listen 127.0.0.1:$nginx_port http2 backlog=4096; root $folder/files;
        location /hello/ { default_type text/plain; return 200 "hello, you\n"; } } }
END

# begin SUBJECT: starts it as $server, and sets $port; empty if it does not run.
begin() {
    server= port=
    case $1 in
    bide-*)
        BIDE_IO=${1#bide-} taskset -c 0 build/examples/web "$folder/files" >"$folder/line" </dev/null &
        server=$!
        read -r line <"$folder/line" || true
        port=${line##* }
        ;;
    nginx)
        taskset -c 0 nginx -c "$folder/nginx.conf" -e /dev/null >/dev/null 2>&1 &
        server=$! port=$nginx_port
        ;;
    esac
    for _ in $(seq 200); do # until it listens
        if (exec 4<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return 0; fi
        sleep 0.02
    done
    echo "http2.sh: $1 does not listen" >&2
    port=
}

# Ticks of the processor that $server has had.
ticks() {
    awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$server/stat"
}

# Path, connections, streams. One line: requests/s, longest in us, processor in us a request.
load() {
    local before
    before=$(ticks)
    timeout 60 taskset -c 1 h2load -D "$seconds" -c "$2" -m "$3" "http://127.0.0.1:$port$1" >"$folder/h2load"
    awk -v ticks=$(($(ticks) - before)) -v second="$(getconf CLK_TCK)" '
        function us(text) { return text ~ /us$/ ? text + 0 : text ~ /ms$/ ? text * 1000 : text * 1000000 }
        $1 == "finished" { rate = $4 + 0 }
        $1 == "requests:" { count = $2; bad = $10 + $12 }
        /^status codes:/ { good = $3 + 0 }
        /^time for request:/ { longest = us($5) }
        END { if (good > 0) print rate, longest, ticks * 1000000 / second / good }' "$folder/h2load"
}

[ $# -gt 0 ] || set -- bide-uring bide-epoll nginx
cases=${HTTP2_CASES:-/hello/you,1,1 /hello/you,10,100 /hello/you,100,10 /1024,10,100 /1048576,10,10}
for turn in $(seq "$turns"); do
    for subject in "$@"; do
        begin "$subject"
        [ -n "$port" ] || continue
        for case in $cases; do
            IFS=, read -r path connections streams <<<"$case"
            echo "$subject $path $connections $streams $(load "$path" "$connections" "$streams")"
        done
        end
    done
done | tee "$folder/all" >/dev/null
python3 - "$folder/all" <<'END'
import json, statistics, sys
rows = {}
for line in open(sys.argv[1]):
    words = line.split()
    if len(words) == 7:
        rows.setdefault(tuple(words[:4]), []).append([float(word) for word in words[4:]])
for (subject, path, connections, streams), values in rows.items():
    for i, unit in enumerate(["requests/s", "us longest", "us cpu/request"]):
        print(json.dumps({"bench": "http2", "subject": subject, "value": statistics.median(value[i] for value in values),
                          "unit": unit, "params": {"path": path, "connections": int(connections), "streams": int(streams)}}))
END
