/*
 * The normal form of a request's path, by which routes are chosen.
 *
 *     /a/./b/../%63//d  -->  /a/c/d
 *
 * Escapes are decoded, slashes in a row count as one, and segments "." and ".." are resolved, so that ".." stops at the
 * root. Servers that read a path by RFC 3986 and servers that read it as the name of a file agree on the result. A path on
 * which they may disagree has no normal form:
 *
 *  - a "%" without two hexadecimal digits;
 *  - an encoded slash, backslash or control character, or a backslash as it is;
 *  - a segment "." or ".." with an encoded dot, or with parameters (";");
 *  - a ".." behind an empty segment: it removes that segment, or the one before.
 *
 * Source: RFC 3986, 5.2.4 and 6.2.2. Pure; any thread may call it.
 */
#ifndef PROXY_PATH_H
#define PROXY_PATH_H

#include <bide/http_message.h>

/*
 * Writes the normal form of `path`, which has at most path.size bytes, to `out`, and its size to *size. A path that
 * does not begin with a slash, such as "*", is its own. Returns 0, or -EINVAL if it has none.
 */
int path_normalize(bide_slice path, char *out, size_t *size);

/* The same as servers read the path that leave out the parameters of each segment, from its first ";" on. */
int path_normalize_without_parameters(bide_slice path, char *out, size_t *size);

#endif
