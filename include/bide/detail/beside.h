/*
 * The linker's message about a library beside bide that is missing. The functions with which each use of such a
 * library begins are also macros of the same name. A call then takes the address of a symbol, too, that says what to do:
 *
 *     undefined reference to `bide_link_with_lbide_tls_'
 *
 * It costs an instruction or two. Floor: base.
 */
#ifndef BIDE_DETAIL_BESIDE_H
#define BIDE_DETAIL_BESIDE_H

#include "bide/compiler.h"

BIDE_EXTERN_C_BEGIN

extern const char bide_link_with_lbide_http_;
extern const char bide_link_with_lbide_tls_;

BIDE_EXTERN_C_END

/* (In C++ the call alone: its name may be qualified.) */
#if defined __GNUC__ && !defined __cplusplus
#define BIDE_BESIDE_(symbol, call) \
    (__extension__({ __asm__ volatile("" : : "r"(&(symbol))); }), call)
#else
#define BIDE_BESIDE_(symbol, call) call
#endif

#endif
