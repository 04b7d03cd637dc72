#!/bin/sh
# Measures the LMAX Disruptor: JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/ring.sh [ring size, a power of two from 256 up]
# DISRUPTOR_JAR names the jar if it is not in the usual place.
set -eu

cd "$(dirname "$0")/../.."
src=bench/peers/DisruptorRing.java
out=build/bench/peers-java
jar=${DISRUPTOR_JAR:-/usr/share/java/disruptor.jar}
ring=${1:-16384}

skip() {
    echo "ring.sh: skipped, $1" >&2
    exit 0
}

command -v java >/dev/null 2>&1 || skip "java is missing"
command -v javac >/dev/null 2>&1 || skip "javac is missing"
[ -r "$jar" ] || skip "$jar is missing"

if [ ! -f "$out/DisruptorRing.class" ] || [ "$src" -nt "$out/DisruptorRing.class" ]; then
    mkdir -p "$out"
    javac -cp "$jar" -d "$out" "$src" >&2
fi

# One JVM for each case, so that no case inherits the profile of another.
for strategy in yielding blocking busyspin; do
    for batch in 1 10 256; do
        echo "ring.sh: $strategy, batch $batch" >&2
        java -Xmx256m -cp "$out:$jar" DisruptorRing "$strategy" "$batch" "$ring"
    done
done
