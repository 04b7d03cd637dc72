/*
 * Operations on names. Each cell of a table is done twice, in trees of files that are made alike: by the bare system
 * call, and by the operation in this world. Compared are the status, the result, and the whole tree afterwards.
 *
 *     operation × path, or two paths × root: none, a directory, a restricted directory
 *
 * The others are cases without a counterpart, most of them about restricted roots.
 */
#define _GNU_SOURCE
#include "runner.h"

#include "../../src/io/loop.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

/* ---- A kernel without openat2 ---- */

static bide_atomic(int) refusal; /* the error of openat2; 0: none */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* (It reads six arguments, and most calls have fewer.) */
UNCHECKED_BY_MSAN __attribute__((no_sanitize_address)) long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    int error = bide_atomic_load(&refusal, relaxed);
    if (number == SYS_openat2 && error != 0) {
        errno = error;
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- Trees ---- */

enum { TEXT = 20000, PATH = 256 };

static char base[PATH / 2], outside[PATH];

typedef struct tree {
    char path[PATH]; /* base/NAME/tree */
    int fd;          /* of it */
    bide_descriptor directory;
} tree;

static void make_file_at(int directory, const char *name, const char *content)
{
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
}

static void make_tree(tree *made, const char *name)
{
    char upper[PATH];
    snprintf(upper, sizeof upper, "%.100s/%.20s", base, name);
    snprintf(made->path, sizeof made->path, "%.200s/tree", upper);
    assert_int_equal(mkdir(upper, 0755), 0);
    assert_int_equal(mkdir(made->path, 0755), 0);
    made->fd = open(made->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(made->fd >= 0);
    make_file_at(made->fd, "../above", "outside");
    make_file_at(made->fd, "file", "content");
    make_file_at(made->fd, "other", "more content");
    assert_int_equal(mkdirat(made->fd, "directory", 0755), 0);
    assert_int_equal(mkdirat(made->fd, "empty", 0755), 0);
    make_file_at(made->fd, "directory/inner", "inside");
    assert_int_equal(symlinkat("file", made->fd, "link"), 0);
    assert_int_equal(symlinkat("nowhere", made->fd, "dangling"), 0);
    assert_int_equal(symlinkat("directory", made->fd, "to_directory"), 0);
    assert_int_equal(symlinkat("../above", made->fd, "out"), 0);
    assert_int_equal(symlinkat(outside, made->fd, "out_of_it"), 0);
    bide_descriptor_init(&made->directory, made->fd);
}

static void remove_all(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    char name[2 * PATH];
    if (directory == NULL) {
        unlink(path);
        return;
    }
    while ((entry = readdir(directory)) != NULL) {
        struct stat about;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (lstat(name, &about) == 0 && S_ISDIR(about.st_mode))
            remove_all(name);
        else
            unlink(name);
    }
    closedir(directory);
    rmdir(path);
}

static void remove_tree(tree *made, const char *name)
{
    char upper[PATH];
    assert_int_equal(bide_close(&made->directory), 0);
    snprintf(upper, sizeof upper, "%.100s/%.20s", base, name);
    remove_all(upper);
}

/* Everything that is in a tree, as text. */
static void describe_tree(char *text, size_t size, const char *path)
{
    struct dirent **entries;
    char name[2 * PATH];
    int count = scandir(path, &entries, NULL, alphasort);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        struct stat about;
        char content[64] = "";
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (strcmp(entries[i]->d_name, ".") != 0 && strcmp(entries[i]->d_name, "..") != 0) {
            assert_int_equal(lstat(name, &about), 0);
            if (S_ISLNK(about.st_mode)) {
                ptrdiff_t length = readlink(name, content, sizeof content - 1);
                content[length < 0 ? 0 : length] = '\0';
            }
            size_t used = strlen(text);
            assert_true(used + 200 < size);
            /* (a time that was set is a long time ago) */
            snprintf(text + used, size - used, "%.60s %o %d %d %s %d\n", entries[i]->d_name,
                     (unsigned)about.st_mode, (int)about.st_nlink,
                     S_ISREG(about.st_mode) ? (int)about.st_size : -1, content,
                     about.st_mtim.tv_sec < 1000000 ? (int)about.st_mtim.tv_sec : 1);
            if (S_ISDIR(about.st_mode)) {
                strcat(text, "{\n");
                describe_tree(text, size, name);
                strcat(text, "}\n");
            }
        }
        free(entries[i]);
    }
    free(entries);
}

static int begin_paths(void **state)
{
    char name[] = "/tmp/bide_paths_XXXXXX", in_memory[] = "/dev/shm/bide_paths_XXXXXX";
    char *made = mkdtemp(in_memory); /* (a hundred times as fast) */
    umask(022);
    if (made == NULL)
        made = mkdtemp(name);
    assert_non_null(made);
    char *canonical = realpath(made, NULL);
    assert_non_null(canonical);
    snprintf(base, sizeof base, "%.100s", canonical);
    free(canonical);
    snprintf(outside, sizeof outside, "%.100s/outside", base);
    assert_int_equal(mkdir(outside, 0755), 0);
    return world_begin(state);
}

static int begin_without_openat2(void **state)
{
    bide_atomic_store(&refusal, ENOSYS, relaxed);
    return begin_paths(state);
}

/* As a filter of system calls does that does not know it. */
static int begin_with_openat2_forbidden(void **state)
{
    bide_atomic_store(&refusal, EPERM, relaxed);
    return begin_paths(state);
}

static int end_paths(void **state)
{
    int status = world_end(state);
    bide_atomic_store(&refusal, 0, relaxed);
    remove_all(base);
    return status;
}

/* ---- Operations, in both ways ---- */

typedef enum code {
    OPEN,
    CREATE,
    CREATE_NEW,
    OPEN_DIRECTORY,
    STATX,
    STATX_LINK,
    STATFS,
    CHMOD,
    CHOWN,
    CHOWN_LINK,
    UTIMES,
    UTIMES_LINK,
    READLINK,
    REALPATH,
    LAST_OF_OBJECTS = REALPATH,
    SYMLINK,
    UNLINK,
    RMDIR,
    MKDIR,
    ONE_PATH,
    RENAME = ONE_PATH,
    RENAME_NEW,
    LINK,
    LINK_FOLLOWED,
    CODES
} code;

static const char *const code_names[CODES] = {
    "open",     "create",        "create new", "open directory", "statx",  "statx of a link",
    "statfs",   "chmod",         "chown",      "chown link",     "utimes", "utimes of link",
    "readlink", "realpath",      "symlink",    "unlink",         "rmdir",  "mkdir",
    "rename",   "rename to new", "link",       "link followed",
};

/* The last name of its path is not followed. */
static bool code_is_on_link(code code)
{
    return code == STATX_LINK || code == CHOWN_LINK || code == UTIMES_LINK || code == READLINK ||
           code == CREATE_NEW || (code > LAST_OF_OBJECTS && code != LINK_FOLLOWED);
}

typedef struct result {
    int status;
    char text[PATH_MAX];
    char tree[TEXT];
} result;

static const struct timespec old_times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};

static void describe_statx(result *result, const struct statx *about)
{
    snprintf(result->text, sizeof result->text, "%o %u %d", about->stx_mode, about->stx_nlink,
             S_ISREG(about->stx_mode) ? (int)about->stx_size : -1);
}

static void describe_opened(result *result, int fd)
{
    struct stat about;
    assert_int_equal(fstat(fd, &about), 0);
    snprintf(result->text, sizeof result->text, "%o %d", (unsigned)about.st_mode,
             S_ISREG(about.st_mode) ? (int)about.st_size : -1);
}

static int flags_of_open(code code)
{
    return code == OPEN         ? O_RDONLY
           : code == CREATE     ? O_RDWR | O_CREAT
           : code == CREATE_NEW ? O_RDWR | O_CREAT | O_EXCL
                                : O_RDONLY | O_DIRECTORY;
}

/* The last number is that of the directory; -1 with errno if it fails. An empty path: the directory itself. */
static int call_bare(code code, result *result, int fd, const tree *tree, const char *path,
                     const char *other)
{
    struct statx about;
    struct statfs system;
    char full[2 * PATH_MAX];
    bool is_empty = path[0] == '\0';
    memset(&about, 0, sizeof about);
    switch (code) {
    case OPEN:
    case CREATE:
    case CREATE_NEW:
    case OPEN_DIRECTORY: {
        int opened = openat(fd, path, flags_of_open(code) | O_CLOEXEC, 0640);
        if (opened >= 0) {
            describe_opened(result, opened);
            close(opened);
        }
        return opened < 0 ? -1 : 0;
    }
    case STATX:
    case STATX_LINK: {
        int flags = (code == STATX_LINK ? AT_SYMLINK_NOFOLLOW : 0) | (is_empty ? AT_EMPTY_PATH : 0);
        int status = statx(fd, path, flags, STATX_BASIC_STATS, &about);
        if (status == 0)
            describe_statx(result, &about);
        return status;
    }
    case STATFS: {
        int opened = is_empty ? dup(fd) : openat(fd, path, O_PATH | O_CLOEXEC);
        int status = opened < 0 ? -1 : fstatfs(opened, &system);
        int error = errno;
        if (opened >= 0)
            close(opened);
        errno = error;
        if (status == 0)
            snprintf(result->text, sizeof result->text, "%lx", (unsigned long)system.f_type);
        return status;
    }
    case CHMOD:
        return is_empty ? fchmod(fd, 0700) : fchmodat(fd, path, 0700, 0);
    case CHOWN:
        return fchownat(fd, path, getuid(), (gid_t)-1, is_empty ? AT_EMPTY_PATH : 0);
    case CHOWN_LINK:
        return fchownat(fd, path, getuid(), (gid_t)-1,
                        AT_SYMLINK_NOFOLLOW | (is_empty ? AT_EMPTY_PATH : 0));
    case UTIMES:
        return is_empty ? futimens(fd, old_times) : utimensat(fd, path, old_times, 0);
    case UTIMES_LINK:
        return is_empty ? futimens(fd, old_times)
                        : utimensat(fd, path, old_times, AT_SYMLINK_NOFOLLOW);
    case READLINK: {
        ptrdiff_t length = readlinkat(fd, path, result->text, sizeof result->text - 1);
        if (length >= 0)
            result->text[length] = '\0';
        return length < 0 ? -1 : 0;
    }
    case REALPATH:
        snprintf(full, sizeof full, "%s/%s", tree->path, path);
        if (realpath(full, result->text) == NULL) {
            result->text[0] = '\0';
            return -1;
        }
        return 0;
    case SYMLINK:
        return symlinkat("anything", fd, path);
    case UNLINK:
        return unlinkat(fd, path, 0);
    case RMDIR:
        return unlinkat(fd, path, AT_REMOVEDIR);
    case MKDIR:
        return mkdirat(fd, path, 0750);
    case RENAME:
        return renameat(fd, path, fd, other);
    case RENAME_NEW:
        return renameat2(fd, path, fd, other, RENAME_NOREPLACE);
    case LINK:
        return linkat(fd, path, fd, other, 0);
    case LINK_FOLLOWED:
        return linkat(fd, path, fd, other, AT_SYMLINK_FOLLOW);
    case CODES:
        break;
    }
    return -1;
}

static int call_own(world *world, code code, result *result, const bide_path_root *root,
                    const char *path, const char *other)
{
    static bide_file_operation operation;
    static struct statx about;
    static struct statfs system;
    bide_descriptor opened;
    int status;
    switch (code) {
    case OPEN:
    case CREATE:
    case CREATE_NEW:
    case OPEN_DIRECTORY:
        status = world_wait(
            world, bide_open_at(&operation, &opened, root, path, flags_of_open(code), 0640));
        if (status == 0) {
            describe_opened(result, bide_descriptor_fd(&opened));
            assert_int_equal(bide_close(&opened), 0);
        }
        return status;
    case STATX:
    case STATX_LINK:
        status = world_wait(world, bide_statx_at(&operation, root, path,
                                                 code == STATX_LINK ? AT_SYMLINK_NOFOLLOW : 0,
                                                 STATX_BASIC_STATS, &about));
        if (status == 0)
            describe_statx(result, &about);
        return status;
    case STATFS:
        status = world_wait(world, bide_statfs_at(&operation, root, path, &system));
        if (status == 0)
            snprintf(result->text, sizeof result->text, "%lx", (unsigned long)system.f_type);
        return status;
    case CHMOD:
        return world_wait(world, bide_chmod_at(&operation, root, path, 0700, 0));
    case CHOWN:
    case CHOWN_LINK:
        return world_wait(world, bide_chown_at(&operation, root, path, getuid(), (gid_t)-1,
                                               code == CHOWN_LINK ? AT_SYMLINK_NOFOLLOW : 0));
    case UTIMES:
    case UTIMES_LINK:
        return world_wait(world, bide_utimes_at(&operation, root, path, old_times,
                                                code == UTIMES_LINK ? AT_SYMLINK_NOFOLLOW : 0));
    case READLINK:
        status = world_wait(
            world, bide_readlink_at(&operation, root, path, result->text, sizeof result->text));
        break;
    case REALPATH:
        status = world_wait(
            world, bide_realpath_at(&operation, root, path, result->text, sizeof result->text));
        break;
    case SYMLINK:
        return world_wait(world, bide_symlink_at(&operation, "anything", root, path));
    case UNLINK:
        return world_wait(world, bide_unlink_at(&operation, root, path, 0));
    case RMDIR:
        return world_wait(world, bide_unlink_at(&operation, root, path, AT_REMOVEDIR));
    case MKDIR:
        return world_wait(world, bide_make_directory_at(&operation, root, path, 0750));
    case RENAME:
        return world_wait(world, bide_rename_at(&operation, root, path, root, other, 0));
    case RENAME_NEW:
        return world_wait(world,
                          bide_rename_at(&operation, root, path, root, other, RENAME_NOREPLACE));
    case LINK:
        return world_wait(world, bide_link_at(&operation, root, path, root, other, 0));
    case LINK_FOLLOWED:
        return world_wait(world,
                          bide_link_at(&operation, root, path, root, other, AT_SYMLINK_FOLLOW));
    case CODES:
    default:
        return 0;
    }
    if (status == 0)
        assert_int_equal(operation.operation.count, strlen(result->text));
    return status;
}

/* ---- The table ---- */

/* When a path leaves a restricted root: never, if it is more than a name, if its last name is followed, always. */
typedef enum leaving { STAYS, LEAVES_AS_OBJECT, LEAVES_FOLLOWED, LEAVES } leaving;

typedef struct path_row {
    const char *path;
    leaving leaving;
    bool in_pairs;
} path_row;

static char long_name[300], long_path[5000];

static const path_row paths[] = {
    {"file", STAYS, true},
    {"directory", STAYS, false},
    {"empty", STAYS, true},
    {"link", STAYS, true},
    {"dangling", STAYS, true},
    {"to_directory", STAYS, false},
    {"missing", STAYS, true},
    {"file/", STAYS, false},
    {"empty/", STAYS, true},
    {"missing/", STAYS, false},
    {"link/", STAYS, false},
    {"to_directory/", STAYS, false},
    {"to_directory/inner", STAYS, true},
    {"to_directory/new", STAYS, false},
    {"directory//inner", STAYS, false},
    {"file/x", STAYS, true},
    {"missing/x", STAYS, false},
    {".", STAYS, false},
    {"directory/.", STAYS, false},
    {"directory/..", STAYS, false},
    {"directory/../file", STAYS, false},
    {"./file", STAYS, false},
    {long_name, STAYS, false},
    {long_path, STAYS, false}, /* (realpath(3) shortens it first) */
    {"", STAYS, false},
    {"..", LEAVES_AS_OBJECT, false},
    {"../above", LEAVES, false},
    {"../new", LEAVES, true},
    {"../tree/file", LEAVES, true},
    {"directory/../../tree/file", LEAVES, false},
    {"out", LEAVES_FOLLOWED, true},
    {"out_of_it", LEAVES_FOLLOWED, false},
    {"out_of_it/new", LEAVES, true},
};
enum { PATHS = sizeof paths / sizeof *paths };

/* The results of a call name no tree. */
static void forget_tree(result *result, const tree *tree)
{
    size_t length = strlen(tree->path);
    char *upper = strrchr(tree->path, '/');
    size_t upper_length = (size_t)(upper - tree->path);
    if (strncmp(result->text, tree->path, length) == 0)
        memmove(result->text, result->text + length, strlen(result->text + length) + 1);
    else if (strncmp(result->text, tree->path, upper_length) == 0)
        memmove(result->text, result->text + upper_length, strlen(result->text + upper_length) + 1);
}

static result bare, own;

static void look_at_tree(result *result, const tree *tree)
{
    char upper[PATH];
    snprintf(upper, sizeof upper, "%.*s", (int)(strrchr(tree->path, '/') - tree->path), tree->path);
    result->tree[0] = '\0';
    describe_tree(result->tree, sizeof result->tree, upper);
    describe_tree(result->tree, sizeof result->tree, outside);
}

/* The tree of a cell, which is made again if the last one has changed it. */
typedef struct subject {
    tree tree;
    const char *name;
    bool is_made;
    char pristine[TEXT];
} subject;

static subject bare_subject = {.name = "bare"}, own_subject = {.name = "own"};

static void drop_subject(subject *it)
{
    if (!it->is_made)
        return;
    remove_tree(&it->tree, it->name);
    remove_all(outside);
    assert_int_equal(mkdir(outside, 0755), 0);
    it->is_made = false;
}

static tree *begin_cell(subject *it)
{
    static result look;
    if (!it->is_made) {
        make_tree(&it->tree, it->name);
        look_at_tree(&look, &it->tree);
        strcpy(it->pristine, look.tree);
        it->is_made = true;
    }
    return &it->tree;
}

static void end_cell(subject *it, result *result)
{
    forget_tree(result, &it->tree);
    look_at_tree(result, &it->tree);
    if (strcmp(result->tree, it->pristine) != 0)
        drop_subject(it);
}

static const char *shown(const char *path)
{
    return strlen(path) > 100 ? "(a long one)" : path;
}

/* True: both did the same; or, if the path leaves a restricted root, nothing was done. */
static bool compare(world *world, code code, unsigned resolve, const path_row *path,
                    const path_row *other)
{
    bool follows = !code_is_on_link(code);
    bool leaves = path->leaving == LEAVES || (path->leaving == LEAVES_FOLLOWED && follows) ||
                  (path->leaving == LEAVES_AS_OBJECT && code <= LAST_OF_OBJECTS);
    /* (the second path of link and rename is never followed) */
    bool other_leaves = other != NULL && other->leaving == LEAVES;
    bare.text[0] = own.text[0] = '\0';
    const tree *tree = begin_cell(&bare_subject);
    bare.status = -EXDEV;
    if (resolve == 0 || !(leaves || other_leaves)) {
        errno = 0;
        int status =
            call_bare(code, &bare, tree->fd, tree, path->path, other != NULL ? other->path : NULL);
        bare.status = status == 0 ? 0 : -errno;
    }
    end_cell(&bare_subject, &bare);

    tree = begin_cell(&own_subject);
    bide_path_root root = {&tree->directory, resolve};
    own.status = call_own(world, code, &own, &root, path->path, other != NULL ? other->path : NULL);
    end_cell(&own_subject, &own);

    bool same_status = bare.status == own.status;
    /* (which of two paths is looked at first is the call's choice) */
    if (resolve != 0 && (leaves || other_leaves) && other != NULL)
        same_status = own.status < 0;
    bool same = same_status && strcmp(bare.text, own.text) == 0 && strcmp(bare.tree, own.tree) == 0;
    if (!same)
        printf("# %s of \"%s\", \"%s\", resolve %x: bare %d \"%s\", own %d \"%s\"%s\n",
               code_names[code], shown(path->path), other != NULL ? shown(other->path) : "",
               resolve, bare.status, bare.text, own.status, own.text,
               strcmp(bare.tree, own.tree) != 0 ? "; the trees differ" : "");
    return same;
}

static void fill_names(void)
{
    memset(long_name, 'a', sizeof long_name - 1);
    for (size_t i = 0; i < sizeof long_path - 1; i++)
        long_path[i] = i % 2 == 0 ? '.' : '/';
}

static unsigned compare_all(world *world, unsigned resolve)
{
    unsigned cells = 0, differ = 0;
    fill_names();
    for (code code = 0; code < ONE_PATH; code++) {
        for (int i = 0; i < PATHS; i++, cells++) {
            if (code != REALPATH || paths[i].path != long_path)
                differ += !compare(world, code, resolve, &paths[i], NULL);
        }
    }
    for (code code = ONE_PATH; code < CODES; code++) {
        for (int i = 0; i < PATHS; i++) {
            for (int j = 0; j < PATHS; j++) {
                if (!paths[i].in_pairs || !paths[j].in_pairs)
                    continue;
                cells++;
                differ += !compare(world, code, resolve, &paths[i], &paths[j]);
            }
        }
    }
    drop_subject(&bare_subject);
    drop_subject(&own_subject);
    printf("# %u cells, %u differ\n", cells, differ);
    return differ;
}

static void operations_do_what_the_calls_do(void **state)
{
    world *world = world_of_the_system(state, "it compares with the system");
    assert_int_equal(compare_all(world, 0), 0);
}

static void a_restricted_root_is_not_left(void **state)
{
    world *world = world_of_the_system(state, "it compares with the system");
    assert_int_equal(compare_all(world, BIDE_PATH_BENEATH), 0);
}

static void a_root_may_be_the_top(void **state)
{
    world *world = world_of_the_system(state, "it has no links");
    tree tree;
    bide_path_root root = {&tree.directory, BIDE_PATH_IN_ROOT};
    make_tree(&tree, "own");
    assert_int_equal(call_own(world, REALPATH, &own, &root, "/../../file", NULL), 0);
    forget_tree(&own, &tree);
    assert_string_equal(own.text, "/file");
    assert_int_equal(call_own(world, OPEN, &own, &root, "out", NULL),
                     -ENOENT); /* "../above" is "/above" */
    assert_int_equal(call_own(world, CREATE, &own, &root, "/above", NULL), 0);
    assert_int_equal(call_own(world, OPEN, &own, &root, "out", NULL), 0);
    assert_int_equal(call_own(world, RENAME, &own, &root, "../../file", "/directory/moved"), 0);
    assert_int_equal(call_own(world, UNLINK, &own, &root, "/directory/moved", NULL), 0);
    assert_int_equal(call_own(world, MKDIR, &own, &root, "/", NULL), -EEXIST);
    assert_int_equal(call_own(world, RMDIR, &own, &root, "///", NULL), -EINVAL);
    remove_tree(&tree, "own");
}

static void links_may_be_refused(void **state)
{
    world *world = world_of_the_system(state, "it has no links");
    tree tree;
    bide_path_root root = {&tree.directory, BIDE_PATH_NO_SYMLINKS};
    make_tree(&tree, "own");
    assert_int_equal(call_own(world, OPEN, &own, &root, "link", NULL), -ELOOP);
    assert_int_equal(call_own(world, CHMOD, &own, &root, "to_directory/inner", NULL), -ELOOP);
    assert_int_equal(call_own(world, UNLINK, &own, &root, "to_directory/inner", NULL), -ELOOP);
    assert_int_equal(call_own(world, READLINK, &own, &root, "link", NULL), 0);
    assert_int_equal(call_own(world, UNLINK, &own, &root, "link", NULL), 0);
    assert_int_equal(call_own(world, UNLINK, &own, &root, "directory/inner", NULL), 0);
    remove_tree(&tree, "own");
}

static void an_unknown_restriction_is_refused(void **state)
{
    world *world = world_of_the_system(state, "it has other flags");
    tree tree;
    bide_path_root root = {&tree.directory, 0x1000 | BIDE_PATH_BENEATH};
    make_tree(&tree, "own");
    for (code code = 0; code < CODES; code++)
        assert_int_equal(call_own(world, code, &own, &root, "file", "new"), -EINVAL);
    remove_tree(&tree, "own");
}

static void a_restricted_name_needs_a_descriptor(void **state)
{
    static const code codes[] = {UNLINK, RENAME, LINK, CHMOD, STATX, SYMLINK};
    world *world = world_of_the_system(state, "it needs none");
    tree tree;
    bide_path_root root = {&tree.directory, BIDE_PATH_BENEATH};
    make_tree(&tree, "own");
    assert_int_equal(call_own(world, STATX, &own, &root, "file", NULL),
                     0); /* (a thread is there) */
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        world_lack_descriptors(world, true);
        int status = call_own(world, codes[i], &own, &root, "file", "new");
        world_lack_descriptors(world, false);
        assert_int_equal(status, -EMFILE);
    }
    assert_int_equal(call_own(world, RENAME, &own, &root, "file", "new"), 0);
    remove_tree(&tree, "own");
}

/* ---- Another process that changes names meanwhile ---- */

static bide_atomic(int) race_is_over;

static void *exchange_names(void *directory)
{
    int fd = *(int *)directory;
    while (bide_atomic_load(&race_is_over, relaxed) == 0)
        renameat2(fd, "directory", fd, "out_of_it", RENAME_EXCHANGE);
    return NULL;
}

/* It was done; or the name was the link, or was changed too often; or an earlier operation made or removed a name. */
static void assert_is_status_of_race(int status)
{
    static const int allowed[] = {0, -EXDEV, -EAGAIN, -EEXIST, -ENOENT, -EISDIR};
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (status == allowed[i])
            return;
    }
    fail_msg("status %d", status);
}

static void nothing_leads_out_of_a_root_meanwhile(void **state)
{
    enum { TIMES = 300 };
    world *world = world_of_the_system(state, "it has no links");
    static const code codes[] = {CREATE, UNLINK, MKDIR, RENAME, LINK, CHMOD, SYMLINK};
    tree tree;
    pthread_t thread;
    char victim[2 * PATH], text[TEXT] = "", after[TEXT] = "";
    bide_path_root root = {&tree.directory, BIDE_PATH_BENEATH};
    make_tree(&tree, "own");
    snprintf(victim, sizeof victim, "%s/inner", outside);
    make_file_at(AT_FDCWD, victim, "keep");
    describe_tree(text, sizeof text, outside);
    bide_atomic_store(&race_is_over, 0, relaxed);
    assert_int_equal(pthread_create(&thread, NULL, exchange_names, &tree.fd), 0);
    for (int i = 0; i < TIMES; i++) {
        for (size_t j = 0; j < sizeof codes / sizeof *codes; j++) {
            const char *path =
                codes[j] == UNLINK || codes[j] == CHMOD ? "directory/inner" : "directory/new";
            bool has_two = codes[j] >= ONE_PATH;
            assert_is_status_of_race(call_own(world, codes[j], &own, &root, has_two ? "file" : path,
                                              has_two ? path : NULL));
            assert_is_status_of_race(call_own(world, CREATE, &own, &root, "file", NULL));
        }
    }
    bide_atomic_store(&race_is_over, 1, relaxed);
    pthread_join(thread, NULL);
    describe_tree(after, sizeof after, outside);
    assert_string_equal(text, after);
    remove_tree(&tree, "own");
}

/* ---- In every world ---- */

static const char *work_directory(world *world)
{
    static char path[PATH];
    bide_file_operation operation;
    if (world->memory == NULL) {
        snprintf(path, sizeof path, "%.100s/work", base);
        assert_int_equal(mkdir(path, 0755), 0);
    } else {
        snprintf(path, sizeof path, "/work");
        assert_int_equal(world_wait(world, bide_make_directory(&operation, path, 0755)), 0);
    }
    return path;
}

static void paths_begin_at_a_directory(void **state)
{
    world *world = world_of(state);
    bide_file_operation operation;
    bide_descriptor directory, file;
    struct statx about;
    const char *path = work_directory(world);
    bide_path_root root = {.directory = &directory};
    char buffer[8];
    assert_int_equal(
        world_wait(world, bide_open(&operation, &directory, path, O_RDONLY | O_DIRECTORY, 0)), 0);
    assert_int_equal(
        world_wait(world, bide_open_at(&operation, &file, &root, "new", O_RDWR | O_CREAT, 0600)),
        0);
    assert_int_equal(world_wait(world, bide_write(&operation, &file, "abc", 3)), 0);
    assert_int_equal(world_wait(world, bide_link_at(&operation, &root, "new", &root, "second", 0)),
                     0);
    assert_int_equal(world_wait(world, bide_link_at(&operation, &root, "new", &root, "second", 0)),
                     -EEXIST);
    assert_int_equal(
        world_wait(world, bide_statx_at(&operation, &root, "second", 0, STATX_BASIC_STATS, &about)),
        0);
    assert_int_equal(about.stx_nlink, 2);
    assert_int_equal(about.stx_size, 3);
    assert_int_equal(world_wait(world, bide_chmod_at(&operation, &root, "second", 0640, 0)), 0);
    bide_path_root itself = {.directory = &file};
    assert_int_equal(
        world_wait(world, bide_statx_at(&operation, &itself, "", 0, STATX_BASIC_STATS, &about)), 0);
    assert_int_equal(about.stx_mode, S_IFREG | 0640);
    assert_int_equal(world_wait(world, bide_unlink_at(&operation, &root, "new", 0)), 0);
    assert_int_equal(
        world_wait(world, bide_rename_at(&operation, &root, "second", &root, "third", 0)), 0);
    assert_int_equal(world_wait(world, bide_make_directory_at(&operation, &root, "inner", 0700)),
                     0);
    assert_int_equal(world_wait(world, bide_rename_at(&operation, &root, "third", &root, "inner",
                                                      RENAME_NOREPLACE)),
                     -EEXIST);
    assert_int_equal(
        world_wait(world, bide_rename_at(&operation, &root, "third", &root, "inner/third", 0)), 0);
    assert_int_equal(world_wait(world, bide_unlink_at(&operation, &root, "inner", AT_REMOVEDIR)),
                     -ENOTEMPTY);
    assert_int_equal(world_wait(world, bide_read_at(&operation, &file, buffer, sizeof buffer, 0)),
                     0);
    assert_int_equal(operation.operation.count, 3);
    assert_int_equal(bide_close(&file), 0);
    assert_int_equal(world_wait(world, bide_unlink_at(&operation, &root, "inner/third", 0)), 0);
    assert_int_equal(world_wait(world, bide_unlink_at(&operation, &root, "inner", AT_REMOVEDIR)),
                     0);
    assert_int_equal(world_wait(world, bide_chmod_at(&operation, NULL, "", 0640, 0)), -ENOENT);
    assert_int_equal(bide_close(&directory), 0);
    assert_int_equal(world_wait(world, bide_unlink_at(&operation, &root, "inner", 0)), -EBADF);
    assert_int_equal(world_wait(world, bide_unlink(&operation, path, AT_REMOVEDIR)), 0);
}

static void a_root_in_every_world_is_not_left(void **state)
{
    world *world = world_of(state);
    bide_file_operation operation;
    bide_descriptor directory, file;
    bide_path_root root = {&directory, BIDE_PATH_BENEATH};
    bide_path_root top = {&directory, BIDE_PATH_IN_ROOT};
    const char *path = work_directory(world);
    assert_int_equal(
        world_wait(world, bide_open(&operation, &directory, path, O_RDONLY | O_DIRECTORY, 0)), 0);
    assert_int_equal(
        world_wait(world, bide_open_at(&operation, &file, &root, "../new", O_RDWR | O_CREAT, 0600)),
        -EXDEV);
    assert_int_equal(world_wait(world, bide_open_at(&operation, &file, &root, path, O_RDONLY, 0)),
                     -EXDEV);
    assert_int_equal(world_wait(world, bide_make_directory_at(&operation, &root, "a", 0700)), 0);
    assert_int_equal(world_wait(world, bide_make_directory_at(&operation, &root, "a/../b", 0700)),
                     0);
    assert_int_equal(
        world_wait(world, bide_make_directory_at(&operation, &root, "a/../../b", 0700)), -EXDEV);
    assert_int_equal(world_wait(world, bide_make_directory_at(&operation, &top, "/../../c", 0700)),
                     0);
    assert_int_equal(world_wait(world, bide_unlink_at(&operation, &root, "c", AT_REMOVEDIR)), 0);
    assert_int_equal(world_wait(world, bide_unlink_at(&operation, &root, "b", AT_REMOVEDIR)), 0);
    assert_int_equal(world_wait(world, bide_unlink_at(&operation, &root, "a", AT_REMOVEDIR)), 0);
    assert_int_equal(bide_close(&directory), 0);
    assert_int_equal(world_wait(world, bide_unlink(&operation, path, AT_REMOVEDIR)), 0);
}

static void a_temporary_file_has_no_name_until_it_gets_one(void **state)
{
    world *world = world_of(state);
    bide_file_operation operation;
    bide_descriptor directory, file;
    struct statx about;
    const char *path = work_directory(world);
    bide_path_root root = {.directory = &directory}, itself = {.directory = &file};
    char buffer[8];
    assert_int_equal(
        world_wait(world, bide_open(&operation, &directory, path, O_RDONLY | O_DIRECTORY, 0)), 0);
    /* (for reading and writing, whatever access the flags name) */
    assert_int_equal(
        world_wait(world, bide_open_temporary(&operation, &file, &root, ".", O_WRONLY, 0600)), 0);
    assert_int_equal(world_wait(world, bide_write(&operation, &file, "abc", 3)), 0);
    assert_int_equal(world_wait(world, bide_read_at(&operation, &file, buffer, sizeof buffer, 0)),
                     0);
    assert_int_equal(operation.operation.count, 3);
    assert_int_equal(
        world_wait(world, bide_statx_at(&operation, &itself, "", 0, STATX_NLINK, &about)), 0);
    assert_int_equal(about.stx_nlink, 0);
    int status = world_wait(world, bide_link_at(&operation, &itself, "", &root, "named", 0));
    assert_int_equal(bide_close(&file), 0);
    if (status == 0) { /* (on a file system with O_TMPFILE) */
        assert_int_equal(
            world_wait(world, bide_statx_at(&operation, &root, "named", 0, STATX_SIZE, &about)), 0);
        assert_int_equal(about.stx_size, 3);
        assert_int_equal(world_wait(world, bide_unlink_at(&operation, &root, "named", 0)), 0);
    } else {
        assert_int_equal(status, -ENOENT);
    }
    assert_int_equal(bide_close(&directory), 0);
    assert_int_equal(world_wait(world, bide_unlink(&operation, path, AT_REMOVEDIR)),
                     0); /* (it is empty) */
}

/* A file with a name is made there in its place, as far as that is possible. */
static void a_file_system_may_have_no_files_without_a_name(void **state)
{
    world *world = world_of_the_system(state, "its files need no names");
    bide_file_operation operation;
    bide_descriptor file;
    int fd = open("/proc", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || (error != EOPNOTSUPP && error != EISDIR)) {
        printf("# /proc has them, or is missing: %s\n", strerror(error));
        skip();
    }
    fd = open("/proc/.bide-none", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    error = errno;
    assert_int_equal(fd, -1);
    assert_int_not_equal(error, EOPNOTSUPP);
    assert_int_equal(
        world_wait(world, bide_open_temporary(&operation, &file, NULL, "/proc", 0, 0600)), -error);
    assert_false(bide_descriptor_is_open(&file));
}

static void a_text_that_does_not_fit_is_refused(void **state)
{
    world *world = world_of_the_system(state, "it has no links");
    bide_file_operation operation;
    tree tree;
    char text[PATH];
    make_tree(&tree, "own");
    bide_path_root root = {.directory = &tree.directory};
    assert_int_equal(world_wait(world, bide_readlink_at(&operation, &root, "link", text, 4)),
                     -ERANGE);
    assert_int_equal(world_wait(world, bide_readlink_at(&operation, &root, "link", text, 5)), 0);
    assert_string_equal(text, "file");
    size_t length = strlen(tree.path) + strlen("/file");
    char full[2 * PATH];
    snprintf(full, sizeof full, "%s/link", tree.path);
    assert_int_equal(world_wait(world, bide_realpath_at(&operation, &root, "link", text, length)),
                     -ERANGE);
    assert_int_equal(
        world_wait(world, bide_realpath_at(&operation, &root, "link", text, length + 1)), 0);
    assert_int_equal(operation.operation.count, length);
    assert_int_equal(world_wait(world, bide_realpath_at(&operation, NULL, full, text, length)),
                     -ERANGE);
    assert_int_equal(world_wait(world, bide_realpath_at(&operation, NULL, full, text, length + 1)),
                     0);
    assert_int_equal(operation.operation.count, length);
    remove_tree(&tree, "own");
}

/* What an open that would block ends with, and no descriptor is waited for. */
static void an_open_that_would_block_fails(void **state)
{
    world *world = world_of_the_system(state, "it has no leases");
    bide_file_operation operation;
    bide_descriptor file;
    tree tree;
    make_tree(&tree, "own");
    bide_path_root root = {.directory = &tree.directory};
    int leased = openat(tree.fd, "file", O_RDONLY | O_CLOEXEC);
    signal(SIGIO, SIG_IGN);
    if (fcntl(leased, F_SETLEASE, F_RDLCK) == 0) {
        assert_int_equal(openat(tree.fd, "file", O_WRONLY | O_NONBLOCK | O_CLOEXEC), -1);
        assert_int_equal(errno, EWOULDBLOCK);
        assert_int_equal(world_wait(world, bide_open_at(&operation, &file, &root, "file",
                                                        O_WRONLY | O_NONBLOCK, 0)),
                         -EAGAIN);
        root.resolve = BIDE_PATH_BENEATH; /* (the ring leaves it to a thread, which tries again) */
        assert_int_equal(world_wait(world, bide_open_at(&operation, &file, &root, "file",
                                                        O_WRONLY | O_NONBLOCK, 0)),
                         -EAGAIN);
        assert_false(bide_descriptor_is_open(&file));
        if (world->loop != NULL)
            assert_non_null(world->loop->files); /* a thread */
    } else {
        printf("# no leases: %s\n", strerror(errno));
    }
    close(leased);
    remove_tree(&tree, "own");
}

#define path_test(name) cmocka_unit_test_setup_teardown(name, begin_paths, end_paths)
#define test_without_openat2(name)                                             \
    {                                                                          \
#name "_without_openat2", name, begin_without_openat2, end_paths, NULL \
    }
#define test_with_openat2_forbidden(name)                                                    \
    {                                                                                        \
#name "_with_openat2_forbidden", name, begin_with_openat2_forbidden, end_paths, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        path_test(operations_do_what_the_calls_do),
        path_test(a_restricted_root_is_not_left),
        test_without_openat2(a_restricted_root_is_not_left),
        test_with_openat2_forbidden(a_restricted_root_is_not_left),
        path_test(a_root_may_be_the_top),
        test_without_openat2(a_root_may_be_the_top),
        path_test(links_may_be_refused),
        test_without_openat2(links_may_be_refused),
        path_test(an_unknown_restriction_is_refused),
        test_without_openat2(an_unknown_restriction_is_refused),
        test_with_openat2_forbidden(an_unknown_restriction_is_refused),
        path_test(a_restricted_name_needs_a_descriptor),
        test_without_openat2(a_restricted_name_needs_a_descriptor),
        path_test(nothing_leads_out_of_a_root_meanwhile),
        test_without_openat2(nothing_leads_out_of_a_root_meanwhile),
        path_test(paths_begin_at_a_directory),
        path_test(a_root_in_every_world_is_not_left),
        test_without_openat2(a_root_in_every_world_is_not_left),
        path_test(a_temporary_file_has_no_name_until_it_gets_one),
        path_test(a_file_system_may_have_no_files_without_a_name),
        path_test(a_text_that_does_not_fit_is_refused),
        path_test(an_open_that_would_block_fails),
        test_without_openat2(an_open_that_would_block_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
