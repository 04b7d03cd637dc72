/*
 * Random reads of 4 KB with bare io_uring: one thread keeps DEPTH of them in flight for some
 * seconds.
 *
 *   file_raw_uring FILE DIRECT DEPTH SECONDS prints reads per second.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { BLOCK = 4096, MAX_DEPTH = 1024 };

static struct io_uring ring;
static char *buffers;
static int file;
static uint64_t blocks, state = 1;

static _Noreturn void fail(const char *what, int error)
{
    fprintf(stderr, "file_raw_uring: %s: %s\n", what, strerror(error));
    exit(1);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t draw(void)
{
    state = state * 6364136223846793005 + 1442695040888963407;
    return state >> 33;
}

static void begin_read(uint64_t index)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    io_uring_prep_read(sqe, file, buffers + index * BLOCK, BLOCK, draw() % blocks * BLOCK);
    io_uring_sqe_set_data64(sqe, index);
}

int main(int argc, char **argv)
{
    struct stat status;
    if (argc != 5) {
        fprintf(stderr, "usage: file_raw_uring FILE DIRECT DEPTH SECONDS\n");
        return 2;
    }
    int depth = atoi(argv[3]);
    file = open(argv[1], O_RDONLY | O_CLOEXEC | (atoi(argv[2]) ? O_DIRECT : 0));
    if (file < 0 || fstat(file, &status) != 0)
        fail(argv[1], errno);
    blocks = (uint64_t)status.st_size / BLOCK;
    if (blocks == 0 || depth < 1 || depth > MAX_DEPTH)
        fail("arguments", EINVAL);
    buffers = aligned_alloc(BLOCK, (size_t)depth * BLOCK);
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                              IORING_SETUP_DEFER_TASKRUN |
                                              IORING_SETUP_TASKRUN_FLAG};
    int made = io_uring_queue_init_params((unsigned)depth, &ring, &params);
    if (made < 0 || buffers == NULL)
        fail("io_uring", made < 0 ? -made : ENOMEM);
    io_uring_register_ring_fd(&ring);

    uint64_t begun = now(), until = begun + (uint64_t)(atof(argv[4]) * 1e9), ended = 0, at;
    for (int i = 0; i < depth; i++)
        begin_read((uint64_t)i);
    while ((at = now()) < until) {
        io_uring_submit_and_wait(&ring, 1);
        struct io_uring_cqe *cqe;
        unsigned head, count = 0;
        io_uring_for_each_cqe(&ring, head, cqe)
        {
            if (cqe->res != BLOCK)
                fail("read", cqe->res < 0 ? -cqe->res : EIO);
            begin_read(cqe->user_data);
            count++;
        }
        io_uring_cq_advance(&ring, count);
        ended += count;
    }
    printf("%.0f\n", (double)ended * 1e9 / (double)(at - begun));
    return 0;
}
