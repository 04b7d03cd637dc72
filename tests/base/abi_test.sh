#!/bin/sh
# Programs that were linked with the last release still work: abi_test.sh ROOT LIBRARY. Compares the shared library with that of the last
# release (a tag vX.Y.Z) of the same version's promise: the same minor version before 1.0, the same major one from then on.
set -u
cd "$1" || exit 1
library=$2

skip() {
    echo "skipped: $1"
    exit 77
}

for tool in git abidiff meson; do
    command -v $tool >/dev/null || skip "$tool is not installed"
done
tag=$(git describe --tags --match 'v[0-9]*' --abbrev=0 2>/dev/null) || skip 'there is no release yet'
soname() {
    readelf -d "$1" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p'
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/released"
git archive "$tag" | tar -x -C "$folder/released" || exit 1
if ! { meson setup "$folder/build" "$folder/released" --buildtype=debugoptimized &&
    meson compile -C "$folder/build" libraries; } >"$folder/log" 2>&1; then
    cat "$folder/log"
    exit 1
fi
released=$folder/build/libbide.so
if [ "$(soname "$released")" != "$(soname "$library")" ]; then
    skip "$tag is $(soname "$released"), this is $(soname "$library")"
fi
abidiff --headers-dir1 "$folder/released/include" --headers-dir2 include --no-added-syms "$released" "$library"
[ $? -eq 0 ] || exit 1
echo "$library can take the place of $tag's"
