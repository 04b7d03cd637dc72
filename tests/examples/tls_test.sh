#!/bin/bash
# Tests TLS with independent programs: tls_test.sh TLS-ECHO TLS-TALK
# The example's server with the clients of openssl and gnutls, its client with openssl's server, and both with each other.
# Tests of missing programs are skipped.
set -u
echo_program=$(realpath "$1") talk_program=$(realpath "$2")
directory=$(mktemp -d)
server=
number=0
failed=0
# shellcheck disable=SC2317 # the trap calls it
end() {
    [ -z "$server" ] || kill "$server" 2>"$directory/kill"
    rm -rf "$directory"
}
trap end EXIT
cd "$directory" || exit 1

if ! command -v openssl >/dev/null; then
    echo '1..0 # SKIP openssl is missing'
    exit 0
fi

check() { # NAME STATUS
    number=$((number + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        failed=1
        for file in out errors server.errors; do
            [ ! -e "$file" ] || sed "s/^/# $file: /" "$file" | head -20
        done
    fi
}

# Creates an authority, and certificates that it signs.
authority() { # NAME
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.pem" -days 2 \
        -subj "/CN=$1" 2>>made
}
proof() { # NAME AUTHORITY SUBJECT
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.request" -subj "/CN=$3" \
        2>>made
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >"$1.names"
    openssl x509 -req -in "$1.request" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 2 -extfile "$1.names" \
        -out "$1.pem" 2>>made
}
authority authority
authority stranger
proof server authority first
proof second authority second
proof client authority client
proof unknown stranger unknown
# (each line begins with a space, because letters are commands to some)
head -c 100000 /dev/urandom | od -An -tx1 >text

serve() { # OPTION...: sets port
    : >said
    "$echo_program" "$@" >said 2>server.errors &
    server=$!
    while [ ! -s said ]; do
        kill -0 "$server" || return 1
        sleep 0.02
    done
    port=$(sed -n '1s/.* //p' said)
}
stop() {
    kill "$server"
    wait "$server"
    server=
}
# Runs a command with the text as input, which stays open until the command has printed as much or has exited.
converse() { # TEXT COMMAND...
    local text=$1 talker size
    shift
    size=$(stat -c %s "$text")
    rm -f given
    mkfifo given
    : >out
    timeout 60 "$@" <given >out 2>errors &
    talker=$!
    exec 8>given
    cat "$text" >&8
    while [ "$(stat -c %s out)" -lt "$size" ] && kill -0 "$talker" 2>/dev/null; do sleep 0.02; done
    exec 8>&-
    wait "$talker"
}
s_client() {
    openssl s_client -connect "127.0.0.1:$port" -CAfile authority.pem "$@"
}

serve --cert server.pem --key server.key --protocol echo
"$talk_program" localhost "$port" --authorities authority.pem <text >out 2>errors && cmp text out
check 'the client and the server of the examples' $?

for version in -tls1_2 -tls1_3; do
    converse text openssl s_client -connect "127.0.0.1:$port" -CAfile authority.pem -verify_return_error \
        -verify_hostname localhost -servername localhost -alpn other,echo -quiet -no_ign_eof "$version"
    cmp text out
    check "openssl s_client $version" $?
    s_client -alpn other,echo "$version" </dev/null 2>errors | grep -q 'ALPN protocol: echo'
    check "openssl s_client $version: ALPN" $?
done
timeout 60 openssl s_client -connect "127.0.0.1:$port" -alpn other </dev/null >out 2>errors
grep -q 'alert no application protocol' errors
check 'openssl s_client: no protocol in common' $?
timeout 60 openssl s_client -connect "127.0.0.1:$port" -tls1_1 -cipher DEFAULT@SECLEVEL=0 </dev/null >out 2>errors
grep -q 'alert protocol version' errors
check 'openssl s_client: TLS 1.1 is refused' $?
converse text openssl s_client -connect "127.0.0.1:$port" -sess_out session -quiet -no_ign_eof
s_client -sess_in session </dev/null >out 2>errors
grep -q '^Reused' out
check 'openssl s_client: a session is resumed' $?

if command -v gnutls-cli >/dev/null; then
    for priority in NORMAL:-VERS-ALL:+VERS-TLS1.2 NORMAL:-VERS-ALL:+VERS-TLS1.3; do
        converse text gnutls-cli --x509cafile authority.pem --priority "$priority" --logfile log -p "$port" localhost
        cmp text out
        check "gnutls-cli $priority" $?
    done
    timeout 60 gnutls-cli --x509cafile stranger.pem -p "$port" localhost </dev/null >out 2>&1
    grep -q 'issuer is unknown' out
    check 'gnutls-cli: an authority that is not trusted' $?
else
    echo "ok $((number += 1)) - gnutls-cli # SKIP gnutls-cli is missing"
fi

"$talk_program" localhost "$port" --authorities authority.pem --times 4 <text >out 2>errors
cmp text out && [ "$(grep -c resumed errors)" -eq 3 ]
check 'the client of the examples: sessions are resumed' $?
"$talk_program" localhost "$port" --authorities stranger.pem <text >out 2>errors
grep -q 'unable to get local issuer certificate' errors
check 'the client of the examples: an authority that is not trusted' $?
"$talk_program" localhost "$port" --authorities authority.pem --name other.test <text >out 2>errors
grep -q 'mismatch' errors
check 'the client of the examples: another name' $?

# A connection survives a reload of certificates; new connections get the new ones.
mkfifo slow
"$talk_program" localhost "$port" --authorities authority.pem <slow >out 2>errors &
talker=$!
exec 7>slow
echo before >&7
until grep -q before out; do sleep 0.02; done
cp second.pem server.pem
cp second.key server.key
kill -HUP "$server"
until grep -q reloaded said; do sleep 0.02; done
echo after >&7
exec 7>&-
wait "$talker" && printf 'before\nafter\n' | cmp - out
check 'a connection lives through new certificates' $?
timeout 60 openssl s_client -connect "127.0.0.1:$port" </dev/null 2>/dev/null | grep -q 'subject=CN = second'
check 'new connections have the new certificate' $?
echo nonsense >server.pem
kill -HUP "$server"
until grep -q 'no certificate in PEM' server.errors; do sleep 0.02; done
"$talk_program" localhost "$port" --authorities authority.pem <text >out 2>errors && cmp text out
check 'certificates that are no good change nothing' $?
stop
check 'the server ends when it is asked to' $?

serve --cert second.pem --key second.key --clients authority.pem
"$talk_program" localhost "$port" --authorities authority.pem --cert client.pem --key client.key <text >out 2>errors &&
    cmp text out
check 'a client that proves itself' $?
# (several times: the server closes the connection while the client still sends)
said=0
for _ in 1 2 3 4 5 6 7 8 9 10; do
    "$talk_program" localhost "$port" --authorities authority.pem <text >out 2>errors
    grep -q 'alert certificate required' errors || break
    said=$((said + 1))
done
[ "$said" -eq 10 ]
check 'a client without a certificate' $?
converse text openssl s_client -connect "127.0.0.1:$port" -cert client.pem -key client.key -quiet -no_ign_eof
cmp text out
check 'openssl s_client that proves itself' $?
exec 9<>given # it sends nothing: data for a closed peer could discard the alert
timeout 60 openssl s_client -connect "127.0.0.1:$port" -cert unknown.pem -key unknown.key <&9 >out 2>errors
exec 9>&-
grep -q 'alert unknown ca' errors
check 'openssl s_client whom nobody knows' $?
stop

# openssl's server: -rev sends each line back, in reverse.
for version in -tls1_2 -tls1_3; do
    : >said # (not what the one before has said)
    timeout 60 openssl s_server -accept 127.0.0.1:0 -cert second.pem -key second.key -rev "$version" >said 2>server.errors &
    server=$!
    until grep -q ACCEPT said; do
        kill -0 "$server" || break
        sleep 0.02
    done
    port=$(sed -n 's/.*ACCEPT.*:\([0-9]*\).*/\1/p' said)
    printf 'hello\nworld\n' >lines
    converse lines "$talk_program" localhost "$port" --authorities authority.pem
    printf 'olleh\ndlrow\n' | cmp - out
    check "openssl s_server $version" $?
    stop 2>/dev/null
done
echo "1..$number"
exit $failed
