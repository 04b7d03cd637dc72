#!/usr/bin/env bash
# Tests the example of checking your own code against an installed bide: installs the build into a temporary
# directory, builds the example there, and runs it as docs/checking.md and docs/checking-replay.md show. The files and the
# output shown there must match. Uses the compilers in BIDE_COMPILERS, or both.
# check_your_own_test.sh SOURCE-ROOT BUILD-ROOT. Prints TAP.

set -u
export LC_ALL=C

root=$1 build=$2
for tool in make meson pkg-config python3; do
    if ! command -v "$tool" >/dev/null; then
        echo "$tool is missing"
        exit 77
    fi
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cases=0 failures=0

check() { # NAME COMMAND...
    local name=$1
    shift
    cases=$((cases + 1))
    if "$@" >"$folder/output" 2>&1; then
        echo "ok $cases - $name"
    else
        failures=$((failures + 1))
        echo "not ok $cases - $name"
        sed 's/^/# /' "$folder/output"
    fi
}

# True if the command exits with this status. Its output is kept for `printed`.
ends_with() { # STATUS COMMAND...
    local expected=$1 status=0
    shift
    "$@" >"$folder/printed" 2>&1 || status=$?
    cat "$folder/printed"
    [ "$status" -eq "$expected" ]
}

printed() { # PATTERN
    grep -q -e "$1" "$folder/printed"
}

printed_no() { # PATTERN
    ! printed "$1"
}

# Each block that follows the name of a file must equal that file.
same_files() {
    python3 - "$root" <<'PYTHON'
import re, sys
root = sys.argv[1]
text = open(root + "/docs/checking.md").read()
blocks = re.findall(r"^`(\S+)`:\n\n```c\n(.*?)^```$", text, re.M | re.S)
bad = [name for name, block in blocks if open(root + "/" + name).read() != block]
print("not as shown:", *bad)
sys.exit(bool(bad) or len(blocks) != 3)
PYTHON
}

# Each console block must equal the output of its command, except for times.
same_output() {
    python3 - "$root" <<'PYTHON'
import difflib, re, subprocess, sys
text = "".join(open(sys.argv[1] + "/docs/" + page).read() for page in ("checking.md", "checking-replay.md"))
blocks = re.findall(r"^```console\n\$ (.*?)\n(.*?)^```$", text, re.M | re.S)
without_times = lambda text: re.sub(r"\d+\.\d+ s$", "T s", text, flags=re.M)
same = True
for command, shown in blocks:
    printed = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True).stdout
    same &= without_times(printed) == without_times(shown)
    print("$ " + command, *difflib.unified_diff(shown.split("\n"), printed.split("\n"), lineterm=""),
          sep="\n")
sys.exit(not same or len(blocks) != 4)
PYTHON
}

check 'the build can be installed' \
    meson install -C "$build" --no-rebuild --quiet --destdir "$folder/installed"

pc=$(find "$folder/installed" -name bide-check.pc)
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$folder/installed
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
check 'pkg-config knows how to compile' \
    grep -qw -e -DBIDE_CHECK=1 <(pkg-config --cflags bide-check)
check 'the documents show the files of the example' same_files

for cc in ${BIDE_COMPILERS:-gcc clang}; do
    if ! command -v "$cc" >/dev/null; then
        cases=$((cases + 1))
        echo "ok $cases - $cc # SKIP it is not installed"
        continue
    fi
    cp -r "$root/examples/check-your-own" "$folder/$cc"
    cd "$folder/$cc" || exit 1
    make=(make "CC=$cc")
    check "$cc: the wrong one fails" ends_with 2 "${make[@]}" check OBJECT=wrong # make's own status
    check "$cc: with what is wrong" printed '^last_one_frees  *use after free (not nothing)'
    check "$cc: and a trace" printed '^ *5  thread 2  fetch_sub'
    check "$cc: without a warning" printed_no warning
    check "$cc: the mended one passes" ends_with 0 "${make[@]}" check OBJECT=mended
    check "$cc: with nothing found" printed '^last_one_frees  *nothing'
    check "$cc: without a warning" printed_no warning
    check "$cc: each order is needed" "${make[@]}" check ARGS=--weaken
    check "$cc: the documents show what is printed" same_output
    # The checked code is the shipped code: the same file, compiled as usual.
    check "$cc: the object compiles without the checker" "$cc" -std=c11 -Wall -Wextra -Werror \
        -I"$folder/installed$(pkg-config --variable=includedir bide-check | sed "s|^$folder/installed||")" \
        -fsyntax-only -x c mended/object.h -Wno-unused-function
done

echo "1..$cases"
[ "$failures" -eq 0 ]
