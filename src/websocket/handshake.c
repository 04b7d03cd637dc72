/*
 * The WebSocket part of HTTP's handshake: the values of headers, and their checks (RFC 6455, section 4).
 *
 * The answer to a key is the base64 of the SHA-1 of the key and a constant. The RFC prescribes SHA-1;
 * no security depends on it. These functions have no state.
 */
#include "websocket.h"

#include "../base/base64.h"

#include <errno.h>
#include <string.h>

/* ---- SHA-1 (FIPS 180-4, section 6.1) ---- */

enum { SHA1_SIZE = 20, SHA1_BLOCK = 64 };

static uint32_t sha1_rotate(uint32_t word, unsigned by)
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
        words[i] = sha1_rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    for (size_t i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? (b & c) | (~b & d)
                     : i < 40 ? b ^ c ^ d
                     : i < 60 ? (b & c) | (b & d) | (c & d)
                              : b ^ c ^ d;
        uint32_t next = sha1_rotate(a, 5) + f + e + words[i] + constants[i / 20];
        e = d;
        d = c;
        c = sha1_rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

/* The text must fit, with its length, into two blocks. */
static void sha1_digest(uint8_t digest[SHA1_SIZE], const char *text, size_t size)
{
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t blocks[2 * SHA1_BLOCK] = {0};
    size_t count = size + 9 <= SHA1_BLOCK ? 1 : 2;
    memcpy(blocks, text, size);
    blocks[size] = 0x80;
    blocks[count * SHA1_BLOCK - 2] = (uint8_t)(size * 8 >> 8);
    blocks[count * SHA1_BLOCK - 1] = (uint8_t)(size * 8);
    for (size_t i = 0; i < count; i++)
        sha1_block(state, blocks + i * SHA1_BLOCK);
    for (size_t i = 0; i < SHA1_SIZE; i++)
        digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- Keys ---- */

/* True if it is the base64 of 16 bytes. The last digit has two bits. */
static bool websocket_is_key(bide_websocket_value key)
{
    if (key.data == NULL || key.size != BIDE_WEBSOCKET_KEY ||
        memcmp(key.data + BIDE_WEBSOCKET_KEY - 2, "==", 2) != 0)
        return false;
    const char *digits = bide_base64_digits_();
    for (size_t i = 0; i < BIDE_WEBSOCKET_KEY - 2; i++) {
        if (key.data[i] == '\0' || strchr(digits, key.data[i]) == NULL)
            return false;
    }
    return (strchr(digits, key.data[BIDE_WEBSOCKET_KEY - 3]) - digits) % 16 == 0;
}

static void websocket_make_accept(char accept[BIDE_WEBSOCKET_ACCEPT + 1], const char *key)
{
    static const char constant[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char text[BIDE_WEBSOCKET_KEY + sizeof constant];
    uint8_t digest[SHA1_SIZE + 1] = {0};
    memcpy(text, key, BIDE_WEBSOCKET_KEY);
    memcpy(text + BIDE_WEBSOCKET_KEY, constant, sizeof constant);
    sha1_digest(digest, text, sizeof text - 1);
    bide_base64_write_(accept, digest, SHA1_SIZE);
}

/* ---- Lists of tokens ---- */

static char websocket_lower(char letter)
{
    return (char)(letter >= 'A' && letter <= 'Z' ? letter + ('a' - 'A') : letter);
}

static bool websocket_is_space(char letter)
{
    return letter == ' ' || letter == '\t';
}

/* Splits the next item off a comma-separated list. False: there is none. */
static bool websocket_next_item(bide_websocket_value *list, bide_websocket_value *item)
{
    if (list->data == NULL)
        return false;
    const char *comma = list->size != 0 ? memchr(list->data, ',', list->size) : NULL;
    size_t size = comma != NULL ? (size_t)(comma - list->data) : list->size;
    item->data = list->data;
    item->size = size;
    list->data = comma != NULL ? comma + 1 : NULL;
    list->size -= comma != NULL ? size + 1 : size;
    while (item->size != 0 && websocket_is_space(*item->data)) {
        item->data++;
        item->size--;
    }
    while (item->size != 0 && websocket_is_space(item->data[item->size - 1]))
        item->size--;
    return true;
}

static bool websocket_is_same_word(bide_websocket_value item, const char *word)
{
    if (item.size != strlen(word))
        return false;
    for (size_t i = 0; i < item.size; i++) {
        if (websocket_lower(item.data[i]) != websocket_lower(word[i]))
            return false;
    }
    return true;
}

bool bide_websocket_has_token(bide_websocket_value list, const char *token)
{
    bide_websocket_value item;
    while (websocket_next_item(&list, &item)) {
        if (websocket_is_same_word(item, token))
            return true;
    }
    return false;
}

/* True if the list has this name, case-sensitively. */
static bool websocket_has_name(bide_websocket_value list, bide_websocket_value name)
{
    bide_websocket_value item;
    while (name.size != 0 && websocket_next_item(&list, &item)) {
        if (item.size == name.size && memcmp(item.data, name.data, name.size) == 0)
            return true;
    }
    return false;
}

bide_websocket_value bide_websocket_select_protocol(bide_websocket_value offered, const char *ours)
{
    bide_websocket_value list = {ours, strlen(ours)};
    bide_websocket_value item = {NULL, 0};
    while (websocket_next_item(&list, &item)) {
        if (websocket_has_name(offered, item))
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
    if (!websocket_is_same_word(headers->version, "13"))
        return -EPROTONOSUPPORT;
    if (!websocket_is_key(headers->key))
        return -EINVAL;
    websocket_make_accept(accept, headers->key.data);
    return 0;
}

int bide_websocket_make_key(char key[BIDE_WEBSOCKET_KEY + 1])
{
    static const bide_websocket source = {.options.random = NULL};
    uint8_t random[18] = {0};
    int status = bide_websocket_random_(&source, random, 16);
    if (status == 0)
        bide_base64_write_(key, random, 16);
    return status;
}

int bide_websocket_check_answer(int status, const bide_websocket_headers *headers,
                                const char key[BIDE_WEBSOCKET_KEY + 1], const char *protocols)
{
    char accept[BIDE_WEBSOCKET_ACCEPT + 1];
    bide_websocket_value offered = {protocols, protocols != NULL ? strlen(protocols) : 0};
    if (status != 101)
        return -ECONNREFUSED;
    websocket_make_accept(accept, key);
    if (!bide_websocket_has_token(headers->upgrade, "websocket") ||
        !bide_websocket_has_token(headers->connection, "upgrade") || headers->accept.data == NULL ||
        headers->accept.size != BIDE_WEBSOCKET_ACCEPT ||
        memcmp(headers->accept.data, accept, BIDE_WEBSOCKET_ACCEPT) != 0)
        return -EPROTO;
    /* no extension is ever offered; a protocol must be an offered one */
    if (headers->extensions.data != NULL && headers->extensions.size != 0)
        return -EPROTO;
    return headers->protocol.data == NULL || websocket_has_name(offered, headers->protocol)
               ? 0
               : -EPROTO;
}
