/*
 * CRC-32C (Castagnoli), with the reflected polynomial 0x82F63B78, a byte at a time. The table is
 * made when the library is loaded. The CRC of "123456789" is 0xE3069283.
 */
#include "file.h"

static uint32_t log_crc_table[256];

__attribute__((constructor)) static void log_crc_init(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0);
        log_crc_table[i] = value;
    }
}

uint32_t bide_log_crc_(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++)
        crc = (crc >> 8) ^ log_crc_table[(crc ^ bytes[i]) & 0xFF];
    return ~crc;
}
