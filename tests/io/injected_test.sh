#!/bin/sh
# Runs programs of this directory while strace makes system calls fail: injected_test.sh DIRECTORY-OF-PROGRAMS. If an
# io_uring is unavailable, epoll replaces it, and everything passes. Calls that are interrupted, or fail temporarily, are
# repeated. (io_faults_test.c makes the nth call fail permanently.)
set -u

directory=$1
passed=0
failed=0

if ! command -v strace >/dev/null 2>&1; then
    echo "# strace is missing"
    exit 77
fi
if ! strace -qq -o /dev/null true 2>/dev/null; then
    echo "# strace may not trace here"
    exit 77
fi

# run WORLD INJECTION PROGRAM...: each program passes in that world with the injected failures.
run() {
    world=$1
    injection=$2
    shift 2
    for program; do
        if BIDE_TEST_WORLD=$world BIDE_ROUNDS=1/20 timeout 60 strace -f --seccomp-bpf -qq -o /dev/null \
            -e "trace=${injection%%:*}" -e "inject=$injection" \
            "$directory/${program}_test" >"$output" 2>&1; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "# FAILED: $program in $world with $injection"
            grep -v 'OK \]\|RUN\|^# ' "$output" | head -20 | sed 's/^/# /'
        fi
    done
}

output=$(mktemp)
trap 'rm -f "$output"' EXIT

# (programs that make few calls of their own, which fail too)
for number in EPERM=1 ENOSYS=38 ENOMEM=12; do
    export BIDE_TEST_REFUSED="${number#*=}"
    run any "io_uring_setup:error=${number%=*}" sockets files streams storm peers
done
unset BIDE_TEST_REFUSED

moving='recvfrom,sendto,recvmsg,sendmsg,accept4'
for when in 2+3 1+2; do
    run epoll "$moving:error=EINTR:when=$when" streams storm peers select_io
done
run epoll "epoll_wait,epoll_pwait2:error=EINTR:when=1+2" sockets streams storm peers
run epoll "epoll_pwait2:error=ENOSYS" sockets storm
for error in EINTR EAGAIN EBUSY; do
    run uring "io_uring_enter:error=$error:when=3+3" sockets streams storm peers files select_io
done

echo "1..1"
if [ "$failed" -ne 0 ]; then
    echo "not ok 1 - $failed of $((passed + failed)) failed"
    exit 1
fi
echo "ok 1 - $passed programs"
