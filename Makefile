# The front door. Everything is built by meson and ninja in build/; these targets only
# call them, after scripts/install.sh has seen to the packages.

FILE   ?= /var/lib/dpkg/status
PREFIX ?= /usr/local

OPTIMISED = --buildtype=debugoptimized

.PHONY: all demo check check-long bench docs install uninstall format clean help

all: ## build the libraries; needs a C compiler, meson and ninja
	@scripts/configure.sh build $(OPTIMISED)
	@meson compile -C build libraries

demo: ## install what the demo needs, build, and run the pipeline on FILE
	@scripts/install.sh demo
	@{ scripts/configure.sh build $(OPTIMISED) -Dexamples=true && \
		meson compile -C build pipeline; } >&2
	@build/examples/pipeline "$(FILE)"

check: ## build and test with gcc, and with gcc and clang under sanitizers
	@scripts/install.sh check
	@scripts/check.sh

check-long: ## the same with more compilers, checkers and processors, the long tests, and coverage
	@scripts/install.sh check-long
	@scripts/check.sh --long

bench: ## run every benchmark, or BENCH=name; stdout holds only JSON lines
	@scripts/install.sh bench
	@{ scripts/configure.sh build $(OPTIMISED) -Dbenchmarks=true -Dexamples=true && \
		meson compile -C build $(if $(BENCH),bench/$(BENCH),benchmarks); } >&2
	@scripts/bench.sh $(BENCH)

docs: ## make the site of the documents and the reference in build/site
	@scripts/install.sh docs
	@{ scripts/configure.sh build $(OPTIMISED) -Dman=enabled && meson compile -C build docs/manual; } >&2
	@scripts/site "$(CURDIR)" build/docs build/site

install: ## install the libraries under PREFIX (/usr/local), below DESTDIR if given
	@scripts/configure.sh build $(OPTIMISED) -Dchecker=true
	@meson configure build -Dprefix="$(abspath $(PREFIX))"
	@meson compile -C build libraries
	@DESTDIR="$(DESTDIR)" meson install -C build --no-rebuild --tags devel,runtime,man,doc

uninstall: ## remove what the last install has put there
	@ninja -C build uninstall

format: ## run clang-format over every C and C++ file
	@command -v clang-format >/dev/null || { echo "make: clang-format is missing" >&2; exit 1; }
	@for folder in include src tests bench examples; do \
		if [ -d "$$folder" ]; then \
			find "$$folder" -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.c' \
				-o -name '*.cpp' \) -exec clang-format -i {} +; \
		fi; \
	done

clean: ## remove build/
	@rm -rf build

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile
