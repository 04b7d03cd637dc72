/*
 * Parts of POSIX on systems without them (Windows, WASI): there are no forks, and no descriptor
 * that one thread makes readable for another's poll.
 */
#include "descriptors.h"
#include "fork.h"

#include "bide/errors.h"

uint32_t bide_generation_;

void bide_fork_register_(bide_fork_registration_ *registration)
{
    (void)registration;
}

void bide_delay_forks_(void)
{
}

void bide_allow_forks_(void)
{
}

int bide_descriptor_take_(void)
{
    return -ENOSYS;
}

void bide_descriptor_give_(int fd)
{
    (void)fd;
}

void bide_descriptor_raise_(int fd)
{
    (void)fd;
}

void bide_descriptor_lower_(int fd)
{
    (void)fd;
}
