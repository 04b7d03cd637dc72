# shellcheck shell=sh
# How a test begins that works in a directory of its own, with the arguments BIDEC ROOT [LIBRARY]:
#
#     . "$(dirname "$0")/opening.sh"
set -u
bidec=$(realpath "$1")
# shellcheck disable=SC2034 # for the test
root=$(realpath "$2")
# shellcheck disable=SC2034
library=${3:+$(realpath "$3")}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
# shellcheck disable=SC2034
failed=0
