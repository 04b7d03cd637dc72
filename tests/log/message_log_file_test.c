/*
 * The engine "file": what is there after a restart; segments cut and changed at each byte; directories that are not a
 * log's; retention; each call on a file failing in turn; syncs that fail; a publisher that is killed.
 */
#define _GNU_SOURCE
#include "log_directory.h"

#include <bide/bide.h>
#include <bide/message_log.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>

#define MILLISECOND UINT64_C(1000000)
#define SOON        (60000 * MILLISECOND)

/* ---- Calls that fail ---- */

static unsigned call_number, failing_call; /* 0: none */
static int failing_error;
static bool call_is_short;
static bool call_syncs = true; /* false: nothing is synced, which takes the disk's time */
static int directory_error;    /* of each sync of a directory; 0: none */
static int parent_error;       /* of opening the directory above; 0: none */
static int system_error;       /* of each sync of a file system; 0: none */
static unsigned system_syncs;
static int unlink_error; /* of each removal; 0: none */
static bool is_full;     /* writes fail until a file is removed */

/* The files that were synced since it was cleared; the last removal of a file, and the last sync of a directory. */
enum { SYNCED_MAX = 64 };
static ino_t synced[SYNCED_MAX];
static unsigned synced_count, events, removals, removed_at, directory_synced_at;

static void note_sync(int descriptor)
{
    struct stat about;
    assert_int_equal(fstat(descriptor, &about), 0);
    synced[synced_count++ % SYNCED_MAX] = about.st_ino;
}

static bool was_synced(const char *path)
{
    struct stat about;
    bool found = false;
    assert_int_equal(stat(path, &about), 0);
    for (unsigned i = 0; i < synced_count && i < SYNCED_MAX; i++)
        found = found || synced[i] == about.st_ino;
    return found;
}

/*
 * A disk that has one file: the bytes that it was given by a sync that has not failed. After a sync that failed the
 * system takes the bytes for written.
 */
static struct {
    ino_t inode; /* 0: none */
    bool fails;  /* at the next sync */
    size_t size;
    size_t written; /* bytes, by all writes to the file */
    uint8_t bytes[8192];
    bool is_dirty[8192];
} disk;

static bool is_on_disk(int descriptor)
{
    struct stat about;
    return disk.inode != 0 && fstat(descriptor, &about) == 0 && about.st_ino == disk.inode;
}

static void disk_write(int descriptor, size_t size, off_t offset)
{
    if (!is_on_disk(descriptor))
        return;
    assert_true((size_t)offset + size <= sizeof disk.bytes);
    disk.written += size;
    for (size_t i = 0; i < size; i++)
        disk.is_dirty[(size_t)offset + i] = true;
}

ssize_t __real_pread64(int descriptor, void *data, size_t size, off_t offset);

static int disk_sync(int descriptor)
{
    static uint8_t cached[sizeof disk.bytes];
    if (!is_on_disk(descriptor))
        return 0;
    ssize_t count = __real_pread64(descriptor, cached, sizeof cached, 0);
    for (size_t i = 0; i < sizeof cached; i++) {
        if (disk.is_dirty[i] && !disk.fails && (ssize_t)i < count) {
            disk.bytes[i] = cached[i];
            disk.size = disk.size > i ? disk.size : i + 1;
        }
        disk.is_dirty[i] = false;
    }
    bool fails = disk.fails;
    disk.fails = false;
    errno = EIO;
    return fails ? -1 : 0;
}

static bool call_fails(void)
{
    call_number++;
    if (call_number != failing_call)
        return false;
    errno = failing_error;
    return true;
}

ssize_t __real_pwrite64(int descriptor, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int descriptor, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int descriptor, const void *data, size_t size, off_t offset)
{
    errno = ENOSPC;
    if (is_full)
        return -1;
    if (!call_fails()) {
        disk_write(descriptor, size, offset);
        return __real_pwrite64(descriptor, data, size, offset);
    }
    if (!call_is_short || size < 2)
        return -1;
    failing_call++; /* and the rest fails */
    return __real_pwrite64(descriptor, data, size / 2, offset);
}

ssize_t __wrap_pread64(int descriptor, void *data, size_t size, off_t offset);
ssize_t __wrap_pread64(int descriptor, void *data, size_t size, off_t offset)
{
    if (call_fails())
        return -1;
    return __real_pread64(descriptor, data, call_is_short && size > 1 ? size / 2 : size, offset);
}

int __real_fdatasync(int descriptor);
int __wrap_fdatasync(int descriptor);
int __wrap_fdatasync(int descriptor)
{
    if (call_fails() || disk_sync(descriptor) < 0)
        return -1;
    note_sync(descriptor);
    return call_syncs ? __real_fdatasync(descriptor) : 0;
}

int __real_fsync(int descriptor);
int __wrap_fsync(int descriptor);
int __wrap_fsync(int descriptor)
{
    if (call_fails())
        return -1;
    errno = directory_error;
    if (directory_error != 0)
        return -1;
    note_sync(descriptor);
    directory_synced_at = ++events;
    return call_syncs ? __real_fsync(descriptor) : 0;
}

int __real_ftruncate64(int descriptor, off_t size);
int __wrap_ftruncate64(int descriptor, off_t size);
int __wrap_ftruncate64(int descriptor, off_t size)
{
    return call_fails() ? -1 : __real_ftruncate64(descriptor, size);
}

int __real_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to)
{
    return call_fails() ? -1 : __real_renameat(a, from, b, to);
}

int __real_unlinkat(int descriptor, const char *path, int flags);
int __wrap_unlinkat(int descriptor, const char *path, int flags);
int __wrap_unlinkat(int descriptor, const char *path, int flags)
{
    if (call_fails())
        return -1;
    errno = unlink_error;
    if (unlink_error != 0)
        return -1;
    removed_at = ++events;
    removals++;
    is_full = is_full && strstr(path, ".log") == NULL;
    return __real_unlinkat(descriptor, path, flags);
}

/* (open files: of each of the log's own, and of the directory) */
int __real_openat64(int descriptor, const char *path, int flags, ...);
int __wrap_openat64(int descriptor, const char *path, int flags, ...);
static const char *meddled; /* when this is opened, `meddle` is called first, once */
static void (*meddle)(void *argument);
static void *meddle_argument;

int __wrap_openat64(int descriptor, const char *path, int flags, ...)
{
    if (meddled != NULL && strcmp(path, meddled) == 0) {
        meddled = NULL;
        meddle(meddle_argument);
    }
    errno = parent_error;
    if (parent_error != 0 && strcmp(path, "..") == 0)
        return -1;
    return call_fails() ? -1 : __real_openat64(descriptor, path, flags, 0600);
}

/* The system's clock, by which messages are old, is so many seconds ahead. */
static bide_atomic(uint32_t) seconds_ahead;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int status = __real_clock_gettime(clock, now);
    if (clock == CLOCK_REALTIME) /* relaxed: a number, and the test waits for each call */
        now->tv_sec += (time_t)bide_atomic_load(&seconds_ahead, relaxed);
    return status;
}

int __wrap_syncfs(int descriptor);
int __wrap_syncfs(int descriptor)
{
    struct stat about;
    assert_int_equal(fstat(descriptor, &about), 0);
    system_syncs++;
    errno = system_error;
    return system_error != 0 ? -1 : 0;
}

/* ---- A log ---- */

struct fixture {
    bide_sim_loop loop;
    struct log_directory directory;
    bide_log *log;
    bide_log_operation operation; /* the last one */
};

static int wait_for(struct fixture *it, bide_awaiter *awaiter)
{
    return bide_sim_loop_wait(&it->loop, awaiter);
}

static int open_log(struct fixture *it, const char *options)
{
    char url[256];
    snprintf(url, sizeof url, "file://%s%s", it->directory.path, options);
    return wait_for(it, bide_log_open(&it->operation, &it->log, url));
}

static void close_log(struct fixture *it)
{
    bide_log_close(it->log);
    bide_log_destroy(it->log);
    it->log = NULL;
}

static void begin(struct fixture *it)
{
    failing_call = 0;
    call_is_short = is_full = false;
    call_syncs = false;
    directory_error = parent_error = system_error = unlink_error = 0;
    disk.inode = 0;
    meddled = NULL;
    bide_atomic_store(&seconds_ahead, 0, relaxed);
    bide_sim_loop_init(&it->loop, 1);
    log_directory_make(&it->directory);
}

static void end(struct fixture *it)
{
    bide_sim_loop_destroy(&it->loop);
    log_directory_remove(&it->directory);
}

static int publish(struct fixture *it, const void *data, size_t size)
{
    bide_log_message message = {.data = data, .size = size};
    return wait_for(it, bide_log_publish(&it->operation, it->log, &message, 1));
}

static void publish_letters(struct fixture *it, const char *letters)
{
    for (; *letters != '\0'; letters++)
        assert_int_equal(publish(it, letters, 1), 0);
}

static int subscribe(struct fixture *it, bide_log_consumer *consumer, const char *group)
{
    const bide_log_consumer_options options = {.group = group};
    return wait_for(it, bide_log_subscribe(&it->operation, consumer, it->log, &options));
}

static int read_some(struct fixture *it, bide_log_consumer *consumer, bide_log_message *messages,
                     uint32_t max)
{
    bide_with_deadline_operation limited;
    return wait_for(it, bide_with_timeout(&limited, SOON,
                                          bide_log_read(&it->operation, consumer, messages, max)));
}

/* The first bytes of the messages that a group still has; its consumer leaves without acknowledging. */
static void expect_left(struct fixture *it, const char *group, const char *letters)
{
    bide_log_consumer consumer;
    bide_log_message messages[32];
    char text[33] = "";
    assert_int_equal(subscribe(it, &consumer, group), 0);
    int status = read_some(it, &consumer, messages, 32);
    for (uint32_t i = 0; status == 0 && i < it->operation.count; i++)
        text[i] = *(const char *)messages[i].data;
    assert_string_equal(text, letters);
    assert_int_equal(status, *letters != '\0' ? 0 : -ETIMEDOUT);
    bide_log_unsubscribe(&consumer);
}

/* ---- Files ---- */

static char *path_of(const struct fixture *it, const char *name, char *path)
{
    snprintf(path, 200, "%s/%s", it->directory.path, name);
    return path;
}

static size_t load(const struct fixture *it, const char *name, uint8_t *bytes, size_t size)
{
    char path[200];
    FILE *file = fopen(path_of(it, name, path), "rb");
    assert_non_null(file);
    size_t count = fread(bytes, 1, size, file);
    fclose(file);
    return count;
}

static void store(const struct fixture *it, const char *name, const uint8_t *bytes, size_t size)
{
    char path[200];
    FILE *file = fopen(path_of(it, name, path), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static bool exists(const struct fixture *it, const char *name)
{
    char path[200];
    struct stat about;
    return lstat(path_of(it, name, path), &about) == 0;
}

static void discard(const struct fixture *it, const char *name)
{
    char path[200];
    assert_int_equal(unlink(path_of(it, name, path)), 0);
}

#define SEGMENT "00000000000000000001.log"

/* ---- Restarts ---- */

static void messages_and_groups_are_there_after_a_restart(void **state)
{
    (void)state;
    static const char *const options[] = {"", "?level=stored", "?segment=4096", "?level=sent"};
    for (int o = 0; o < 4; o++) {
        struct fixture it;
        bide_log_consumer consumer;
        bide_log_message messages[8];
        struct stat about;
        char path[200];
        begin(&it);
        call_syncs = o == 0; /* once is enough: it takes the disk's time */
        assert_int_equal(open_log(&it, options[o]), 0);
        assert_string_equal(it.operation.problem, "");
        publish_letters(&it, "abcdef");
        assert_int_equal(subscribe(&it, &consumer, "g"), 0);
        assert_int_equal(read_some(&it, &consumer, messages, 5), 0);
        assert_int_equal(it.operation.count, 5);
        bide_log_message done[3] = {messages[0], messages[2], messages[3]}; /* not b */
        assert_int_equal(wait_for(&it, bide_log_acknowledge(&it.operation, &consumer, done, 3)), 0);
        bide_log_unsubscribe(&consumer);
        assert_int_equal(subscribe(&it, &consumer, "gone"), 0);
        bide_log_unsubscribe(&consumer);
        assert_int_equal(bide_log_remove_group(it.log, "gone"), 0);
        close_log(&it);

        static const char *const files[] = {"bide-log", "groups", SEGMENT};
        for (int i = 0; i < 3; i++) {
            assert_int_equal(stat(path_of(&it, files[i], path), &about), 0);
            assert_int_equal(about.st_mode & 0777, 0600);
        }
        assert_int_equal(open_log(&it, options[o]), 0);
        uint64_t lag;
        assert_int_equal(bide_log_lag(it.log, "g", &lag), 0);
        assert_int_equal(lag, 5);
        assert_int_equal(bide_log_lag(it.log, "gone", &lag), -ENOENT);
        expect_left(&it, "g", "bef");
        expect_left(&it, NULL, "abcdef");
        publish_letters(&it, "h");
        assert_int_equal(it.operation.uncertain, false);
        expect_left(&it, "g", "befh");
        close_log(&it);
        end(&it);
    }
}

static void a_large_log_is_read_from_any_place(void **state)
{
    (void)state;
    struct fixture it;
    static uint32_t data[2000];
    uint64_t random = testing_seed();
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored&segment=4096&size=8000"), 0);
    enum { COUNT = 100 };
    bide_log_position at[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        data[0] = i;
        bide_log_message message = {.data = data,
                                    .size = 4 + (size_t)(testing_random(&random) % 7000)};
        assert_int_equal(wait_for(&it, bide_log_publish(&it.operation, it.log, &message, 1)), 0);
        at[i] = message.published;
    }
    assert_false(exists(&it, "00000000000000000101.log"));
    for (int round = 0; round < 50; round++) {
        if (round == 25) {
            close_log(&it);
            assert_int_equal(open_log(&it, "?level=stored&segment=4096&size=8000"), 0);
        }
        uint32_t from = (uint32_t)(testing_random(&random) % COUNT), number;
        const bide_log_consumer_options options = {.from = BIDE_LOG_FROM_POSITION,
                                                   .position = at[from]};
        bide_log_consumer consumer;
        bide_log_message messages[8];
        assert_int_equal(
            wait_for(&it, bide_log_subscribe(&it.operation, &consumer, it.log, &options)), 0);
        int status = read_some(&it, &consumer, messages, 8);
        assert_int_equal(status, from == COUNT - 1 ? -ETIMEDOUT : 0);
        assert_int_equal(it.operation.count, COUNT - 1 - from < 8 ? COUNT - 1 - from : 8);
        for (uint32_t i = 0; i < it.operation.count; i++) {
            memcpy(&number, messages[i].data, sizeof number);
            assert_int_equal(number, from + 1 + i);
        }
        bide_log_unsubscribe(&consumer);
    }
    close_log(&it);
    end(&it);
}

static void old_segments_are_removed(void **state)
{
    (void)state;
    struct fixture it;
    static char data[1000];
    bide_log_consumer slow, own;
    bide_log_message messages[4], more[4];
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored&segment=4096&retain=8192&window=8"), 0);
    assert_int_equal(subscribe(&it, &slow, "slow"), 0);
    for (char i = 0; i < 40; i++) {
        data[0] = i;
        assert_int_equal(publish(&it, data, sizeof data), 0);
        if (i == 4)
            assert_int_equal(read_some(&it, &slow, messages, 3), 0);
        assert_true(directory_synced_at >= removed_at); /* or a segment comes back alone */
    }
    assert_true(removed_at != 0);
    assert_false(exists(&it, SEGMENT));
    assert_int_equal(((const char *)messages[2].data)[0], 2); /* still the consumer's */
    assert_int_equal(wait_for(&it, bide_log_reject(&it.operation, &slow, &messages[2], 1, 0)), 0);
    assert_int_equal(wait_for(&it, bide_log_acknowledge(&it.operation, &slow, messages, 2)), 0);
    assert_int_equal(read_some(&it, &slow, more, 1), 0); /* the third is gone */
    assert_true(((const char *)more[0].data)[0] > 20);
    assert_int_equal(more[0].deliveries, 1);
    bide_log_unsubscribe(&slow);
    uint8_t first = (uint8_t)more[0].position.low_;
    close_log(&it);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    assert_int_equal(subscribe(&it, &own, NULL), 0);
    assert_int_equal(read_some(&it, &own, more, 1), 0);
    assert_int_equal(more[0].position.low_, first);
    bide_log_unsubscribe(&own);
    close_log(&it);
    end(&it);
}

static void wait_seconds(uint32_t seconds)
{
    bide_atomic_store(&seconds_ahead, bide_atomic_load(&seconds_ahead, relaxed) + seconds, relaxed);
}

/* What is older than `keep_for` is removed by the next publish, also if it is in the newest segment. */
static void old_messages_are_removed(void **state)
{
    (void)state;
    static const char options[] = "?level=stored&segment=4096&keep_for=1000";
    static char data[1500];
    struct fixture it;
    begin(&it);
    assert_int_equal(open_log(&it, options), 0);
    for (char letter = 'a'; letter < 'f'; letter++) { /* two in a segment */
        data[0] = letter;
        assert_int_equal(publish(&it, data, sizeof data), 0);
        wait_seconds(100);
    }
    wait_seconds(400); /* a is 900 old */
    publish_letters(&it, "f");
    expect_left(&it, NULL, "abcdef");
    wait_seconds(150); /* a is 1050 old, and b 950 */
    publish_letters(&it, "g");
    expect_left(&it, NULL, "abcdefg");
    wait_seconds(100);
    expect_left(&it, NULL, "abcdefg");
    publish_letters(&it, "h");
    assert_false(exists(&it, SEGMENT));
    expect_left(&it, NULL, "cdefgh");
    close_log(&it);

    /* ages are known when it is opened again */
    wait_seconds(300);
    assert_int_equal(open_log(&it, options), 0);
    expect_left(&it, NULL, "cdefgh");
    publish_letters(&it, "i"); /* e is in the newest, and 1050 old: a new one begins */
    assert_true(exists(&it, "00000000000000000009.log"));
    assert_false(exists(&it, "00000000000000000003.log"));
    expect_left(&it, NULL, "efghi");
    close_log(&it);
    wait_seconds(5000);
    assert_int_equal(open_log(&it, options), 0);
    expect_left(&it, NULL, "efghi");
    publish_letters(&it, "j");
    expect_left(&it, NULL, "j");
    close_log(&it);

    /* a clock that is set back makes nothing older */
    bide_atomic_store(&seconds_ahead, 0, relaxed);
    assert_int_equal(open_log(&it, options), 0);
    publish_letters(&it, "k");
    expect_left(&it, NULL, "jk");
    close_log(&it);
    end(&it);
}

/* A publish removes what is old before it writes: so a log that has filled the disk goes on. */
static void what_is_old_makes_room_on_a_full_disk(void **state)
{
    (void)state;
    static const char options[] = "?level=stored&segment=4096&keep_for=1000";
    static char data[1500];
    struct fixture it;
    begin(&it);
    assert_int_equal(open_log(&it, options), 0);
    for (char letter = 'a'; letter < 'd'; letter++) { /* two in a segment */
        data[0] = letter;
        assert_int_equal(publish(&it, data, sizeof data), 0);
    }
    is_full = true;
    assert_int_equal(publish(&it, data, sizeof data), -ENOSPC);
    assert_false(it.operation.uncertain);
    expect_left(&it, NULL, "abc");
    wait_seconds(1001);
    assert_int_equal(publish(&it, "d", 1), 0);
    assert_false(is_full);
    expect_left(&it, NULL, "d");
    close_log(&it);
    end(&it);
}

/* A publish does not wait for the removal of all that is old: it removes a few, and later ones the rest. */
static void a_publish_removes_a_few_segments(void **state)
{
    (void)state;
    enum { SEGMENTS = 20, AT_ONCE = 8 };
    static char data[3000];
    struct fixture it;
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored&segment=4096"), 0);
    for (int i = 0; i < SEGMENTS; i++) {
        data[0] = (char)('a' + i);
        assert_int_equal(publish(&it, data, sizeof data), 0);
    }
    close_log(&it);
    assert_int_equal(open_log(&it, "?level=stored&segment=4096&retain=4096"), 0);
    for (int left = SEGMENTS; left > 2;) {
        unsigned before = removals;
        assert_int_equal(publish(&it, "z", 1), 0);
        assert_true(removals > before && removals - before <= AT_ONCE);
        left -= (int)(removals - before);
    }
    close_log(&it);
    assert_int_equal(open_log(&it, "?level=stored&segment=4096&retain=4096"), 0);
    expect_left(&it, NULL, "stzzz");
    close_log(&it);
    end(&it);
}

/* ---- Damage ---- */

static const char damaged_letters[] = "abcdefgh";

/* The number of whole messages in the first `size` bytes; message i has 40 bytes and i + 1 of data. */
static uint32_t whole_before(size_t size)
{
    uint32_t count = 0;
    size_t at = 64;
    while (count < 8 && at + 40 + count + 1 <= size)
        at += 40 + ++count;
    return count;
}

/*
 * The file is as it is, or the rest behind its last record is beside it; it is as it is, and not opened, if whole records
 * follow what is damaged.
 */
static void damaged_segment_is_read(struct fixture *it, const uint8_t *bytes, size_t size,
                                    size_t damaged)
{
    static uint8_t found[1000];
    char letters[10] = "", kept[100];
    store(it, SEGMENT, bytes, size);
    int status = open_log(it, "?level=stored");
    if (damaged < 64) {
        assert_int_equal(status,
                         size < 64 || damaged < 8 || damaged >= 12 ? -EBADMSG : -EPROTONOSUPPORT);
        assert_non_null(strstr(it->operation.problem, SEGMENT));
        assert_int_equal(load(it, SEGMENT, found, sizeof found), size);
        assert_memory_equal(found, bytes, size);
        return;
    }
    uint32_t count = whole_before(damaged);
    size_t whole = 64;
    for (uint32_t i = 0; i < count; i++)
        whole += 40 + i + 1;
    if (damaged < size && count < 7) { /* (there are 8) */
        char place[40];
        snprintf(place, sizeof place, "damaged at byte %zu,", whole);
        assert_int_equal(status, -EBADMSG);
        assert_non_null(strstr(it->operation.problem, place));
        assert_int_equal(load(it, SEGMENT, found, sizeof found), size);
        assert_memory_equal(found, bytes, size);
        return;
    }
    assert_int_equal(status, 0);
    memcpy(letters, damaged_letters, count);
    snprintf(kept, sizeof kept, "torn-" SEGMENT "-%zu.0", whole);
    if (whole == size) {
        assert_string_equal(it->operation.problem, "");
        assert_false(exists(it, kept));
    } else {
        assert_non_null(strstr(it->operation.problem, kept));
        assert_int_equal(load(it, kept, found, sizeof found), size - whole);
        assert_memory_equal(found, bytes + whole, size - whole);
        discard(it, kept);
    }
    expect_left(it, NULL, letters);
    letters[count] = 'z';
    publish_letters(it, "z");
    expect_left(it, NULL, letters);
    close_log(it);
    assert_int_equal(open_log(it, "?level=stored"), 0);
    assert_string_equal(it->operation.problem, "");
    expect_left(it, NULL, letters);
    close_log(it);
}

static void a_segment_is_cut_and_changed_at_each_byte(void **state)
{
    (void)state;
    struct fixture it;
    static uint8_t bytes[1000], changed[1000];
    uint64_t random = testing_seed();
    begin(&it);
    assert_int_equal(open_log(&it, ""), 0);
    for (size_t i = 0; i < 8; i++) {
        char data[8];
        memset(data, damaged_letters[i], sizeof data);
        assert_int_equal(publish(&it, data, i + 1), 0);
    }
    close_log(&it);
    size_t size = load(&it, SEGMENT, bytes, sizeof bytes);
    assert_int_equal(whole_before(size), 8);
    assert_int_equal(whole_before(size - 1), 7);
    for (size_t cut = 0; cut <= size; cut++)
        damaged_segment_is_read(&it, bytes, cut, cut < 64 ? 0 : cut);
    for (size_t at = 0; at < size; at++) {
        memcpy(changed, bytes, size);
        changed[at] ^= (uint8_t)(1 + testing_random(&random) % 255);
        damaged_segment_is_read(&it, changed, size, at);
    }
    end(&it);
}

/* A group that is damaged is where it was before, or earlier: nothing that it has not done is passed over. */
static void a_groups_file_is_cut_and_changed_at_each_byte(void **state)
{
    (void)state;
    struct fixture it;
    static uint8_t bytes[1000], changed[1000], found[1000];
    uint64_t random = testing_seed();
    bide_log_consumer consumer;
    bide_log_message messages[4];
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    publish_letters(&it, "abcd");
    assert_int_equal(subscribe(&it, &consumer, "g"), 0);
    assert_int_equal(read_some(&it, &consumer, messages, 4), 0);
    for (int i = 2; i >= 0; i--)
        assert_int_equal(
            wait_for(&it, bide_log_acknowledge(&it.operation, &consumer, &messages[i], 1)), 0);
    bide_log_unsubscribe(&consumer);
    close_log(&it);
    size_t size = load(&it, "groups", bytes, sizeof bytes);
    /* a header; the group as it began; c, b and c, and all three are done */
    const size_t ends[] = {64, 64 + 29, 64 + 29 + 37, 64 + 29 + 37 + 37, 64 + 29 + 37 + 37 + 29};
    static const char *const left[] = {"abcd", "abcd", "abd", "ad", "d"};
    assert_int_equal(size, ends[4]);
    for (size_t i = 0; i < 2 * size; i++) {
        size_t cut = i < size ? i : size, damaged = i < size ? i : i - size;
        memcpy(changed, bytes, cut);
        if (i >= size)
            changed[damaged] ^= (uint8_t)(1 + testing_random(&random) % 255);
        store(&it, "groups", changed, cut);
        int status = open_log(&it, "?level=stored");
        if (damaged < 64) {
            assert_true(status == -EBADMSG || status == -EPROTONOSUPPORT);
            assert_non_null(strstr(it.operation.problem, "groups"));
            assert_int_equal(load(&it, "groups", found, sizeof found), cut);
            assert_memory_equal(found, changed, cut);
            continue;
        }
        assert_int_equal(status, 0);
        int whole = 0;
        while (whole < 4 && ends[whole + 1] <= damaged)
            whole++;
        char kept[100];
        snprintf(kept, sizeof kept, "torn-groups-%zu.0", ends[whole]);
        assert_true(exists(&it, kept) == (cut != ends[whole]));
        if (cut != ends[whole])
            discard(&it, kept);
        expect_left(&it, "g", left[whole]);
        close_log(&it);
    }
    end(&it);
}

/* ---- Directories of others ---- */

static void what_is_not_a_log_is_left_alone(void **state)
{
    (void)state;
    struct fixture it;
    static uint8_t bytes[200], header[64];
    char path[240], other[200];
    begin(&it);

    /* a directory with something else */
    assert_int_equal(mkdir(it.directory.path, 0755), 0);
    store(&it, "notes", (const uint8_t *)"mine", 4);
    assert_int_equal(open_log(&it, ""), -EEXIST);
    assert_non_null(strstr(it.operation.problem, "not a message log"));
    assert_false(exists(&it, "bide-log"));
    assert_int_equal(load(&it, "notes", bytes, sizeof bytes), 4);

    /* a file of the signature's name, with something else in it, or none of it; or a link */
    store(&it, "bide-log", (const uint8_t *)"mine", 4);
    assert_int_equal(open_log(&it, ""), -EBADMSG);
    assert_non_null(strstr(it.operation.problem, "not a message log"));
    assert_int_equal(load(&it, "bide-log", bytes, sizeof bytes), 4);
    store(&it, "bide-log", bytes, 0);
    assert_int_equal(open_log(&it, ""), -EBADMSG);
    assert_int_equal(load(&it, "bide-log", bytes, sizeof bytes), 0);
    discard(&it, "bide-log");
    snprintf(other, sizeof other, "%s/notes", it.directory.path);
    assert_int_equal(symlink(other, path_of(&it, "bide-log", path)), 0);
    assert_int_equal(open_log(&it, ""), -ELOOP);
    discard(&it, "bide-log");
    discard(&it, "notes");

    /* alone, too, unless it may be the beginning of a signature */
    static const char *const others[] = {"m", "mine", "bidelog\n\2", "bidelog\n\1\0\0\0\2"};
    static const size_t other_sizes[] = {1, 4, 9, 13};
    for (int i = 0; i < 4; i++) {
        store(&it, "bide-log", (const uint8_t *)others[i], other_sizes[i]);
        assert_int_equal(open_log(&it, ""), -EBADMSG);
        assert_non_null(strstr(it.operation.problem, "not a message log"));
        assert_int_equal(load(&it, "bide-log", bytes, sizeof bytes), other_sizes[i]);
        assert_memory_equal(bytes, others[i], other_sizes[i]);
    }
    for (size_t size = 0; size <= 64; size++) {
        memset(header, 0, sizeof header);
        store(&it, "bide-log", header, size);
        assert_int_equal(open_log(&it, ""), 0);
        close_log(&it);
        discard(&it, SEGMENT);
        assert_int_equal(load(&it, "bide-log", header, sizeof header), 64);
        store(&it, "bide-log", header, size);
        assert_int_equal(open_log(&it, ""), 0);
        close_log(&it);
        discard(&it, SEGMENT);
    }

    /* a making that was cut short is completed; then a link to the directory is not followed */
    store(&it, "bide-log", bytes, 0);
    assert_int_equal(open_log(&it, ""), 0);
    publish_letters(&it, "a");
    close_log(&it);
    snprintf(other, sizeof other, "%s/link", it.directory.root);
    assert_int_equal(symlink(it.directory.path, other), 0);
    snprintf(path, sizeof path, "file://%s", other);
    int status = wait_for(&it, bide_log_open(&it.operation, &it.log, path));
    assert_true(status == -ELOOP || status == -ENOTDIR);
    assert_int_equal(unlink(other), 0);

    /* another version; and a segment, or what is being made, that is not the log's */
    assert_int_equal(load(&it, "bide-log", header, sizeof header), 64);
    memcpy(bytes, header, 64);
    bytes[8]++;
    store(&it, "bide-log", bytes, 64);
    assert_int_equal(open_log(&it, ""), -EPROTONOSUPPORT);
    assert_non_null(strstr(it.operation.problem, "version"));
    store(&it, "bide-log", header, 64);
    store(&it, "00000000000000000002.log", (const uint8_t *)"mine", 4);
    assert_int_equal(open_log(&it, ""), -EBADMSG);
    assert_non_null(strstr(it.operation.problem, "2.log"));
    discard(&it, "00000000000000000002.log");
    store(&it, "segment.new", (const uint8_t *)"mine", 4);
    assert_int_equal(open_log(&it, ""), -EEXIST);
    assert_int_equal(load(&it, "segment.new", bytes, sizeof bytes), 4);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, header, sizeof header);
    store(&it, "segment.new", bytes, 65); /* too much for one that is being made */
    assert_int_equal(open_log(&it, ""), -EEXIST);
    assert_non_null(strstr(it.operation.problem, "segment.new: it is not the log's"));
    assert_true(exists(&it, "segment.new"));
    store(&it, "segment.new", header, 17); /* as a making that was cut short leaves it */
    assert_int_equal(open_log(&it, ""), 0);
    assert_false(exists(&it, "segment.new"));

    /* it is the process's: others are refused, and handles of the process share it */
    bide_log *first = it.log;
    assert_int_equal(open_log(&it, "?window=2"), -EEXIST);
    assert_int_equal(open_log(&it, "?segment=5000"), -EEXIST);
    assert_int_equal(open_log(&it, "?keep_for=5000"), -EEXIST);
    assert_int_equal(open_log(&it, ""), 0);
    close_log(&it);
    pid_t child = fork();
    if (child == 0)
        _exit(open_log(&it, "") == -EBUSY ? 0 : 1);
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    it.log = first;
    expect_left(&it, NULL, "a");
    close_log(&it);
    end(&it);
}

/* Segments follow each other: if one was cut or is missing, the log is not opened. */
static void segments_that_do_not_follow_each_other_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {SEGMENT, "00000000000000000003.log",
                                        "00000000000000000005.log"};
    static char data[1500];
    static uint8_t bytes[5000], all[5000];
    struct fixture it;
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored&segment=4096"), 0);
    for (char letter = 'a'; letter < 'f'; letter++) {
        data[0] = letter;
        assert_int_equal(publish(&it, data, sizeof data), 0);
    }
    close_log(&it);
    const size_t cuts[] = {64, 65, 64 + 39, 64 + 1540, 64 + 2 * 1540 - 1};
    for (int i = 0; i < 2; i++) {
        size_t size = load(&it, names[i], all, sizeof all);
        assert_int_equal(size, 64 + 2 * 1540);
        for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
            store(&it, names[i], all, cuts[c]);
            assert_int_equal(open_log(&it, "?level=stored"), -EBADMSG);
            assert_non_null(strstr(it.operation.problem, names[i]));
            assert_non_null(strstr(it.operation.problem, "where the next segment begins"));
            assert_int_equal(load(&it, names[i], bytes, sizeof bytes), cuts[c]);
        }
        store(&it, names[i], all, size);
    }
    assert_int_equal(load(&it, names[1], all, sizeof all), 64 + 2 * 1540);
    discard(&it, names[1]);
    assert_int_equal(open_log(&it, "?level=stored"), -EBADMSG);
    assert_non_null(strstr(it.operation.problem, SEGMENT ": it does not end"));
    store(&it, names[1], all, 64 + 2 * 1540);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    expect_left(&it, NULL, "abcde");
    close_log(&it);
    discard(&it, names[0]); /* as retention does */
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    expect_left(&it, NULL, "cde");
    close_log(&it);
    end(&it);
}

/* The first record of a segment says where times are looked for, unless it is damaged. */
static void a_damaged_time_misleads_nobody(void **state)
{
    (void)state;
    static char data[1500];
    static uint8_t bytes[5000];
    static const char second[] = "00000000000000000003.log";
    struct fixture it;
    bide_log_consumer consumer;
    bide_log_message message;
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored&segment=4096"), 0);
    for (char letter = 'a'; letter < 'f'; letter++) {
        data[0] = letter;
        assert_int_equal(publish(&it, data, sizeof data), 0);
    }
    assert_int_equal(subscribe(&it, &consumer, NULL), 0);
    assert_int_equal(read_some(&it, &consumer, &message, 1), 0);
    const bide_log_consumer_options options = {.from = BIDE_LOG_FROM_TIME, .time = message.time};
    bide_log_unsubscribe(&consumer);
    close_log(&it);
    size_t size = load(&it, second, bytes, sizeof bytes);
    memset(bytes + 64 + 16, 0, 8);
    store(&it, second, bytes, size);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    assert_int_equal(wait_for(&it, bide_log_subscribe(&it.operation, &consumer, it.log, &options)),
                     0);
    assert_int_equal(read_some(&it, &consumer, &message, 1), 0);
    assert_int_equal(*(const char *)message.data, 'a');
    bide_log_unsubscribe(&consumer);
    close_log(&it);
    end(&it);
}

/* Times do not decrease: if the newest segment is empty, the last time is that of the last message before, whatever is
   damaged in front of it. */
static void times_go_on_behind_a_damaged_message(void **state)
{
    (void)state;
    static const char third[] = "00000000000000000003.log";
    static char data[1500];
    static uint8_t bytes[5000];
    struct fixture it;
    bide_log_consumer consumer;
    bide_log_message messages[2];
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored&segment=4096"), 0);
    for (char letter = 'a'; letter < 'd'; letter++) { /* two in a segment */
        data[0] = letter;
        assert_int_equal(publish(&it, data, sizeof data), 0);
        wait_seconds(1000);
    }
    close_log(&it);
    size_t size = load(&it, SEGMENT, bytes, sizeof bytes);
    bytes[64 + 40] ^= 1; /* of a */
    store(&it, SEGMENT, bytes, size);
    load(&it, third, bytes, sizeof bytes);
    store(&it, third, bytes, 64); /* c was not synced */
    bide_atomic_store(&seconds_ahead, 0, relaxed);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    publish_letters(&it, "d");
    const bide_log_consumer_options options = {.from = BIDE_LOG_FROM_POSITION,
                                               .position = {.low_ = 1}};
    assert_int_equal(wait_for(&it, bide_log_subscribe(&it.operation, &consumer, it.log, &options)),
                     0);
    assert_int_equal(read_some(&it, &consumer, messages, 2), 0);
    assert_int_equal(it.operation.count, 2);
    assert_int_equal(*(const char *)messages[0].data, 'b');
    assert_int_equal(*(const char *)messages[1].data, 'd');
    assert_true(messages[1].time >= messages[0].time);
    bide_log_unsubscribe(&consumer);
    close_log(&it);
    end(&it);
}

/* A loss of power leaves what was not synced in any order: damage there is a tear, also in front of whole records. */
static void what_was_not_synced_may_be_torn_in_any_place(void **state)
{
    (void)state;
    static uint8_t bytes[1000], changed[1000], kept[1000];
    enum { RECORD = 41, UNSYNCED = 5, ALL = 8 };
    struct fixture it;
    bide_log_consumer consumer;
    bide_log_message messages[ALL];
    begin(&it);
    assert_int_equal(open_log(&it, ""), 0);
    publish_letters(&it, "ab");
    close_log(&it);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    publish_letters(&it, "cdefgh");
    assert_int_equal(subscribe(&it, &consumer, "g"), 0);
    assert_int_equal(read_some(&it, &consumer, messages, ALL), 0);
    assert_int_equal(
        wait_for(&it, bide_log_acknowledge(&it.operation, &consumer, messages, UNSYNCED)), 0);
    bide_log_unsubscribe(&consumer);
    close_log(&it);
    size_t size = load(&it, SEGMENT, bytes, sizeof bytes);
    assert_int_equal(size, 64 + ALL * RECORD);
    for (size_t damaged = 0; damaged < ALL; damaged++) {
        size_t at = 64 + damaged * RECORD;
        char place[80], letters[ALL + 2] = "";
        memcpy(changed, bytes, size);
        memset(changed + at, 0, RECORD);
        store(&it, SEGMENT, changed, size);
        int status = open_log(&it, "?level=stored");
        if (damaged < 2) { /* the later ones say that it was synced */
            snprintf(place, sizeof place, "damaged at byte %zu, which was synced", at);
            assert_int_equal(status, -EBADMSG);
            assert_non_null(strstr(it.operation.problem, place));
            continue;
        }
        snprintf(place, sizeof place, "torn-" SEGMENT "-%zu.0", at);
        assert_int_equal(status, 0);
        assert_non_null(strstr(it.operation.problem, place));
        assert_int_equal(load(&it, place, kept, sizeof kept), size - at);
        assert_memory_equal(kept, changed + at, size - at);
        discard(&it, place);
        memcpy(letters, damaged_letters, damaged);
        expect_left(&it, NULL, letters);
        letters[damaged] = 'z'; /* it has the number of one that the group is done with */
        publish_letters(&it, "z");
        expect_left(&it, NULL, letters);
        bide_log_consumer_options options = {.group = "g"};
        assert_int_equal(
            wait_for(&it, bide_log_subscribe(&it.operation, &consumer, it.log, &options)), 0);
        assert_int_equal(read_some(&it, &consumer, messages, ALL), 0);
        assert_int_equal(*(const char *)messages[it.operation.count - 1].data, 'z');
        bide_log_unsubscribe(&consumer);
        close_log(&it);
    }

    /* opening has synced what it found */
    store(&it, SEGMENT, bytes, size);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    publish_letters(&it, "i");
    close_log(&it);
    assert_int_equal(load(&it, SEGMENT, changed, sizeof changed), size + RECORD);
    changed[64 + 5 * RECORD] ^= 1;
    store(&it, SEGMENT, changed, size + RECORD);
    assert_int_equal(open_log(&it, "?level=stored"), -EBADMSG);
    end(&it);
}

/* A message that has another log's records in it is a message, also where a tear is looked at. */
static void a_message_with_records_in_it_is_no_record(void **state)
{
    (void)state;
    static uint8_t bytes[1000], changed[2000];
    struct fixture it;
    begin(&it);
    assert_int_equal(open_log(&it, ""), 0);
    publish_letters(&it, "abcd"); /* each says that the one before was synced */
    close_log(&it);
    size_t size = load(&it, SEGMENT, bytes, sizeof bytes);
    log_directory_empty(it.directory.path);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    assert_int_equal(publish(&it, bytes, size), 0);
    close_log(&it);
    size_t all = load(&it, SEGMENT, changed, sizeof changed);
    assert_int_equal(all, 64 + 40 + size);
    changed[64] ^= 1;
    store(&it, SEGMENT, changed, all);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    assert_non_null(strstr(it.operation.problem, "torn-" SEGMENT "-64.0"));
    expect_left(&it, NULL, "");
    close_log(&it);
    end(&it);
}

/* A read names the message that is damaged, and a group may begin behind it. */
static void a_damaged_message_can_be_passed_over(void **state)
{
    (void)state;
    static char data[1500];
    static uint8_t bytes[5000];
    struct fixture it;
    bide_log_consumer consumer;
    bide_log_message messages[4];
    begin(&it);
    assert_int_equal(open_log(&it, "?segment=4096"), 0);
    for (char letter = 'a'; letter < 'f'; letter++) {
        data[0] = letter;
        assert_int_equal(publish(&it, data, sizeof data), 0);
    }
    close_log(&it);
    size_t size = load(&it, SEGMENT, bytes, sizeof bytes);
    bytes[size - 1] ^= 1; /* of b */
    store(&it, SEGMENT, bytes, size);
    assert_int_equal(open_log(&it, ""), 0);
    assert_string_equal(it.operation.problem, "");
    assert_int_equal(subscribe(&it, &consumer, NULL), 0);
    assert_int_equal(read_some(&it, &consumer, messages, 4), 0); /* what is in front of it */
    assert_int_equal(it.operation.count, 1);
    assert_int_equal(*(const char *)messages[0].data, 'a');
    assert_int_equal(read_some(&it, &consumer, messages, 4), -EBADMSG);
    bide_log_unsubscribe(&consumer);
    const bide_log_consumer_options behind = {.from = BIDE_LOG_FROM_POSITION,
                                              .position = messages[0].position};
    assert_int_equal(wait_for(&it, bide_log_subscribe(&it.operation, &consumer, it.log, &behind)),
                     0);
    assert_int_equal(read_some(&it, &consumer, messages, 4), 0);
    assert_int_equal(it.operation.count, 3);
    assert_int_equal(*(const char *)messages[0].data, 'c');
    bide_log_unsubscribe(&consumer);
    close_log(&it);
    end(&it);
}

/* ---- Groups that are ahead of the log ---- */

/* Six messages, and a group that has acknowledged all, or all but b and c; then the last three are lost. */
static size_t lose_messages(struct fixture *it, bool all, uint8_t *groups, size_t size)
{
    static uint8_t bytes[1000];
    bide_log_consumer consumer;
    bide_log_message messages[6];
    assert_int_equal(open_log(it, "?level=stored"), 0);
    publish_letters(it, "abcdef");
    assert_int_equal(subscribe(it, &consumer, "g"), 0);
    assert_int_equal(read_some(it, &consumer, messages, 6), 0);
    assert_int_equal(it->operation.count, 6);
    for (int i = 0; i < 6; i++) {
        if (all || (i != 1 && i != 2))
            assert_int_equal(
                wait_for(it, bide_log_acknowledge(&it->operation, &consumer, &messages[i], 1)), 0);
    }
    bide_log_unsubscribe(&consumer);
    close_log(it);
    assert_int_equal(load(it, SEGMENT, bytes, sizeof bytes), 64 + 6 * 41);
    store(it, SEGMENT, bytes, 64 + 3 * 41);
    return load(it, "groups", groups, size);
}

static void a_group_that_is_ahead_has_what_is_published_later(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        static uint8_t groups[1000], segment[1000];
        struct fixture it;
        begin(&it);
        size_t size = lose_messages(&it, all != 0, groups, sizeof groups);
        size_t segment_size = load(&it, SEGMENT, segment, sizeof segment);
        unsigned calls = UINT32_MAX;
        for (unsigned n = 1; n <= calls; n++) { /* each call of the opening fails in turn */
            store(&it, "groups", groups, size);
            store(&it, SEGMENT, segment, segment_size);
            failing_error = EIO;
            call_number = 0;
            failing_call = n;
            int status = open_log(&it, "?level=stored");
            if (call_number < n)
                calls = n;
            failing_call = 0;
            assert_int_equal(status, calls == n ? 0 : -EIO);
            if (status < 0)
                assert_int_equal(open_log(&it, "?level=stored"), 0);
            publish_letters(&it, "xyz");
            close_log(&it);
            assert_int_equal(open_log(&it, "?level=stored"), 0);
            assert_string_equal(it.operation.problem, "");
            expect_left(&it, "g", all != 0 ? "xyz" : "bcxyz");
            close_log(&it);
        }
        assert_true(calls > 5);
        end(&it);
    }
}

/* The groups file is written anew when most of it is old, also if it was so when the log was opened. */
static void a_groups_file_that_was_opened_is_made_smaller(void **state)
{
    (void)state;
    enum { COUNT = 4000, LARGE = 900000, MAX = 1 << 20 };
    static bide_log_message messages[COUNT], done[COUNT / 2];
    static const char options[] = "?level=stored&window=4096";
    struct fixture it;
    struct stat about;
    bide_log_consumer consumer;
    char path[200];
    off_t largest = 0;
    bool is_opened_again = false;
    begin(&it);
    assert_int_equal(open_log(&it, options), 0);
    for (int i = 0; i < COUNT; i++)
        messages[i] = (bide_log_message){.data = "m", .size = 1};
    assert_int_equal(wait_for(&it, bide_log_publish(&it.operation, it.log, messages, COUNT)), 0);
    assert_int_equal(subscribe(&it, &consumer, "g"), 0);
    assert_int_equal(read_some(&it, &consumer, messages, COUNT), 0);
    assert_int_equal(it.operation.count, COUNT);
    for (int i = 0; i < COUNT / 2; i++)
        done[i] = messages[2 * i + 1];
    assert_int_equal(wait_for(&it, bide_log_acknowledge(&it.operation, &consumer, done, COUNT / 2)),
                     0);
    for (uint32_t last = COUNT - 2, count = 0; count < 200; count++, last -= 2) {
        const bide_log_message *acknowledged = &messages[last];
        if (is_opened_again)
            acknowledged = &messages[COUNT / 2 - 1 - count]; /* the unacknowledged ones */
        assert_int_equal(
            wait_for(&it, bide_log_acknowledge(&it.operation, &consumer, acknowledged, 1)), 0);
        assert_int_equal(stat(path_of(&it, "groups", path), &about), 0);
        largest = about.st_size > largest ? about.st_size : largest;
        if (is_opened_again && about.st_size < LARGE)
            break;
        if (is_opened_again || about.st_size < LARGE)
            continue;
        is_opened_again = true;
        bide_log_unsubscribe(&consumer);
        close_log(&it);
        assert_int_equal(open_log(&it, options), 0);
        assert_int_equal(subscribe(&it, &consumer, "g"), 0);
        assert_int_equal(read_some(&it, &consumer, messages, COUNT), 0);
        assert_int_equal(it.operation.count, COUNT / 2 - 1 - count);
    }
    assert_true(is_opened_again);
    assert_true(about.st_size < LARGE);
    assert_true(largest > LARGE && largest < 2 * MAX);
    bide_log_unsubscribe(&consumer);
    close_log(&it);
    end(&it);
}

static void a_groups_file_that_is_too_large_is_refused(void **state)
{
    (void)state;
    if (sizeof(size_t) > 4) {
        print_message("# skipped: 2^32 bytes are a size here\n");
        skip();
    }
    struct fixture it;
    bide_log_consumer consumer;
    char path[200];
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    assert_int_equal(subscribe(&it, &consumer, "g"), 0);
    bide_log_unsubscribe(&consumer);
    close_log(&it);
    off_t size = (off_t)(UINT64_C(1) << 32) + 100;
    assert_int_equal(truncate(path_of(&it, "groups", path), size), 0);
    assert_int_equal(open_log(&it, "?level=stored"), -ENOMEM);
    assert_non_null(strstr(it.operation.problem, "groups"));
    end(&it);
}

/* Five messages of 2^30 bytes, which are the same ones, are more than a size has on 32 bits. */
static void a_batch_that_is_too_large_for_memory_is_refused(void **state)
{
    (void)state;
    if (sizeof(size_t) > 4) {
        print_message("# skipped: 5 * 2^30 bytes are a size here\n");
        skip();
    }
    enum { COUNT = 5 };
    const size_t size = (size_t)1 << 30;
    struct fixture it;
    bide_log_message messages[COUNT];
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
        print_message("# skipped: there are no addresses for 2^30 bytes\n");
        skip();
    }
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored&size=1073741824"), 0);
    for (int i = 0; i < COUNT; i++)
        messages[i] = (bide_log_message){.data = data, .size = size};
    assert_int_equal(wait_for(&it, bide_log_publish(&it.operation, it.log, messages, COUNT)),
                     -ENOMEM);
    publish_letters(&it, "a");
    expect_left(&it, NULL, "a");
    close_log(&it);
    end(&it);
    assert_int_equal(munmap(data, size), 0);
}

/* ---- Times ---- */

/* A group that exists continues where it is: nothing is looked for. */
static void a_group_that_exists_needs_no_time(void **state)
{
    (void)state;
    struct fixture it;
    bide_log_consumer consumer;
    const bide_log_consumer_options options = {.group = "g", .from = BIDE_LOG_FROM_TIME, .time = 1};
    begin(&it);
    assert_int_equal(open_log(&it, ""), 0);
    publish_letters(&it, "ab");
    call_number = 0;
    assert_int_equal(wait_for(&it, bide_log_subscribe(&it.operation, &consumer, it.log, &options)),
                     0);
    bide_log_unsubscribe(&consumer);
    assert_true(call_number > 2); /* (it is looked for) */
    call_number = 0;
    assert_int_equal(wait_for(&it, bide_log_subscribe(&it.operation, &consumer, it.log, &options)),
                     0);
    assert_int_equal(call_number, 0);
    bide_log_unsubscribe(&consumer);
    close_log(&it);
    end(&it);
}

static void *publish_beside(void *argument)
{
    struct fixture *it = argument;
    static char data[1500];
    for (char letter = 'f'; letter < 'm'; letter++) {
        bide_log_operation operation;
        data[0] = letter;
        bide_log_message message = {.data = data, .size = sizeof data};
        assert_int_equal(bide_sync_wait(bide_log_publish(&operation, it->log, &message, 1)), 0);
    }
    assert_false(exists(it, SEGMENT));
    return NULL;
}

static void publish_until_it_is_removed(void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, publish_beside, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Retention removes the segment in which a time is looked for, before it is opened. */
static void a_segment_is_removed_while_a_time_is_looked_for(void **state)
{
    (void)state;
    struct fixture it;
    bide_log_consumer consumer;
    bide_log_message message;
    static char data[1500] = "a";
    const bide_log_consumer_options options = {.from = BIDE_LOG_FROM_TIME, .time = 1};
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored&segment=4096&retain=8192"), 0);
    assert_int_equal(publish(&it, data, sizeof data), 0);
    meddle = publish_until_it_is_removed;
    meddle_argument = &it;
    meddled = SEGMENT;
    assert_int_equal(wait_for(&it, bide_log_subscribe(&it.operation, &consumer, it.log, &options)),
                     0);
    assert_null(meddled);
    assert_int_equal(read_some(&it, &consumer, &message, 1), 0);
    assert_true(*(const char *)message.data > 'a');
    bide_log_unsubscribe(&consumer);
    close_log(&it);
    end(&it);
}

/* ---- Syncs ---- */

/* A sync fails, and the log is opened again: later messages are not behind a gap on the disk. */
static void a_log_is_opened_again_after_a_sync_that_failed(void **state)
{
    (void)state;
    struct fixture it;
    struct stat about;
    char path[200];
    begin(&it);
    assert_int_equal(open_log(&it, ""), 0);
    publish_letters(&it, "ab");
    assert_int_equal(stat(path_of(&it, SEGMENT, path), &about), 0);
    memset(&disk, 0, sizeof disk);
    disk.size = load(&it, SEGMENT, disk.bytes, sizeof disk.bytes);
    disk.inode = about.st_ino;
    disk.fails = true;
    assert_int_equal(publish(&it, "c", 1), -EIO);
    assert_true(it.operation.uncertain);
    assert_int_equal(publish(&it, "d", 1), -EIO);
    assert_false(it.operation.uncertain);
    close_log(&it);
    assert_int_equal(disk.size, 64 + 2 * 41);
    assert_int_equal(open_log(&it, ""), 0);
    publish_letters(&it, "e");
    close_log(&it);
    assert_int_equal(disk.size, 64 + 4 * 41);
    disk.written = 0;
    assert_int_equal(open_log(&it, ""), 0);
    assert_int_equal(disk.written, 0); /* it was closed in order */
    expect_left(&it, NULL, "abce");
    close_log(&it);
    disk.inode = 0;
    store(&it, SEGMENT, disk.bytes, disk.size); /* the power fails */
    assert_int_equal(open_log(&it, ""), 0);
    assert_string_equal(it.operation.problem, "");
    expect_left(&it, NULL, "abce");
    close_log(&it);
    end(&it);
}

/* A log that was not closed in order: its newest segment and its groups are written again. */
static void a_log_that_was_not_closed_is_written_again(void **state)
{
    (void)state;
    struct fixture it;
    struct stat before, after;
    char path[200];
    int ended;
    begin(&it);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bide_log_consumer consumer;
        bool is_well = open_log(&it, "?level=stored") == 0 && publish(&it, "a", 1) == 0 &&
                       subscribe(&it, &consumer, "g") == 0;
        _exit(is_well ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    assert_int_equal(stat(path_of(&it, SEGMENT, path), &before), 0);
    memset(&disk, 0, sizeof disk);
    disk.inode = before.st_ino;
    assert_int_equal(stat(path_of(&it, "groups", path), &before), 0);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    assert_int_equal(disk.size, 64 + 41);
    disk.inode = 0;
    assert_int_equal(stat(path_of(&it, "groups", path), &after), 0);
    assert_true(after.st_ino != before.st_ino);
    expect_left(&it, "g", "a");
    close_log(&it);
    end(&it);
}

/* What a failed write has left is cut off on the disk too: no loss of power brings it back. */
static void what_is_cut_off_is_synced(void **state)
{
    (void)state;
    struct fixture it;
    char path[200];
    static char data[100];
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored"), 0);
    publish_letters(&it, "a");
    for (int sync_fails = 0; sync_fails < 2; sync_fails++) {
        struct stat about;
        failing_error = ENOSPC;
        call_is_short = true;
        call_number = synced_count = 0;
        failing_call = 1;
        memset(&disk, 0, sizeof disk);
        assert_int_equal(stat(path_of(&it, SEGMENT, path), &about), 0);
        disk.inode = sync_fails != 0 ? about.st_ino : 0;
        disk.fails = true;
        assert_int_equal(publish(&it, data, sizeof data), -ENOSPC);
        assert_int_equal(it.operation.uncertain, sync_fails != 0);
        failing_call = 0;
        call_is_short = false;
        assert_true(sync_fails != 0 || was_synced(path_of(&it, SEGMENT, path)));
        assert_int_equal(publish(&it, "b", 1), sync_fails != 0 ? -ENOSPC : 0);
    }
    disk.inode = 0;
    expect_left(&it, NULL, "ab");
    close_log(&it);
    end(&it);
}

/* A making that fails, of a file that cannot be removed either, is made up for by the next. */
static void what_a_failed_making_has_left_is_removed_later(void **state)
{
    (void)state;
    struct fixture it;
    bide_log_consumer consumer;
    static char data[1500];
    static uint8_t found[100];
    begin(&it);
    assert_int_equal(open_log(&it, "?level=stored&segment=4096"), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(publish(&it, data, sizeof data), 0);
    failing_error = EIO;
    unlink_error = EIO;
    call_number = 0;
    failing_call = 4; /* a sync, looking for the segment, making it, and this: writing its header */
    assert_int_equal(publish(&it, data, sizeof data), -EIO);
    assert_true(exists(&it, "segment.new"));
    assert_false(it.operation.uncertain);
    unlink_error = 0;
    assert_int_equal(publish(&it, data, sizeof data), 0);
    assert_false(exists(&it, "segment.new"));
    assert_true(exists(&it, "00000000000000000003.log"));

    unlink_error = EIO;
    call_number = 0;
    failing_call = 2;
    assert_int_equal(subscribe(&it, &consumer, "g"), -EIO);
    assert_true(exists(&it, "groups.new"));
    unlink_error = 0;
    assert_int_equal(subscribe(&it, &consumer, "g"), 0);
    bide_log_unsubscribe(&consumer);
    assert_false(exists(&it, "groups.new"));

    /* a file of somebody else is left alone */
    assert_int_equal(publish(&it, data, sizeof data), 0);
    store(&it, "segment.new", (const uint8_t *)"mine", 4);
    assert_int_equal(publish(&it, data, sizeof data), -EEXIST);
    assert_int_equal(load(&it, "segment.new", found, sizeof found), 4);
    close_log(&it);
    end(&it);
}

/* Nobody knows whether a new segment is there after a power failure: nothing is published in it. */
static void a_directory_that_cannot_be_synced_ends_publishing(void **state)
{
    (void)state;
    struct fixture it;
    static char data[1500];
    begin(&it);
    assert_int_equal(open_log(&it, "?segment=4096"), 0);
    for (char letter = 'a'; letter < 'c'; letter++) {
        data[0] = letter;
        assert_int_equal(publish(&it, data, sizeof data), 0);
    }
    directory_error = EIO;
    data[0] = 'c';
    assert_int_equal(publish(&it, data, sizeof data), -EIO);
    assert_true(it.operation.uncertain);
    directory_error = 0;
    assert_int_equal(publish(&it, data, sizeof data), -EIO); /* a second sync proves nothing */
    close_log(&it);
    assert_int_equal(open_log(&it, "?segment=4096"), 0);
    expect_left(&it, NULL, "ab");
    publish_letters(&it, "x");
    close_log(&it);
    assert_int_equal(open_log(&it, ""), 0);
    expect_left(&it, NULL, "abx");

    /* nor whether a groups file has its name */
    bide_log_consumer consumer;
    directory_error = EIO;
    assert_int_equal(subscribe(&it, &consumer, "g"), -EIO);
    directory_error = 0;
    assert_int_equal(subscribe(&it, &consumer, "h"), -EIO);
    assert_int_equal(publish(&it, "y", 1), -EIO);
    close_log(&it);
    assert_int_equal(open_log(&it, ""), 0);
    assert_int_equal(subscribe(&it, &consumer, "h"), 0);
    bide_log_unsubscribe(&consumer);
    publish_letters(&it, "z");
    close_log(&it);
    end(&it);
}

/* The entries that lead to the log are on the disk before it is used. */
static void the_directories_are_synced(void **state)
{
    (void)state;
    struct fixture it;
    char path[200];
    begin(&it);
    synced_count = 0;
    assert_int_equal(open_log(&it, ""), 0);
    assert_true(was_synced(it.directory.root));
    assert_true(was_synced(it.directory.path));
    assert_true(was_synced(path_of(&it, "bide-log", path)));
    close_log(&it);
    synced_count = 0;
    assert_int_equal(open_log(&it, ""), 0);
    assert_true(was_synced(it.directory.path));
    assert_true(was_synced(path_of(&it, "bide-log", path)));
    assert_true(was_synced(path_of(&it, SEGMENT, path)));
    close_log(&it);
    directory_error = EIO;
    assert_int_equal(open_log(&it, ""), -EIO);
    directory_error = 0;
    assert_int_equal(open_log(&it, ""), 0);
    close_log(&it);
    end(&it);

    /* a directory above that may be entered, but not read: its whole file system is synced */
    begin(&it);
    parent_error = EACCES;
    system_error = EIO;
    assert_int_equal(open_log(&it, ""), -EIO);
    system_error = 0;
    system_syncs = 0;
    assert_int_equal(open_log(&it, ""), 0);
    assert_int_equal(system_syncs, 1);
    publish_letters(&it, "a");
    close_log(&it);
    end(&it);
    begin(&it);
    parent_error = EMFILE;
    assert_int_equal(open_log(&it, ""), -EMFILE);
    parent_error = 0;
    end(&it);

    begin(&it);
    directory_error = EIO;
    assert_int_equal(open_log(&it, ""), -EIO);
    struct stat about; /* nothing is signed whose directory may be lost */
    assert_int_equal(stat(path_of(&it, "bide-log", path), &about), 0);
    assert_int_equal(about.st_size, 0);
    directory_error = EINVAL; /* the file system cannot do it */
    assert_int_equal(open_log(&it, "?segment=4096&retain=4096"), 0);
    static char data[1500];
    for (int i = 0; i < 8; i++)
        assert_int_equal(publish(&it, data, sizeof data), 0);
    assert_false(exists(&it, SEGMENT));
    bide_log_consumer consumer;
    assert_int_equal(subscribe(&it, &consumer, "g"), 0);
    bide_log_unsubscribe(&consumer);
    close_log(&it);
    end(&it);
}

/* ---- Processes ---- */

/* A child of fork has the descriptors, but not the log. */
static void a_log_is_opened_again_while_a_child_of_fork_lives(void **state)
{
    (void)state;
    struct fixture it;
    int ends[2], ended;
    char byte;
    begin(&it);
    assert_int_equal(open_log(&it, ""), 0);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);
    publish_letters(&it, "a");
    close_log(&it);
    assert_int_equal(open_log(&it, ""), 0);
    expect_left(&it, NULL, "a");
    close_log(&it);
    close(ends[1]);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    end(&it);
}

/* ---- Calls that fail, each in turn ---- */

struct outcome {
    char published[32]; /* ended with 0 */
    char refused[32];   /* did not happen */
    bool opened;
    uint32_t acknowledged; /* of the first messages */
    uint32_t uncertain;    /* acknowledged with an error, so it may have been stored */
};

static void use(struct fixture *it, struct outcome *outcome)
{
    bide_log_consumer consumer;
    bide_log_message messages[4];
    static char data[1500];
    size_t published = 0, refused = 0;
    if (open_log(it, "?segment=4096&retain=1000000&size=2000") < 0) {
        assert_null(it->log);
        assert_true(it->operation.problem[0] != '\0');
        return;
    }
    outcome->opened = true;
    for (char letter = 'a'; letter < 'g'; letter++) {
        data[0] = letter;
        int status = publish(it, data, sizeof data);
        if (status == 0)
            outcome->published[published++] = letter;
        else if (!it->operation.uncertain)
            outcome->refused[refused++] = letter;
        assert_true(status <= 0);
    }
    if (subscribe(it, &consumer, "g") == 0) {
        int status = read_some(it, &consumer, messages, 2);
        if (status == 0) {
            uint32_t count = it->operation.count;
            status = wait_for(it, bide_log_acknowledge(&it->operation, &consumer, messages, count));
            outcome->acknowledged = status == 0 ? count : 0;
            outcome->uncertain = status == 0 ? 0 : count;
        }
        bide_log_unsubscribe(&consumer);
    } else {
        assert_null(consumer.group);
    }
    close_log(it);
}

/* What was published is there, in its order, and what did not happen is not. */
static void check_outcome(struct fixture *it, const struct outcome *outcome)
{
    bide_log_consumer consumer;
    bide_log_message messages[32];
    char text[33] = "", *at = text;
    assert_int_equal(open_log(it, "?size=2000"), 0);
    assert_int_equal(subscribe(it, &consumer, NULL), 0);
    int status = read_some(it, &consumer, messages, 32);
    assert_true(status == 0 || status == -ETIMEDOUT);
    uint32_t count = status == 0 ? it->operation.count : 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(messages[i].size, 1500);
        text[i] = *(const char *)messages[i].data;
    }
    bide_log_unsubscribe(&consumer);
    for (const char *letter = outcome->published; *letter != '\0'; letter++) {
        at = strchr(at, *letter);
        assert_non_null(at);
    }
    for (const char *letter = outcome->refused; *letter != '\0'; letter++)
        assert_null(strchr(text, *letter));
    uint64_t lag, expected = strlen(text) - outcome->acknowledged;
    if (bide_log_lag(it->log, "g", &lag) == 0 && lag == expected - outcome->uncertain)
        expect_left(it, "g", text + outcome->acknowledged + outcome->uncertain);
    else
        expect_left(it, "g", text + outcome->acknowledged);
    publish_letters(it, "z");
    close_log(it);
}

static void each_call_may_fail(void **state)
{
    (void)state;
    static const struct {
        int error;
        bool is_short;
    } ways[] = {{EIO, false}, {ENOSPC, true}, {EMFILE, false}};
    for (int way = 0; way < 3; way++) {
        unsigned calls = UINT32_MAX;
        for (unsigned n = 1; n <= calls; n++) {
            struct fixture it;
            struct outcome outcome = {.opened = false};
            begin(&it);
            call_is_short = ways[way].is_short;
            failing_error = ways[way].error;
            call_number = 0;
            failing_call = n;
            use(&it, &outcome);
            if (call_number < failing_call)
                calls = n;
            failing_call = 0;
            call_is_short = false;
            if (calls == n)
                assert_string_equal(outcome.published, "abcdef");
            check_outcome(&it, &outcome);
            end(&it);
        }
        assert_true(calls > 20);
    }
}

/* ---- A publisher that is killed ---- */

static void publish_until_killed(struct fixture *it, int report, uint64_t random)
{
    for (uint32_t number = 0; open_log(it, "?level=stored&segment=8192") == 0;) {
        for (int i = 0; i < 20; i++) {
            bide_log_message batch[4];
            static uint32_t data[4][100];
            uint32_t count = 1 + (uint32_t)(testing_random(&random) % 4);
            for (uint32_t k = 0; k < count; k++) {
                data[k][0] = number + k;
                batch[k] = (bide_log_message){.data = data[k],
                                              .size = 4 + (size_t)(testing_random(&random) % 396)};
            }
            if (wait_for(it, bide_log_publish(&it->operation, it->log, batch, count)) != 0)
                _exit(1);
            number += count;
            if (write(report, &number, sizeof number) != sizeof number)
                _exit(1);
        }
        close_log(it);
    }
    _exit(1);
}

static void what_a_killed_publisher_has_published_is_there(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    uint32_t rounds = rounds_of(16);
    for (uint32_t round = 0; round < rounds; round++) {
        struct fixture it;
        int ends[2], ended;
        uint32_t published = 0, found = 0, reports = (uint32_t)(testing_random(&random) % 60);
        begin(&it);
        assert_int_equal(pipe(ends), 0);
        uint64_t seed = testing_random(&random);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            close(ends[0]);
            publish_until_killed(&it, ends[1], seed);
        }
        close(ends[1]);
        for (uint32_t i = 0; i <= reports; i++)
            assert_int_equal(read(ends[0], &published, sizeof published), sizeof published);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_true(WIFSIGNALED(ended));
        while (read(ends[0], &published, sizeof published) == sizeof published)
            ;
        close(ends[0]);

        bide_log_consumer consumer;
        bide_log_message messages[64];
        assert_int_equal(open_log(&it, "?level=stored"), 0);
        assert_int_equal(subscribe(&it, &consumer, "g"), 0);
        while (read_some(&it, &consumer, messages, 64) == 0) {
            uint32_t count = it.operation.count;
            for (uint32_t i = 0; i < count; i++) {
                uint32_t number;
                memcpy(&number, messages[i].data, sizeof number);
                assert_int_equal(number, found++);
            }
            assert_int_equal(
                wait_for(&it, bide_log_acknowledge(&it.operation, &consumer, messages, count)), 0);
        }
        assert_true(found >= published && found <= published + 4);
        bide_log_unsubscribe(&consumer);
        close_log(&it);
        end(&it);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_and_groups_are_there_after_a_restart),
        cmocka_unit_test(a_large_log_is_read_from_any_place),
        cmocka_unit_test(old_segments_are_removed),
        cmocka_unit_test(old_messages_are_removed),
        cmocka_unit_test(what_is_old_makes_room_on_a_full_disk),
        cmocka_unit_test(a_publish_removes_a_few_segments),
        cmocka_unit_test(a_segment_is_cut_and_changed_at_each_byte),
        cmocka_unit_test(a_groups_file_is_cut_and_changed_at_each_byte),
        cmocka_unit_test(what_is_not_a_log_is_left_alone),
        cmocka_unit_test(segments_that_do_not_follow_each_other_are_refused),
        cmocka_unit_test(a_damaged_time_misleads_nobody),
        cmocka_unit_test(times_go_on_behind_a_damaged_message),
        cmocka_unit_test(what_was_not_synced_may_be_torn_in_any_place),
        cmocka_unit_test(a_message_with_records_in_it_is_no_record),
        cmocka_unit_test(a_damaged_message_can_be_passed_over),
        cmocka_unit_test(a_batch_that_is_too_large_for_memory_is_refused),
        cmocka_unit_test(a_group_that_is_ahead_has_what_is_published_later),
        cmocka_unit_test(a_groups_file_that_was_opened_is_made_smaller),
        cmocka_unit_test(a_groups_file_that_is_too_large_is_refused),
        cmocka_unit_test(a_group_that_exists_needs_no_time),
        cmocka_unit_test(a_log_is_opened_again_after_a_sync_that_failed),
        cmocka_unit_test(a_log_that_was_not_closed_is_written_again),
        cmocka_unit_test(what_is_cut_off_is_synced),
        cmocka_unit_test(what_a_failed_making_has_left_is_removed_later),
        cmocka_unit_test(a_directory_that_cannot_be_synced_ends_publishing),
        cmocka_unit_test(the_directories_are_synced),
        cmocka_unit_test(a_log_is_opened_again_while_a_child_of_fork_lives),
        cmocka_unit_test(each_call_may_fail),
        cmocka_unit_test(what_a_killed_publisher_has_published_is_there),
        cmocka_unit_test(a_segment_is_removed_while_a_time_is_looked_for), /* (has threads) */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
