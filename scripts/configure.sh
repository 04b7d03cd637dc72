#!/bin/sh
# Configures a build directory: configure.sh DIRECTORY [MESON-OPTION...]. An existing directory gets
# the parts (-Dtests=true and the like, and how tests are optimised)
# that it does not have, and keeps its other options. If
# packages were installed or removed since the last run, dependencies are detected again.

set -eu
cd "$(dirname "$0")/.."

if ! command -v meson >/dev/null; then
    echo "configure.sh: meson is missing: run 'make demo', which installs what it needs," \
        "or install gcc, libc6-dev, meson and ninja-build" >&2
    exit 1
fi

directory=$1
parts=$directory/parts # a line each
shift

# Known parts are not passed on, because meson would detect everything again.
new=
for option; do
    case $option in
    -Dtests=true | -Dbenchmarks=true | -Dexamples=true | -Dchecker=true | -Dtest_level=*)
        grep -qsxF -e "$option" "$parts" || new="$new $option"
        ;;
    esac
done
if [ ! -f "$directory/build.ninja" ]; then
    meson setup "$directory" . "$@"
elif [ -n "$new" ] || [ /var/lib/dpkg/status -nt "$directory/build.ninja" ]; then
    # shellcheck disable=SC2086 # a list of options without spaces
    meson setup --reconfigure "$directory" . $new
fi
for option in $new; do
    [ ! -f "$parts" ] || sed -i "/^${option%%=*}=/d" "$parts"
    echo "$option" >>"$parts"
done
