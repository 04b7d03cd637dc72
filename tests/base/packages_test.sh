#!/usr/bin/env bash
# An installed bide is found by pkg-config and CMake, in a prefix of its own, without the development files of liburing,
# c-ares and the like. packages_test.sh BUILD-ROOT VERSION CC COMPONENT... Prints TAP.

set -u
export LC_ALL=C

build=$1 version=$2 cc=$3
shift 3
command -v pkg-config >/dev/null || { echo "1..0 # SKIP there is no pkg-config"; exit 0; }
command -v meson >/dev/null || { echo "1..0 # SKIP there is no meson"; exit 0; }
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

skip() { # NAME REASON
    cases=$((cases + 1))
    echo "ok $cases - $1 # SKIP $2"
}

check 'installed' meson install -C "$build" --no-rebuild --tags devel,runtime --destdir "$folder/installed"
pc=$(dirname "$(find "$folder/installed" -name bide.pc | head -1)")
libdir=$(dirname "$pc")
export LD_LIBRARY_PATH=$libdir
# (only what was installed here: no liburing.pc, no libcares.pc, no openssl.pc)
found() { PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=$pc PKG_CONFIG_SYSROOT_DIR=$folder/installed pkg-config "$@"; }

cat >"$folder/body.c" <<'C'
#include <bide/bide.h>
#include <stdio.h>

struct hello {
    bide_task task;
};

bide_coroutine(hello_body)
{
    bide_begin(hello_body, struct hello *self);
    (void)self;
    puts("hello " BIDE_VERSION_TEXT);
    bide_end();
}

int main(void)
{
    struct hello hello;
    return bide_sync_wait(bide_task_init(&hello.task, &hello_body));
}
C
cat >"$folder/async.c" <<'C'
#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async void hello(void)
{
    puts("hello " BIDE_VERSION_TEXT);
}

int main(void)
{
    async_frame(hello) frame;
    return bide_sync_wait(async_hello(&frame));
}
C
says_hello() { [ "$("$1")" = "hello $version" ]; }
compiles() { # PROGRAM OPTION...
    local program=$1
    shift
    # shellcheck disable=SC2046,SC2086 # lists of words
    $cc "$folder/body.c" $(found --cflags --libs "$@") -pthread -o "$folder/$program" && says_hello "$folder/$program"
}
for module in bide "${@/#/bide-}"; do
    check "pkg-config: $module has the version" test "$(found --modversion "$module")" = "$version"
    check "pkg-config: $module, with nothing else installed" found --exists --print-errors "$module"
done
check 'pkg-config: a program' compiles plain bide
# Each use of a library beside bide begins with a call that names the library, for the linker.
begins() { # MODULE HEADER CALL
    printf '#include <bide/%s.h>\nint main(void)\n{\n    return !(%s);\n}\n' "$2" "$3" >"$folder/begins.c"
    # shellcheck disable=SC2046,SC2086 # lists of words
    $cc "$folder/begins.c" $(found --cflags --libs "$1") -pthread -o "$folder/begins" && "$folder/begins"
}
for module in "$@"; do
    case $module in
    http) check 'pkg-config: a use of bide-http' begins bide-http http_agent 'bide_http_agent_create(&(bide_http_agent *){NULL}, NULL) <= 0' ;;
    tls) check 'pkg-config: a use of bide-tls' begins bide-tls tls 'bide_tls_client_create(&(bide_tls_config *){NULL}, NULL, NULL) <= 0' ;;
    esac
done
check 'pkg-config: no library of a dependency in a shared link' \
    test -z "$(found --libs bide | grep -oE -e '-l(uring|cares)')"

if ! command -v cmake >/dev/null; then
    skip 'cmake' 'there is no cmake'
else
    mkdir "$folder/project"
    cp "$folder/body.c" "$folder/async.c" "$folder/project"
    cat >"$folder/project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.16)
project(hello C)
find_package(bide $version REQUIRED COMPONENTS $*)
add_executable(body body.c)
add_executable(async async.c)
foreach(program body async)
  target_link_libraries(\${program} bide::bide)
endforeach()
foreach(component $*)
  target_link_libraries(body bide::\${component})
endforeach()
bide_async(async)
CMAKE
    configure() { # FOLDER
        CC=$cc cmake -S "$1" -B "$1/build" -G Ninja "-Dbide_DIR=$libdir/cmake/bide"
    }
    check 'cmake: a project' configure "$folder/project"
    check 'cmake: it builds' cmake --build "$folder/project/build"
    check 'cmake: a body' says_hello "$folder/project/build/body"
    check 'cmake: async C' says_hello "$folder/project/build/async"

    fails_for() { # REASON LINE
        rm -rf "$folder/wrong"
        mkdir "$folder/wrong"
        printf 'cmake_minimum_required(VERSION 3.16)\nproject(wrong NONE)\n%s\n' "$2" >"$folder/wrong/CMakeLists.txt"
        # (Threads needs a language)
        sed -i 's/ NONE/ C/' "$folder/wrong/CMakeLists.txt"
        ! configure "$folder/wrong" >"$folder/said" 2>&1 && cat "$folder/said" && tr -s ' \n' ' ' <"$folder/said" | grep -q "$1"
    }
    check 'cmake: a component that is not there' fails_for 'without the component nosuch' \
        'find_package(bide REQUIRED COMPONENTS nosuch)'
    check 'cmake: a version that is too new' fails_for 'compatible with requested version "99.0"' 'find_package(bide 99.0 REQUIRED)'
fi

echo "1..$cases"
[ "$failures" -eq 0 ]
