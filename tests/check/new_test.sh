#!/bin/sh
# What `bide-check new` writes is checked by its own Makefile: new_test.sh SCRIPT INCLUDE LIBRARY COMPILER...
#
# A script in the place of pkg-config answers for the library of this build.

set -u
# What the caller has for itself: make's own state, flags of another build, a language.
unset MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKELEVEL CFLAGS
export LC_ALL=C
command -v make >/dev/null || exit 77
script=$1 include=$2 library=$3
shift 3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0

fail() {
    echo "$1"
    failed=1
}

mkdir "$directory/bin"
cat >"$directory/bin/pkg-config" <<END
#!/bin/sh
case \$* in
'--cflags bide-check') echo "-I$include -DBIDE_CHECK=1" ;;
'--libs bide-check') echo "$library -lpthread" ;;
*) exit 1 ;;
esac
END
chmod +x "$directory/bin/pkg-config"
PATH=$directory/bin:$PATH
CC="$*"
export PATH CC

# It is complete, and without a warning.
"$script" new "$directory/cell" >/dev/null || fail "new ended with $?"
make -C "$directory/cell" >"$directory/said" 2>&1 || fail "make failed"
grep -q '^two_wait .*nothing: .* executions.*, complete, ' "$directory/said" || fail "the scenario is not complete"
if grep -q 'warning:' "$directory/said"; then
    fail "there are warnings"
fi
[ $failed -eq 0 ] || cat "$directory/said"

# Each order is needed.
make -C "$directory/cell" weaken >"$directory/said" 2>&1 || {
    cat "$directory/said"
    fail "make weaken failed"
}
grep -q '`cell_set` | store | .* | release | relaxed | race, in `two_wait`' "$directory/said" ||
    fail "the release is not found to be needed"

# Without the mutex there is a race.
sed -i '/pthread_mutex_lock/d; /pthread_mutex_unlock/d' "$directory/cell/cell.h"
if make -C "$directory/cell" >"$directory/said" 2>&1; then
    fail "nothing is found without the mutex"
fi
grep -q '^two_wait .*race (not nothing)' "$directory/said" || {
    cat "$directory/said"
    fail "something else than a race is found without the mutex"
}

# A name that is also a function's elsewhere.
"$script" new "$directory/wait" >/dev/null || fail "new ended with $?"
make -C "$directory/wait" >"$directory/said" 2>&1 || {
    cat "$directory/said"
    fail "a scenario of the name wait does not compile"
}

# Nothing that is there is changed.
echo mine >"$directory/notes"
"$script" new "$directory/notes" >"$directory/said" 2>&1 && fail "a file was replaced"
grep -q 'File exists' "$directory/said" || fail "the reason is not that the file exists"
[ "$(cat "$directory/notes")" = mine ] || fail "a file was changed"
"$script" new "$directory/Not a name" >"$directory/said" 2>&1 && fail "that is no name"
grep -q 'is not a name' "$directory/said" || fail "the reason is not the name"
"$script" old name >"$directory/said" 2>&1 && fail "old is no verb"
grep -q '^usage: bide-check new NAME' "$directory/said" || fail "no usage"
exit $failed
