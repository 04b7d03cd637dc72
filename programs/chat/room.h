/*
 * Rooms: their members, their recent messages, and the new lines for each member. All of it runs on
 * one thread.
 *
 * Clients receive lines of tab-separated fields. The first field is a word; a text is the last
 * field, and may contain tabs:
 *
 *     welcome  NAME               the client's name in the room
 *     who      NAME NAME ...      the members
 *     old      TIME NAME TEXT     an earlier message
 *     said     TIME NAME TEXT     a message
 *     joined   TIME NAME
 *     left     TIME NAME
 *     missed   COUNT              lines that were lost because this client is too slow
 */
#ifndef CHAT_ROOM_H
#define CHAT_ROOM_H

#include <bide/broadcast.h>
#include <bide/event.h>
#include <stdbool.h>

enum {
    MAX_TEXT = 1000, /* bytes of a message */
    MAX_NAME = 32,   /* bytes of a name of a member or room */
    MAX_LINE = MAX_TEXT + MAX_NAME + 64,
    HISTORY = 50,
    BACKLOG = 64, /* lines that a member may lag behind */
    MAX_ROOMS = 64
};

struct line {
    unsigned size;
    char text[MAX_LINE];
};

typedef bide_broadcast(struct line) line_broadcast;
typedef bide_broadcast_slot(struct line) line_slot;
typedef bide_broadcast_subscriber(struct line) line_subscriber;

/* Must be called first. */
void rooms_init(void);

struct room;

struct member {
    struct room *room; /* NULL: none */
    char name[MAX_NAME + 8];
    line_subscriber lines;
    unsigned long said_before;   /* messages in the room before the member joined */
    struct member *next, **link; /* in the room's list */
};

/*
 * Joins a room, which is created if it does not exist. The name is made unique in the room. Returns
 * 0, -EINVAL (a name is empty), -ENOMEM, or -EMFILE (too many rooms).
 */
int room_enter(struct member *member, const char *room, size_t room_size, const char *name,
               size_t name_size);

/* Leaves the room, if the member is in one. */
void room_leave(struct member *member);

/* Sends a message to all members. An empty message is dropped. */
void room_say(struct member *member, const char *text, size_t size);

/* The message with that number in the room, or NULL if it is no longer kept. */
const struct line *room_old(const struct room *room, unsigned long parse_number);

/* The line with the members, which the caller frees. Returns NULL if memory is exhausted. */
char *room_member_list(const struct room *room, size_t *size);

/* Closes all rooms: members that wait for lines are woken with an error, and the event is set. */
void rooms_close(void);
bide_event *rooms_closed(void);

/* Frees empty rooms. */
void rooms_free(void);

#endif
