# The common part of the benchmarks that are scripts: the programs that they start, and the figures that they print. They
# source it from the project's directory.
# shellcheck shell=bash

# needs SCRIPT PROGRAM...: exits if there are fewer than two processors, or one of the programs is missing.
needs() {
    local script=$1 program
    shift
    for program in taskset "$@"; do
        if ! command -v "$program" >/dev/null 2>&1 || [ "$(nproc)" -lt 2 ]; then
            echo "$script: skipped: two processors, taskset${*:+, }${*} are needed" >&2
            exit 0
        fi
    done
}

# needs_built SCRIPT PROGRAM
needs_built() {
    [ ! -x "$2" ] || return 0
    echo "$1: skipped: $2 is not built" >&2
    exit 0
}

# so_many_bytes SIZE FILE
so_many_bytes() {
    head -c "$1" /dev/zero | tr '\0' x >"$2"
}

# own_certificate DIRECTORY: creates cert.pem and key.pem there, for localhost.
own_certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1/key.pem" -out "$1/cert.pem" \
        -days 30 -subj /CN=localhost 2>/dev/null
}

# Prints this many ports that were free a moment ago.
free_ports() {
    python3 -c '
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in sockets])' "$1"
}

# nginx_file FILE TEXT: a configuration with one process, and a directory of its own beside it.
nginx_file() {
    mkdir -p "$1-directory"
    cat >"$1" <<END
daemon off; master_process off; worker_processes 1; pid $1-directory/pid; error_log /dev/null;
events { worker_connections 8192; }
$2
END
}

# nginx_http FILE TEXT: the same for HTTP, with the text in the http section.
nginx_http() {
    nginx_file "$1" "http {
    client_body_temp_path $1-directory/a; proxy_temp_path $1-directory/b; fastcgi_temp_path $1-directory/c;
    uwsgi_temp_path $1-directory/d; scgi_temp_path $1-directory/e; keepalive_requests 100000000; keepalive_timeout 60;
    $2 }"
}

# on_nginx PROCESSOR FILE: starts nginx, as $server.
on_nginx() {
    taskset -c "$1" nginx -c "$2" -e /dev/null >/dev/null 2>&1 &
    server=$!
}

# until_it_listens SCRIPT SUBJECT: waits until a server listens on $port; if none does, reports that and empties $port.
until_it_listens() {
    local try
    for try in ${port:+$(seq 200)}; do
        if (exec 4<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return 0; fi
        sleep 0.02
    done
    echo "$1: $2 does not listen" >&2
    port=
}

# Kills these processes.
stop_all() {
    local process
    for process; do
        kill -9 "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
}

# The processor time of a process, in microseconds.
ran() {
    cat "/proc/$1/task"/*/schedstat | awk '{ ran += $1 } END { printf "%.0f\n", ran / 1000 }'
}

# with_wrk PROCESS FILE SECONDS CONNECTIONS HOW URL: wrk on processor 1, a second beforehand; HOW is the field Connection.
# Prints a line: requests/s, the latency's p99 in us, microseconds of the process per request. FILE gets wrk's output.
with_wrk() {
    local before
    timeout 30 taskset -c 1 wrk -t1 -c "$4" -d 1s -H "Connection: $5" "$6" >/dev/null
    before=$(ran "$1")
    timeout 60 taskset -c 1 wrk -t1 -c "$4" -d "${3%.*}s" --latency -H "Connection: $5" "$6" >"$2"
    awk -v ran=$(($(ran "$1") - before)) '
        function us(text) { return text ~ /us$/ ? text + 0 : text ~ /ms$/ ? text * 1000 : text * 1000000 }
        $1 == "99%" { p99 = us($2) }
        /requests in/ { count = $1 }
        /Non-2xx/ { bad = 1 }
        $1 == "Requests/sec:" { rate = $2 }
        END { if (count > 0 && !bad) print rate, p99, ran / count }' "$2"
}

# ---- Figures ----

# median FILE COLUMN
median() {
    cut -d ' ' -f "$2" "$1" | sort -g | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

# has_turns SCRIPT FILE TURNS WHAT: true if the file has this many lines; otherwise reports that WHAT failed.
has_turns() {
    [ ! -s "$2" ] || [ "$(wc -l <"$2")" -lt "$3" ] || return 0
    echo "$1: $4 failed" >&2
    return 1
}

# figure BENCH SUBJECT VALUE UNIT PARAMS
figure() {
    printf '{"bench": "%s", "subject": "%s", "value": %s, "unit": "%s", "params": {%s}}\n' "$@"
}
