/* Rows of channels. */
#ifndef BIDE_TESTS_COMPOSITION_CHANNELS_H
#define BIDE_TESTS_COMPOSITION_CHANNELS_H

#include "sync/primitives.h"

extern const primitive rendezvous_receive_row, rendezvous_send_row, spsc_receive_row, spsc_send_row,
    unbounded_receive_row, spsc_receive_many_row, unbounded_receive_many_row, seatless_receive_row;

#endif
