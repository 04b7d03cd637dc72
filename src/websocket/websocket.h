/* What the files of WebSockets have in common. */
#ifndef BIDE_IO_WEBSOCKET_H
#define BIDE_IO_WEBSOCKET_H

#include "bide/websocket.h"

enum {
    WEBSOCKET_CONTINUATION = 0,
    WEBSOCKET_TEXT = 1,
    WEBSOCKET_BINARY = 2,
    WEBSOCKET_CLOSE = 8,
    WEBSOCKET_PING = 9,
    WEBSOCKET_PONG = 10
};

/* ---- frame.c ---- */

/* The header of a frame. */
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
 * Reads a header from what is there. How many bytes it has; or WEBSOCKET_INCOMPLETE, `*wanted` have to
 * be there first; or WEBSOCKET_NOT_MINIMAL, its length is not written as it must be.
 */
int bide_websocket_parse_header_(websocket_header *header, const char *data, size_t size, size_t *wanted);

/* Writes a header into 14 bytes; how many it has. `key` is NULL: it is not masked. */
size_t bide_websocket_write_header_(uint8_t *header, uint8_t opcode, bool is_final, uint64_t size,
                              const uint8_t *key);

/* Masks, or unmasks, `size` bytes, from the `phase`th byte of the key on. `to` may be `from`. */
void bide_websocket_mask_(char *to, const char *from, size_t size, const uint8_t key[4], size_t phase);

/* May a close have this code, if it comes from the other side? And if it is this side's? */
bool bide_websocket_is_code_(unsigned code);

/* ---- utf8.c ---- */

/* Where a text stands: bytes that its last character still needs, and the bounds of the next. */
typedef struct websocket_utf8 {
    uint8_t left;
    uint8_t low;
    uint8_t high;
} websocket_utf8;

/* Goes on with these bytes. False: no UTF-8 begins so. */
bool bide_websocket_utf8_continue_(websocket_utf8 *text, const char *data, size_t size);

/* ---- send.c ---- */

bool bide_websocket_has_answers_(const bide_websocket *websocket);
bide_awaiter *bide_websocket_answer_(bide_websocket_answering_ *answering, bide_websocket *websocket);

/* Queues a close, unless there is one. The code may be BIDE_WEBSOCKET_NO_CODE. */
void bide_websocket_queue_close_(bide_websocket *websocket, unsigned code, const char *reason,
                           size_t size);

/* Fills `random` bytes, by the websocket's source or the system's. */
int bide_websocket_random_(const bide_websocket *websocket, void *data, size_t size);

#endif
