# The echo servers, subjects of several benchmarks, whose scripts source this file from the project's directory. program
# SUBJECT prints the command before its --port, or nothing if it cannot be run here.
# shellcheck shell=bash

. bench/common.sh

asio() {
    src=bench/peers/echo_asio.cpp
    out=build/bench/peers-asio
    if ! command -v g++ >/dev/null 2>&1 ||
        { [ ! -f /usr/include/asio.hpp ] && [ ! -f /usr/include/boost/asio.hpp ]; }; then
        echo "asio is skipped: g++ or Asio (libasio-dev, libboost-dev) is missing" >&2
        return 0
    fi
    if [ ! -f "$out/echo" ] || [ "$src" -nt "$out/echo" ]; then
        mkdir -p "$out"
        g++ -std=c++20 -O2 -DNDEBUG -pthread -o "$out/echo" "$src" >&2
    fi
    echo "$out/echo"
}

# Prints the command of a subject before its --port.
program() {
    case $1 in
    bide-*) built build/bench/echo_bide "env BIDE_IO=${1#bide-}" ;;
    raw-epoll) built build/bench/echo_raw_epoll ;;
    raw-uring) built build/bench/echo_raw_uring ;;
    libuv) built build/bench/echo_uv ;;
    asio) asio ;;
    go) sh bench/peers/go.sh echo ;;
    tokio) sh bench/peers/rust.sh echo tokio ;;
    *) echo "there is no subject $1" >&2 ;;
    esac
}

built() {
    if [ -x "$1" ]; then
        echo "${2-} $1"
    else
        echo "$1 is not built, so its subject is skipped" >&2
    fi
}

# start SUBJECT DIRECTORY: starts it on processor 0, as $server, and sets $line to its first line, whose last word is the
# port. DIRECTORY has the output of `program` in a file of the subject's name, and a pipe `line`.
start() {
    threads=
    case $1 in bide-*) threads='--threads 1' ;; esac
    # shellcheck disable=SC2046,SC2086 # a program and its arguments
    taskset -c 0 $(cat "$2/$1") --port 0 $threads >"$2/line" </dev/null &
    server=$!
    exec 3<"$2/line"
    line=
    read -r line <&3 || true
}

server=
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    server=
    exec 3<&- || true
}
