/* Notifications of events of keys. notifications.h has the model. One thread. */
#include "kv.h"

static const struct {
    char letter;
    unsigned class;
} letters[] = {
    {'g', NOTIFY_GENERIC},  {'$', NOTIFY_STRING},     {'l', NOTIFY_LIST},    {'s', NOTIFY_SET},
    {'h', NOTIFY_HASH},     {'z', NOTIFY_SORTED_SET}, {'x', NOTIFY_EXPIRED}, {'e', NOTIFY_EVICTED},
    {'t', NOTIFY_STREAM},   {'d', NOTIFY_MODULE},     {'n', NOTIFY_NEW},     {'K', NOTIFY_KEYSPACE},
    {'E', NOTIFY_KEYEVENT}, {'m', NOTIFY_MISS},
};

enum { LETTERS = sizeof letters / sizeof *letters };

bool notify_read(struct bytes text, unsigned *classes)
{
    *classes = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned class = text.data[i] == 'A' ? NOTIFY_ALL : 0;
        for (size_t at = 0; at < LETTERS; at++)
            class |= text.data[i] == letters[at].letter ? letters[at].class : 0;
        if (class == 0)
            return false;
        *classes |= class;
    }
    return true;
}

/* As redis prints them, which leaves out `n` behind `A`. */
void notify_print(unsigned classes, char text[NOTIFY_TEXT])
{
    size_t size = 0;
    if ((classes & NOTIFY_ALL) == NOTIFY_ALL) {
        text[size++] = 'A';
        classes &= ~(unsigned)(NOTIFY_ALL | NOTIFY_NEW);
    }
    for (size_t at = 0; at < LETTERS; at++) {
        if ((classes & letters[at].class) != 0)
            text[size++] = letters[at].letter;
    }
    text[size] = '\0';
}

/* Sends a message to the channel whose name is the prefix and the rest. */
static void send_to(struct kv *kv, struct bytes prefix, struct bytes rest, struct bytes message)
{
    char name[PUBSUB_MAX_NAME];
    if (rest.size > sizeof name - prefix.size)
        return;
    memcpy(name, prefix.data, prefix.size);
    memcpy(name + prefix.size, rest.data, rest.size);
    publish_notification(kv, (struct bytes){name, prefix.size + rest.size}, message);
}

void notify_send(struct kv *kv, const char *event, struct bytes key)
{
    unsigned classes = kv->options.notify;
    if ((classes & NOTIFY_KEYSPACE) != 0)
        send_to(kv, bytes_of("__keyspace@0__:"), key, bytes_of(event));
    if ((classes & NOTIFY_KEYEVENT) != 0)
        send_to(kv, bytes_of("__keyevent@0__:"), bytes_of(event), key);
}

static void notify_added(struct keyspace *keyspace, struct bytes key)
{
    notify_send(bide_container_of(keyspace, struct kv, keys), "new", key);
}

void notify_classes_changed(struct kv *kv)
{
    kv->keys.added = (kv->options.notify & NOTIFY_NEW) != 0 ? notify_added : NULL;
}
