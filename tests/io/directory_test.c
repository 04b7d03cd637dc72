/* Directories list each entry once, no matter how large the buffer is; and files can be mapped. */
#define _GNU_SOURCE
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILES = 100 };

static char directory_path[] = "/tmp/bide-directory-XXXXXX";

static void path_of(char *path, size_t size, int i)
{
    /* (names have different lengths) */
    snprintf(path, size, "%s/%.*s%d", directory_path, i % 40,
             "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", i);
}

static int make_directory(void **state)
{
    char path[128];
    (void)state;
    if (world_is("memory"))
        return 0; /* world_with_directory creates it */
    if (mkdtemp(directory_path) == NULL)
        return -1;
    for (int i = 0; i < FILES; i++) {
        path_of(path, sizeof path, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || close(fd) != 0)
            return -1;
    }
    return 0;
}

static void make_file(world *w, const char *path)
{
    bide_file_operation operation;
    bide_descriptor file;
    assert_int_equal(world_wait(w, bide_open(&operation, &file, path, O_WRONLY | O_CREAT, 0600)),
                     0);
    bide_close(&file);
}

/* The world of a test, with the directory. */
static world *world_with_directory(void **state)
{
    world *w = world_of(state);
    char path[128];
    world_make_directory(w, directory_path);
    for (int i = 0; i < FILES && w->memory != NULL; i++) {
        path_of(path, sizeof path, i);
        make_file(w, path);
    }
    return w;
}

static int remove_directory(void **state)
{
    char path[128];
    (void)state;
    if (world_is("memory"))
        return 0;
    for (int i = 0; i < FILES; i++) {
        path_of(path, sizeof path, i);
        unlink(path);
    }
    return rmdir(directory_path);
}

struct lister {
    bide_task task;
    bide_directory directory;
    bide_entry_operation next;
    char *buffer;
    size_t size;
    bide_descriptor *opened;
    int found[FILES];
    int total;
};

bide_coroutine(lister_body)
{
    bide_begin(lister_body, struct lister * self);
    bide_directory_init(&self->directory, self->opened, self->buffer, self->size);
    for (;;) {
        bide_try_or_break(bide_next_entry(&self->next, &self->directory));
        int number = atoi(self->next.name + strspn(self->next.name, "n"));
        assert_in_range(number, 0, FILES - 1);
        assert_true(self->next.type == DT_REG || self->next.type == DT_UNKNOWN);
        assert_true(self->next.inode != 0);
        self->found[number]++;
        self->total++;
    }
    bide_end();
}

static void open_directory(world *w, bide_descriptor *opened)
{
    bide_file_operation operation;
    assert_int_equal(
        world_wait(w, bide_open(&operation, opened, directory_path, O_RDONLY | O_DIRECTORY, 0)), 0);
}

static void each_entry_comes_once(void **state)
{
    static const size_t sizes[] = {280, 1000, 1 << 16};
    world *w = world_with_directory(state);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct lister lister = {.size = sizes[s], .buffer = malloc(sizes[s] + 1)};
        bide_descriptor opened;
        char *memory = lister.buffer++; /* (an unaligned address) */
        open_directory(w, &opened);
        lister.opened = &opened;
        assert_int_equal(world_wait(w, bide_task_init(&lister.task, &lister_body)), 0);
        assert_int_equal(lister.total, FILES);
        for (int i = 0; i < FILES; i++)
            assert_int_equal(lister.found[i], 1);
        bide_close(&opened);
        free(memory);
    }
}

/* A wait that is destroyed or cancelled loses no entry. */
static void a_wait_that_ends_early_loses_no_entry(void **state)
{
    world *w = world_with_directory(state);
    for (int round = 0; round < 60; round++) {
        struct lister lister = {.size = 0};
        static char buffer[1000];
        static struct runner runner;
        bide_descriptor opened;
        open_directory(w, &opened);
        lister.opened = &opened;
        lister.buffer = buffer;
        lister.size = sizeof buffer;
        bide_directory_init(&lister.directory, &opened, buffer, sizeof buffer);
        start(w, &runner, bide_next_entry(&lister.next, &lister.directory));
        if (round % 3 != 0)
            turn(w);
        destroy(w, &runner);
        if (runner.has_ended) {
            assert_int_equal(runner.status, 0);
            assert_true(lister.directory.end != 0);
            bide_close(&opened); /* from the start again */
            open_directory(w, &opened);
        }
        assert_int_equal(world_wait(w, bide_task_init(&lister.task, &lister_body)), 0);
        assert_int_equal(lister.total, FILES);
        bide_close(&opened);
    }
}

/* The longest possible name, and the smallest buffer: "." and ".." are in it first. */
static void the_longest_name_fits(void **state)
{
    world *w = world_with_directory(state);
    char path[512], name[256];
    bide_file_operation operation;
    bide_directory directory;
    bide_entry_operation next;
    bide_descriptor opened;
    char buffer[280];
    int length = snprintf(path, sizeof path, "%s/inner", directory_path);
    memset(name, 'x', 255);
    name[255] = '\0';
    assert_int_equal(world_wait(w, bide_make_directory(&operation, path, 0700)), 0);
    snprintf(path + length, sizeof path - (size_t)length, "/%s", name);
    make_file(w, path);
    path[length] = '\0';
    assert_int_equal(world_wait(w, bide_open(&operation, &opened, path, O_RDONLY, 0)), 0);
    bide_directory_init(&directory, &opened, buffer, sizeof buffer);
    assert_int_equal(world_wait(w, bide_next_entry(&next, &directory)), 0);
    assert_string_equal(next.name, name);
    assert_int_equal(world_wait(w, bide_next_entry(&next, &directory)), -EPIPE);
    bide_close(&opened);
    path[length] = '/';
    assert_int_equal(world_wait(w, bide_unlink(&operation, path, 0)), 0);
    path[length] = '\0';
    assert_int_equal(world_wait(w, bide_unlink(&operation, path, AT_REMOVEDIR)), 0);
}

static void errors_are_those_of_the_system(void **state)
{
    world *w = world_with_directory(state);
    bide_file_operation operation;
    bide_entry_operation next;
    bide_directory directory;
    bide_descriptor file;
    char buffer[280], path[128];
    path_of(path, sizeof path, 0);
    assert_int_equal(world_wait(w, bide_open(&operation, &file, path, O_RDWR, 0)), 0);
    bide_directory_init(&directory, &file, buffer, sizeof buffer);
    assert_int_equal(world_wait(w, bide_next_entry(&next, &directory)), -ENOTDIR);
    assert_int_equal(world_wait(w, bide_map_file(&operation, &file, 1, 10, PROT_READ, MAP_PRIVATE)),
                     world_is("memory") ? -ENOTSUP : -EINVAL);
    bide_close(&file);
    assert_int_equal(world_wait(w, bide_next_entry(&next, &directory)), -EBADF);
    assert_int_equal(world_wait(w, bide_map_file(&operation, &file, 0, 10, PROT_READ, MAP_PRIVATE)),
                     -EBADF);
}

static void a_file_is_mapped(void **state)
{
    enum { SIZE = 1 << 16 };
    world *w = world_of_the_system(state, "memory maps no files");
    bide_file_operation operation, advice;
    bide_descriptor file;
    unsigned char resident[SIZE / 4096];
    char path[128];
    path_of(path, sizeof path, 1);
    assert_int_equal(world_wait(w, bide_open(&operation, &file, path, O_RDWR | O_TRUNC, 0)), 0);
    assert_int_equal(world_wait(w, bide_truncate(&operation, &file, SIZE)), 0);
    assert_int_equal(world_wait(w, bide_write_at(&operation, &file, "hello", 5, SIZE - 5)), 0);
    assert_int_equal(world_wait(w, bide_map_file(&operation, &file, 0, SIZE, PROT_READ | PROT_WRITE,
                                                 MAP_SHARED)),
                     0);
    char *at = operation.operation.arguments.map.at;
    assert_non_null(at);
    int status = world_wait(w, bide_prefault(&advice, at, SIZE, true));
    assert_true(status == 0 || status == -EINVAL);
    if (status == 0 && getenv("MESON_EXE_WRAPPER") == NULL) { /* (QEMU does not report missing pages) */
        assert_int_equal(mincore(at, SIZE, resident), 0);
        for (int i = 0; i < SIZE / 4096; i++)
            assert_true((resident[i] & 1) != 0);
    }
    assert_memory_equal(at + SIZE - 5, "hello", 5);
    memcpy(at, "there", 5);
    char buffer[5];
    assert_int_equal(world_wait(w, bide_read_at(&advice, &file, buffer, 5, 0)), 0);
    assert_memory_equal(buffer, "there", 5);
    assert_int_equal(munmap(at, SIZE), 0);
    bide_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(each_entry_comes_once), world_test(a_wait_that_ends_early_loses_no_entry),
        world_test(the_longest_name_fits), world_test(errors_are_those_of_the_system),
        world_test(a_file_is_mapped),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
