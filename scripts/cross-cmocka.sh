#!/usr/bin/env bash
# Builds a static cmocka for a cross compiler: cross-cmocka.sh TRIPLET. The result is in
# build/cross/TRIPLET, where the machine files in cross/ expect it.
#
# Debian has cmocka packages for most of its architectures, but installing one would add an
# architecture to this system, and Debian 12 has none for riscv64. So cmocka is compiled from
# Debian's source. apt downloads and verifies the source in build/, with package lists of its
# own: it neither reads nor changes the package state of the system, and needs no privileges.

set -eu
cd "$(dirname "$0")/.."

triplet=$1
cross=$PWD/build/cross
directory=$cross/$triplet
source=$cross/cmocka

# Runs apt-get with its own state, cache and sources.
private_apt() { # ARGUMENT...
    local state=$cross/apt
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    touch "$state/status"
    # The mirror that this system uses, if its lists name one.
    local uri release
    # shellcheck disable=SC2016 # apt expands the format
    read -r uri release < <(apt-get indextargets 'Created-By: Packages' 'Origin: Debian' \
        'Label: Debian' 'Component: main' --format '$(REPO_URI) $(CODENAME)' |
        grep -v -- '-updates$' | head -n 1) || true
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "${uri:-http://deb.debian.org/debian} ${release:-bookworm} main" >"$state/sources.list"
    apt-get -q -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State="$state" -o Dir::State::lists="$state/lists" \
        -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
        -o APT::Sandbox::User= "$@"
}

if [ ! -f "$source/src/cmocka.c" ]; then
    mkdir -p "$source"
    private_apt update
    (cd "$cross" && private_apt source --download-only cmocka)
    # None of Debian's patches changes the code.
    tar -x -f "$cross"/cmocka_*.orig.tar.xz -C "$source" --strip-components=1
fi

if [ ! -f "$directory/lib/pkgconfig/cmocka.pc" ]; then
    mkdir -p "$directory/include" "$directory/lib/pkgconfig"
    for have in MALLOC_H INTTYPES_H SIGNAL_H STRINGS_H STRUCT_TIMESPEC CLOCK_REALTIME \
        GCC_THREAD_LOCAL_STORAGE SIGLONGJMP STRSIGNAL; do
        echo "#define HAVE_$have 1"
    done >"$directory/config.h"
    "$triplet-gcc" -std=gnu99 -O2 -g -fPIC -DHAVE_CONFIG_H -I"$directory" -I"$source/include" \
        -c "$source/src/cmocka.c" -o "$directory/cmocka.o"
    rm -f "$directory/lib/libcmocka.a"
    "$triplet-ar" rcs "$directory/lib/libcmocka.a" "$directory/cmocka.o"
    cp "$source"/include/cmocka*.h "$directory/include"
    cat >"$directory/lib/pkgconfig/cmocka.pc" <<'PC'
prefix=${pcfiledir}/../..
Name: cmocka
Description: The cmocka unit testing library
Version: 1.1.5
Libs: -L${prefix}/lib -lcmocka
Cflags: -isystem ${prefix}/include
PC
fi
