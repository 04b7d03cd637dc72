#!/bin/sh
# Runs the Disruptor's program, and builds it first if needed: JSON lines on stdout, the rest on stderr. If something is
# missing, reports that on stderr and does nothing.
# Usage: bench/peers/disruptor.sh ARGUMENT... (see DisruptorRing.java)
# DISRUPTOR_JAR names the jar if it is not in the usual place.
set -eu

cd "$(dirname "$0")/../.."
src=bench/peers/DisruptorRing.java
out=build/bench/peers-java
jar=${DISRUPTOR_JAR:-/usr/share/java/disruptor.jar}

skip() {
    echo "disruptor.sh: skipped, $1" >&2
    exit 0
}

command -v java >/dev/null 2>&1 || skip "java is missing"
command -v javac >/dev/null 2>&1 || skip "javac is missing"
[ -r "$jar" ] || skip "$jar is missing"

if [ ! -f "$out/DisruptorRing.class" ] || [ "$src" -nt "$out/DisruptorRing.class" ]; then
    mkdir -p "$out"
    javac -cp "$jar" -d "$out" "$src" >&2
fi

echo "disruptor.sh: $*" >&2
exec java -Xmx256m -cp "$out:$jar" DisruptorRing "$@"
