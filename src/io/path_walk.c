/*
 * Opens a path under a restricted root name by name, on systems without openat2(2).
 *
 *     names  "/a/b"      from the root to `at`, none of them a link
 *     rest   "c/../d"    what is left of the path; a link's text is put in front of it
 *
 * 1. Each call gets one name, without a slash, and O_NOFOLLOW. So the kernel follows no link, and goes up only by
 *    a ".." of this file.
 * 2. Below a directory that may not be left (BENEATH, IN_ROOT) this file never passes ".." to the kernel. It
 *    removes the last of `names`, and enters the others again from the root. So another process that moves a
 *    directory meanwhile cannot lead the walk above the root. If one of the names is gone or has become a link,
 *    the walk begins again from the root, and after PATH_TRIES attempts it fails with -EAGAIN.
 * 3. The last name is opened with the caller's flags, by the same rule. A link in its place is read, and the walk
 *    continues with its text. If the link is gone by then, the walk begins again.
 * 4. Two descriptors are open at once, whatever the length of the path.
 * 5. Entering `names` again takes time in proportion to their number. So a path of many names and many ".." would
 *    take the square. The walk ends with -ELOOP after PATH_WALK_OPENS names. Attempts that found changed names count
 *    together: another process cannot make the walk longer.
 *
 * A magic link of /proc has a text that is no path, or one that names another object. None is followed. A link of
 * /proc counts as magic if its text is absolute, or has the form of a name without a path ("pipe:[1]").
 *
 * openat2(2) also knows mounts, and applies the kernel's protection of links in directories such as /tmp
 * (protected_symlinks).
 */
#define _GNU_SOURCE
#include "path_walk.h"

#include "path_place.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif

#ifdef __linux__
enum { PATH_WALK_ENTER = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, PATH_WALK_O_PATH = O_PATH };
#else
enum { PATH_WALK_ENTER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, PATH_WALK_O_PATH = 0 };
#endif

enum { PATH_WALK_LINKS = 40 /* as many as Linux follows */, PATH_WALK_OPENS = 100000 };

typedef struct path_walk {
    int root;  /* the caller's */
    int at;    /* the directory that was reached: `root`, or one of the walk's own */
    int flags; /* of the open */
    unsigned mode;
    unsigned resolve;
    unsigned links; /* that were followed */
    unsigned opens; /* of names: 5 */
    size_t length;  /* of `names` */
    char names[PATH_MAX];
    char rest[2 * PATH_MAX];
} path_walk;

static bool path_walk_is_scoped(const path_walk *walk)
{
    return (walk->resolve & (BIDE_PATH_BENEATH | BIDE_PATH_IN_ROOT)) != 0;
}

static void path_walk_set(path_walk *walk, int fd)
{
    if (walk->at != walk->root)
        close(walk->at);
    walk->at = fd;
}

/* Replaces the directory by one that was opened. 0, or the error of that open. */
static int path_walk_move(path_walk *walk, int fd)
{
    if (fd < 0)
        return (int)io_error();
    path_walk_set(walk, fd);
    return 0;
}

/* An absolute path, or the absolute text of a link. */
static int path_walk_to_top(path_walk *walk)
{
    if ((walk->resolve & BIDE_PATH_BENEATH) != 0)
        return -EXDEV;
    walk->length = 0;
    if ((walk->resolve & BIDE_PATH_IN_ROOT) != 0) {
        path_walk_set(walk, walk->root);
        return 0;
    }
    return path_walk_move(walk, open("/", PATH_WALK_ENTER));
}

/* Stays, as "." does: fails if the directory may not be searched. */
static int path_walk_stay(const path_walk *walk)
{
    int fd = openat(walk->at, ".", PATH_WALK_ENTER);
    if (fd < 0)
        return (int)io_error();
    close(fd);
    return 0;
}

/* Enters all of `names` again, from the root: 2. */
static int path_walk_again(path_walk *walk)
{
    char name[NAME_MAX + 1];
    int error = 0;
    path_walk_set(walk, walk->root);
    for (size_t start = 0; start < walk->length && error == 0;) {
        size_t size = strcspn(walk->names + start + 1, "/");
        if (walk->opens++ >= PATH_WALK_OPENS)
            return -ELOOP;
        memcpy(name, walk->names + start + 1, size);
        name[size] = '\0';
        start += size + 1;
        error = path_walk_move(walk, openat(walk->at, name, PATH_WALK_ENTER));
    }
    bool has_changed = error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EMLINK;
    return has_changed ? -EAGAIN : error;
}

static int path_walk_up(path_walk *walk)
{
    int error = path_walk_stay(walk);
    if (error != 0)
        return error;
    if (!path_walk_is_scoped(walk))
        return path_walk_move(walk, openat(walk->at, "..", PATH_WALK_ENTER));
    if (walk->length == 0)
        return (walk->resolve & BIDE_PATH_BENEATH) != 0 ? -EXDEV : 0;
    while (walk->names[--walk->length] != '/') {
    }
    walk->names[walk->length] = '\0';
    return path_walk_again(walk);
}

/* Whether the text of a link in the directory is no path: the links of /proc to open objects. */
static bool path_walk_is_magic(const path_walk *walk, const char *text)
{
#ifdef __linux__
    enum { PROC_MAGIC = 0x9fa0 };
    struct statfs about;
    bool is_plain =
        text[0] != '/' && strstr(text, ":[") == NULL && strncmp(text, "anon_inode:", 11) != 0;
    if (is_plain)
        return false;
    int status = walk->at == AT_FDCWD ? statfs(".", &about) : fstatfs(walk->at, &about);
    return status != 0 || about.f_type == PROC_MAGIC;
#else
    (void)walk, (void)text;
    return false;
#endif
}

/* The error of an open of a name that is neither a directory nor a link. -EAGAIN: it was replaced meanwhile: 3. */
static int path_walk_explain(const path_walk *walk, const char *name, int error)
{
    struct stat about;
    if (error != -ENOTDIR)
        return -EAGAIN;
    if (fstatat(walk->at, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return (int)io_error();
    return S_ISDIR(about.st_mode) || S_ISLNK(about.st_mode) ? -EAGAIN : -ENOTDIR;
}

/* Puts the text of the link `name` in front of `after`. If it is no link: the open's `error`, or -EAGAIN: 3. */
static int path_walk_follow(path_walk *walk, const char *name, const char *after, int error)
{
    char text[PATH_MAX];
    ptrdiff_t length = readlinkat(walk->at, name, text, sizeof text);
    if (length < 0)
        return errno == EINVAL ? path_walk_explain(walk, name, error) : (int)io_error();
    io_written(text, (size_t)length);
    if (walk->links++ >= PATH_WALK_LINKS || (walk->resolve & BIDE_PATH_NO_SYMLINKS) != 0)
        return -ELOOP;
    size_t left = strlen(after);
    if (length == 0)
        return -ENOENT;
    if ((size_t)length == sizeof text || (size_t)length + left >= sizeof walk->rest)
        return -ENAMETOOLONG;
    text[length] = '\0';
    if (path_walk_is_magic(walk, text))
        return (walk->resolve & BIDE_PATH_NO_MAGICLINKS) != 0 ? -ELOOP : -EXDEV;
    memmove(walk->rest + length, after, left + 1);
    memcpy(walk->rest, text, (size_t)length);
    return text[0] == '/' ? path_walk_to_top(walk) : 0;
}

/* Enters the directory `name`, or follows the link. */
static int path_walk_enter(path_walk *walk, const char *name, const char *after)
{
    size_t size = strlen(name);
    int fd = openat(walk->at, name, PATH_WALK_ENTER);
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP || errno == EMLINK))
        return path_walk_follow(walk, name, after, -ENOTDIR);
    int error = path_walk_move(walk, fd);
    if (error != 0)
        return error;
    memmove(walk->rest, after, strlen(after) + 1);
    if (!path_walk_is_scoped(walk))
        return 0;
    if (walk->length + size + 1 >= sizeof walk->names)
        return -ENAMETOOLONG;
    walk->names[walk->length] = '/';
    memcpy(walk->names + walk->length + 1, name, size + 1);
    walk->length += size + 1;
    return 0;
}

/* Opens the last name. A number; or a negative errno; or PATH_WALK_CONTINUES, if it was a link. */
enum { PATH_WALK_CONTINUES = INT_MIN };

static int path_walk_open(path_walk *walk, const char *name, const char *after)
{
    bool has_slash = *after != '\0', follows = has_slash || (walk->flags & O_NOFOLLOW) == 0;
    if (has_slash && (walk->flags & O_CREAT) != 0)
        return -EISDIR;
    int flags = walk->flags | O_NOFOLLOW | O_CLOEXEC | (has_slash ? O_DIRECTORY : 0);
    int fd = openat(walk->at, name, flags, (mode_t)walk->mode);
    int error = fd < 0 ? (int)io_error() : 0;
    bool may_be_link = error == -ELOOP || error == -ENOTDIR || error == -EMLINK;
    struct stat about;
    if (fd >= 0 && (walk->flags & PATH_WALK_O_PATH) != 0 && follows) {
        may_be_link = fstat(fd, &about) == 0 && S_ISLNK(about.st_mode);
        if (may_be_link)
            close(fd);
    }
    if (!may_be_link || !follows)
        return fd < 0 ? error : fd;
    error = path_walk_follow(walk, name, after, error);
    return error == 0 ? PATH_WALK_CONTINUES : error;
}

/* One name of `rest`. As path_walk_open. */
static int path_walk_step(path_walk *walk)
{
    char name[NAME_MAX + 1];
    const char *from = walk->rest + strspn(walk->rest, "/");
    size_t size = strcspn(from, "/");
    const char *after = from + size;
    bool is_last = after[strspn(after, "/")] == '\0';
    int error = 0;
    if (size > NAME_MAX)
        return -ENAMETOOLONG;
    if (walk->opens++ >= PATH_WALK_OPENS)
        return -ELOOP;
    memcpy(name, from, size);
    name[size] = '\0';
    bool is_up = strcmp(name, "..") == 0;
    if (size != 0 && !is_up && strcmp(name, ".") != 0) {
        if (is_last)
            return path_walk_open(walk, name, after);
        error = path_walk_enter(walk, name, after);
    } else {
        error = is_up ? path_walk_up(walk) : path_walk_stay(walk);
        memmove(walk->rest, after, strlen(after) + 1);
        if (error == 0 && is_last) {
            int fd = openat(walk->at, ".", walk->flags | O_CLOEXEC, (mode_t)walk->mode);
            return fd < 0 ? (int)io_error() : fd;
        }
    }
    return error != 0 ? error : PATH_WALK_CONTINUES;
}

/* One attempt. -EAGAIN: names were changed meanwhile. */
static int path_walk_try(path_walk *walk, const char *path, size_t length)
{
    walk->at = walk->root;
    walk->links = 0;
    walk->length = 0;
    walk->names[0] = '\0';
    memcpy(walk->rest, path, length + 1);
    int result = path[0] == '/' ? path_walk_to_top(walk) : 0;
    if (result == 0)
        result = PATH_WALK_CONTINUES;
    while (result == PATH_WALK_CONTINUES)
        result = path_walk_step(walk);
    if (walk->at != walk->root)
        close(walk->at);
    return result;
}

int bide_path_walk_(int root, const char *path, int flags, unsigned mode, unsigned resolve)
{
    enum { BOTH = BIDE_PATH_BENEATH | BIDE_PATH_IN_ROOT };
    path_walk walk = {.root = root, .flags = flags, .mode = mode, .resolve = resolve};
    size_t length = strnlen(path, PATH_MAX);
    if ((resolve & BOTH) == BOTH)
        return -EINVAL;
#ifdef __linux__
    if ((flags & O_PATH) != 0 && (flags & ~(O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) != 0)
        return -EINVAL;
#endif
    if ((resolve & BIDE_PATH_NO_XDEV) != 0)
        return -ENOSYS;
    if (length == 0 || length == PATH_MAX)
        return length == 0 ? -ENOENT : -ENAMETOOLONG;
    bool is_from_root = path[0] != '/' || (resolve & BIDE_PATH_IN_ROOT) != 0;
    if (is_from_root && root != AT_FDCWD && fcntl(root, F_GETFD) < 0)
        return -EBADF;
    int result = -EAGAIN;
    for (int i = 0; i < PATH_TRIES && result == -EAGAIN; i++)
        result = path_walk_try(&walk, path, length);
    return result;
}
