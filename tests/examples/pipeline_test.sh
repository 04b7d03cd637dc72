#!/usr/bin/env bash
# Compares the results of the pipeline example with those of wc, crc32, tr and sort.
# pipeline_test.sh PIPELINE. Prints TAP.

set -u
export LC_ALL=C

pipeline=$(realpath "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)

for tool in cmp crc32 dd grep head mkfifo python3 sort tr uniq wc; do
    if ! command -v "$tool" >/dev/null; then
        echo "$tool is missing"
        exit 77
    fi
done

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1

cases=0 failures=0

passed() { # NAME
    cases=$((cases + 1))
    echo "ok $cases - $1"
}

failed() { # NAME <WHAT-TO-SAY-ABOUT-IT
    cases=$((cases + 1)) failures=$((failures + 1))
    echo "not ok $cases - $1"
    sed 's/^/# /'
}

skipped() { # NAME REASON
    cases=$((cases + 1))
    echo "ok $cases - $1 # SKIP $2"
}

# The expected output for a file.
expect() { # FILE
    tr -s '[:space:]' '\n' <"$1" | grep -av '^$' >words.of
    echo "lines $(wc -l <"$1")"
    echo "bytes $(wc -c <"$1")"
    echo "words $(wc -l <words.of)"
    echo "crc32 $(crc32 "$1" | head -c 8)"
    if [ -s words.of ]; then
        echo "most frequent words:"
        sort words.of | uniq -c | sort -rn | head -10
    fi
}

# Runs the pipeline; leaves `status`, and the files `out` and `err`.
run() { # ARGUMENT...
    "$pipeline" "$@" >out 2>err
    status=$?
}

# Checks that the last run printed the expected output and exited with this status.
check() { # NAME EXPECTED-FILE STATUS
    if [ "$status" -ne "$3" ]; then
        failed "$1" < <(echo "status $status, not $3" | cat - err)
    elif [ -s err ]; then
        failed "$1" <err
    elif ! cmp -s out "$2"; then
        failed "$1" < <(diff -a "$2" out | head -40)
    else
        passed "$1"
    fi
}

# Checks that the last run failed with this status, one line on stderr with the reason, and nothing on stdout.
check_failure() { # NAME STATUS TEXT
    if [ "$status" -ne "$2" ]; then
        failed "$1" < <(echo "status $status, not $2" | cat - err)
    elif [ -s out ]; then
        failed "$1" < <(echo 'on stdout:' | cat - out)
    elif [ "$(wc -l <err)" -ne 1 ] || ! grep -qF -- "$3" err; then
        failed "$1" < <(echo 'on stderr:' | cat - err)
    else
        passed "$1"
    fi
}

agrees() { # NAME FILE
    expect "$2" >expected
    run "$2"
    check "$1" expected 0
}

# ---- Files of all kinds ----

# (larger than two blocks; `sort` takes most of the time here)
find "$root/include" "$root/src" -name '*.[ch]' -exec cat {} + 2>/dev/null | head -c 600000 >sources
if [ -r /var/lib/dpkg/status ]; then
    head -c 600000 /var/lib/dpkg/status >text
    agrees 'a package list' text
else
    cp sources text
    skipped 'a package list' 'there is no /var/lib/dpkg/status'
fi
agrees 'C sources' sources
cp "$pipeline" binary
agrees 'a binary file' binary

: >empty
agrees 'an empty file' empty
agrees '/dev/null' /dev/null

printf 'a\tb\vc\fd\re  f\n\n \na' >spaces
agrees 'all kinds of white space' spaces
printf 'b b a a c d e f g h i j k\na\0 a\0 a\377 a\377 bb' >ties
agrees 'equal counts' ties

# The blocks are of 256 KiB.
{
    tr '\n' ' ' <sources
    tr '\n' '\t' <text
    echo
    tr '\n' ' ' <text
} >long_lines
agrees 'lines longer than a block, and no newline at the end' long_lines
{
    printf 'before '
    head -c 700000 /dev/zero | tr '\0' x
    printf ' after\nafter '
    head -c 600000 /dev/zero | tr '\0' y
} >long_words
agrees 'words longer than a block' long_words
for length in 262143 262144 262145 524287 524288; do
    printf 'x %*s\n%*s\n\nafter' $((length - 3)) z $((length - 1)) y
done >block_lines
agrees 'lines as long as a block, or nearly so' block_lines

# More text than the blocks hold, and slots for all of it.
for ((i = 0; i < 4; i++)); do
    cat text sources
done >much
expect much >expected
run --ring 1048576 much
check 'blocks that are used again' expected 0

# ---- Standard input ----

expect sources >expected
run <sources
check 'standard input' expected 0
run - <sources
check 'standard input, by the name -' expected 0
dd if=sources bs=7 status=none | "$pipeline" >out 2>err
status=$?
check 'a pipe that is written to by seven bytes' expected 0
{
    dd bs=1000 count=1 status=none >first_part
    "$pipeline" >out 2>err
    status=$?
} <sources
tail -c +1001 sources >rest
expect rest >expected
check 'a file from the place where it stands' expected 0

# ---- Rings and threads ----

head -n 1500 sources >some
expect some >expected
for ring in 1 2 8; do
    for threads in 1 2 4; do
        run --ring $ring --threads=$threads some
        check "a ring of $ring and $threads threads" expected 0
    done
done
expect block_lines >expected
run --ring 1 block_lines
check 'a ring of 1 and long lines' expected 0

# ---- Failures ----

run missing
check_failure 'a missing file' 1 'pipeline: missing: No such file or directory'
run /
check_failure 'a directory' 1 'pipeline: /: Is a directory'
run <&-
check_failure 'a closed standard input' 1 'pipeline: standard input: Bad file descriptor'
if [ "$(id -u)" -eq 0 ]; then
    skipped 'an unreadable file' 'root may read all of them'
else
    : >unreadable
    chmod 0 unreadable
    run unreadable
    check_failure 'an unreadable file' 1 'pipeline: unreadable: Permission denied'
fi

# A process's memory can be read up to the end of a mapping, such as its stack.
python3 - "$pipeline" >out 2>err <<'PYTHON'
import subprocess, sys
end = next(int(line.split("-")[1].split()[0], 16) for line in open("/proc/self/maps")
           if "[stack]" in line)
memory = open("/proc/self/mem", "rb", buffering=0)
memory.seek(end - 10000)
sys.exit(subprocess.run([sys.argv[1]], stdin=memory).returncode)
PYTHON
status=$?
check_failure 'a read that fails in the middle' 1 'pipeline: standard input: Input/output error'

while read -r arguments; do
    # shellcheck disable=SC2086 # a list of words
    run $arguments
    check_failure "wrong usage: $arguments" 2 '; try --help'
done <<'END'
--ring 0
--ring 3
--ring -2
--ring 8x
--ring 2097152
--ring 18446744073709551616
--ring
--threads 0
--threads two
--threads 1000000
--threads=
--unknown
--help=yes
-x
-xyz
one two
END

if [ -c /dev/full ]; then
    "$pipeline" some >/dev/full 2>err
    status=$?
    : >out
    check_failure 'no room for the output' 1 'pipeline: standard output: No space left on device'
    "$pipeline" --help >/dev/full 2>err
    status=$?
    check_failure 'no room for the help' 1 'pipeline: standard output: No space left on device'
else
    skipped 'no room for the output' 'there is no /dev/full'
fi

run --help
if [ "$status" -eq 0 ] && [ ! -s err ] && grep -q '^usage: pipeline' out; then
    passed 'help'
else
    failed 'help' < <(cat out err)
fi

# Sanitizers need more address space than that to start.
if (ulimit -v 200000 && "$pipeline" --threads 2 /dev/null) >out 2>&1; then
    (ulimit -v 200000 && head -c 500000000 /dev/zero | "$pipeline" --threads 2 >out 2>err)
    status=$?
    check_failure 'a word that does not fit into memory' 1 'Cannot allocate memory'
    (ulimit -v 200000 && seq 100000000 | "$pipeline" --threads 2 >out 2>err)
    status=$?
    check_failure 'more words than fit into memory' 1 'Cannot allocate memory'
else
    skipped 'a word that does not fit into memory' 'it does not run with little memory'
    skipped 'more words than fit into memory' 'it does not run with little memory'
fi

# ---- Signals ----

mkfifo pipe

# Sends a signal to a pipeline that reads from `pipe`, and waits for its exit.
interrupt() { # SIGNAL PID
    kill -s "$1" "$2"
    wait "$2"
    status=$?
}

# The pipeline installs its signal handlers before it opens the pipe, so they are in place once this end opens.
"$pipeline" pipe >out 2>err &
exec 3>pipe
interrupt INT $!
exec 3>&-
expect empty >expected
check 'SIGINT before anything was written' expected 130

# Writing more than a pipe holds waits until part of it has been read.
for signal in INT TERM; do
    for file in long_words block_lines; do
        "$pipeline" pipe >out 2>err &
        exec 3>pipe
        cat $file >&3
        interrupt $signal $!
        exec 3>&-
        bytes=$(sed -n 's/^bytes //p' out)
        head -c "${bytes:-0}" $file >part
        expect part >expected
        name="SIG$signal shows what was read of $file"
        if [ "${bytes:-0}" -eq 0 ]; then
            failed "$name" < <(echo 'nothing was read' | cat - err)
        else
            check "$name" expected $((128 + $(kill -l $signal)))
        fi
    done
done

# The other end is never opened here, so poll until the program handles the signal: bit 1 of SigCgt.
"$pipeline" pipe >out 2>err &
reader=$!
for ((i = 0; i < 10000; i++)); do
    [ "$(readlink "/proc/$reader/exe")" = "$pipeline" ] || continue
    caught=$(sed -n 's/^SigCgt:[[:space:]]*/0x/p' "/proc/$reader/status")
    ((caught & 2)) && break
done
interrupt INT $reader
expect empty >expected
check 'SIGINT when nobody writes to the pipe' expected 130

# ---- A terminal ----

if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    expect text >expected
    script -qec "'$pipeline' text >out" /dev/null >terminal </dev/null
    status=$?
    : >err
    check 'the summary, with progress on a terminal' expected 0
    if grep -q 'MB/s' terminal && [ "$(tail -c 4 terminal)" = $'\r\033[K' ]; then
        passed 'progress is drawn and cleared'
    else
        failed 'progress is drawn and cleared' < <(cat -v terminal)
    fi
else
    skipped 'progress is drawn and cleared' 'script cannot make a terminal here'
fi

echo "1..$cases"
[ "$failures" -eq 0 ]
