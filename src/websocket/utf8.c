/*
 * An incremental check for UTF-8. A text may be split anywhere, also within a character. The check
 * fails no later than at the first byte that no UTF-8 text can have there.
 *
 * The first byte of a character determines how many bytes follow, and the bounds of the first of
 * those. The bounds exclude overlong forms (E0, F0), surrogates (ED), and characters above U+10FFFF
 * (F4). All other bytes are from 80 to BF.
 */
#include "websocket.h"

#include <string.h>

/* Checks the first byte of a character. */
static bool websocket_utf8_start(websocket_utf8 *text, uint8_t byte)
{
    text->low = 0x80;
    text->high = 0xbf;
    if (byte < 0xc2 || byte > 0xf4)
        return byte < 0x80;
    text->left = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    if (byte == 0xe0)
        text->low = 0xa0;
    else if (byte == 0xed)
        text->high = 0x9f;
    else if (byte == 0xf0)
        text->low = 0x90;
    else if (byte == 0xf4)
        text->high = 0x8f;
    return true;
}

/* Skips ASCII: returns the first other byte, or a place less than eight bytes before it. */
static const char *websocket_utf8_skip_ascii(const char *at, const char *end)
{
    const uint64_t high_bits = UINT64_C(0x8080808080808080);
    uint64_t words[4];
    for (; end - at >= 32; at += 32) {
        memcpy(words, at, sizeof words);
        if (((words[0] | words[1] | words[2] | words[3]) & high_bits) != 0)
            break;
    }
    for (; end - at >= 8; at += 8) {
        memcpy(words, at, 8);
        if ((words[0] & high_bits) != 0)
            break;
    }
    return at;
}

bool bide_websocket_utf8_continue_(websocket_utf8 *text, const char *data, size_t size)
{
    const char *end = data + size;
    while (data != end) {
        if (text->left == 0) {
            data = websocket_utf8_skip_ascii(data, end);
            while (data != end && text->left == 0) {
                uint8_t byte = (uint8_t)*data++;
                if (!websocket_utf8_start(text, byte))
                    return false;
                if (byte < 0x80 && end - data >= 8 && ((uintptr_t)data & 7) == 0)
                    break; /* more ASCII may follow */
            }
        }
        for (; text->left != 0 && data != end; text->left--) {
            uint8_t byte = (uint8_t)*data++;
            if (byte < text->low || byte > text->high)
                return false;
            text->low = 0x80;
            text->high = 0xbf;
        }
    }
    return true;
}
