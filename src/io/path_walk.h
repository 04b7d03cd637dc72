/* Opening under a restricted root without openat2(2): path_walk.c. */
#ifndef BIDE_SRC_IO_PATH_WALK_H
#define BIDE_SRC_IO_PATH_WALK_H

/*
 * Opens `path` from the directory `root`, which is AT_FDCWD or a descriptor, with the restrictions `resolve`
 * (path.h). A new descriptor, close-on-exec; or a negative errno, that of openat2(2). -EAGAIN: names were changed
 * in each of PATH_TRIES attempts. -ENOSYS: BIDE_PATH_NO_XDEV, because a walk does not see mounts. May block.
 */
int bide_path_walk_(int root, const char *path, int flags, unsigned mode, unsigned resolve);

#endif
