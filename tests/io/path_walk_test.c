/*
 * Opening under a restricted root without openat2(2), compared with openat2(2) itself: the status, and the object that
 * was opened, for each path × restriction × flags.
 */
#define _GNU_SOURCE
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

/* ---- A kernel without openat2 ---- */

static bide_atomic(unsigned) refused; /* calls */

#if defined BIDE_HAS_OPENAT2 && !BIDE_HAS_OPENAT2
enum { HAS_OPENAT2 = 0 };
#else
enum { HAS_OPENAT2 = 1 };
#endif

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
    if (number == SYS_openat2) {
        bide_atomic_fetch_add(&refused, 1, relaxed);
        errno = ENOSYS;
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- Steps of a walk ---- */

enum { DEPTH = 1000, NAMES_MAX = 100000 /* of path.h */ };

static bool counts;           /* opens below a directory */
static unsigned steps;        /* that were counted */
static unsigned ups;          /* of these, for ".." */
static unsigned renames_at;   /* the name behind each such ".." has been renamed; 0: none has */
static unsigned renames_left; /* how often */

int __real_openat64(int directory, const char *name, int flags, ...);
int __wrap_openat64(int directory, const char *name, int flags, ...);

int __wrap_openat64(int directory, const char *name, int flags, ...)
{
    static bool goes_up;
    va_list list;
    va_start(list, flags);
    mode_t mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (!counts)
        return __real_openat64(directory, name, flags, mode);
    steps++;
    bool is_renamed = goes_up && renames_at != 0 && ups % renames_at == 0 && renames_left != 0;
    goes_up = strcmp(name, ".") == 0; /* (so a walk looks whether the directory may be searched) */
    ups += goes_up;
    if (is_renamed) {
        renames_left--;
        errno = ENOENT;
        return -1;
    }
    return __real_openat64(directory, name, flags, mode);
}

/* Walks down DEPTH directories, up again `count` of them, and opens a directory. Returns 0 or the error. */
static int walk_up(int root, unsigned count, unsigned resolve)
{
    static char path[5000];
    char *at = path;
    for (int i = 0; i < DEPTH; i++)
        at = stpcpy(at, "n/");
    for (unsigned i = 0; i < count; i++)
        at = stpcpy(at, "../");
    strcpy(at, "n");
    steps = ups = 0;
    counts = true;
    int fd = bide_path_open_(root, path, O_RDONLY | O_DIRECTORY, 0, resolve);
    counts = false;
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

/* The kernel's answer: a number, or a negative errno. */
static int open_by_kernel(int root, const char *path, int flags, unsigned resolve)
{
    bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    uint64_t how[3] = {(uint64_t)(unsigned)(flags | O_CLOEXEC), creates ? 0600 : 0, resolve};
    long fd;
    do /* (until no process renames anything meanwhile) */
        fd = __real_syscall(SYS_openat2, (long)root, (long)path, (long)how, sizeof how, 0L, 0L);
    while (fd < 0 && errno == EAGAIN);
    return fd >= 0 ? (int)fd : -errno;
}

/* ---- The tree ---- */

enum { LONG = 5000, CHAIN = 41 };

static char base[100], inside[200], long_name[300], long_path[LONG], deep_path[LONG];

static void remove_tree(void)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%.99s'", base);
    assert_int_equal(system(command), 0);
}

static int begin_tree(void **state)
{
    char made[] = "/tmp/bide_walk_XXXXXX", name[16], text[16];
    assert_non_null(mkdtemp(made));
    snprintf(base, sizeof base, "%s", made);
    snprintf(inside, sizeof inside, "%.99s/tree/directory/inner", base);
    int above = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(above, "tree", 0755), 0);
    assert_int_equal(mkdirat(above, "beside", 0755), 0);
    int root = openat(above, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(root, "directory", 0755), 0);
    assert_int_equal(mkdirat(root, "directory/deeper", 0755), 0);
    static const char *const files[] = {"file", "directory/inner", "directory/deeper/leaf", "../beside/secret"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int fd = openat(root, files[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        close(fd);
    }
    assert_int_equal(mkfifoat(root, "fifo", 0600), 0);
    const char *const links[][2] = {
        {"file", "link"},
        {"directory", "to_directory"},
        {"directory/", "to_slash"},
        {"file/", "to_file_slash"},
        {"nowhere", "dangling"},
        {"loop", "loop"},
        {"b", "a"},
        {"a", "b"},
        {"../beside/secret", "out"},
        {"..", "up"},
        {".", "here"},
        {"/", "top"},
        {"/etc", "to_etc"},
        {inside, "absolute"},
        {"/directory/inner", "as_root"},
        {"../../file", "directory/deeper/back"},
        {"../../../beside/secret", "directory/deeper/out"},
        {"to_directory/deeper/../inner", "winding"},
        {"/proc/self/fd/0", "to_proc"},
    };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        assert_int_equal(symlinkat(links[i][0], root, links[i][1]), 0);
    for (int i = 0; i < CHAIN; i++) { /* link1 leads to a file by one link, link41 by 41 */
        snprintf(name, sizeof name, "link%d", i + 1);
        snprintf(text, sizeof text, i == 0 ? "file" : "link%d", i);
        assert_int_equal(symlinkat(text, root, name), 0);
    }
    close(root);
    close(above);
    memset(long_name, 'a', sizeof long_name - 1);
    for (int i = 0; i < LONG - 1; i++)
        long_path[i] = i % 2 == 0 ? '.' : '/';
    static const char around[] = "to_directory/deeper/../../"; /* 40 links at most */
    for (int i = 0; i < 30; i++)
        memcpy(deep_path + (size_t)i * (sizeof around - 1), around, sizeof around - 1);
    strcat(deep_path, "file");
    return world_begin(state);
}

static int end_tree(void **state)
{
    int status = world_end(state);
    remove_tree();
    return status;
}

/* ---- The table ---- */

static const char *const paths[] = {
    "file", "directory", "directory/inner", "directory/deeper/leaf", "missing", "missing/more", "file/more",
    "fifo/more", "link", "link/", "link/more", "to_directory", "to_directory/", "to_directory/inner",
    "to_slash", "to_slash/", "to_slash/inner", "to_file_slash", "dangling", "dangling/", "dangling/more", "loop",
    "loop/more", "a", "out", "out/more", "up", "up/", "up/tree", "up/tree/file", "up/beside/secret", "here", "here/here/here/file",
    "top", "top/", "to_etc", "to_etc/passwd", "absolute", "as_root", "directory/deeper/back", "directory/deeper/out", "winding",
    "to_proc", "to_proc/", "link39", "link40", "link41", "", ".", "./", "./.", "..", "../", "../tree", "../tree/file",
    "../beside/secret", "/", "//", "/file", "//file", "/../file", "/..", "/etc", "directory/..", "directory/../", "directory/../file",
    "directory/../..", "directory/../../tree/file", "directory/./inner", "directory//inner", "directory///", "file/", "file/.", "file/..",
    "missing/..", "to_directory/..", "to_directory/../file", "to_directory/../directory/deeper/../../file",
    "directory/deeper/../../..", "directory/deeper/../../directory/deeper/leaf", "...", "directory/...", long_name, long_path,
    deep_path,
};

static const unsigned restrictions[] = {
    BIDE_PATH_BENEATH,
    BIDE_PATH_IN_ROOT,
    BIDE_PATH_NO_SYMLINKS,
    BIDE_PATH_NO_MAGICLINKS,
    BIDE_PATH_BENEATH | BIDE_PATH_NO_SYMLINKS,
    BIDE_PATH_BENEATH | BIDE_PATH_NO_MAGICLINKS,
    BIDE_PATH_IN_ROOT | BIDE_PATH_NO_SYMLINKS,
    BIDE_PATH_IN_ROOT | BIDE_PATH_NO_MAGICLINKS,
};

static const int all_flags[] = {
    O_RDONLY,
    O_RDWR,
    O_RDONLY | O_NOFOLLOW,
    O_RDONLY | O_DIRECTORY,
    O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
    O_PATH,
    O_PATH | O_NOFOLLOW,
    O_PATH | O_DIRECTORY,
    O_PATH | O_DIRECTORY | O_NOFOLLOW,
    O_RDWR | O_CREAT,
    O_RDWR | O_CREAT | O_NOFOLLOW,
    O_RDWR | O_CREAT | O_EXCL,
    O_RDWR | O_TMPFILE,
};

/* Removes what was made. */
static void tidy(int root)
{
    static const char *const made[] = {"missing", "nowhere", "...", "directory/...", "etc"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        unlinkat(root, made[i], 0);
}

/* What is open. A file that an open may have made has a number of its own, and so has one of /proc. */
static struct stat look(int fd, bool is_numbered)
{
    struct stat about = {0}, kept = {0};
    assert_int_equal(fstat(fd, &about), 0);
    kept.st_mode = about.st_mode;
    kept.st_dev = about.st_dev;
    kept.st_ino = is_numbered ? about.st_ino : 0;
    return kept;
}

/* True: the world opened the same as the kernel, or failed with the same error. */
static bool is_same(world *world, bide_descriptor *directory, const char *path, int flags, unsigned resolve, bool is_numbered)
{
    bide_file_operation operation;
    bide_descriptor file;
    bide_path_root root = {directory, resolve};
    struct stat expected = {0}, found = {0};
    int fd = directory != NULL ? bide_descriptor_fd(directory) : AT_FDCWD;
    bool is_temporary = (flags & O_TMPFILE) == O_TMPFILE;
    if (is_temporary && strstr(path, "etc") != NULL) /* (nothing is made there) */
        return true;
    int by_kernel = open_by_kernel(fd, path, flags, resolve);
    if (by_kernel == -EOPNOTSUPP && is_temporary) /* the file system has none */
        return true;
    is_numbered = is_numbered && (flags & O_CREAT) == 0 && !is_temporary;
    if (by_kernel >= 0) {
        expected = look(by_kernel, is_numbered);
        close(by_kernel);
    }
    tidy(fd);
    int status = is_temporary
                     ? world_wait(world, bide_open_temporary(&operation, &file, &root, path, O_RDWR, 0600))
                     : world_wait(world, bide_open_at(&operation, &file, &root, path, flags, 0600));
    if (status == 0) {
        found = look(bide_descriptor_fd(&file), is_numbered);
        assert_int_equal(bide_close(&file), 0);
    }
    tidy(fd);
    bool same = status == (by_kernel < 0 ? by_kernel : 0) && memcmp(&expected, &found, sizeof found) == 0;
    if (!same)
        printf("# \"%.60s\", flags %o, resolve %x: the kernel %d, file %lu; found %d, file %lu\n", path, (unsigned)flags, resolve,
               by_kernel, (unsigned long)expected.st_ino, status, (unsigned long)found.st_ino);
    return same;
}

static void need_openat2(void)
{
    int fd = open_by_kernel(AT_FDCWD, ".", O_PATH, BIDE_PATH_BENEATH);
    if (fd == -ENOSYS || fd == -EPERM) {
        printf("# the kernel has no openat2 to compare with\n");
        skip();
    }
    close(fd);
}

static unsigned count_differences(world *world, bide_descriptor *directory)
{
    unsigned cells = 0, differ = 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        for (size_t j = 0; j < sizeof restrictions / sizeof *restrictions; j++) {
            for (size_t k = 0; k < sizeof all_flags / sizeof *all_flags; k++, cells++)
                differ += !is_same(world, directory, paths[i], all_flags[k], restrictions[j], true);
        }
    }
    printf("# %u cells, %u differ\n", cells, differ);
    return differ;
}

static void each_path_leads_where_openat2_leads(void **state)
{
    world *world = world_of(state);
    char path[200];
    bide_descriptor directory;
    need_openat2();
    int before = count_descriptors();
    snprintf(path, sizeof path, "%.99s/tree", base);
    bide_descriptor_init(&directory, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    assert_int_equal(count_differences(world, &directory), 0);
    if (HAS_OPENAT2 && (world_is("epoll") || world_is("poll"))) /* (a ring makes the call itself) */
        assert_true(bide_atomic_load(&refused, relaxed) != 0);
    bide_close(&directory);
    assert_in_range(count_descriptors(), before, before + KEPT_DESCRIPTORS);
}

static void the_working_directory_may_be_the_root(void **state)
{
    world *world = world_of(state);
    char path[200];
    need_openat2();
    int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "%.99s/tree", base);
    assert_int_equal(chdir(path), 0);
    unsigned differ = count_differences(world, NULL);
    assert_int_equal(fchdir(before), 0);
    close(before);
    assert_int_equal(differ, 0);
}

static void a_closed_root_is_reported(void **state)
{
    static const char *const names[] = {"file", "directory/inner", ".", "..", "missing/more", "", "/", "/file"};
    world *world = world_of(state);
    bide_descriptor closed;
    unsigned differ = 0;
    need_openat2();
    bide_descriptor_init(&closed, -1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        differ += !is_same(world, &closed, names[i], O_RDONLY, BIDE_PATH_BENEATH, true);
        differ += !is_same(world, &closed, names[i], O_RDONLY, BIDE_PATH_IN_ROOT, true);
    }
    assert_int_equal(differ, 0);
}

/* Links that name open objects, and the plain ones beside them. */
static void magic_links_lead_nowhere(void **state)
{
    static const char *const names[] = {"self/fd/0", "self/exe", "self/root", "self/root/etc", "self/cwd", "self/cwd/.", "self/ns/mnt",
                                        "self/ns/net", "self/status", "self/..", "self", "mounts", "net", "self/fd", "self/fd/999999"};
    static const int flags[] = {O_RDONLY, O_PATH, O_PATH | O_NOFOLLOW};
    static const unsigned restricted[] = {
        BIDE_PATH_BENEATH,
        BIDE_PATH_NO_SYMLINKS,
        BIDE_PATH_NO_MAGICLINKS,
        BIDE_PATH_IN_ROOT,
        BIDE_PATH_BENEATH | BIDE_PATH_NO_MAGICLINKS,
    };
    world *world = world_of(state);
    unsigned differ = 0;
    bide_descriptor proc;
    need_openat2();
    bide_descriptor_init(&proc, open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t j = 0; j < sizeof flags / sizeof *flags; j++) {
            for (size_t k = 0; k < sizeof restricted / sizeof *restricted; k++)
                differ += !is_same(world, &proc, names[i], flags[j], restricted[k], false);
        }
    }
    assert_int_equal(differ, 0);
    bide_close(&proc);
}

/* Mounts cannot be told apart without openat2, so such a root is refused. */
static void a_root_of_one_file_system_is_refused(void **state)
{
    world *world = world_of(state);
    bide_file_operation operation;
    bide_path_root root = {NULL, BIDE_PATH_NO_XDEV | BIDE_PATH_BENEATH};
    char text[8];
    assert_int_equal(world_wait(world, bide_readlink_at(&operation, &root, "missing", text, sizeof text)), -ENOSYS);
    root.resolve = BIDE_PATH_BENEATH | BIDE_PATH_IN_ROOT; /* neither with openat2 */
    assert_int_equal(world_wait(world, bide_readlink_at(&operation, &root, "missing", text, sizeof text)), -EINVAL);
}

static int begin_deep_tree(void **state)
{
    char path[200];
    int status = begin_tree(state);
    snprintf(path, sizeof path, "%.99s/tree", base);
    int at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i <= DEPTH; i++) {
        assert_int_equal(mkdirat(at, "n", 0755), 0);
        int next = openat(at, "n", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    close(at);
    renames_at = renames_left = 0;
    return status;
}

static int open_deep_tree(void)
{
    char path[200];
    snprintf(path, sizeof path, "%.99s/tree", base);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Each ".." enters the names above it again. A name is opened at most twice. */
static void a_walk_ends_after_a_number_of_names(void **state)
{
    (void)state;
    int root = open_deep_tree(), before = count_descriptors();
    assert_int_equal(walk_up(root, 90, BIDE_PATH_BENEATH), 0);
    assert_in_range(steps, 80000, 2 * NAMES_MAX);
    assert_int_equal(walk_up(root, 600, BIDE_PATH_BENEATH), -ELOOP);
    assert_in_range(steps, NAMES_MAX, 2 * NAMES_MAX);
    assert_int_equal(walk_up(root, 600, BIDE_PATH_IN_ROOT), -ELOOP);
    assert_in_range(steps, NAMES_MAX, 2 * NAMES_MAX);
    assert_int_equal(walk_up(root, 600, BIDE_PATH_NO_SYMLINKS), 0); /* the kernel goes up */
    assert_int_equal(count_descriptors(), before);
    close(root);
}

static void names_that_change_do_not_make_a_walk_longer(void **state)
{
    (void)state;
    int root = open_deep_tree(), before = count_descriptors();
    renames_at = 50;
    renames_left = 1; /* the second attempt finds the directory, if both have few names */
    assert_int_equal(walk_up(root, 50, BIDE_PATH_BENEATH), 0);
    assert_int_equal(renames_left, 0);
    renames_left = UINT_MAX; /* no attempt finds it */
    assert_int_equal(walk_up(root, 60, BIDE_PATH_BENEATH), -ELOOP);
    assert_in_range(steps, NAMES_MAX, 2 * NAMES_MAX);
    renames_at = 1;
    renames_left = UINT_MAX;
    assert_int_equal(walk_up(root, 1, BIDE_PATH_BENEATH), -ELOOP);
    assert_in_range(steps, NAMES_MAX, 2 * NAMES_MAX);
    assert_int_equal(count_descriptors(), before);
    close(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_path_leads_where_openat2_leads, begin_tree, end_tree),
        cmocka_unit_test_setup_teardown(the_working_directory_may_be_the_root, begin_tree, end_tree),
        cmocka_unit_test_setup_teardown(a_closed_root_is_reported, begin_tree, end_tree),
        cmocka_unit_test_setup_teardown(magic_links_lead_nowhere, begin_tree, end_tree),
        cmocka_unit_test_setup_teardown(a_root_of_one_file_system_is_refused, begin_tree, end_tree),
        cmocka_unit_test_setup_teardown(a_walk_ends_after_a_number_of_names, begin_deep_tree, end_tree),
        cmocka_unit_test_setup_teardown(names_that_change_do_not_make_a_walk_longer, begin_deep_tree, end_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
