/*
 * The format of the append-only file and of snapshots. Numbers are little-endian.
 *
 *     file     header, frame, frame, ...
 *     header   signature (12 bytes), version (2), kind (2), identity (16), checksum (8)
 *     frame    head (48 bytes), payload
 *     head     "kvFr", kind (4), offset (8), synced (8), payload's size (8), payload's checksum (8),
 *              checksum of the head (8)
 *
 * The payload of a FRAME_GROUP is a group of records (record.h), which counts as a whole or not at
 * all. A FRAME_MARK has no payload: everything before it was complete when it was written. A
 * snapshot ends with one.
 *
 * The checksums are keyed with the identity, a random number that no client knows, and a head states
 * its own offset. So bytes of a client's value are never taken for a frame, not even bytes that were
 * copied from the file.
 *
 * `synced` says that everything before that offset was on the disk when the frame was written. The
 * disk writes what has not been synced in any order, so after a power cut a frame may be damaged
 * while later ones are intact. Damage at or behind the largest `synced` of all intact heads is a torn
 * tail. Damage before it is damage to acknowledged data.
 */
#ifndef KV_FORMAT_H
#define KV_FORMAT_H

#include "bytes.h"

enum file_kind { FILE_JOURNAL = 1, FILE_SNAPSHOT = 2 };

/*
 * Version 1 has the records SET, APPEND, DEL, PEXPIREAT, PERSIST and FLUSHALL. Version 2 also has
 * SETRANGE, RENAME, COPY and those of hashes and lists. Version 3 also has those of sets, and version 4
 * those of sorted sets. Older versions are read, and only the present one is written.
 */
enum { FORMAT_VERSION = 4, FORMAT_HEADER = 40, FORMAT_HEAD = 48 };

enum frame_kind { FRAME_GROUP = 1, FRAME_MARK = 2 };

struct frame {
    uint32_t kind;
    int64_t offset, synced;
    uint64_t size, sum; /* of the payload */
};

/* A file's identity: the key of its checksums. */
struct file_identity {
    uint64_t key[2];
};

/* Writes the header of a new file, and gives it an identity. Returns 0 or a negative errno. */
int format_make_header(char header[FORMAT_HEADER], enum file_kind kind,
                       struct file_identity *identity);

/* What the beginning of a file says. */
enum header_state {
    HEADER_GOOD,
    HEADER_FOREIGN, /* not written by this server */
    HEADER_OLD,     /* commands without a signature, as this server's first files and redis' are */
    HEADER_NEWER,   /* a version that this server does not know */
    HEADER_DAMAGED
};

enum header_state format_read_header(const char *data, size_t size, unsigned *kind,
                                     unsigned *version, struct file_identity *identity);

/*
 * Puts the head of a group in front of the buffer's content. `offset` is where the head will be in
 * the file. Returns false if memory is exhausted.
 */
bool format_seal_group(struct buffer *group, const struct file_identity *identity, int64_t offset,
                       int64_t synced);

/* Takes the head of a sealed group off again. */
static inline void format_unseal_group(struct buffer *group)
{
    bide_assert(buffer_used(group) >= FORMAT_HEAD);
    group->begin += FORMAT_HEAD;
}

/* Makes a mark at `offset`. */
void format_make_mark(char mark[FORMAT_HEAD], const struct file_identity *identity, int64_t offset,
                      int64_t synced);

/* Reads the head at `offset` of a file. Returns false if none is intact there. */
bool format_read_head(const char *data, size_t size, size_t offset,
                      const struct file_identity *identity, struct frame *frame);

/* True if the payload behind the head is complete and intact. */
bool format_is_intact(const char *data, size_t size, const struct frame *frame,
                      const struct file_identity *identity);

/* The largest `synced` of the intact heads at `offset` and behind it; 0 if there are none. */
int64_t format_find_synced(const char *data, size_t size, size_t offset,
                           const struct file_identity *identity);

#endif
