/* What a watcher of trees knows of its watcher of files: file_watch.c, tree_watch.c. */
#ifndef BIDE_SRC_IO_FILE_WATCH_H
#define BIDE_SRC_IO_FILE_WATCH_H

#include "bide/file_watch.h"

/*
 * True if bide_file_watch_next would end at once with an event. Takes what the kernel has, without waiting.
 * The name of the latest event is gone then. While no wait is in progress.
 */
bool bide_file_watch_is_pending_(bide_file_watcher *watcher);

#endif
