# The front door. Everything is built by meson and ninja in build/; these targets only
# call them, after scripts/install.sh has seen to the packages.

FILE   ?= /var/lib/dpkg/status
PREFIX ?= /usr/local

# Configure once. When packages have come or gone since then, look for dependencies again.
CONFIGURE = \
	if [ ! -f build/build.ninja ]; then \
		meson setup build --buildtype=debugoptimized; \
	elif [ /var/lib/dpkg/status -nt build/build.ninja ]; then \
		meson setup --reconfigure build; \
	fi

BUILD = $(CONFIGURE) && meson compile -C build

.PHONY: all meson demo check check-long bench install format clean help

all: meson ## configure (the first time) and build; needs a C compiler, meson and ninja
	@$(BUILD)

meson:
	@command -v meson >/dev/null || { echo "make: meson is missing: run 'make demo'," \
		"which installs what it needs, or install gcc, libc6-dev, meson and ninja-build" >&2; \
		exit 1; }

demo: ## install what the demo needs, build, and run the pipeline on FILE
	@scripts/install.sh demo
	@{ $(BUILD); } >&2
	@build/examples/pipeline "$(FILE)"

check: ## build and test with gcc and clang, plain and under sanitizers
	@scripts/install.sh check
	@scripts/check.sh

check-long: ## the same with more compilers, checkers and processors, the long tests, and coverage
	@scripts/install.sh check-long
	@scripts/check.sh --long

bench: ## run every benchmark, or BENCH=name; stdout holds only JSON lines
	@scripts/install.sh bench
	@{ $(BUILD) && meson compile -C build layout; } >&2
	@scripts/bench.sh $(BENCH)

install: meson ## install under PREFIX (/usr/local), below DESTDIR if given
	@$(CONFIGURE)
	@meson configure build -Dprefix="$(abspath $(PREFIX))"
	@meson compile -C build
	@DESTDIR="$(DESTDIR)" meson install -C build --no-rebuild

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
