/*
 * Notifications of what happens to keys, as messages of channels: an event of a key is a message with the event's name to
 * __keyspace@0__:KEY, and one with the key to __keyevent@0__:EVENT. The classes of events, their names and their order are those of
 * redis.
 *
 * A notification is delivered as PUBLISH delivers a message, and is work of the client whose request has caused it; beyond its turn
 * the rest is queued, and the client runs no other request before it is delivered. Messages to that client itself follow the replies
 * of its request. A __keyspace@0__ channel whose name is longer than PUBSUB_MAX_NAME has no message.
 */
#ifndef KV_NOTIFICATIONS_H
#define KV_NOTIFICATIONS_H

#include "bytes.h"

struct kv;

/* The channels that have messages, and the classes of events. */
enum notify {
    NOTIFY_GENERIC = 1 << 0, /* of any type: del, expire, rename_from, ... */
    NOTIFY_STRING = 1 << 1,
    NOTIFY_LIST = 1 << 2,
    NOTIFY_SET = 1 << 3,
    NOTIFY_HASH = 1 << 4,
    NOTIFY_SORTED_SET = 1 << 5,
    NOTIFY_EXPIRED = 1 << 6,
    NOTIFY_EVICTED = 1 << 7,
    NOTIFY_STREAM = 1 << 8, /* no event has this class, nor the next one */
    NOTIFY_MODULE = 1 << 9,
    NOTIFY_ALL = (1 << 10) - 1, /* the classes so far */
    NOTIFY_NEW = 1 << 10,
    NOTIFY_KEYSPACE = 1 << 11, /* channels of keys */
    NOTIFY_KEYEVENT = 1 << 12, /* channels of events */
    NOTIFY_MISS = 1 << 13
};

/* Parses letters, one for each, and A for NOTIFY_ALL. Returns false if one is unknown. */
bool notify_read(struct bytes text, unsigned *classes);

/* Prints them as notify_read parses them. */
enum { NOTIFY_TEXT = 16 };
void notify_print(unsigned classes, char text[NOTIFY_TEXT]);

/* Sends the messages of an event, whose class is enabled. */
void notify_send(struct kv *kv, const char *event, struct bytes key);

/* Must be called when the classes of the options have been set. */
void notify_classes_changed(struct kv *kv);

#endif
