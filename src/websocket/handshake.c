/*
 * What a WebSocket adds to HTTP's handshake: values of headers, and their checks (RFC 6455, section 4).
 *
 * The answer to a key is the base64 of the SHA-1 of the key and a constant. SHA-1 is here because
 * the RFC wants it; nothing depends on its strength.
 */
#include "websocket.h"

#include <errno.h>
#include <string.h>

/* ---- SHA-1 (FIPS 180-4, section 6.1) ---- */

enum { SHA1 = 20, BLOCK = 64 };

static uint32_t rotate(uint32_t word, unsigned by)
{
    return word << by | word >> (32 - by);
}

static void sha1_block(uint32_t state[5], const uint8_t *block)
{
    static const uint32_t constants[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t words[80];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (size_t i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < 80; i++)
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    for (size_t i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? (b & c) | (~b & d)
                     : i < 40 ? b ^ c ^ d
                     : i < 60 ? (b & c) | (b & d) | (c & d)
                              : b ^ c ^ d;
        uint32_t next = rotate(a, 5) + f + e + words[i] + constants[i / 20];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

/* Of a text that fits into one block and, with its length, into two. */
static void sha1(uint8_t digest[SHA1], const char *text, size_t size)
{
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t blocks[2 * BLOCK] = {0};
    size_t count = size + 9 <= BLOCK ? 1 : 2;
    memcpy(blocks, text, size);
    blocks[size] = 0x80;
    blocks[count * BLOCK - 2] = (uint8_t)(size * 8 >> 8);
    blocks[count * BLOCK - 1] = (uint8_t)(size * 8);
    for (size_t i = 0; i < count; i++)
        sha1_block(state, blocks + i * BLOCK);
    for (size_t i = 0; i < SHA1; i++)
        digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- Base64 ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Writes it with a zero behind. */
static void to_base64(char *text, const uint8_t *data, size_t size)
{
    for (; size != 0; data += 3, size -= size < 3 ? size : 3) {
        uint32_t group = (uint32_t)data[0] << 16 | (size > 1 ? (uint32_t)data[1] << 8 : 0) |
                         (size > 2 ? data[2] : 0);
        *text++ = digits[group >> 18];
        *text++ = digits[group >> 12 & 63];
        *text++ = size > 1 ? digits[group >> 6 & 63] : '=';
        *text++ = size > 2 ? digits[group & 63] : '=';
    }
    *text = '\0';
}

/* Is it the base64 of 16 bytes? The last digit has two bits. */
static bool is_key(bide_websocket_value key)
{
    if (key.data == NULL || key.size != BIDE_WEBSOCKET_KEY ||
        memcmp(key.data + BIDE_WEBSOCKET_KEY - 2, "==", 2) != 0)
        return false;
    for (size_t i = 0; i < BIDE_WEBSOCKET_KEY - 2; i++) {
        if (key.data[i] == '\0' || strchr(digits, key.data[i]) == NULL)
            return false;
    }
    return (strchr(digits, key.data[BIDE_WEBSOCKET_KEY - 3]) - digits) % 16 == 0;
}

static void make_accept(char accept[BIDE_WEBSOCKET_ACCEPT + 1], const char *key)
{
    static const char constant[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char text[BIDE_WEBSOCKET_KEY + sizeof constant];
    uint8_t digest[SHA1 + 1] = {0};
    memcpy(text, key, BIDE_WEBSOCKET_KEY);
    memcpy(text + BIDE_WEBSOCKET_KEY, constant, sizeof constant);
    sha1(digest, text, sizeof text - 1);
    to_base64(accept, digest, SHA1);
}

/* ---- Lists of tokens ---- */

static char lower(char letter)
{
    return (char)(letter >= 'A' && letter <= 'Z' ? letter + ('a' - 'A') : letter);
}

static bool is_space(char letter)
{
    return letter == ' ' || letter == '\t';
}

/* The next item of a list with commas between, and what is behind it. False: there is none. */
static bool next_item(bide_websocket_value *list, bide_websocket_value *item)
{
    if (list->data == NULL)
        return false;
    const char *comma = list->size != 0 ? memchr(list->data, ',', list->size) : NULL;
    size_t size = comma != NULL ? (size_t)(comma - list->data) : list->size;
    item->data = list->data;
    item->size = size;
    list->data = comma != NULL ? comma + 1 : NULL;
    list->size -= comma != NULL ? size + 1 : size;
    while (item->size != 0 && is_space(*item->data)) {
        item->data++;
        item->size--;
    }
    while (item->size != 0 && is_space(item->data[item->size - 1]))
        item->size--;
    return true;
}

static bool is_same_word(bide_websocket_value item, const char *word)
{
    if (item.size != strlen(word))
        return false;
    for (size_t i = 0; i < item.size; i++) {
        if (lower(item.data[i]) != lower(word[i]))
            return false;
    }
    return true;
}

bool bide_websocket_has_token(bide_websocket_value list, const char *token)
{
    bide_websocket_value item;
    while (next_item(&list, &item)) {
        if (is_same_word(item, token))
            return true;
    }
    return false;
}

/* Is this name in the list, letter by letter? */
static bool has_name(bide_websocket_value list, bide_websocket_value name)
{
    bide_websocket_value item;
    while (name.size != 0 && next_item(&list, &item)) {
        if (item.size == name.size && memcmp(item.data, name.data, name.size) == 0)
            return true;
    }
    return false;
}

bide_websocket_value bide_websocket_select_protocol(bide_websocket_value offered, const char *ours)
{
    bide_websocket_value list = {ours, strlen(ours)};
    bide_websocket_value item = {NULL, 0};
    while (next_item(&list, &item)) {
        if (has_name(offered, item))
            return item;
    }
    item.data = NULL;
    item.size = 0;
    return item;
}

/* ---- Checks ---- */

int bide_websocket_check_request(const bide_websocket_headers *headers,
                                 char accept[BIDE_WEBSOCKET_ACCEPT + 1])
{
    if (!bide_websocket_has_token(headers->upgrade, "websocket") ||
        !bide_websocket_has_token(headers->connection, "upgrade") || headers->version.data == NULL)
        return -EINVAL;
    if (!is_same_word(headers->version, "13"))
        return -EPROTONOSUPPORT;
    if (!is_key(headers->key))
        return -EINVAL;
    make_accept(accept, headers->key.data);
    return 0;
}

int bide_websocket_make_key(char key[BIDE_WEBSOCKET_KEY + 1])
{
    static const bide_websocket of_the_system = {.options.random = NULL};
    uint8_t random[18] = {0};
    int status = bide_websocket_random_(&of_the_system, random, 16);
    if (status == 0)
        to_base64(key, random, 16);
    return status;
}

int bide_websocket_check_answer(int status, const bide_websocket_headers *headers,
                                const char key[BIDE_WEBSOCKET_KEY + 1], const char *protocols)
{
    char accept[BIDE_WEBSOCKET_ACCEPT + 1];
    bide_websocket_value asked = {protocols, protocols != NULL ? strlen(protocols) : 0};
    if (status != 101)
        return -ECONNREFUSED;
    make_accept(accept, key);
    if (!bide_websocket_has_token(headers->upgrade, "websocket") ||
        !bide_websocket_has_token(headers->connection, "upgrade") || headers->accept.data == NULL ||
        headers->accept.size != BIDE_WEBSOCKET_ACCEPT ||
        memcmp(headers->accept.data, accept, BIDE_WEBSOCKET_ACCEPT) != 0)
        return -EPROTO;
    /* none was asked for, or not this one */
    if (headers->extensions.data != NULL && headers->extensions.size != 0)
        return -EPROTO;
    return headers->protocol.data == NULL || has_name(asked, headers->protocol) ? 0 : -EPROTO;
}
