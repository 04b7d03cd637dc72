/*
 * fetch's state of a partial download, NAME.part.from: loading any content gives what a second reader finds, and a state
 * that is saved is loaded again. The first two bytes of the input are the size of the part; the rest is the content. The
 * files are in memory.
 *
 * It is translated by bidec.
 */
#include "../../programs/fetch/tasks.h"

#include "fuzz.h"

#include <bide/memory_io.h>
#include <bide/sim_loop.h>

#include <errno.h>
#include <fcntl.h>

const unsigned fuzz_executions = 4000;
const char *const fuzz_words[] = {"http://example.org/file", "\n", "\"etag\"\n", "W/\"x\"", "Thu, 26 Nov 2026 17:00:00 GMT", " ", "\r\n",
                                  "http://", NULL};

static const char url[] = "http://example.org/file";

static struct fuzz {
    struct fetch fetch;
    struct worker worker;
    struct transfer transfer;
    const char *content;
    size_t content_size, part_size;
    char validator[256]; /* of the second reader; "": nothing is adopted */
} f;

async int write_file(const char *path, const char *data, size_t size)
{
    bide_descriptor file;
    bide_descriptor_init_closed(&file);
    defer bide_close(&file);
    try await bide_open(&file, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (size != 0)
        try await bide_write_at(&file, data, size, 0);
    return 0;
}

/* The state that the transfer has after a load, from nothing. */
async int load(void)
{
    memset(&f.transfer, 0, sizeof f.transfer);
    f.transfer.url = url;
    f.transfer.size = BIDE_HTTP_UNKNOWN;
    f.worker.is_saved = false;
    try await partial_load(&f.worker, &f.transfer);
    return 0;
}

static void check_load(const char *validator)
{
    bool is_adopted = validator[0] != '\0' && f.part_size != 0;
    FUZZ_REQUIRE(f.worker.is_saved == is_adopted);
    FUZZ_REQUIRE(strcmp(f.transfer.validator, is_adopted ? validator : "") == 0);
    FUZZ_REQUIRE(f.transfer.present == (is_adopted ? f.part_size : 0));
    FUZZ_REQUIRE(f.transfer.resumed == f.transfer.present);
}

async int run_files(void)
{
    static char zeros[65536];
    strcpy(f.worker.paths.target, "/tmp/fetch-fuzz");
    strcpy(f.worker.paths.part, "/tmp/fetch-fuzz.part");
    strcpy(f.worker.paths.origin, "/tmp/fetch-fuzz.part.from");
    try await load();
    check_load("");
    try await write_file(f.worker.paths.part, zeros, f.part_size);
    try await write_file(f.worker.paths.origin, f.content, f.content_size);
    try await load();
    check_load(f.validator);

    /* what was adopted is saved, and loaded */
    f.transfer.size = sizeof f.worker.buffer + 1;
    strcpy(f.transfer.validator, f.validator);
    try await partial_save(&f.worker, &f.transfer);
    FUZZ_REQUIRE(f.worker.is_saved == (f.validator[0] != '\0'));
    try await load();
    check_load(f.validator);
    try await partial_remove(&f.worker.paths);
    try await load();
    check_load("");
    return 0;
}

/* Two lines: the URL, and a validator. */
static void second_read(void)
{
    char text[4096];
    size_t size = f.content_size;
    memcpy(text, f.content, size);
    text[size] = '\0';
    f.validator[0] = '\0';
    char *end = strchr(text, '\n');
    if (end == NULL || (size_t)(end - text) != strlen(url) || strncmp(text, url, strlen(url)) != 0)
        return;
    char *validator = end + 1;
    end = strchr(validator, '\n');
    if (end == NULL || end - validator >= 256)
        return;
    *end = '\0';
    strcpy(f.validator, validator);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static async_frame(run_files) frame;
    bide_sim_loop loop;
    bide_memory_io *io;
    if (size < 2 || size > 2000)
        return 0;
    memset(&f, 0, sizeof f.fetch);
    f.part_size = (size_t)data[0] << 8 | data[1];
    f.content = (const char *)data + 2;
    f.content_size = size - 2;
    second_read();
    bide_sim_loop_init(&loop, 1);
    FUZZ_REQUIRE(bide_memory_io_create(&io, &loop, NULL) == 0);
    FUZZ_REQUIRE(bide_sim_loop_wait(&loop, async_run_files(&frame)) == 0);
    bide_memory_io_destroy(io);
    bide_sim_loop_destroy(&loop);
    return 0;
}
