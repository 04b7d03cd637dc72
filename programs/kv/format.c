/* Writes and checks headers and heads of frames. No state, any thread. */
#define _GNU_SOURCE
#include "format.h"

#include <endian.h>
#include <errno.h>
#include <sys/random.h>

static const char signature[12] = "\x89"
                                  "bide-kv\r\n\x1a\n";
static const char head_signature[4] = {'k', 'v', 'F', 'r'};

static void put16(char *to, uint16_t number)
{
    number = htole16(number);
    memcpy(to, &number, sizeof number);
}

static void put32(char *to, uint32_t number)
{
    number = htole32(number);
    memcpy(to, &number, sizeof number);
}

static void put64(char *to, uint64_t number)
{
    number = htole64(number);
    memcpy(to, &number, sizeof number);
}

static uint16_t get16(const char *from)
{
    uint16_t number;
    memcpy(&number, from, sizeof number);
    return le16toh(number);
}

static uint32_t get32(const char *from)
{
    uint32_t number;
    memcpy(&number, from, sizeof number);
    return le32toh(number);
}

static uint64_t get64(const char *from)
{
    uint64_t number;
    memcpy(&number, from, sizeof number);
    return le64toh(number);
}

static uint64_t checksum(const char *data, size_t size, const struct file_identity *identity)
{
    return bytes_hash((struct bytes){data, size}, identity->key);
}

/* ---- The header ---- */

enum { VERSION_AT = 12, KIND_AT = 14, IDENTITY_AT = 16, HEADER_SUM_AT = 32 };

static void get_identity(const char *header, struct file_identity *identity)
{
    identity->key[0] = get64(header + IDENTITY_AT);
    identity->key[1] = get64(header + IDENTITY_AT + 8);
}

int format_make_header(char header[FORMAT_HEADER], enum file_kind kind,
                       struct file_identity *identity)
{
    memcpy(header, signature, sizeof signature);
    put16(header + VERSION_AT, FORMAT_VERSION);
    put16(header + KIND_AT, (uint16_t)kind);
    if (getrandom(header + IDENTITY_AT, HEADER_SUM_AT - IDENTITY_AT, 0) !=
        HEADER_SUM_AT - IDENTITY_AT)
        return errno != 0 ? -errno : -EIO;
    get_identity(header, identity);
    put64(header + HEADER_SUM_AT, checksum(header, HEADER_SUM_AT, identity));
    return 0;
}

enum header_state format_read_header(const char *data, size_t size, unsigned *kind,
                                     unsigned *version, struct file_identity *identity)
{
    *kind = *version = 0;
    *identity = (struct file_identity){{0, 0}};
    if (size >= 2 && data[0] == '*' && data[1] >= '1' && data[1] <= '9')
        return HEADER_OLD;
    if (size < sizeof signature || memcmp(data, signature, sizeof signature) != 0)
        return HEADER_FOREIGN;
    if (size < FORMAT_HEADER)
        return HEADER_DAMAGED;
    get_identity(data, identity);
    *version = get16(data + VERSION_AT);
    *kind = get16(data + KIND_AT);
    if (get64(data + HEADER_SUM_AT) != checksum(data, HEADER_SUM_AT, identity))
        return HEADER_DAMAGED;
    return *version >= 1 && *version <= FORMAT_VERSION ? HEADER_GOOD : HEADER_NEWER;
}

/* ---- Frames ---- */

enum {
    FRAME_KIND_AT = 4,
    OFFSET_AT = 8,
    SYNCED_AT = 16,
    SIZE_AT = 24,
    SUM_AT = 32,
    HEAD_SUM_AT = 40
};

static void make_head(char *head, const struct file_identity *identity, const struct frame *frame)
{
    memcpy(head, head_signature, sizeof head_signature);
    put32(head + FRAME_KIND_AT, frame->kind);
    put64(head + OFFSET_AT, (uint64_t)frame->offset);
    put64(head + SYNCED_AT, (uint64_t)frame->synced);
    put64(head + SIZE_AT, frame->size);
    put64(head + SUM_AT, frame->sum);
    put64(head + HEAD_SUM_AT, checksum(head, HEAD_SUM_AT, identity));
}

bool format_seal_group(struct buffer *group, const struct file_identity *identity, int64_t offset,
                       int64_t synced)
{
    size_t size = buffer_used(group);
    if (group->begin >= FORMAT_HEAD) {
        group->begin -= FORMAT_HEAD;
    } else {
        if (!buffer_reserve(group, FORMAT_HEAD))
            return false;
        char *content = group->data + group->begin;
        memmove(content + FORMAT_HEAD, content, size);
        group->end += FORMAT_HEAD;
    }
    char *head = group->data + group->begin;
    const struct frame frame = {FRAME_GROUP, offset, synced, size,
                                checksum(head + FORMAT_HEAD, size, identity)};
    make_head(head, identity, &frame);
    return true;
}

void format_make_mark(char mark[FORMAT_HEAD], const struct file_identity *identity, int64_t offset,
                      int64_t synced)
{
    const struct frame frame = {FRAME_MARK, offset, synced, 0, 0};
    make_head(mark, identity, &frame);
}

bool format_read_head(const char *data, size_t size, size_t offset,
                      const struct file_identity *identity, struct frame *frame)
{
    if (offset > size || size - offset < FORMAT_HEAD)
        return false;
    const char *head = data + offset;
    if (memcmp(head, head_signature, sizeof head_signature) != 0 ||
        get64(head + HEAD_SUM_AT) != checksum(head, HEAD_SUM_AT, identity))
        return false;
    *frame = (struct frame){get32(head + FRAME_KIND_AT), (int64_t)get64(head + OFFSET_AT),
                            (int64_t)get64(head + SYNCED_AT), get64(head + SIZE_AT),
                            get64(head + SUM_AT)};
    return (uint64_t)frame->offset == offset;
}

bool format_is_intact(const char *data, size_t size, const struct frame *frame,
                      const struct file_identity *identity)
{
    size_t begin = (size_t)frame->offset + FORMAT_HEAD;
    if (frame->kind == FRAME_MARK)
        return frame->size == 0;
    return frame->kind == FRAME_GROUP && frame->size <= size - begin &&
           checksum(data + begin, (size_t)frame->size, identity) == frame->sum;
}

int64_t format_find_synced(const char *data, size_t size, size_t offset,
                           const struct file_identity *identity)
{
    int64_t synced = 0;
    struct frame frame;
    while (offset < size) {
        const char *at =
            memmem(data + offset, size - offset, head_signature, sizeof head_signature);
        if (at == NULL)
            break;
        offset = (size_t)(at - data);
        if (format_read_head(data, size, offset, identity, &frame) && frame.synced > synced)
            synced = frame.synced;
        offset++;
    }
    return synced;
}
