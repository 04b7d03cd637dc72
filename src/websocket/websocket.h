/* The internal interface between the files of WebSockets. */
#ifndef BIDE_IO_WEBSOCKET_H
#define BIDE_IO_WEBSOCKET_H

#include "bide/websocket.h"

#include <errno.h>

enum {
    WEBSOCKET_CONTINUATION = 0,
    WEBSOCKET_TEXT = 1,
    WEBSOCKET_BINARY = 2,
    WEBSOCKET_CLOSE = 8,
    WEBSOCKET_PING = 9,
    WEBSOCKET_PONG = 10,
    WEBSOCKET_COMPRESSED = 0x40 /* the bit beside the opcode of a message's first frame */
};

BIDE_INLINE size_t websocket_min(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

/* True if an operation was cancelled, or its deadline has passed. */
BIDE_INLINE bool websocket_was_cancelled(int status)
{
    return status == -ECANCELED || status == -ETIMEDOUT;
}

/* ---- receive.c ---- */

/* Ends the websocket with an error of the peer, which a close reports to the peer. */
int bide_websocket_fail_(bide_websocket *websocket, int status, unsigned code);

/* ---- frame.c ---- */

typedef struct websocket_header {
    uint64_t size;
    uint8_t key[4];
    uint8_t opcode;
    uint8_t reserved; /* bits */
    bool is_final;
    bool is_masked;
} websocket_header;

enum { WEBSOCKET_NOT_MINIMAL = -1, WEBSOCKET_INCOMPLETE = 0 };

/*
 * Parses a header. Returns its size in bytes; or WEBSOCKET_INCOMPLETE: `*wanted` bytes are needed; or
 * WEBSOCKET_NOT_MINIMAL: its length is not encoded in the minimal form.
 */
int bide_websocket_parse_header_(websocket_header *header, const char *data, size_t size,
                                 size_t *wanted);

/* Writes a header of up to 14 bytes, and returns its size. If `key` is NULL, the frame is not masked. */
size_t bide_websocket_write_header_(uint8_t *header, uint8_t opcode, bool is_final, uint64_t size,
                                    const uint8_t *key);

/* Masks or unmasks `size` bytes, beginning with byte `phase` of the key. `to` may be `from`. */
void bide_websocket_mask_(char *to, const char *from, size_t size, const uint8_t key[4],
                          size_t phase);

/* True if a close, sent or received, may have this code. */
bool bide_websocket_is_code_(unsigned code);

/* ---- utf8.c ---- */

/* The state of a check: the bytes that the last character still needs, and the next one's bounds. */
typedef struct websocket_utf8 {
    uint8_t left;
    uint8_t low;
    uint8_t high;
} websocket_utf8;

/* Continues the check with these bytes. False: the text is not UTF-8. */
bool bide_websocket_utf8_continue_(websocket_utf8 *text, const char *data, size_t size);

/* ---- send.c ---- */

/* True if answers, or bytes in the buffer, have to be sent. */
bool bide_websocket_has_answers_(const bide_websocket *websocket);

/* Sends the answers. */
bide_awaiter *bide_websocket_answer_(bide_websocket_answering_ *answering,
                                     bide_websocket *websocket);

/* Queues a close, unless one was queued before. The code may be BIDE_WEBSOCKET_NO_CODE. */
void bide_websocket_queue_close_(bide_websocket *websocket, unsigned code, const char *reason,
                                 size_t size);

/* Fills `data` with random bytes, from the websocket's source or the system's. */
int bide_websocket_random_(const bide_websocket *websocket, void *data, size_t size);

#endif
