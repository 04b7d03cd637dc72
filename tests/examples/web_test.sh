#!/bin/sh
# The example web server and curl: connections that are kept, uploads with a length, in chunks and after "100 Continue",
# ranges, HEAD, files large and small, the log, and an end that leaves no response undone. web_test.sh PROGRAM
set -u
web=$1
command -v curl >/dev/null || {
    echo '1..0 # SKIP curl is missing'
    exit 0
}
folder=$(mktemp -d)
number=0 failed=0
trap 'kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT

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

mkdir "$folder/www"
printf '0123456789' >"$folder/www/a.txt"
head -c 3000000 /dev/urandom >"$folder/www/large"
mkfifo "$folder/out"
"$web" --log "$folder/log" "$folder/www" >"$folder/out" &
server=$!
read -r line <"$folder/out" # when it listens, or has ended
url=http://127.0.0.1:${line##* }
get() {
    curl --silent --show-error --max-time 60 "$@"
}

same 'a greeting' 'hello, bide' "$(get "$url/hello/bide")"
same 'one connection for several requests' '1
0' "$(get -o "$folder/1" -o "$folder/2" -w '%{num_connects}\n' "$url/hello/a" "$url/hello/b")"
get --data-binary "@$folder/www/large" "$url/echo" | cmp -s - "$folder/www/large"
check 'a body with its length' $?
get -H 'Transfer-Encoding: chunked' --data-binary "@$folder/www/large" "$url/echo" | cmp -s - "$folder/www/large"
check 'a body in chunks' $?
get -H 'Expect: 100-continue' --data-binary "@$folder/www/large" "$url/echo" | cmp -s - "$folder/www/large"
check 'a body that is asked for' $?
get "$url/large" | cmp -s - "$folder/www/large"
check 'a large file' $?
get -r 1000000-1999999 "$url/large" >"$folder/part"
tail -c +1000001 "$folder/www/large" | head -c 1000000 | cmp -s - "$folder/part"
check 'a part of it' $?
same 'a small part' 234 "$(get -r 2-4 "$url/a.txt")"
same 'a head' '200 10' "$(get -I -o "$folder/1" -w '%{http_code} %header{content-length}' "$url/a.txt")"
same 'HTTP/1.0' 0123456789 "$(get -0 "$url/a.txt")"
same 'what the client has' 304 "$(get -z "$folder/www/a.txt" -o "$folder/1" -w '%{http_code}' "$url/a.txt")"
same 'what is not there' 404 "$(get -o "$folder/1" -w '%{http_code}' "$url/nothing")"
same 'another method' '405 POST, GET, HEAD, OPTIONS' \
    "$(get -X DELETE -o "$folder/1" -w '%{http_code} %header{allow}' "$url/echo")"
mkfifo "$folder/flow"
get "$url/large" >"$folder/flow" &
client=$!
{
    head -c 1 # what follows waits for who reads on, below
    kill -TERM "$server"
    cat
} <"$folder/flow" >"$folder/slow"
wait "$client" && cmp -s "$folder/slow" "$folder/www/large"
check 'a response is sent to its end when the server is shut down' $?
wait "$server"
same 'the server ends' 0 $?
grep -q '"GET /a.txt HTTP/1.1" 206 3 "-" "curl/' "$folder/log"
check 'the log' $?
echo "1..$number"
exit $failed
