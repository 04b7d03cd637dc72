/*
 * The engine "file": a directory with a log in segments. Floor: log.
 *
 *     DIRECTORY/bide-log                    signs the directory; locked by the process that uses it,
 *                                           and one byte longer meanwhile
 *               00000000000000000001.log    a segment; its name is its first number
 *               groups                      where the named groups are
 *               torn-NAME-OFFSET.N          bytes that are not records, which were kept
 *               segment.new, groups.new     being made; renamed when they are whole and synced
 *
 * docs/internals/log.md has the bytes. All numbers are little-endian.
 */
#ifndef BIDE_SRC_LOG_FILE_H
#define BIDE_SRC_LOG_FILE_H

#include "state.h"

#include <pthread.h>
#include <sys/types.h>

enum {
    LOG_FILE_HEADER = 64, /* bytes at the head of each file */
    LOG_FILE_RECORD = 40, /* bytes of a record before its key, headers and data */
    LOG_FILE_GROUP = 28,  /* bytes of a group's record before its name and runs */
    LOG_FILE_HINTS = 16,
    LOG_FILE_NAME = 64,
    LOG_FILE_COMPACT = 1 << 20 /* a groups file of so many bytes is written anew */
};

enum log_file_kind { LOG_FILE_LOG = 1, LOG_FILE_SEGMENT = 2, LOG_FILE_GROUPS = 3 };

/* The place of a record. */
struct log_file_hint {
    uint64_t base; /* of its segment; 0: none */
    uint64_t number;
    uint64_t offset;
};

struct log_file_segment {
    uint64_t base; /* the number of its first record */
    uint64_t size;
    uint64_t first_time; /* UINT64_MAX: it has no record */
    uint64_t last_time;
};

/* Of one directory, by all handles of this process. */
struct log_file {
    struct log_state state;
    struct log_file *following;
    dev_t device;
    ino_t inode;
    pid_t process;
    uint32_t handles;
    uint32_t size; /* of a message, at most */
    uint64_t segment_size;
    uint64_t retain;
    bool must_exist; /* it is not made */
    uint64_t keep_for; /* nanoseconds; 0: for ever */
    int directory;
    int lock;
    uint64_t id;

    pthread_mutex_t io; /* for what follows, up to `newest` */
    struct log_file_segment *segments;
    size_t segment_count, segment_capacity;
    struct log_file_hint hints[LOG_FILE_HINTS]; /* the first: the newest batch */
    unsigned hint_next;

    /* of the commit that runs: one at a time */
    int newest; /* descriptor of the newest segment */
    int groups; /* of the groups file; -1: to be written anew */
    uint64_t groups_size;
    uint64_t groups_live; /* what it would be if it were written anew, when it was looked at last */
    uint64_t synced;      /* the number of the newest message that is on the disk for certain */
    int failed;           /* 0, or why nothing is published any more */
    bool directory_is_unsynced; /* a sync of it failed, and `failed` says why */
    bool is_clean; /* whoever used it last closed it, and knew what the disk was given */
};

struct log_file_handle {
    bide_log log;
    struct log_file *file;
};

/* Reads a file from its beginning to its end. */
struct log_file_reader {
    int descriptor;
    uint64_t id;     /* of the log */
    uint64_t offset; /* of `bytes` in the file */
    size_t count;    /* bytes that are there */
    uint8_t bytes[64 * 1024];
};

struct log_file_record {
    uint32_t body_crc;
    uint64_t number;
    uint64_t time;
    uint32_t key_size;
    uint32_t encoded_size;
    uint32_t size;
};

uint32_t bide_log_crc_(const void *data, size_t size);

/* ---- file_bytes.c ---- */

void bide_log_put_(uint8_t *at, uint64_t value, unsigned bytes);
uint64_t bide_log_get_(const uint8_t *at, unsigned bytes);

/* All of it, or a negative errno. */
int bide_log_write_all_(int descriptor, const void *data, size_t size, uint64_t offset);

/* 1: all of it; 0: the file ends before; or a negative errno. */
int bide_log_read_all_(int descriptor, void *data, size_t size, uint64_t offset);

/* A file's header, and 0 if `bytes` are one of that kind; *id and *base are set. */
void bide_log_header_write_(uint8_t bytes[LOG_FILE_HEADER], enum log_file_kind kind, uint64_t id,
                            uint64_t base);
int bide_log_header_read_(const uint8_t bytes[LOG_FILE_HEADER], enum log_file_kind kind,
                          uint64_t *id, uint64_t *base);

/* A reader of a file of that log, or NULL: no memory. The caller frees it, and closes the file. */
struct log_file_reader *bide_log_reader_create_(const struct log_file *file, int descriptor);

/* 1: `size` bytes at `offset` are at *at; 0: the file ends before; or a negative errno. */
int bide_log_reader_get_(struct log_file_reader *reader, uint64_t offset, size_t size,
                         const uint8_t **at);

/* 1: the record of `number` is at `offset`, by its header; 0: it is not; or a negative errno. */
int bide_log_record_read_(struct log_file_reader *reader, uint64_t offset, uint64_t number,
                          struct log_file_record *record);
size_t bide_log_record_body_(const struct log_file_record *record);

/*
 * 1: *body has the bytes of the record, allocated, or they were checked if `body` is NULL; 0: they
 * are not what was written, or are behind `file_size`; or a negative errno.
 */
int bide_log_record_load_(struct log_file_reader *reader, uint64_t offset,
                          const struct log_file_record *record, uint64_t file_size, uint8_t **body);

/* Encodes a message, without its number and time. */
void bide_log_record_write_(uint8_t *out, const bide_log_message *message);
size_t bide_log_record_size_(const uint8_t *out);
/* Completes it, for the log of number `id`. All messages up to `synced` are synced. */
void bide_log_record_number_(uint8_t *out, uint64_t id, uint64_t number, uint64_t time,
                             uint64_t synced);
/* True: these are the bytes of a record's header, of that log. */
bool bide_log_record_is_of_(const uint8_t *header, uint64_t id);

/* ---- file_open.c: called on threads for blocking calls ---- */

int bide_log_file_recover_(struct log_file *file, char *problem, const char *path);

/*
 * Makes the file "NAME.new" with these bytes, synced, and gives it its name; the descriptor. After
 * an error it has the new name, the old one, or both, if file->directory_is_unsynced.
 */
int bide_log_file_make_(struct log_file *file, const char *name, const char *fresh,
                        const void *bytes, size_t size);

/*
 * Syncs the directory. A system that cannot do that for directories is no error. After an error it
 * fails for good, and so do publishes: a second sync would tell nothing of what the first has lost.
 */
int bide_log_file_sync_directory_(struct log_file *file);

/* Adds a segment that begins with `base`, and makes it the newest. */
int bide_log_file_add_segment_(struct log_file *file, uint64_t base);
void bide_log_segment_name_(uint64_t base, char name[LOG_FILE_NAME]);

/* ---- file_groups.c ---- */

/* The record of a group; its bytes, of which `out` has room for all. NULL: only the number. */
size_t bide_log_group_encode_(const struct bide_log_group_ *group, uint8_t *out);
/*
 * The records of the named groups that have changed; or of all, behind the file's header. Under the
 * state's lock.
 */
size_t bide_log_groups_encode_(const struct log_file *file, bool is_whole, uint8_t *out);
/* Reads the groups file; 0, or a negative errno, and *end is where its records end. */
int bide_log_groups_read_(struct log_file *file, int descriptor, uint64_t *end);

#endif
