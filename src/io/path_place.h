/* Opening a path under a root, path_open.c; and finding what it names, path_place.c. For the calls of path_calls.c. */
#ifndef BIDE_SRC_IO_PATH_PLACE_H
#define BIDE_SRC_IO_PATH_PLACE_H

#include "bide/path.h"

#include "calls.h"
#include "operation.h"

#include <errno.h>
#include <limits.h>

/* openat2(2), which the kernel may still lack, or refuse. (0 can be tried on Linux.) */
#ifndef BIDE_HAS_OPENAT2
#ifdef __linux__
#define BIDE_HAS_OPENAT2 1
#else
#define BIDE_HAS_OPENAT2 0
#endif
#endif

#ifndef O_PATH
#define O_PATH (O_RDONLY | O_NONBLOCK)
#endif
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0
#endif

/* Attempts of a look-up, or of a random name, that meet a race. */
enum { PATH_TRIES = 128 };

/* The result of a call, or a negative errno. */
BIDE_INLINE ptrdiff_t path_result(ptrdiff_t result)
{
    return result != -1 ? result : io_error();
}

/* An object is the entry `name` of `directory`, or, if the name is empty, `directory` itself. */
typedef struct path_place {
    int directory;
    int opened; /* to be closed; -1: nothing */
    const char *name;
    const char *whole;       /* with the slashes behind it */
    bool had_slash;          /* `name` is without the slashes that were behind it */
    char bare[NAME_MAX + 1]; /* that name */
} path_place;

/* Finds the object of a path. `flags`: 0 or AT_SYMLINK_NOFOLLOW. 0, or a negative errno and nothing is open. */
int bide_path_find_(path_place *place, const bide_path_root *root, const char *path, int flags);

/* Finds the directory of a name that is to be made, removed or changed. `parent` has room for a path. As above. */
int bide_path_find_name_(path_place *place, const bide_path_root *root, const char *path,
                         char *parent);

/* Closes what is open. Returns `result`. */
ptrdiff_t bide_path_leave_(path_place *place, ptrdiff_t result);

/* A name that had a slash must be a directory. 0, -ENOTDIR, or an error of the look-up. */
int bide_path_check_directory_(const path_place *place);

/* A new name that is no directory's must have no slash. 0, or -EEXIST, or an error of the look-up. */
int bide_path_check_new_(const path_place *place);

#endif
