#!/bin/sh
# Installs the packages that a group of targets needs: install.sh GROUP.
# Prints nothing if nothing is missing. All output goes to stderr.

set -eu
set -f
exec >&2

# In a list, the entry a|b is satisfied by either package; patterns are allowed. a is installed if both are missing.
build='gcc libc6-dev meson ninja-build'
demo="$build liburing-dev zlib1g-dev libbrotli-dev pkgconf|pkg-config"
check="$demo g++ libcmocka-dev clang libclang-rt-dev|libclang-rt-*-dev libarchive-zip-perl libc-ares-dev libssl-dev openssl gnutls-bin
    node-llhttp libnghttp2-dev musl-tools nghttp2-client curl
    coreutils util-linux gdb clangd vim libuv1-dev libglib2.0-dev libevent-dev redis-server redis-tools"
docs="$build mandoc python3-markdown python3-pygments"
long="$check valgrind strace slowhttptest nghttp2-client wrk"
# For configurations of check-long that are skipped otherwise: compilers, their runtimes and
# linkers; cross compilers, C libraries and emulators; xz-utils for cmocka's source
# (scripts/cross-cmocka.sh).
matrix='clang-19 libclang-rt-19-dev lld llvm gcovr
    gcc-i686-linux-gnu g++-i686-linux-gnu libc6-dev-i386-cross
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    gcc-riscv64-linux-gnu libc6-dev-riscv64-cross
    gcc-s390x-linux-gnu libc6-dev-s390x-cross
    qemu-user xz-utils
    gcc-arm-none-eabi qemu-system-arm
    clang-tidy cppcheck cmake mandoc python3-markdown python3-pygments man-db abigail-tools fiu-utils csmith libcsmith-dev gcc-12-source|gcc-*-source
    chromium fonts-dejavu-core python3-websockets
    wasi-libc libclang-rt-14-dev-wasm32 nodejs gcc-mingw-w64-x86-64-win32 wine64 wine'
bench="$demo g++ clang libdisruptor-java default-jdk-headless golang-go"
# A newer clang++ than Debian 12's default, for the peers in C++20.
newer='clang-19'
# Servers and readers that bide is compared with (util-linux provides taskset).
servers='haproxy nginx-light libnginx-mod-stream wrk nghttp2-client redis-server redis-tools liburing-dev libuv1-dev librust-tokio-dev
    libboost-dev util-linux fio'
# Queues and channels that bide is compared with.
queues='cargo rustc librust-rayon-dev librust-tokio-dev libboost-dev libck-dev libconcurrentqueue-dev libreaderwriterqueue-dev libtbb-dev liburcu-dev'

# The same for systems without dpkg: commands, and headers as <name>.
build_commands='cc meson ninja|ninja-build|samu'
demo_commands="$build_commands <zlib.h> <brotli/decode.h>"
check_commands="$demo_commands gcc g++ <cmocka.h> <ares.h> <openssl/ssl.h> openssl gnutls-cli <nghttp2/nghttp2.h> nghttp h2load curl clang clang++ clangd vim crc32 setarch timeout gdb <uv.h> <event2/event.h>"
long_commands="$check_commands valgrind strace"
bench_commands="$demo_commands gcc g++ clang java javac go"

group=${1-}
optional=
case $group in
build) packages=$build commands=$build_commands ;;
demo) packages=$demo commands=$demo_commands ;;
check) packages=$check commands=$check_commands ;;
check-long) packages=$long commands=$long_commands optional=$matrix ;;
docs) packages=$docs commands="$build_commands mandoc" ;;
bench) packages=$bench commands=$bench_commands optional="$newer $queues $servers" ;;
*)
    echo "usage: scripts/install.sh build|demo|check|check-long|bench|docs"
    exit 2
    ;;
esac

package_installed() {
    # A pattern may match several packages, so there is one status a line.
    dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

command_present() {
    case $1 in
    '<'*) echo "#include $1" | cc -E - >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

# missing TEST LIST: prints the first name of every entry of which no name passes TEST.
missing() {
    for entry in $2; do
        found=no
        for name in $(echo "$entry" | tr '|' ' '); do
            if "$1" "$name"; then
                found=yes
                break
            fi
        done
        [ "$found" = yes ] || printf ' %s' "${entry%%|*}"
    done
}

if ! command -v dpkg-query >/dev/null; then
    wanted=$(missing command_present "$commands")
    [ -n "$wanted" ] || exit 0
    echo "install.sh: missing:$wanted; please install them with your system's package manager"
    exit 1
fi

wanted=$(missing package_installed "$packages $optional")
[ -n "$wanted" ] || exit 0

by_hand="apt-get install --no-install-recommends$wanted"
if ! command -v apt-get >/dev/null; then
    echo "install.sh: missing packages:$wanted"
    exit 1
elif [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null && { sudo -n true >/dev/null 2>&1 || [ -t 0 ]; }; then
    as_root=sudo
else
    echo "install.sh: missing packages; as root, run: $by_hand"
    exit 1
fi

echo "install.sh: installing$wanted"
# After an update that fails, the old lists may still be good enough.
$as_root apt-get update || true
# Optional packages that are not available are left out.
known=
for package in $optional; do
    if apt-cache show "$package" >/dev/null 2>&1; then
        known="$known $package"
    else
        echo "install.sh: there is no package $package"
    fi
done
wanted=$(missing package_installed "$packages $known")
[ -n "$wanted" ] || exit 0
# shellcheck disable=SC2086 # $wanted is a list of words
if ! $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $wanted; then
    echo "install.sh: that failed; as root, run: $by_hand"
    exit 1
fi
