/* Rooms. See room.h. */
#include "room.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct room {
    line_broadcast news;
    line_slot slots[BACKLOG];
    char name[MAX_NAME + 1];
    struct member *members;
    unsigned long emptied; /* when the last has left: a count of such events */
    unsigned long said;    /* ever */
    struct line history[HISTORY];
};

static struct room *rooms[MAX_ROOMS];
static unsigned long events;
static bide_event closed;

void rooms_init(void)
{
    bide_event_init(&closed, false);
}

/* ---- Text ---- */

/* Copies a text of one line without what is no character, and without spaces at its ends. */
static size_t clean(char *to, size_t max, const char *from, size_t size)
{
    size_t count = 0;
    while (size != 0 && (unsigned char)*from <= ' ') {
        from++;
        size--;
    }
    for (size_t i = 0; i < size && count < max; i++) {
        unsigned char byte = (unsigned char)from[i];
        to[count++] = byte < ' ' || byte == 0x7f ? ' ' : from[i];
    }
    /* a character that does not fit goes as a whole */
    if (count == max && count < size) {
        while (count != 0 && ((unsigned char)from[count] & 0xc0) == 0x80)
            count--;
    }
    while (count != 0 && to[count - 1] == ' ')
        count--;
    to[count] = '\0';
    return count;
}

/* A text may have lines. */
static size_t clean_text(char *to, const char *from, size_t size)
{
    size_t count = 0;
    bool is_empty = true;
    for (size_t i = 0; i < size && count < MAX_TEXT; i++) {
        unsigned char byte = (unsigned char)from[i];
        bool is_control = (byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f;
        to[count++] = is_control ? ' ' : from[i];
        is_empty = is_empty && byte <= ' ';
    }
    if (count < size) {
        while (count != 0 && ((unsigned char)from[count] & 0xc0) == 0x80)
            count--;
    }
    return is_empty ? 0 : count;
}

/* ---- What is new ---- */

static void tell(struct room *room, const struct line *line)
{
    bide_broadcast_send(&room->news, line);
}

static void tell_of(struct member *member, const char *word)
{
    struct line line;
    line.size = (unsigned)snprintf(line.text, sizeof line.text, "%s\t%lld\t%s", word,
                                   (long long)time(NULL), member->name);
    tell(member->room, &line);
}

void room_say(struct member *member, const char *text, size_t size)
{
    struct room *room = member->room;
    struct line line;
    int head = snprintf(line.text, sizeof line.text, "said\t%lld\t%s\t", (long long)time(NULL),
                        member->name);
    size = clean_text(line.text + head, text, size);
    if (size == 0)
        return;
    line.size = (unsigned)(head + (int)size);
    tell(room, &line);
    struct line *old = &room->history[room->said++ % HISTORY];
    *old = line;
    memcpy(old->text, "old\t", 4); /* a byte shorter */
    memmove(old->text + 4, old->text + 5, line.size - 5);
    old->size--;
}

const struct line *room_old(const struct room *room, unsigned long number)
{
    bool is_kept = number < room->said && room->said - number <= HISTORY;
    return is_kept ? &room->history[number % HISTORY] : NULL;
}

char *room_who(const struct room *room, size_t *size)
{
    size_t count = 0;
    for (const struct member *member = room->members; member != NULL; member = member->next)
        count++;
    char *text = malloc(8 + count * sizeof room->members->name);
    if (text == NULL)
        return NULL;
    char *at = text + sprintf(text, "who");
    for (const struct member *member = room->members; member != NULL; member = member->next)
        at += sprintf(at, "\t%s", member->name);
    *size = (size_t)(at - text);
    return text;
}

/* ---- Coming and going ---- */

static bool has_member(const struct room *room, const char *name)
{
    const struct member *member = room->members;
    while (member != NULL && strcmp(member->name, name) != 0)
        member = member->next;
    return member != NULL;
}

/* The room of that name, or a place for it: one that is free, or that was empty for longest. */
static struct room **find(const char *name)
{
    struct room **place = NULL;
    for (int i = 0; i < MAX_ROOMS; i++) {
        struct room *room = rooms[i];
        if (room != NULL && strcmp(room->name, name) == 0)
            return &rooms[i];
        if (room != NULL && room->members != NULL)
            continue;
        if (place == NULL ||
            (*place != NULL && (room == NULL || room->emptied < (*place)->emptied)))
            place = &rooms[i];
    }
    return place;
}

static int open_room(struct room **place, const char *name)
{
    size_t size = (sizeof **place + BIDE_CACHE_LINE - 1) / BIDE_CACHE_LINE * BIDE_CACHE_LINE;
    struct room *room = aligned_alloc(BIDE_CACHE_LINE, size);
    if (room == NULL)
        return -ENOMEM;
    free(*place);
    *place = room;
    bide_broadcast_init(&room->news, room->slots, BACKLOG);
    strcpy(room->name, name);
    room->members = NULL;
    room->emptied = 0;
    room->said = 0;
    return 0;
}

int room_enter(struct member *member, const char *room, size_t room_size, const char *name,
               size_t name_size)
{
    char room_name[MAX_NAME + 1], wanted[MAX_NAME + 1];
    member->room = NULL;
    if (clean(room_name, MAX_NAME, room, room_size) == 0 ||
        clean(wanted, MAX_NAME, name, name_size) == 0)
        return -EINVAL;
    struct room **place = find(room_name);
    if (place == NULL)
        return -EMFILE;
    if (*place == NULL || strcmp((*place)->name, room_name) != 0) {
        int status = open_room(place, room_name);
        if (status < 0)
            return status;
    }
    strcpy(member->name, wanted);
    for (unsigned i = 2; has_member(*place, member->name); i++)
        snprintf(member->name, sizeof member->name, "%s %u", wanted, i % 100000);
    member->room = *place;
    member->next = member->room->members;
    member->place = &member->room->members;
    if (member->next != NULL)
        member->next->place = &member->next;
    member->room->members = member;
    tell_of(member, "joined");
    member->before = member->room->said;
    bide_broadcast_subscribe(&member->news, &member->room->news); /* to what comes from now on */
    return 0;
}

void room_leave(struct member *member)
{
    struct room *room = member->room;
    if (room == NULL)
        return;
    *member->place = member->next;
    if (member->next != NULL)
        member->next->place = member->place;
    if (room->members == NULL)
        room->emptied = ++events;
    tell_of(member, "left");
    member->room = NULL;
}

void rooms_close(void)
{
    bide_event_set(&closed);
    for (int i = 0; i < MAX_ROOMS; i++) {
        if (rooms[i] != NULL)
            bide_broadcast_close(&rooms[i]->news);
    }
}

bide_event *rooms_closed(void)
{
    return &closed;
}

void rooms_free(void)
{
    for (int i = 0; i < MAX_ROOMS; i++) {
        if (rooms[i] != NULL && rooms[i]->members == NULL) {
            free(rooms[i]);
            rooms[i] = NULL;
        }
    }
}
