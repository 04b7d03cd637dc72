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

extern const char bide_link_with_lbide_http2_;
extern const char bide_link_with_lbide_http_;
extern const char bide_link_with_lbide_log_;
extern const char bide_link_with_lbide_tls_;

BIDE_EXTERN_C_END

/*
 * The call; or an argument of a call that is awaited, which has to stay a call. (In C++ that alone: the name of a
 * function may be qualified.)
 */
#if defined __GNUC__ && !defined __cplusplus
#define BIDE_BESIDE_(symbol, expression) \
    (__extension__({ __asm__ volatile("" : : "r"(&(symbol))); }), expression)
#else
#define BIDE_BESIDE_(symbol, expression) expression
#endif

#endif
