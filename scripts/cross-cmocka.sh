#!/usr/bin/env bash
# Makes a static cmocka for a cross compiler: cross-cmocka.sh TRIPLET. It comes to
# build/cross/TRIPLET, where the machine files in cross/ look for it.
#
# Debian has a cmocka for most of its architectures, but installing one would add an
# architecture to this system, and there is none for riscv64 in Debian 12. So it is
# compiled from Debian's source, which apt fetches, and checks, into build/ with lists of
# its own: nothing of the system's package state is read or changed, and no right is needed.

set -eu
cd "$(dirname "$0")/.."

triplet=$1
cross=$PWD/build/cross
folder=$cross/$triplet
source=$cross/cmocka

# apt-get with a state, a cache and sources of its own.
private_apt() { # ARGUMENT...
    local state=$cross/apt
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    touch "$state/status"
    # The mirror that this system uses for itself, where it says so.
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
    # (of Debian's changes none touches the code)
    tar -x -f "$cross"/cmocka_*.orig.tar.xz -C "$source" --strip-components=1
fi

if [ ! -f "$folder/lib/pkgconfig/cmocka.pc" ]; then
    mkdir -p "$folder/include" "$folder/lib/pkgconfig"
    for have in MALLOC_H INTTYPES_H SIGNAL_H STRINGS_H STRUCT_TIMESPEC CLOCK_REALTIME \
        GCC_THREAD_LOCAL_STORAGE SIGLONGJMP STRSIGNAL; do
        echo "#define HAVE_$have 1"
    done >"$folder/config.h"
    "$triplet-gcc" -std=gnu99 -O2 -g -fPIC -DHAVE_CONFIG_H -I"$folder" -I"$source/include" \
        -c "$source/src/cmocka.c" -o "$folder/cmocka.o"
    rm -f "$folder/lib/libcmocka.a"
    "$triplet-ar" rcs "$folder/lib/libcmocka.a" "$folder/cmocka.o"
    cp "$source"/include/cmocka*.h "$folder/include"
    cat >"$folder/lib/pkgconfig/cmocka.pc" <<'PC'
prefix=${pcfiledir}/../..
Name: cmocka
Description: The cmocka unit testing library
Version: 1.1.5
Libs: -L${prefix}/lib -lcmocka
Cflags: -isystem ${prefix}/include
PC
fi
