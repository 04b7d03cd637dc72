/* The version of the shared library, for any thread: version.h has that of the headers. */
#include "bide/version.h"

unsigned bide_version(void)
{
    return BIDE_VERSION;
}
