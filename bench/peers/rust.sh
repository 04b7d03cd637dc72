#!/bin/sh
# Builds the Rust program of a benchmark with one of Debian's crates, unless it is built, and prints its path; prints
# nothing if the crate is missing. Usage: bench/peers/rust.sh NAME tokio|rayon
set -eu

cd "$(dirname "$0")/../.."
src=bench/peers/$1_$2.rs
out=build/bench/peers-$2
case $2 in
tokio) wanted='{ version = "1", default-features = false, features = ["macros", "io-util", "net", "rt", "rt-multi-thread", "sync", "time"] }' ;;
*) wanted='"1"' ;;
esac
crates=/usr/share/cargo/registry # where Debian's packages of crates are

if ! [ -x /usr/bin/cargo ] || ! ls -d "$crates/$2"-1.* >/dev/null 2>&1; then
    echo "$1.sh: $2 is skipped: cargo or librust-$2-dev is missing" >&2
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
$2 = $wanted

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
