#!/bin/sh
# The translator on the command line, as the compiler of make, Meson and CMake, and with ccache; rebuilds after a header has
# changed; variables in a debugger: wrapper_test.sh BIDEC ROOT LIBRARY. BIDE_COMPILERS names the compilers; the default is
# all.
# shellcheck source=tests/bidec/opening.sh
. "$(dirname "$0")/opening.sh"
include=-I$root/include
libs="$library $BIDE_LIBS"

fail() {
    echo "$1"
    [ ! -f said ] || head -20 said
    failed=1
}

cat >twice.h <<'END'
#define FACTOR 2
END
cat >twice.c <<'END'
#include "twice.h"
#include <bide/async.h>
#include <bide/sleep.h>
#include <bide/sync_wait.h>
#include <stdio.h>

async int twice(int n)
{
    int seen = n;
    await bide_sleep_for(1);
    seen *= FACTOR;
    return seen;
}

int main(void)
{
    struct async_twice frame;
    bide_sync_wait(async_twice(&frame, 21));
    printf("%d\n", frame.result);
    return 0;
}
END
cat >plain.c <<'END'
#include <stdio.h>
int plain(void);
int plain(void) { return puts("plain"); }
END

for cc in ${BIDE_COMPILERS:-gcc clang clang-19}; do
    command -v $cc >/dev/null || continue
    # shellcheck disable=SC2086
    {
        "$bidec" $cc -std=gnu11 -g -Wall $include twice.c plain.c -o program $libs >said 2>&1 || fail "$cc: source to program"
        [ -s said ] && fail "$cc: says something"
        [ "$(./program)" = 42 ] || fail "$cc: does not print 42"
        printf '#include <bide/version.h>\nextern int other;\nint other = OTHER;\n' >other.c
        "$bidec" $cc -std=gnu11 $include -DOTHER=1 twice.c other.c -o program $libs >said 2>&1 ||
            fail "$cc: options of the preprocessor for a plain source beside another"
        rm -f twice.o twice.d
        "$bidec" $cc -std=gnu11 -MD $include -c twice.c >said 2>&1 || fail "$cc: -c without -o"
        grep -q 'twice.o:' twice.d && grep -q twice.h twice.d || fail "$cc: -MD names no header"
        "$bidec" $cc -std=gnu11 -MMD -MF deps -MT target $include -c twice.c -o other.o >said 2>&1 && grep -q '^target:' deps ||
            fail "$cc: -MF and -MT"
        "$bidec" $cc -std=gnu11 -S $include twice.c && [ -s twice.s ] || fail "$cc: -S"
        "$bidec" $cc -std=gnu11 -E $include twice.c -o twice.i && grep -q 'struct async_twice' twice.i || fail "$cc: -E"
        "$bidec" --emit $cc -std=gnu11 $include twice.c >said && grep -q 'int seen;' said && grep -q '#include "twice.h"' said ||
            fail "$cc: --emit"
        "$bidec" --explain 10 $cc -std=gnu11 $include -c twice.c -o frames.o >said 2>&1 &&
            grep -q '^the step function:$' said && grep -q 'bide_awaiter_ = bide_sleep_for' said &&
            grep -q 'bide_async_look_' said && ! grep -q 'seen \*=' said || fail "$cc: --explain"
        "$bidec" --explain 1000 $cc -std=gnu11 $include -c twice.c >said 2>&1 && fail "$cc: --explain of no line"

        # the files that the compiler saves are of the translated text, and have their usual names
        rm -f twice.[ios] out.[ios]
        "$bidec" $cc -std=gnu11 -save-temps $include -c twice.c >said 2>&1 &&
            grep -q bide_async_twice_step_ twice.i && grep -q bide_async_twice_step_ twice.s && [ -f twice.o ] || fail "$cc: -save-temps"
        rm -f twice.[ios]
        "$bidec" $cc -std=gnu11 -save-temps=obj $include -c twice.c -o out.o >said 2>&1 &&
            grep -q bide_async_twice_step_ out.i && [ -f out.o ] && [ ! -f twice.i ] || fail "$cc: -save-temps=obj"

        # words from a file, which names another
        printf -- '-std=gnu11 @more "-I%s/include"\n' "$root" >words
        printf -- "-c  twice.c\t-o 'a name'.o -DTEXT=\\\\\"" >more
        "$bidec" $cc @words >said 2>&1 && [ -f "a name.o" ] || fail "$cc: words from a file"
        "$bidec" $cc -std=gnu11 $include -c twice.c @missing >said 2>&1 && fail "$cc: a file of words that is not there"

        "$bidec" --frames $cc -std=gnu11 -O2 $include -c twice.c -o frames.o >said 2>&1 &&
            grep -q '^twice.c:7: twice: [0-9]* bytes, aligned to 8$' said && grep -q '^       0      32  task  ' said &&
            grep -q '^      [0-9]* *4  seen  *lines 8 to 13$' said && grep -q 'bide_sleep_for_1  *line 10$' said &&
            [ ! -e frames.o ] || fail "$cc: --frames"
        $cc -std=gnu11 -E -D__BIDEC__ $include twice.c | "$bidec" | grep -q 'struct async_twice' || fail "$cc: as a filter"
        "$bidec" $cc -c plain.c -o plain.o || fail "$cc: a plain file"
        $cc -std=gnu11 $include -c twice.c -o not.o 2>said && fail "$cc: assembles without the translator"
        # (clang is the parser of editors, and says so where it assembles)
        [ $cc != gcc ] || grep -m1 'error:' said | grep -q 'compile this file with bidec: bidec' ||
            fail "$cc: does not name the translator first"
        "$bidec" $cc $include -c missing.c 2>said && fail "$cc: compiles a file that is not there"
        "$bidec" $cc --version >said || fail "$cc: --version"

        # options whose value is the next word, a source without a name or with another suffix, and no source
        rm -f twice.o
        "$bidec" $cc --sysroot / -std=gnu11 $include -c twice.c >said 2>&1 && [ -f twice.o ] || fail "$cc: --sysroot DIR"
        "$bidec" $cc -std=gnu11 -x c $include -c - -o stdin.o <twice.c >said 2>&1 && nm stdin.o | grep -q async_twice_step_ ||
            fail "$cc: a source from standard input"
        "$bidec" $cc -x c -c - -o stdin.o <plain.c >said 2>&1 && nm stdin.o | grep -q plain ||
            fail "$cc: a plain source from standard input"
        cp twice.c twice.text
        "$bidec" $cc -std=gnu11 $include -xc twice.text -x none plain.c -o program $libs >said 2>&1 && [ "$(./program)" = 42 ] ||
            fail "$cc: -xc, and -x none"
        # async.h without an async function
        printf '#include <bide/async.h>\nextern int other;\nint other;\n' >words.c
        "$bidec" $cc -std=gnu11 -Wall -Wextra -Wpedantic -Werror $include -c words.c >said 2>&1 || fail "$cc: async.h alone"
        # no warnings but those of the user's code
        "$bidec" $cc -std=gnu11 -Wall -Wextra -Wpedantic -Werror $include -c twice.c >said 2>&1 || fail "$cc: -Wpedantic"
        # a function that is not declared, for whose call the compiler would pass any arguments
        sed 's/async_twice(&frame/async_twicf(\&frame/' twice.c >undeclared.c
        "$bidec" $cc -std=gnu11 $include -c undeclared.c >said 2>&1 && fail "$cc: a call of a function that is not declared"

        # precompiled headers: used by name, and as CMake does it
        printf '#ifndef HEADER\n#define HEADER\n#include <bide/async.h>\n#include <bide/bide.h>\n#endif\n' >header.h
        sed 's/#include <bide.*//' twice.c >headed.c
        case $cc in *clang*) made=header.h.pch uses='-Xclang -include-pch -Xclang header.h.pch -Xclang -include -Xclang header.h' ;;
        *) made=header.h.gch uses='-Winvalid-pch -include header.h' ;; esac
        "$bidec" $cc -std=gnu11 $include -x c-header header.h -o $made >said 2>&1 && [ -s $made ] || fail "$cc: makes no $made"
        "$bidec" $cc -std=gnu11 -Werror $include -include header.h headed.c -o program $libs >said 2>&1 && [ "$(./program)" = 42 ] ||
            fail "$cc: -include of a precompiled header"
        "$bidec" $cc -std=gnu11 -Werror $include $uses headed.c -o program $libs >said 2>&1 && [ "$(./program)" = 42 ] ||
            fail "$cc: a precompiled header"
        "$bidec" $cc -std=gnu11 -Werror $include $uses -c plain.c >said 2>&1 || fail "$cc: a plain file with a precompiled header"
        rm -f $made
        case $cc in *clang*)
            "$bidec" $cc -std=gnu11 -MJ entry.json $include -c twice.c -o twice.o >said 2>&1 &&
                grep -q '"file": "twice.c", "output": "twice.o", "arguments": \["'"$cc"'", "-std=gnu11", "-I.*"twice.o"\]},$' entry.json ||
                fail "$cc: -MJ" ;;
        esac
    }
done
# A source whose lines cannot be kept is emitted preprocessed, with the reason on stderr.
for why in '#define TWO 2' '//} int also(void) { return 0; }' '//} /* a comment' '//async_sized(512) int other(int n);'; do
    case $why in
    '//async_sized'*) echo "${why#//}" >other.h && sed 's/.*stdio.h.*/&\n#include "other.h"/' twice.c >whole.c ;;
    '//}'*) awk -v with="${why#//}" '$0 == "}" && !n++ { $0 = with; if (with ~ /a comment/) $0 = $0 "\n of two lines */" } { print }' twice.c >whole.c ;;
    *) awk -v with="$why" '{ print } /seen = n/ { print with }' twice.c >whole.c ;;
    esac
    # shellcheck disable=SC2086
    "$bidec" --emit gcc -std=gnu11 $include whole.c >emitted.i 2>said && grep -q '^# [0-9]' emitted.i &&
        grep -q 'so the preprocessed text is emitted' said && gcc -fpreprocessed -c emitted.i -o emitted.o ||
        fail "--emit of '$why'"
done
[ -z "$(ls -d "${TMPDIR:-/tmp}"/bidec-* 2>/dev/null | head -1)" ] || echo "(a directory of another run is left)"

# What is nested more deeply than the translator can follow is rejected with its line. A long function is not.
head='typedef struct bide_awaiter bide_awaiter; typedef struct { int x; } W; bide_awaiter *wait_for(W *w, int n); void c(int *);'
for pair in '( )' '{ }' '! ;'; do
    awk -v head="$head" -v pair="$pair" 'BEGIN { split(pair, p, " "); open = p[1]; close_ = p[2] == ";" ? "" : p[2]
        for (i = 0; i < 18; i++) { open = open open; close_ = close_ close_ }
        print head; print "async int f(int x) { await wait_for(1);"
        print (p[1] == "{" ? "" : "return ") open (p[1] == "{" ? "await wait_for(2);" : "x;") close_ "; }" }' |
        sed 's/;\()*\); }$/\1; }/' >deep.i
    "$bidec" <deep.i >deep.out 2>said
    [ $? -eq 1 ] && grep -q '<stdin>:3:.*more deeply than the translator can follow' said || fail "nested $pair"
done
awk -v head="$head" 'BEGIN { print head; print "async int f(int x) {"
    for (i = 0; i < 16384; i++) print "{ int v __attribute__((cleanup(c))) = x; await wait_for(v); }"
    print "return x; }" }' >long.i
"$bidec" <long.i 2>said | grep -q 'v_16384' || fail "a long function"

"$bidec" --version >said && grep -q '^bidec [0-9]*\.[0-9]*\.[0-9]*$' said || fail "--version"

cat >Makefile <<END
CC = $bidec gcc
CFLAGS = -std=gnu11 -MMD $include
LDLIBS = $libs
twice: twice.o
-include twice.d
END
if command -v make >/dev/null && command -v gcc >/dev/null; then
    unset MAKEFLAGS MFLAGS
    rm -f twice.o
    make >said 2>&1 && [ "$(./twice)" = 42 ] || fail "make"
    sleep 1
    echo '#define FACTOR 3' >twice.h
    make >said 2>&1 && [ "$(./twice)" = 63 ] || fail "make does not see that a header has changed"
    echo '#define FACTOR 2' >twice.h
fi
if command -v cmake >/dev/null; then
    cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.10)
project(twice C)
add_executable(twice twice.c)
target_include_directories(twice PRIVATE $root/include)
target_link_libraries(twice $libs)
END
    cmake -S . -B by_cmake -DCMAKE_C_COMPILER_LAUNCHER="$bidec" >said 2>&1 && cmake --build by_cmake >said 2>&1 &&
        [ "$(by_cmake/twice)" = 42 ] || fail "CMake"
fi
if command -v meson >/dev/null; then
    cat >meson.build <<END
project('twice', 'c', default_options: ['c_std=gnu11'])
executable('twice', 'twice.c', include_directories: include_directories('include'), link_args: '$libs'.split())
END
    ln -s "$root/include" include
    CC="$bidec gcc" meson setup by_meson >said 2>&1 && ninja -C by_meson >said 2>&1 && [ "$(by_meson/twice)" = 42 ] ||
        fail "Meson"
fi
if command -v ccache >/dev/null; then
    # shellcheck disable=SC2086
    CCACHE_DIR=$directory/cache "$bidec" ccache gcc -std=gnu11 $include -c twice.c -o cached.o >said 2>&1 || fail "ccache"
fi
if command -v gdb >/dev/null && [ -x program ] && command -v gcc >/dev/null; then
    # shellcheck disable=SC2086
    "$bidec" gcc -std=gnu11 -O0 -g $include twice.c -o program $libs
    gdb -batch -nx -ex 'break twice.c:11' -ex run -ex 'print seen' -ex 'info source' ./program >said 2>&1
    if ! grep -q 'ptrace' said; then
        grep -q '= 21' said || fail "gdb does not show a variable at its line"
    fi
fi
# A signal while the compiler runs ends bidec, which removes its temporary files.
cat >slow <<'END'
#!/bin/sh
echo "$TMPDIR"/bidec-* >begun
while [ -e slow ] && [ ! -e go ]; do sleep 0.01; done
END
chmod +x slow
mkdir temporary
TMPDIR=$directory/temporary "$bidec" ./slow -c twice.c &
while [ ! -s begun ]; do sleep 0.01; done
kill -TERM $!
wait $! && fail "ended by a signal, it says that all is well"
touch go
[ -z "$(ls temporary)" ] || fail "a directory is left behind"

exit $failed
