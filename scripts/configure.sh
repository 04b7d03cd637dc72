#!/bin/sh
# Configures a folder for building: configure.sh FOLDER [MESON-OPTION...]. A folder that is
# there already gets those parts (-Dtests=true and the like) that it has not, and keeps its
# other options. When packages have come or gone since, dependencies are looked for again.

set -eu
cd "$(dirname "$0")/.."

if ! command -v meson >/dev/null; then
    echo "configure.sh: meson is missing: run 'make demo', which installs what it needs," \
        "or install gcc, libc6-dev, meson and ninja-build" >&2
    exit 1
fi

folder=$1
parts=$folder/parts # a line each
shift

# (meson would look at everything anew even when it is told what it knows)
new=
for option; do
    case $option in
    -Dtests=true | -Dbenchmarks=true | -Dexamples=true | -Dchecker=true)
        grep -qsxF -e "$option" "$parts" || new="$new $option"
        ;;
    esac
done
if [ ! -f "$folder/build.ninja" ]; then
    meson setup "$folder" . "$@"
elif [ -n "$new" ] || [ /var/lib/dpkg/status -nt "$folder/build.ninja" ]; then
    # shellcheck disable=SC2086 # a list of options without spaces
    meson setup --reconfigure "$folder" . $new
fi
for option in $new; do
    echo "$option" >>"$parts"
done
