#!/bin/sh
# Programs of this folder while the system's calls fail from outside: injected_test.sh FOLDER-OF-PROGRAMS. An io_uring that
# is refused is replaced by epoll, and everything passes. What is interrupted, or told to come back later, is done all
# the same. (The n-th call that fails for good is in io_faults_test.c.)
set -u

folder=$1
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

# run WORLD INJECTION PROGRAM...: each program passes in that world while the calls fail so.
run() {
    world=$1
    injection=$2
    shift 2
    for program; do
        if BIDE_TEST_WORLD=$world BIDE_ROUNDS=1/20 timeout 60 strace -f --seccomp-bpf -qq -o /dev/null \
            -e "trace=${injection%%:*}" -e "inject=$injection" \
            "$folder/${program}_test" >"$output" 2>&1; then
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

# (programs whose own calls are few: those fail too)
for number in EPERM=1 ENOSYS=38 ENOMEM=12; do
    export BIDE_TEST_REFUSED="${number#*=}"
    run any "io_uring_setup:error=${number%=*}" sockets files streams storm peers
done
unset BIDE_TEST_REFUSED

moving='recvfrom,sendto,recvmsg,sendmsg,accept4'
for when in 2+3 1+2; do
    run epoll "$moving:error=EINTR:when=$when" streams storm peers
done
run epoll "epoll_wait,epoll_pwait2:error=EINTR:when=1+2" sockets streams storm peers
run epoll "epoll_pwait2:error=ENOSYS" sockets storm
for error in EINTR EAGAIN EBUSY; do
    run uring "io_uring_enter:error=$error:when=3+3" sockets streams storm peers files
done

echo "1..1"
if [ "$failed" -ne 0 ]; then
    echo "not ok 1 - $failed of $((passed + failed)) failed"
    exit 1
fi
echo "ok 1 - $passed programs"
