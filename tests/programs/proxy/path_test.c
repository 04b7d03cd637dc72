/*
 * The normal form of paths (programs/proxy/path.c): a table, and random paths beside the library's URLs, which resolve
 * dot segments, too.
 */
#define _GNU_SOURCE
#include "../../../programs/proxy/path.h"
#include "testing.h"

#include <bide/http_url.h>

#include <errno.h>

enum { MAX_PATH = 64 };

/* The normal form, in memory of exactly the path's size; NULL: it has none. */
static char *normal_of(const char *path)
{
    static char result[MAX_PATH];
    size_t size = strlen(path), normal_size = SIZE_MAX;
    char *copy = malloc(size + 1), *out = malloc(size + 1);
    assert_true(copy != NULL && out != NULL && size < MAX_PATH);
    memcpy(copy, path, size);
    int status = path_normalize((bide_slice){copy, size}, out, &normal_size);
    assert_true(status == 0 || status == -EINVAL);
    if (status == 0) {
        assert_true(normal_size <= size);
        memcpy(result, out, normal_size);
        result[normal_size] = '\0';
    }
    free(copy);
    free(out);
    return status == 0 ? result : NULL;
}

/* The library's reading of the path, relative to a server. */
static const char *resolved(const char *path)
{
    static char url[MAX_PATH + 16];
    bide_http_url base;
    assert_int_equal(bide_http_url_parse(&base, "http://a", 8), 0);
    if (bide_http_url_resolve(&base, (bide_slice){path, strlen(path)}, url, sizeof url) != 0)
        return NULL;
    return url + 8;
}

static void each_path_has_its_normal_form(void **state)
{
    (void)state;
    static const struct {
        const char *path, *normal; /* NULL: none */
    } rows[] = {
        {"", ""},
        {"*", "*"},
        {"/", "/"},
        {"/a", "/a"},
        {"/a/", "/a/"},
        {"/a/b.c", "/a/b.c"},
        /* escapes */
        {"/%61dmin", "/admin"},
        {"/%41", "/A"},
        {"/a%2Db%2e%5f%7E", "/a-b._~"},
        {"/a%20b", "/a b"},
        {"/%c3%A9", "/\xc3\xa9"},
        {"/a%21", "/a!"},
        {"/a%3Fb", "/a?b"},
        {"/a%25", "/a%"},
        {"/a%252fb", "/a%2fb"},
        {"/%", NULL},
        {"/%4", NULL},
        {"/%4/", NULL},
        {"/%4g", NULL},
        {"/%g4", NULL},
        {"/%%41", NULL},
        {"/% 41", NULL},
        {"/%+1", NULL},
        /* separators, and bytes that end texts */
        {"/a%2fb", NULL},
        {"/a%2Fb", NULL},
        {"/%2f", NULL},
        {"/a\\b", NULL},
        {"/a%5cb", NULL},
        {"/a%5Cb", NULL},
        {"/a%00", NULL},
        {"/%00/a", NULL},
        {"/a%0a", NULL},
        {"/a%1f", NULL},
        {"/a%7f", NULL},
        /* slashes */
        {"//", "/"},
        {"//a", "/a"},
        {"/a//b", "/a/b"},
        {"/a///b//", "/a/b/"},
        /* dot segments */
        {"/.", "/"},
        {"/..", "/"},
        {"/./a", "/a"},
        {"/a/.", "/a/"},
        {"/a/..", "/"},
        {"/a/b/..", "/a/"},
        {"/a/../b", "/b"},
        {"/a/./../b/./c/..", "/b/"},
        {"/../../a", "/a"},
        {"/a/../../b", "/b"},
        {"/a/..//b", "/b"},
        {"/a/.//b", "/a/b"},
        {"/.a", "/.a"},
        {"/..a", "/..a"},
        {"/a..", "/a.."},
        {"/...", "/..."},
        {"/a/%2e%2e%2e", "/a/..."},
        {"/%2ea", "/.a"},
        {"/a//..", NULL},
        {"//../a", NULL},
        {"/a//b/../..", NULL},
        {"/%2e", NULL},
        {"/%2e%2e", NULL},
        {"/a/.%2e/b", NULL},
        {"/a/%2E./b", NULL},
        /* parameters */
        {"/a;b/c", "/a;b/c"},
        {"/;a", "/;a"},
        {"/...;a", "/...;a"},
        {"/a/..;/b", NULL},
        {"/a/..;x=1/b", NULL},
        {"/a/..%3b/b", NULL},
        {"/a/.;", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *normal = normal_of(rows[i].path);
        if ((normal == NULL) != (rows[i].normal == NULL))
            fail_msg("'%s' has the normal form '%s'", rows[i].path,
                     normal != NULL ? normal : "none");
        if (normal != NULL)
            assert_string_equal(normal, rows[i].normal);
    }
}

static void draw_path(char *path, uint64_t *draw, const char *const *parts, size_t count)
{
    *path = '\0';
    do {
        *draw = *draw * UINT64_C(6364136223846793005) + 1442695040888963407;
        strcat(path, "/");
        strcat(path, parts[(*draw >> 33) % count]);
    } while ((*draw >> 50) % 8 != 0 && strlen(path) < MAX_PATH - 16);
}

static void dot_segments_are_resolved_as_by_the_library(void **state)
{
    (void)state;
    static const char *const parts[] = {"a", "b", ".", "..", "...", ".a", "a.", "c;d"};
    uint64_t draw = testing_seed();
    for (int i = 0; i < 100000; i++) {
        char path[MAX_PATH];
        draw_path(path, &draw, parts, sizeof parts / sizeof parts[0]);
        const char *normal = normal_of(path);
        assert_non_null(normal);
        assert_string_equal(normal, resolved(path));
    }
}

/* It begins with a slash, has no empty and no dot segment, and is its own normal form unless it has a "%" or the like. */
static void a_normal_form_has_nothing_left_to_resolve(void **state)
{
    (void)state;
    static const char *const parts[] = {"",    "a",    ".",      "..",  "%2e", "%2E.", "%61", "%2f",
                                        "%zz", "..;a", "%20%41", "b\\", "",    "c%",   "..."};
    uint64_t draw = testing_seed();
    int normals = 0;
    for (int i = 0; i < 100000; i++) {
        char path[MAX_PATH], copy[MAX_PATH];
        draw_path(path, &draw, parts, sizeof parts / sizeof parts[0]);
        const char *normal = normal_of(path);
        if (normal == NULL)
            continue;
        normals++;
        strcpy(copy, normal);
        assert_int_equal(copy[0], '/');
        assert_null(strstr(copy, "//"));
        assert_null(strstr(copy, "/./"));
        assert_null(strstr(copy, "/../"));
        assert_null(strpbrk(copy, "%\\"));
        normal = normal_of(copy);
        assert_non_null(normal);
        assert_string_equal(normal, copy);
    }
    assert_true(normals > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_path_has_its_normal_form),
        cmocka_unit_test(dot_segments_are_resolved_as_by_the_library),
        cmocka_unit_test(a_normal_form_has_nothing_left_to_resolve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
