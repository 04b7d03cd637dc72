/* AddressSanitizer in the checker itself. Its runtime uses functions that the checker would replace. */
#ifndef BIDE_CHECK_SANITIZER_H
#define BIDE_CHECK_SANITIZER_H

#if defined __SANITIZE_ADDRESS__
#define CHECKER_HAS_ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define CHECKER_HAS_ASAN 1
#endif
#endif

#endif
