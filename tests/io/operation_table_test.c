/*
 * The operation table: every code has a complete row in it and in the tables of the back ends, and operations
 * behave as their rows state: on epoll, on io_uring (if available) and in memory.
 */
#define _GNU_SOURCE
#include "world.h"

#include "bide/directory.h"

#include "../../src/io/operation.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* ---- Rows ---- */

static void every_code_has_a_complete_row(void **state)
{
    (void)state;
    for (int code = 0; code < BIDE_IO_CODES; code++) {
        const bide_io_row_ *row = &bide_io_rows_[code];
        assert_non_null(row->name);
        print_message("# %s\n", row->name);
        assert_int_not_equal(row->name[0], '\0');
        assert_true(row->direction < BIDE_IO_LINES);
        if (row->start == IO_START_BY_BACK_END)
            assert_null(row->call);
        else
            assert_non_null(row->call);
        assert_true(bide_uring_has_row_((bide_io_code)code));
        assert_true(bide_sim_has_row_((bide_io_code)code));
    }
}

static void names_are_unique(void **state)
{
    (void)state;
    for (int one = 0; one < BIDE_IO_CODES; one++) {
        for (int other = 0; other < one; other++)
            assert_string_not_equal(bide_io_rows_[one].name, bide_io_rows_[other].name);
    }
}

static void columns_agree_with_each_other(void **state)
{
    (void)state;
    for (int code = 0; code < BIDE_IO_CODES; code++) {
        const bide_io_row_ *row = &bide_io_rows_[code];
        print_message("# %s\n", row->name);
        if (row->opens != IO_OPENS_NOTHING) /* nobody else closes it */
            assert_non_null(row->release);
        if (row->start == IO_START_OPENS || row->start == IO_START_AT_ONCE)
            assert_int_equal(row->opens, IO_OPENS_OWN);
        if (row->blocks == IO_BLOCKS_ALWAYS)
            assert_int_equal(row->direction, BIDE_IO_FREE);
        if (row->is_positioned) {
            assert_int_not_equal(row->direction, BIDE_IO_FREE);
            assert_true(row->shape == IO_SHAPE_BYTES || row->shape == IO_SHAPE_VECTOR);
        }
        if (row->is_tried_first)
            assert_int_equal(row->blocks, IO_BLOCKS_NEVER);
        if (row->empties_when_short)
            assert_int_equal(row->direction, BIDE_IO_INPUT);
        if (row->result == IO_RESULT_CONNECTION || row->result == IO_RESULT_FILE)
            assert_int_equal(row->opens, IO_OPENS_OTHER);
    }
}

/* ---- A coroutine that awaits one operation, and its observed results ---- */

enum { SIZE = 16, LARGE = 4 << 20 };

typedef struct fixture {
    world *world;
    bide_descriptor one, other, file;
    bide_io_operation plain;
    bide_file_operation blocking;
    bide_entry_operation entry;
    bide_io_operation *operation; /* that is observed: one of these */
    bide_buffer_pool pool;
    bide_receiver receiver;
    bide_directory directory;
    struct msghdr header;
    bide_message batch;
    struct iovec vector;
    struct stat about;
    struct statx more;
    struct statfs system;
    char buffers[4 * SIZE], bytes[SIZE], entries[1024], path[64], name[80], other_name[80];
    char third[80], linked[80], link[80], text[4096];
    char *large;
    void *map;

    struct coroutine {
        bide_task task;
        struct fixture *fixture;
    } awaiting, probing;
    bide_awaiter *awaiter;
    bide_stop_source stop;
    bide_context context;
    bide_event ended;
    bide_event_waiter wait;
    int status, ignored;
    bool cancels, has_ended;

    bool ended_at_once;
    unsigned state; /* of the operation while it waits */
    int direction;  /* the line that it is the first of; -1: none */
} fixture;

bide_coroutine(awaiting_body)
{
    bide_begin(awaiting_body, struct coroutine * self);
    bide_await_status(self->fixture->status, self->fixture->awaiter);
    self->fixture->has_ended = true;
    bide_event_set(&self->fixture->ended);
    bide_end();
}

static void look(fixture *f)
{
    f->ended_at_once = f->has_ended;
    f->state = f->operation->state;
    f->direction = -1;
    for (int i = 0; i < BIDE_IO_LINES && f->operation->descriptor != NULL; i++) {
        if (f->operation->descriptor->lines[i].first == f->operation)
            f->direction = i;
    }
}

bide_coroutine(probing_body)
{
    bide_begin(probing_body, struct coroutine * self);
    fixture *f = self->fixture;
    bide_start(&f->awaiting.task.frame, &awaiting_body, &f->context);
    bide_resume(&f->awaiting.task.frame);
    look(f);
    if (f->cancels)
        bide_stop_request(&f->stop);
    bide_await_status(self->fixture->ignored,
                      bide_event_wait(&self->fixture->wait, &self->fixture->ended));
    bide_end();
}

/* Awaits it on the world, and inspects it when its begin has returned. Returns its status. */
static int observe(fixture *f, bide_awaiter *awaiter, bool cancels)
{
    f->awaiter = awaiter;
    f->cancels = cancels;
    f->has_ended = false;
    f->awaiting.fixture = f->probing.fixture = f;
    bide_event_init(&f->ended, false);
    bide_stop_source_init(&f->stop);
    f->context = *f->world->context;
    f->context.stop = &f->stop;
    assert_int_equal(world_wait(f->world, bide_task_init(&f->probing.task, &probing_body)), 0);
    assert_int_equal(f->operation->state, 0);
    return f->status;
}

/* ---- Operations on a socket ---- */

static bide_awaiter *on_socket(fixture *f, int code)
{
    memset(&f->header, 0, sizeof f->header);
    f->vector = (struct iovec){f->bytes, SIZE};
    f->header.msg_iov = &f->vector;
    f->header.msg_iovlen = 1;
    f->batch.header = f->header;
    f->operation = &f->plain;
    switch (code) {
    case BIDE_IO_RECV:
        return bide_recv(&f->plain, &f->one, f->bytes, SIZE);
    case BIDE_IO_RECVMSG:
        return bide_recvmsg(&f->plain, &f->one, &f->header, 0);
    case BIDE_IO_RECV_PROVIDED:
        return bide_recv_provided(&f->plain, &f->one, &f->pool);
    case BIDE_IO_RECV_NEXT:
        f->operation = &f->receiver.next;
        bide_receiver_init(&f->receiver, &f->one, &f->pool, 1);
        return bide_receiver_next(&f->receiver);
    case BIDE_IO_RECV_BATCH:
        return bide_recv_batch(&f->plain, &f->one, &f->batch, 1);
    case BIDE_IO_POLL:
        return bide_poll(&f->plain, &f->one, POLLIN);
    case BIDE_IO_SEND:
        return bide_send(&f->plain, &f->one, f->bytes, SIZE);
    case BIDE_IO_SENDMSG:
        return bide_sendmsg(&f->plain, &f->one, &f->header, 0);
    case BIDE_IO_SEND_BATCH:
        return bide_send_batch(&f->plain, &f->one, &f->batch, 1);
    case BIDE_IO_SEND_ZERO_COPY:
        return bide_send_zero_copy(&f->plain, &f->one, f->bytes, SIZE);
    default:
        break;
    }
    f->operation = &f->blocking.operation;
    switch (code) {
    case BIDE_IO_READ:
        return bide_read(&f->blocking, &f->one, f->bytes, SIZE);
    case BIDE_IO_READ_VECTOR:
        return bide_readv(&f->blocking, &f->one, &f->vector, 1, -1);
    case BIDE_IO_WRITE:
        return bide_write(&f->blocking, &f->one, f->bytes, SIZE);
    case BIDE_IO_WRITE_VECTOR:
        return bide_writev(&f->blocking, &f->one, &f->vector, 1, -1);
    default:
        return NULL;
    }
}

static void open_pair(fixture *f)
{
    bide_io_operation pair;
    assert_int_equal(world_wait(f->world, bide_socket_pair(&pair, &f->one, &f->other)), 0);
    bide_buffer_pool_init(&f->pool, f->buffers, SIZE, 4);
}

static void close_pair(fixture *f)
{
    bide_close(&f->one);
    bide_close(&f->other);
    bide_buffer_pool_destroy(&f->pool);
}

/* `one` takes no more bytes. */
static void fill(fixture *f)
{
    f->operation = &f->plain;
    f->large = calloc(1, LARGE);
    assert_non_null(f->large);
    assert_int_equal(observe(f, bide_send(&f->plain, &f->one, f->large, LARGE), true), -ECANCELED);
    free(f->large);
}

/* (the ring receives for it, and so before any other operation) */
static void end_receiver(fixture *f, int code)
{
    bool has_stream = (f->receiver.stream.state & IO_IN_RING) != 0;
    if (code != BIDE_IO_RECV_NEXT)
        return;
    assert_true(!has_stream || world_is("uring"));
    bide_receiver_destroy(&f->receiver);
    assert_int_equal(f->receiver.stream.state, 0);
}

static void waits_in_its_line(fixture *f, int code)
{
    const bide_io_row_ *row = &bide_io_rows_[code];
    bide_awaiter *awaiter = on_socket(f, code);
    if (awaiter == NULL)
        return;
    print_message("# %s\n", row->name);
    assert_int_equal(f->operation->code, code);
    assert_int_equal(bide_io_direction(f->operation), row->direction);
    assert_int_equal(observe(f, awaiter, true), -ECANCELED);
    assert_false(f->ended_at_once);
    assert_true((f->state & IO_WAITING) != 0);
    assert_int_equal(f->state & IO_OFFLOADED, 0);
    assert_int_equal(f->direction, row->direction);
    assert_null(f->one.lines[row->direction].first);
    if (code == BIDE_IO_RECV_NEXT &&
        f->pool.ring != NULL) /* the stream is in the ring in its place */
        assert_int_equal(f->state & IO_IN_RING, 0);
    end_receiver(f, code);
}

static void an_operation_waits_in_the_line_of_its_row(void **state)
{
    fixture f = {.world = world_of(state)};
    open_pair(&f);
    fill(&f);
    for (int code = 0; code < BIDE_IO_CODES; code++)
        waits_in_its_line(&f, code);
    close_pair(&f);
}

/* An operation that could be done at once. */
static void is_tried(fixture *f, int code)
{
    const bide_io_row_ *row = &bide_io_rows_[code];
    bide_io_operation send;
    bide_awaiter *awaiter = on_socket(f, code);
    bool waits_for_completions = world_is("uring") || world_is("uring-polls");
    if (awaiter == NULL)
        return;
    print_message("# %s\n", row->name);
    if (row->direction != BIDE_IO_OUTPUT)
        assert_int_equal(world_wait(f->world, bide_send(&send, &f->other, "x", 1)), 0);
    assert_int_equal(observe(f, awaiter, false), 0);
    assert_int_equal(f->ended_at_once, row->is_tried_first || !waits_for_completions);
    if (code == BIDE_IO_RECV_PROVIDED)
        bide_buffer_release(&f->pool, f->plain.arguments.provided.data);
    if (code == BIDE_IO_RECV_NEXT)
        bide_buffer_release(&f->pool, bide_receiver_data(&f->receiver));
    end_receiver(f, code);
    if (code == BIDE_IO_POLL)
        assert_int_equal(world_wait(f->world, bide_recv(&f->plain, &f->one, f->bytes, SIZE)), 0);
}

static void only_operations_that_are_tried_first_end_at_once_on_a_ring(void **state)
{
    fixture f = {.world = world_of(state)};
    open_pair(&f);
    for (int code = 0; code < BIDE_IO_CODES; code++)
        is_tried(&f, code);
    close_pair(&f);
}

/* ---- Results that are undone ---- */

/* Its memory says that a descriptor was received. But it has not begun in the kernel: nothing is closed. */
static void an_operation_that_waits_behind_another_gives_nothing_back(void **state)
{
    fixture f = {.world = world_of(state)};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct coroutine first = {.fixture = &f};
    bide_io_operation receive;
    open_pair(&f);
    on_socket(&f, BIDE_IO_RECVMSG);
    f.header.msg_control = control.bytes;
    f.header.msg_controllen = sizeof control.bytes;
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &(int){bide_descriptor_fd(&f.other)}, sizeof(int));

    bide_start(&first.task.frame, &awaiting_body, f.world->context);
    f.awaiter = bide_recv(&receive, &f.one, f.bytes, SIZE);
    bide_event_init(&f.ended, false);
    bide_resume(&first.task.frame);
    f.awaiting.fixture = &f;
    bide_start(&f.awaiting.task.frame, &awaiting_body, f.world->context);
    f.awaiter = bide_recvmsg(&f.plain, &f.one, &f.header, 0);
    bide_resume(&f.awaiting.task.frame);
    assert_true(f.one.lines[BIDE_IO_INPUT].last == &f.plain);
    bide_destroy(&f.awaiting.task.frame);
    assert_true(f.one.lines[BIDE_IO_INPUT].last == &receive);
    bide_destroy(&first.task.frame);

    f.operation = &f.plain;
    assert_int_equal(observe(&f, bide_send(&f.plain, &f.other, "x", 1), false), 0);
    close_pair(&f);
}

/* ---- Operations on files ---- */

static bide_awaiter *on_file(fixture *f, int code)
{
    f->operation = &f->blocking.operation;
    f->vector = (struct iovec){f->bytes, SIZE};
    switch (code) {
    case BIDE_IO_READ:
        return bide_read_at(&f->blocking, &f->file, f->bytes, SIZE, 0);
    case BIDE_IO_WRITE:
        return bide_write_at(&f->blocking, &f->file, f->bytes, SIZE, 0);
    case BIDE_IO_READ_VECTOR:
        return bide_readv(&f->blocking, &f->file, &f->vector, 1, 0);
    case BIDE_IO_WRITE_VECTOR:
        return bide_writev(&f->blocking, &f->file, &f->vector, 1, 0);
    case BIDE_IO_OPEN:
        return bide_open(&f->blocking, &f->one, f->name, O_RDONLY, 0);
    case BIDE_IO_SYNC:
        return bide_sync(&f->blocking, &f->file, BIDE_SYNC_DATA);
    case BIDE_IO_ALLOCATE:
        return bide_allocate(&f->blocking, &f->file, 0, 0, 4096);
    case BIDE_IO_TRUNCATE:
        return bide_truncate(&f->blocking, &f->file, 4096);
    case BIDE_IO_STAT:
        return bide_stat(&f->blocking, &f->file, &f->about);
    case BIDE_IO_RENAME:
        return bide_rename(&f->blocking, f->name, f->other_name);
    case BIDE_IO_UNLINK:
        return bide_unlink(&f->blocking, f->other_name, 0);
    case BIDE_IO_MAKE_DIRECTORY:
        return bide_make_directory(&f->blocking, f->name, 0700);
    case BIDE_IO_LINK:
        return bide_link_at(&f->blocking, NULL, f->third, NULL, f->linked, 0);
    case BIDE_IO_SYMLINK:
        return bide_symlink_at(&f->blocking, "third", NULL, f->link);
    case BIDE_IO_READLINK:
        return bide_readlink_at(&f->blocking, NULL, f->link, f->text, sizeof f->text);
    case BIDE_IO_REALPATH:
        return bide_realpath_at(&f->blocking, NULL, f->third, f->text, sizeof f->text);
    case BIDE_IO_STATX:
        return bide_statx_at(&f->blocking, NULL, f->third, 0, STATX_SIZE, &f->more);
    case BIDE_IO_STATFS:
        return bide_statfs_at(&f->blocking, NULL, f->third, &f->system);
    case BIDE_IO_CHMOD:
        return bide_chmod_at(&f->blocking, NULL, f->third, 0640, 0);
    case BIDE_IO_CHOWN:
        return bide_chown_at(&f->blocking, NULL, f->third, (uid_t)-1, (gid_t)-1, 0);
    case BIDE_IO_UTIMES:
        return bide_utimes_at(&f->blocking, NULL, f->third, NULL, 0);
    case BIDE_IO_OPEN_TEMPORARY:
        return bide_open_temporary(&f->blocking, &f->one, NULL, f->path, 0, 0600);
    case BIDE_IO_READ_DIRECTORY:
        f->operation = &f->entry.file.operation;
        bide_directory_init(&f->directory, &f->other, f->entries, sizeof f->entries);
        return bide_next_entry(&f->entry, &f->directory);
    case BIDE_IO_MAP:
        return bide_map_file(&f->blocking, &f->file, 0, 4096, PROT_READ, MAP_PRIVATE);
    case BIDE_IO_PREFAULT:
        return bide_prefault(&f->blocking, f->map, 4096, false);
    default:
        return NULL;
    }
}

/* The io in memory has no such thing: its row fails. */
static bool is_not_in_memory(int code)
{
    return code == BIDE_IO_MAP || code == BIDE_IO_PREFAULT || code == BIDE_IO_SYMLINK ||
           code == BIDE_IO_REALPATH || code == BIDE_IO_STATFS || code == BIDE_IO_CHOWN ||
           code == BIDE_IO_UTIMES;
}

/* A ring has no entry for it. */
static bool is_not_in_a_ring(int code)
{
    return code == BIDE_IO_READLINK || code == BIDE_IO_REALPATH || code == BIDE_IO_STATFS ||
           code == BIDE_IO_CHMOD || code == BIDE_IO_CHOWN || code == BIDE_IO_UTIMES ||
           code == BIDE_IO_COPY_RANGE || code == BIDE_IO_READ_DIRECTORY || code == BIDE_IO_MAP ||
           code == BIDE_IO_PREFAULT;
}

static void may_block_as_its_row_says(fixture *f, int code)
{
    const bide_io_row_ *row = &bide_io_rows_[code];
    bide_awaiter *awaiter = on_file(f, code);
    if (awaiter == NULL)
        return;
    print_message("# %s\n", row->name);
    assert_int_equal(f->operation->code, code);
    assert_int_not_equal(row->blocks, IO_BLOCKS_NEVER);
    assert_int_equal(bide_io_direction(f->operation), BIDE_IO_FREE);
    int status = observe(f, awaiter, false);
    if (code == BIDE_IO_READLINK && world_is("memory")) {
        assert_int_equal(status, -ENOENT);
        return;
    }
    if (is_not_in_memory(code) && world_is("memory")) {
        assert_int_equal(status, -ENOTSUP);
        return;
    }
    assert_true(status == 0 ||
                (code == BIDE_IO_PREFAULT && status == -EINVAL)); /* (an older kernel) */
    assert_false(f->ended_at_once);
    if (world_is("memory"))
        assert_true((f->state & IO_IS_FILE_JOB) != 0);
    else if (world_is_by_readiness())
        assert_true((f->state & IO_OFFLOADED) != 0);
    else if (code == BIDE_IO_TRUNCATE) /* (an older kernel has it in no ring) */
        assert_true((f->state & (IO_OFFLOADED | IO_IN_RING)) != 0);
    else
        assert_int_equal(f->state & (IO_OFFLOADED | IO_IN_RING),
                         is_not_in_a_ring(code) ? IO_OFFLOADED : IO_IN_RING);
    if (code == BIDE_IO_MAP)
        f->map = f->operation->arguments.map.at;
    if (code == BIDE_IO_OPEN || code == BIDE_IO_OPEN_TEMPORARY)
        bide_close(&f->one);
}

/* An open under a restricted root, and a statx of the root itself: no thread is needed. */
static void is_one_call_of_the_ring(fixture *f)
{
    bide_path_root root = {&f->other, BIDE_PATH_BENEATH};
    bide_path_root itself = {.directory = &f->other};
    bool is_ring = world_is("uring") || world_is("uring-polls");
    f->operation = &f->blocking.operation;
    int status =
        observe(f, bide_open_at(&f->blocking, &f->one, &root, "third", O_RDONLY, 0), false);
    assert_true(status == 0 || status == -ENOSYS); /* (an older kernel) */
    if (is_ring)
        assert_int_equal(f->state & (IO_OFFLOADED | IO_IN_RING), IO_IN_RING);
    assert_int_equal(bide_descriptor_is_open(&f->one), status == 0);
    bide_close(&f->one);
    assert_int_equal(
        observe(f, bide_statx_at(&f->blocking, &itself, "", 0, STATX_BASIC_STATS, &f->more), false),
        0);
    if (is_ring)
        assert_int_equal(f->state & (IO_OFFLOADED | IO_IN_RING), IO_IN_RING);
    assert_true(S_ISDIR(f->more.stx_mode));
}

static void an_operation_on_a_file_does_not_block_the_loop(void **state)
{
    fixture f = {.world = world_of(state)};
    bide_file_operation open;
    bide_descriptor_init_closed(&f.one);
    strcpy(f.path, "/tmp/bide-operation-table-XXXXXX");
    if (world_is("memory"))
        assert_int_equal(world_wait(f.world, bide_make_directory(&open, f.path, 0700)), 0);
    else
        assert_non_null(mkdtemp(f.path));
    snprintf(f.name, sizeof f.name, "%s/one", f.path);
    snprintf(f.other_name, sizeof f.other_name, "%s/other", f.path);
    snprintf(f.third, sizeof f.third, "%s/third", f.path);
    snprintf(f.linked, sizeof f.linked, "%s/linked", f.path);
    snprintf(f.link, sizeof f.link, "%s/link", f.path);
    assert_int_equal(
        world_wait(f.world, bide_open(&open, &f.file, f.third, O_RDWR | O_CREAT, 0600)), 0);
    bide_close(&f.file);
    assert_int_equal(world_wait(f.world, bide_open(&open, &f.file, f.name, O_RDWR | O_CREAT, 0600)),
                     0);
    assert_int_equal(
        world_wait(f.world, bide_open(&open, &f.other, f.path, O_RDONLY | O_DIRECTORY, 0)), 0);
    for (int code = 0; code < BIDE_IO_CODES; code++)
        may_block_as_its_row_says(&f, code);
    is_one_call_of_the_ring(&f);
    if (f.map != NULL)
        munmap(f.map, 4096);
    assert_int_equal(world_wait(f.world, bide_unlink(&open, f.name, AT_REMOVEDIR)), 0);
    assert_int_equal(world_wait(f.world, bide_unlink(&open, f.third, 0)), 0);
    assert_int_equal(world_wait(f.world, bide_unlink(&open, f.linked, 0)), 0);
    if (!world_is("memory"))
        assert_int_equal(world_wait(f.world, bide_unlink(&open, f.link, 0)), 0);
    assert_int_equal(world_wait(f.world, bide_unlink(&open, f.path, AT_REMOVEDIR)), 0);
    bide_close(&f.file);
    bide_close(&f.other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_complete_row),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(columns_agree_with_each_other),
        cmocka_unit_test_setup_teardown(an_operation_waits_in_the_line_of_its_row, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(only_operations_that_are_tried_first_end_at_once_on_a_ring,
                                        world_begin, world_end),
        cmocka_unit_test_setup_teardown(an_operation_that_waits_behind_another_gives_nothing_back,
                                        world_begin, world_end),
        cmocka_unit_test_setup_teardown(an_operation_on_a_file_does_not_block_the_loop, world_begin,
                                        world_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
