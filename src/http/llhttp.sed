# Turns the sources of llhttp into a part of the library: renames its functions, so that a program may link another
# llhttp, and disables the warnings that only its authors can fix.
1i\
#pragma GCC diagnostic ignored "-Wpragmas"\
#pragma GCC diagnostic ignored "-Wunknown-warning-option"\
#pragma GCC diagnostic ignored "-Wunused-parameter"\
#pragma GCC diagnostic ignored "-Wunused-variable"\
#pragma GCC diagnostic ignored "-Wsign-compare"\
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"\
#pragma GCC diagnostic ignored "-Wpedantic"\
#pragma GCC diagnostic ignored "-Wformat"\
#pragma GCC diagnostic ignored "-Wtype-limits"\
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
s/llhttp_/bide_llhttp_/g
s/"llhttp.h"/"bide_llhttp.h"/
