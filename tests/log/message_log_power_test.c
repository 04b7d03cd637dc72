/*
 * The engine "file" and losses of power, at random calls of random uses. The calls are followed by a disk, which has for
 * certain what was synced. Of the rest it has any sectors of each file, and the changes of the directory up to any one.
 * A log of what the disk has opens without an error, has all messages and acknowledgements that were synced, and no
 * others than those that were published.
 */
#define _GNU_SOURCE
#include "log_directory.h"

#include <bide/bide.h>
#include <bide/message_log.h>

#include <errno.h>
#include <sys/stat.h>
#include <sys/types.h>

enum {
    SECTOR = 512,
    FILE_MAX = 1 << 17,
    FILES = 400,
    CHANGES = 4000,
    MESSAGES = 4000,
    DATA_MAX = 1500,
    BATCH_MAX = 6,
    SEGMENT_SIZE = 8192
};

/* ---- The disk ---- */

struct disk_file {
    ino_t inode;
    size_t size;
    uint8_t *bytes; /* what is on the disk for certain */
};

struct disk_change {
    enum { WRITE, TRUNCATE, CREATE, RENAME, REMOVE } kind;
    int file;
    size_t offset, size;
    uint8_t *bytes;
    char name[64], to[64];
};

struct disk_entry {
    char name[64];
    int file; /* -1: none */
};

static struct {
    bool follows;
    dev_t device;
    ino_t directory;
    struct disk_file files[FILES];
    int file_count;
    struct disk_entry entries[FILES];
    int entry_count;
    struct disk_change changes[CHANGES]; /* that are not synced, in their order */
    int change_count;
    unsigned calls, fails_at; /* power fails before this call */
    uint64_t random;
    const char *image; /* of the directory after the power has failed */
    bool has_failed;
} disk;

static void (*power_fails)(void *argument);
static void *power_argument;

static int disk_find(ino_t inode)
{
    for (int i = disk.file_count; i-- > 0;) {
        if (disk.files[i].inode == inode)
            return i;
    }
    return -1;
}

static struct disk_change *disk_add(int kind, int file)
{
    assert_true(disk.change_count < CHANGES);
    struct disk_change *change = &disk.changes[disk.change_count++];
    memset(change, 0, sizeof *change);
    change->kind = kind;
    change->file = file;
    return change;
}

static int *disk_entry(const char *name)
{
    for (int i = 0; i < disk.entry_count; i++) {
        if (strcmp(disk.entries[i].name, name) == 0)
            return &disk.entries[i].file;
    }
    assert_true(disk.entry_count < FILES);
    struct disk_entry *entry = &disk.entries[disk.entry_count++];
    snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->file = -1;
    return &entry->file;
}

static void disk_apply(const struct disk_change *change, size_t from, size_t to)
{
    struct disk_file *file = &disk.files[change->file];
    int moved;
    switch (change->kind) {
    case WRITE:
        assert_true(change->offset + to <= FILE_MAX);
        memcpy(file->bytes + change->offset + from, change->bytes + from, to - from);
        if (file->size < change->offset + to)
            file->size = change->offset + to;
        break;
    case TRUNCATE:
        if (file->size > change->size)
            memset(file->bytes + change->size, 0, file->size - change->size);
        file->size = change->size;
        break;
    case CREATE:
        *disk_entry(change->name) = change->file;
        break;
    case RENAME:
        moved = *disk_entry(change->name);
        *disk_entry(change->name) = -1;
        *disk_entry(change->to) = moved;
        break;
    case REMOVE:
        *disk_entry(change->name) = -1;
        break;
    }
}

static bool disk_is_of_directory(const struct disk_change *change)
{
    return change->kind == CREATE || change->kind == RENAME || change->kind == REMOVE;
}

/* What was changed of a file, or of the directory if it is -1, is on the disk for certain. */
static void disk_sync(int file)
{
    int left = 0;
    for (int i = 0; i < disk.change_count; i++) {
        struct disk_change *change = &disk.changes[i];
        if (file < 0 ? disk_is_of_directory(change)
                     : !disk_is_of_directory(change) && change->file == file) {
            disk_apply(change, 0, change->size);
            free(change->bytes);
        } else {
            disk.changes[left++] = *change;
        }
    }
    disk.change_count = left;
}

static bool drawn(unsigned one_in)
{
    return testing_random(&disk.random) % one_in == 0;
}

/* The power has failed: the disk has some of what was not synced. */
static void disk_fail(void)
{
    char path[200];
    bool has_directory = true;
    unsigned loses = 1 + (unsigned)(testing_random(&disk.random) % 4);
    disk.has_failed = true;
    for (int i = 0; i < disk.change_count; i++) {
        const struct disk_change *change = &disk.changes[i];
        if (disk_is_of_directory(change)) {
            has_directory = has_directory && !drawn(4);
            if (has_directory)
                disk_apply(change, 0, 0);
        } else if (change->kind == TRUNCATE) {
            if (drawn(2))
                disk_apply(change, 0, 0);
        } else {
            for (size_t from = 0, to; from < change->size; from = to) {
                to = from + SECTOR - (change->offset + from) % SECTOR;
                to = to < change->size ? to : change->size;
                if (loses != 1 ? !drawn(loses) : drawn(8))
                    disk_apply(change, from, to);
            }
        }
    }
    assert_int_equal(mkdir(disk.image, 0700), 0);
    for (int i = 0; i < disk.entry_count; i++) {
        if (disk.entries[i].file < 0)
            continue;
        const struct disk_file *file = &disk.files[disk.entries[i].file];
        snprintf(path, sizeof path, "%s/%s", disk.image, disk.entries[i].name);
        FILE *written = fopen(path, "wb");
        assert_non_null(written);
        assert_int_equal(fwrite(file->bytes, 1, file->size, written), file->size);
        assert_int_equal(fclose(written), 0);
    }
    power_fails(power_argument);
}

static void disk_forget(void)
{
    for (int i = 0; i < disk.file_count; i++)
        free(disk.files[i].bytes);
    for (int i = 0; i < disk.change_count; i++)
        free(disk.changes[i].bytes);
    disk.file_count = disk.entry_count = disk.change_count = 0;
    disk.follows = disk.has_failed = false;
    disk.calls = 0;
}

static int disk_new_file(int descriptor)
{
    struct stat about;
    assert_int_equal(fstat(descriptor, &about), 0);
    assert_true(disk.file_count < FILES);
    struct disk_file *file = &disk.files[disk.file_count];
    *file = (struct disk_file){about.st_ino, 0, calloc(1, FILE_MAX)};
    assert_non_null(file->bytes);
    return disk.file_count++;
}

/* The disk has what the directory has, for certain. */
static void disk_follow(const char *path, const char *image, uint64_t random, unsigned fails_at)
{
    struct stat about;
    disk.image = image;
    disk.random = random;
    disk.fails_at = fails_at;
    if (mkdir(path, 0700) < 0)
        assert_int_equal(errno, EEXIST);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    assert_int_equal(fstat(dirfd(directory), &about), 0);
    disk.device = about.st_dev;
    disk.directory = about.st_ino;
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        int descriptor = openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC);
        assert_true(descriptor >= 0);
        int file = disk_new_file(descriptor);
        ssize_t size = read(descriptor, disk.files[file].bytes, FILE_MAX);
        assert_true(size >= 0 && size < FILE_MAX);
        disk.files[file].size = (size_t)size;
        close(descriptor);
        *disk_entry(entry->d_name) = file;
    }
    closedir(directory);
    disk.follows = true;
}

/* True: the call is one of the log's directory, and the power is on. */
static bool disk_sees(void)
{
    if (!disk.follows || disk.has_failed)
        return false;
    if (++disk.calls == disk.fails_at)
        disk_fail();
    return !disk.has_failed;
}

static int file_of(int descriptor)
{
    struct stat about;
    assert_int_equal(fstat(descriptor, &about), 0);
    return about.st_dev == disk.device ? disk_find(about.st_ino) : -1;
}

/* ---- Calls ---- */

ssize_t __real_pwrite64(int descriptor, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int descriptor, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int descriptor, const void *data, size_t size, off_t offset)
{
    int file = disk_sees() ? file_of(descriptor) : -1;
    if (file >= 0) {
        struct disk_change *change = disk_add(WRITE, file);
        change->offset = (size_t)offset;
        change->size = size;
        change->bytes = malloc(size);
        assert_non_null(change->bytes);
        memcpy(change->bytes, data, size);
    }
    return __real_pwrite64(descriptor, data, size, offset);
}

int __wrap_fdatasync(int descriptor);
int __wrap_fdatasync(int descriptor)
{
    int file = disk_sees() ? file_of(descriptor) : -1;
    if (file >= 0)
        disk_sync(file);
    return 0;
}

int __wrap_fsync(int descriptor);
int __wrap_fsync(int descriptor)
{
    struct stat about;
    assert_int_equal(fstat(descriptor, &about), 0);
    if (disk_sees() && about.st_dev == disk.device && about.st_ino == disk.directory)
        disk_sync(-1);
    return 0;
}

int __real_ftruncate64(int descriptor, off_t size);
int __wrap_ftruncate64(int descriptor, off_t size);
int __wrap_ftruncate64(int descriptor, off_t size)
{
    int file = disk_sees() ? file_of(descriptor) : -1;
    if (file >= 0)
        disk_add(TRUNCATE, file)->size = (size_t)size;
    return __real_ftruncate64(descriptor, size);
}

int __real_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to)
{
    if (disk_sees()) {
        struct disk_change *change = disk_add(RENAME, 0);
        snprintf(change->name, sizeof change->name, "%s", from);
        snprintf(change->to, sizeof change->to, "%s", to);
    }
    return __real_renameat(a, from, b, to);
}

int __real_unlinkat(int descriptor, const char *path, int flags);
int __wrap_unlinkat(int descriptor, const char *path, int flags);
int __wrap_unlinkat(int descriptor, const char *path, int flags)
{
    if (disk_sees()) {
        struct disk_change *change = disk_add(REMOVE, 0);
        snprintf(change->name, sizeof change->name, "%s", path);
    }
    return __real_unlinkat(descriptor, path, flags);
}

int __real_openat64(int descriptor, const char *path, int flags, ...);
int __wrap_openat64(int descriptor, const char *path, int flags, ...);
int __wrap_openat64(int descriptor, const char *path, int flags, ...)
{
    bool creates = (flags & O_CREAT) != 0 && disk_sees();
    int opened = __real_openat64(descriptor, path, flags, 0600);
    if (opened >= 0 && creates) {
        struct disk_change *change = disk_add(CREATE, disk_new_file(opened));
        snprintf(change->name, sizeof change->name, "%s", path);
    }
    return opened;
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

/* ---- A log ---- */

/* Message `number` of the log is `serials[number - 1]`. */
struct history {
    uint32_t serials[MESSAGES];
    bool is_done[MESSAGES];   /* the group may be done with it */
    bool is_stored[MESSAGES]; /* and is, for certain */
    uint32_t count;           /* messages that may be there */
    uint32_t certain;         /* that are there */
    uint32_t serial;          /* of the next message */
};

struct fixture {
    bide_sim_loop loop;
    struct log_directory directory;
    bide_log *log;
    bide_log_operation operation;
    struct history now, then; /* when the power failed */
    bool syncs;
};

static int wait_for(struct fixture *it, bide_awaiter *awaiter)
{
    return bide_sim_loop_wait(&it->loop, awaiter);
}

static void note_failure(void *argument)
{
    struct fixture *it = argument;
    it->then = it->now;
}

static void fill(uint8_t *data, size_t size, uint32_t serial)
{
    uint64_t random = serial;
    for (size_t i = 0; i < size; i++)
        data[i] = serial % 3 == 0 ? 0 : (uint8_t)testing_random(&random);
    memcpy(data, &serial, sizeof serial);
}

static size_t size_of(uint32_t serial)
{
    uint64_t random = serial;
    return 4 + (size_t)(testing_random(&random) % (DATA_MAX - 4));
}

static void publish_batch(struct fixture *it, uint64_t *random)
{
    static uint8_t data[BATCH_MAX][DATA_MAX];
    bide_log_message batch[BATCH_MAX];
    uint32_t count = 1 + (uint32_t)(testing_random(random) % BATCH_MAX);
    bide_atomic_store(&seconds_ahead,
                      bide_atomic_load(&seconds_ahead, relaxed) +
                          (uint32_t)(testing_random(random) % 2),
                      relaxed);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t serial = it->now.serial++, at = it->now.count++;
        assert_true(at < MESSAGES);
        it->now.serials[at] = serial;
        it->now.is_done[at] = it->now.is_stored[at] = false;
        batch[i] = (bide_log_message){.data = data[i], .size = size_of(serial)};
        fill(data[i], batch[i].size, serial);
    }
    assert_int_equal(wait_for(it, bide_log_publish(&it->operation, it->log, batch, count)), 0);
    if (it->syncs)
        it->now.certain = it->now.count;
}

static void check_message(const struct history *history, const bide_log_message *message)
{
    uint8_t expected[DATA_MAX];
    assert_true(message->position.low_ - 1 < history->count);
    uint32_t serial = history->serials[message->position.low_ - 1];
    assert_int_equal(message->size, size_of(serial));
    fill(expected, message->size, serial);
    assert_memory_equal(message->data, expected, message->size);
}

static int read_some(struct fixture *it, bide_log_consumer *consumer, bide_log_message *messages,
                     uint32_t max)
{
    bide_with_deadline_operation limited;
    return wait_for(it, bide_with_timeout(&limited, UINT64_C(60000000000),
                                          bide_log_read(&it->operation, consumer, messages, max)));
}

static void acknowledge_some(struct fixture *it, bide_log_consumer *consumer, uint64_t *random)
{
    bide_log_message messages[BATCH_MAX];
    uint32_t left = 0;
    int status = read_some(it, consumer, messages, BATCH_MAX);
    if (status == -ETIMEDOUT)
        return;
    assert_int_equal(status, 0);
    uint32_t count = it->operation.count;
    for (uint32_t i = 0; i < count; i++) {
        check_message(&it->now, &messages[i]);
        if (testing_random(random) % 3 != 0)
            messages[left++] = messages[i];
    }
    for (uint32_t i = 0; i < left; i++)
        it->now.is_done[messages[i].position.low_ - 1] = true;
    assert_int_equal(wait_for(it, bide_log_acknowledge(&it->operation, consumer, messages, left)),
                     0);
    for (uint32_t i = 0; i < left && it->syncs; i++)
        it->now.is_stored[messages[i].position.low_ - 1] = true;
}

/* Retention, which a round draws: by bytes, also fewer than a segment has; or by age. */
#define AGES "&keep_for=1"
static const char *const retention[] = {"", "", "&retain=30000", "&retain=4096", AGES};
enum { RETENTIONS = sizeof retention / sizeof retention[0] };

/* The number of the first message of the newest segment. */
static uint32_t newest_base(const struct fixture *it)
{
    uint32_t newest = 0;
    DIR *directory = opendir(it->directory.path);
    assert_non_null(directory);
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        const char *end = strstr(entry->d_name, ".log");
        uint32_t base = (uint32_t)strtoull(entry->d_name, NULL, 10);
        if (end != NULL && end[4] == '\0' && base > newest)
            newest = base;
    }
    closedir(directory);
    return newest;
}

/*
 * All that is certain is there, in its order, and nothing that was not published. What is old may be
 * gone, and then the newest segment may be empty; `retain` leaves messages.
 */
static void check_log(struct fixture *it, const char *retains)
{
    static bide_log_message messages[MESSAGES];
    static bool is_there[MESSAGES];
    bide_log_consumer consumer;
    assert_int_equal(wait_for(it, bide_log_subscribe(&it->operation, &consumer, it->log, NULL)), 0);
    uint32_t count = 0, first = 1;
    while (read_some(it, &consumer, messages + count, MESSAGES - count) == 0)
        count += it->operation.count;
    if (count != 0)
        first = (uint32_t)messages[0].position.low_;
    else if (strcmp(retains, AGES) == 0)
        first = newest_base(it);
    assert_true(first == 1 || retains[0] != '\0');
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(messages[i].position.low_, first + i);
        check_message(&it->now, &messages[i]);
    }
    bide_log_unsubscribe(&consumer);
    uint32_t last = first - 1 + count;
    assert_true(last >= it->now.certain && last <= it->now.count);
    it->now.count = it->now.certain = last;

    const bide_log_consumer_options options = {.group = "g"};
    assert_int_equal(wait_for(it, bide_log_subscribe(&it->operation, &consumer, it->log, &options)),
                     0);
    memset(is_there, 0, sizeof is_there);
    for (count = 0; read_some(it, &consumer, messages + count, MESSAGES - count) == 0;)
        count += it->operation.count;
    for (uint32_t i = 0; i < count; i++)
        is_there[messages[i].position.low_ - 1] = true;
    for (uint32_t number = first; number <= last; number++) {
        assert_true(is_there[number - 1] || it->now.is_done[number - 1]);
        assert_false(is_there[number - 1] && it->now.is_stored[number - 1]);
        it->now.is_done[number - 1] = it->now.is_stored[number - 1] = !is_there[number - 1];
    }
    bide_log_unsubscribe(&consumer);
}

static void use_log(struct fixture *it, uint64_t *random, const char *retains)
{
    char url[256];
    bide_log_consumer consumer;
    const bide_log_consumer_options options = {.group = "g"};
    it->syncs = testing_random(random) % 2 == 0;
    snprintf(url, sizeof url, "file://%s?level=%s&segment=%d&window=4096%s", it->directory.path,
             it->syncs ? "synced" : "stored", SEGMENT_SIZE, retains);
    int status = wait_for(it, bide_log_open(&it->operation, &it->log, url));
    if (status < 0)
        print_message("# %s\n", it->operation.problem);
    assert_int_equal(status, 0);
    check_log(it, retains);
    assert_int_equal(wait_for(it, bide_log_subscribe(&it->operation, &consumer, it->log, &options)),
                     0);
    uint32_t steps = (uint32_t)(testing_random(random) % 12);
    for (uint32_t i = 0; i < steps && !disk.has_failed; i++) {
        if (testing_random(random) % 3 != 0)
            publish_batch(it, random);
        else
            acknowledge_some(it, &consumer, random);
    }
    bide_log_unsubscribe(&consumer);
    bide_log_close(it->log);
    bide_log_destroy(it->log);
}

static struct log_directory in_use; /* root: empty, or to be removed also if the test fails */

static int remove_what_is_in_use(void **state)
{
    char image[100];
    (void)state;
    if (in_use.root[0] == '\0')
        return 0;
    snprintf(image, sizeof image, "%s/image", in_use.root);
    log_directory_empty(image);
    log_directory_empty(in_use.path);
    return rmdir(in_use.root);
}

static void what_was_synced_survives_losses_of_power(void **state)
{
    (void)state;
    enum { GENERATIONS = 8 };
    uint64_t random = testing_seed();
    uint32_t rounds = rounds_of(12);
    for (uint32_t round = 0; round < rounds; round++) {
        struct fixture *it = calloc(1, sizeof *it);
        char image[100];
        assert_non_null(it);
        const char *retains = retention[testing_random(&random) % RETENTIONS];
        bide_sim_loop_init(&it->loop, 1);
        log_directory_make(&it->directory);
        in_use = it->directory;
        snprintf(image, sizeof image, "%s/image", it->directory.root);
        power_fails = note_failure;
        power_argument = it;
        for (int generation = 0; generation < GENERATIONS; generation++) {
            disk_follow(it->directory.path, image, testing_random(&random),
                        1 + (unsigned)(testing_random(&random) % 80));
            do {
                use_log(it, &random, retains);
            } while (!disk.has_failed && testing_random(&random) % 3 != 0);
            if (!disk.has_failed)
                disk_fail(); /* it was closed in order, and was synced or not */
            it->now = it->then;
            disk_forget();
            log_directory_empty(it->directory.path);
            assert_int_equal(rename(image, it->directory.path), 0);
        }
        bide_sim_loop_destroy(&it->loop);
        log_directory_remove(&it->directory);
        in_use.root[0] = '\0';
        free(it);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_was_synced_survives_losses_of_power, remove_what_is_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
