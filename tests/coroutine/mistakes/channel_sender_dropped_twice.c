/*
 * More senders of a channel are dropped than were added.
 * told: run
 * says: more senders are dropped than were added: &channel, main, 
 */
#include "mistakes.h"

#include "bide/channel.h"

int main(void)
{
    bide_channel_slot(int) memory[3];
    bide_channel(int) channel;
    bide_channel_init(&channel, memory, 3);
    bide_channel_sender_add(&channel);
    bide_channel_sender_drop(&channel);
    bide_channel_sender_drop(&channel); // HERE
    return 0;
}
