/*
 * The wire format of frames.
 *
 *     byte 0     final | 3 reserved bits | 4 bits of opcode
 *     byte 1     masked | 7 bits of size; 126: 2 bytes of size follow, 127: 8 bytes, big-endian
 *     4 bytes    the key, if the frame is masked
 *     the rest   `size` bytes; the nth is masked by byte n % 4 of the key
 */
#include "websocket.h"

#include <string.h>

enum { FRAME_FINAL = 0x80, FRAME_MASKED = 0x80, FRAME_SIZE_OF_2 = 126, FRAME_SIZE_OF_8 = 127 };

static uint64_t frame_read_number(const uint8_t *bytes, size_t count)
{
    uint64_t number = 0;
    for (size_t i = 0; i < count; i++)
        number = number << 8 | bytes[i];
    return number;
}

static void frame_write_number(uint8_t *bytes, size_t count, uint64_t number)
{
    while (count-- != 0) {
        bytes[count] = (uint8_t)number;
        number >>= 8;
    }
}

int bide_websocket_parse_header_(websocket_header *header, const char *data, size_t size,
                                 size_t *wanted)
{
    const uint8_t *bytes = (const uint8_t *)data;
    *wanted = 2;
    if (size < 2)
        return WEBSOCKET_INCOMPLETE;
    unsigned length = bytes[1] & 0x7fU;
    size_t more = length == FRAME_SIZE_OF_2 ? 2 : length == FRAME_SIZE_OF_8 ? 8 : 0;
    header->is_masked = (bytes[1] & FRAME_MASKED) != 0;
    header->is_final = (bytes[0] & FRAME_FINAL) != 0;
    header->reserved = bytes[0] & 0x70;
    header->opcode = bytes[0] & 0x0f;
    *wanted = 2 + more + (header->is_masked ? 4 : 0);
    if (size < *wanted)
        return WEBSOCKET_INCOMPLETE;
    header->size = more != 0 ? frame_read_number(bytes + 2, more) : length;
    if ((more == 2 && header->size < FRAME_SIZE_OF_2) ||
        (more == 8 && header->size <= UINT16_MAX) || header->size > INT64_MAX)
        return WEBSOCKET_NOT_MINIMAL;
    if (header->is_masked)
        memcpy(header->key, bytes + 2 + more, 4);
    return (int)*wanted;
}

size_t bide_websocket_write_header_(uint8_t *header, uint8_t opcode, bool is_final, uint64_t size,
                                    const uint8_t *key)
{
    uint8_t masked = key != NULL ? FRAME_MASKED : 0;
    size_t more = size > UINT16_MAX ? 8 : size >= FRAME_SIZE_OF_2 ? 2 : 0;
    header[0] = (uint8_t)(opcode | (is_final ? FRAME_FINAL : 0));
    header[1] = (uint8_t)(masked | (more == 8   ? FRAME_SIZE_OF_8
                                    : more == 2 ? FRAME_SIZE_OF_2
                                                : (uint8_t)size));
    frame_write_number(header + 2, more, size);
    if (key == NULL)
        return 2 + more;
    memcpy(header + 2 + more, key, 4);
    return 2 + more + 4;
}

static uint64_t frame_load_word(const char *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

static void frame_store_word(char *to, uint64_t word)
{
    memcpy(to, &word, sizeof word);
}

void bide_websocket_mask_(char *to, const char *from, size_t size, const uint8_t key[4],
                          size_t phase)
{
    uint8_t turned[8];
    uint64_t word;
    for (size_t i = 0; i < sizeof turned; i++)
        turned[i] = key[(phase + i) % 4];
    memcpy(&word, turned, sizeof word);
    for (; size >= 32; size -= 32, from += 32, to += 32) {
        uint64_t a = frame_load_word(from), b = frame_load_word(from + 8),
                 c = frame_load_word(from + 16), d = frame_load_word(from + 24);
        frame_store_word(to, a ^ word);
        frame_store_word(to + 8, b ^ word);
        frame_store_word(to + 16, c ^ word);
        frame_store_word(to + 24, d ^ word);
    }
    for (; size >= 8; size -= 8, from += 8, to += 8)
        frame_store_word(to, frame_load_word(from) ^ word);
    for (size_t i = 0; i < size; i++)
        to[i] = (char)((uint8_t)from[i] ^ turned[i]);
}

bool bide_websocket_is_code_(unsigned code)
{
    return (code >= 3000 && code <= 4999) ||
           (code >= BIDE_WEBSOCKET_NORMAL && code <= 1014 && code != 1004 &&
            code != BIDE_WEBSOCKET_NO_CODE && code != BIDE_WEBSOCKET_ABNORMAL);
}
