#!/bin/sh
# Builds the Rust program of a benchmark on Debian's rayon, if it is not built, and prints its path; prints nothing if
# that is not there. Usage: bench/peers/rayon.sh NAME
set -eu

cd "$(dirname "$0")/../.."
src=bench/peers/$1_rayon.rs
out=build/bench/peers-rayon
crates=/usr/share/cargo/registry # where Debian's packages of crates are

if ! [ -x /usr/bin/cargo ] || ! ls -d "$crates"/rayon-1.* >/dev/null 2>&1; then
    echo "$1.sh: rayon is skipped: cargo or librust-rayon-dev is missing" >&2
    exit 0
fi

if [ ! -f "$out/$1" ] || [ "$src" -nt "$out/$1" ]; then
    mkdir -p "$out/$1-crate/.cargo" "$out/$1-crate/src"
    cp "$src" "$out/$1-crate/src/main.rs"
    cat >"$out/$1-crate/Cargo.toml" <<END
[package]
name = "$1"
version = "0.0.0"
edition = "2021"

[dependencies]
rayon = "1"

[profile.release]
opt-level = 3

[workspace]
END
    cat >"$out/$1-crate/.cargo/config.toml" <<END
[source.crates-io]
replace-with = "debian"

[source.debian]
directory = "$crates"
END
    (cd "$out/$1-crate" && CARGO_HOME="$PWD/home" RUSTC=/usr/bin/rustc \
        /usr/bin/cargo build --quiet --release --offline) >&2
    cp "$out/$1-crate/target/release/$1" "$out/$1"
fi
echo "$out/$1"
