#!/bin/sh
# An editor's parser reads async functions without the translator. It accepts the samples in the documents, and reports
# errors in async functions. bide/detail/editor.h is the output of scripts/editor-header.sh. editor_test.sh BIDEC ROOT
set -eu
bidec=$1
root=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0

fail() {
    echo "$@"
    failed=1
}

# The preprocessors of all compilers give the same text.
sh "$root/scripts/editor-header.sh" "$bidec" cc >"$directory/editor.h"
cmp "$directory/editor.h" "$root/include/bide/detail/editor.h" ||
    fail "regenerate it: scripts/editor-header.sh build/tools/bidec > include/bide/detail/editor.h"

command -v clang >/dev/null || {
    echo "skipped: clang is not installed"
    [ $failed -eq 0 ] && exit 77
    exit 1
}
awk -v directory="$directory" '
    /^```c$/ { text = ""; inside = 1; next }
    /^```$/ { if (inside && text ~ /bide\/async.h/) printf "%s", text >(directory "/sample" ++count ".c"); inside = 0 }
    inside { text = text $0 "\n" }' \
    "$root/README.md" "$root/docs/two-ways.md" "$root/docs/two-ways-differences.md" \
    "$root/docs/async.md" "$root/docs/async-await.md" "$root/docs/async-select.md" \
    "$root/docs/async-scopes.md" "$root/docs/async-generators.md" "$root/docs/async-functions.md" \
    "$root/docs/async-frames.md" "$root/docs/async-pointers.md"
options="-std=gnu11 -Wall -Wextra -I$root/include"
echo "$options" | tr ' ' '\n' >"$directory/compile_flags.txt"
samples=0
for sample in "$directory"/sample*.c; do
    samples=$((samples + 1))
    for clang in clang clang-19; do
        command -v "$clang" >/dev/null || continue
        # shellcheck disable=SC2086 # a list of words
        "$clang" $options -Werror -fsyntax-only "$sample" || fail "$clang complains of this sample"
    done
    if command -v clangd >/dev/null; then
        timeout 120 clangd --check="$sample" >"$directory/said" 2>&1 || {
            grep '^E' "$directory/said"
            fail "clangd complains of this sample:" "$(cat "$sample")"
        }
    fi
done
[ $samples -ge 9 ] || fail "only $samples samples"

wrong() {
    said=$1
    {
        printf '#include <bide/async.h>\n#include <bide/event.h>\n#include <bide/socket.h>\nasync int f(int value)\n{\n'
        printf '    return value;\n}\nasync int g(bide_event *event)\n{\n    %s\n    return event != NULL;\n}\n' "$2"
    } >"$directory/wrong.c"
    # shellcheck disable=SC2086
    if clang $options -Werror -fsyntax-only "$directory/wrong.c" 2>"$directory/said"; then
        fail "nothing is said of: $2"
    elif ! grep -q "error: .*$said" "$directory/said" || ! grep -q 'wrong.c:10:' "$directory/said"; then
        cat "$directory/said"
        fail "something else is said of: $2"
    fi
}
wrong 'too few arguments' 'await f();'
wrong 'incompatible' 'struct { int a; } x = {1}; return await f(x);'
wrong 'no matching function' 'await bide_event_wait();'
wrong 'no matching function' 'await bide_event_wait(event, 1, 2);'
wrong 'undeclared' 'return await f(values);'
wrong 'no matching function' 'return *event + await bide_recv(event);'
exit $failed
