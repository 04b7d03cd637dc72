#include "bide/version.h"

unsigned bide_version(void)
{
    return BIDE_VERSION;
}
