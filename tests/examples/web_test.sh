#!/bin/sh
# Tests the example web server with curl: kept-alive connections, uploads with a length, in chunks and after "100
# Continue", ranges, HEAD, large and small files, the log, and a shutdown that completes responses. web_test.sh PROGRAM
set -u
web=$1
command -v curl >/dev/null || {
    echo '1..0 # SKIP curl is missing'
    exit 0
}
directory=$(mktemp -d)
number=0 failed=0
trap 'kill "$server" 2>/dev/null; rm -rf "$directory"' EXIT

check() { # NAME STATUS
    number=$((number + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        failed=1
    fi
}

same() { # NAME EXPECTED GOT
    [ "$2" = "$3" ]
    check "$1" $?
    [ "$2" = "$3" ] || printf '# expected: %s\n# got: %s\n' "$2" "$3"
}

mkdir "$directory/www"
printf '0123456789' >"$directory/www/a.txt"
head -c 3000000 /dev/urandom >"$directory/www/large"
mkfifo "$directory/out"
"$web" --log "$directory/log" "$directory/www" >"$directory/out" &
server=$!
read -r line <"$directory/out" # when it listens or has exited
url=http://127.0.0.1:${line##* }
get() {
    curl --silent --show-error --max-time 60 "$@"
}

same 'a greeting' 'hello, bide' "$(get "$url/hello/bide")"
same 'one connection for several requests' '1
0' "$(get -o "$directory/1" -o "$directory/2" -w '%{num_connects}\n' "$url/hello/a" "$url/hello/b")"
get --data-binary "@$directory/www/large" "$url/echo" | cmp -s - "$directory/www/large"
check 'a body with its length' $?
get -H 'Transfer-Encoding: chunked' --data-binary "@$directory/www/large" "$url/echo" | cmp -s - "$directory/www/large"
check 'a body in chunks' $?
get -H 'Expect: 100-continue' --data-binary "@$directory/www/large" "$url/echo" | cmp -s - "$directory/www/large"
check 'a body that is asked for' $?
get "$url/large" | cmp -s - "$directory/www/large"
check 'a large file' $?
get -r 1000000-1999999 "$url/large" >"$directory/part"
tail -c +1000001 "$directory/www/large" | head -c 1000000 | cmp -s - "$directory/part"
check 'a part of it' $?
same 'a small part' 234 "$(get -r 2-4 "$url/a.txt")"
same 'a head' '200 10' "$(get -I -o "$directory/1" -w '%{http_code} %header{content-length}' "$url/a.txt")"
same 'HTTP/1.0' 0123456789 "$(get -0 "$url/a.txt")"
same 'what the client has' 304 "$(get -z "$directory/www/a.txt" -o "$directory/1" -w '%{http_code}' "$url/a.txt")"
same 'what is not there' 404 "$(get -o "$directory/1" -w '%{http_code}' "$url/nothing")"
same 'another method' '405 POST, GET, HEAD, OPTIONS' \
    "$(get -X DELETE -o "$directory/1" -w '%{http_code} %header{allow}' "$url/echo")"
mkfifo "$directory/flow"
get "$url/large" >"$directory/flow" &
client=$!
{
    head -c 1 # the rest waits for the reader below
    kill -TERM "$server"
    cat
} <"$directory/flow" >"$directory/slow"
wait "$client" && cmp -s "$directory/slow" "$directory/www/large"
check 'a response is sent to its end when the server is shut down' $?
wait "$server"
same 'the server ends' 0 $?
grep -q '"GET /a.txt HTTP/1.1" 206 3 "-" "curl/' "$directory/log"
check 'the log' $?
echo "1..$number"
exit $failed
