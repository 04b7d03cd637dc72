/*
 * Frames from the other side, as a table: the frames, and the expected log. The rows follow the RFC; their
 * numbers are those of the corresponding cases of the Autobahn test suite.
 */
#ifndef BIDE_TESTS_IO_WEBSOCKET_ROWS_H
#define BIDE_TESTS_IO_WEBSOCKET_ROWS_H

#include <stddef.h>

enum { MAX_FRAMES = 10 };

typedef struct frame {
    unsigned first; /* byte */
    const char *data;
    size_t size;
    size_t repeated; /* how often; 0: once */
} frame;

typedef struct row {
    const char *name;
    const char *expected; /* the expected log */
    frame frames[MAX_FRAMES];
} row;

#define F(first, text)                   \
    {                                    \
        first, text, sizeof(text) - 1, 0 \
    }
#define MANY(first, text, times)             \
    {                                        \
        first, text, sizeof(text) - 1, times \
    }
#define TEXT(text)  F(0x81, text)
#define BYTES(text) F(0x82, text)
#define BEGIN(text) F(0x01, text)
#define MORE(text)  F(0x00, text)
#define LAST(text)  F(0x80, text)
#define PING(text)  F(0x89, text)
#define PONG(text)  F(0x8a, text)
#define CLOSE(text) F(0x88, text)
#define TEN         "0123456789"
#define HUNDRED     TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define OF_125      HUNDRED TEN TEN "01234"
#define OF_123      HUNDRED TEN TEN "012"
#define NORMAL      CLOSE("\x03\xe8")

/*
 * The frames are followed by the end of the stream. "EPIPE" is a clean close, "ENODATA" any other
 * end.
 */
static const row rows[] = {
    /* 1: sizes */
    {"1.1.1", "t() EPIPE 1000 >close(1000)", {TEXT(""), NORMAL}},
    {"1.1.2", "t[125] EPIPE 1000 >close(1000)", {TEXT(OF_125), NORMAL}},
    {"1.1.3", "t[126] EPIPE 1000 >close(1000)", {MANY(0x81, "*", 126), NORMAL}},
    {"1.1.4", "t[127] EPIPE 1000 >close(1000)", {MANY(0x81, "*", 127), NORMAL}},
    {"1.1.5", "t[128] EPIPE 1000 >close(1000)", {MANY(0x81, "*", 128), NORMAL}},
    {"1.1.6", "t[65535] EPIPE 1000 >close(1000)", {MANY(0x81, "*", 65535), NORMAL}},
    {"1.1.7", "t[65536] EPIPE 1000 >close(1000)", {MANY(0x81, "*", 65536), NORMAL}},
    {"1.2.1", "b() EPIPE 1000 >close(1000)", {BYTES(""), NORMAL}},
    {"1.2.2", "b[125] EPIPE 1000 >close(1000)", {MANY(0x82, "\xfe", 125), NORMAL}},
    {"1.2.7", "b[65536] EPIPE 1000 >close(1000)", {MANY(0x82, "\xfe", 65536), NORMAL}},
    /* 2: pings */
    {"2.1", "EPIPE 1000 >pong() >close(1000)", {PING(""), NORMAL}},
    {"2.2", "EPIPE 1000 >pong(hello) >close(1000)", {PING("hello"), NORMAL}},
    {"2.3", "EPIPE 1000 >pong(\\00\\ff\\fe) >close(1000)", {F(0x89, "\0\xff\xfe"), NORMAL}},
    {"2.4", "EPIPE 1000 >pong[125] >close(1000)", {PING(OF_125), NORMAL}},
    {"2.5", "EPROTO 1006 >close(1002)", {PING(OF_125 "5"), NORMAL}},
    {"2.7", "EPIPE 1000 >close(1000)", {PONG(""), NORMAL}},
    {"2.8", "EPIPE 1000 >close(1000)", {PONG("nobody asked"), NORMAL}},
    {"2.10, of many the last",
     "EPIPE 1000 >pong(3) >close(1000)",
     {PING("1"), PING("2"), PING("3"), NORMAL}},
    /* 3: reserved bits */
    {"3.1", "EPROTO 1006 >close(1002)", {F(0xc1, "hello")}},
    {"3.2", "t(first) EPROTO 1006 >close(1002)", {TEXT("first"), F(0xa1, "hello"), PING("")}},
    {"3.3", "t(first) EPROTO 1006 >close(1002)", {TEXT("first"), F(0x91, "hello")}},
    {"3.5, binary", "EPROTO 1006 >close(1002)", {F(0xd2, "hello")}},
    {"3.6, ping", "EPROTO 1006 >close(1002)", {F(0xe9, "hello")}},
    {"3.7, close", "EPROTO 1006 >close(1002)", {F(0xf8, "")}},
    /* 4: undefined opcodes */
    {"4.1.1", "EPROTO 1006 >close(1002)", {F(0x83, "")}},
    {"4.1.2", "EPROTO 1006 >close(1002)", {F(0x84, "reserved")}},
    {"4.1.3", "t(first) EPROTO 1006 >close(1002)", {TEXT("first"), F(0x85, ""), PING("")}},
    {"4.1.4", "t(first) EPROTO 1006 >close(1002)", {TEXT("first"), F(0x86, "x")}},
    {"4.1.5", "t(first) EPROTO 1006 >close(1002)", {TEXT("first"), F(0x87, "x")}},
    {"4.2.1", "EPROTO 1006 >close(1002)", {F(0x8b, "")}},
    {"4.2.2", "EPROTO 1006 >close(1002)", {F(0x8c, "x")}},
    {"4.2.3", "EPROTO 1006 >close(1002)", {F(0x8d, "")}},
    {"4.2.4", "EPROTO 1006 >close(1002)", {F(0x8e, "x")}},
    {"4.2.5", "EPROTO 1006 >close(1002)", {F(0x8f, "")}},
    /* 5: fragments */
    {"5.1", "EPROTO 1006 >close(1002)", {F(0x09, "frag"), F(0x80, "ment")}},
    {"5.2", "EPROTO 1006 >close(1002)", {F(0x0a, "frag"), F(0x80, "ment")}},
    {"5.3", "t(fragment) EPIPE 1000 >close(1000)", {BEGIN("frag"), LAST("ment"), NORMAL}},
    {"5.5, empty ones",
     "t(fragment) EPIPE 1000 >close(1000)",
     {BEGIN(""), MORE("frag"), MORE(""), MORE("ment"), LAST(""), NORMAL}},
    {"5.5, all empty", "t() EPIPE 1000 >close(1000)", {BEGIN(""), MORE(""), LAST(""), NORMAL}},
    {"5.6",
     "t(fragment) EPIPE 1000 >pong(!) >close(1000)",
     {BEGIN("frag"), PING("!"), LAST("ment"), NORMAL}},
    {"5.9", "EPROTO 1006 >close(1002)", {MORE("nothing goes on"), TEXT("x")}},
    {"5.10", "EPROTO 1006 >close(1002)", {LAST("nothing goes on"), TEXT("x")}},
    {"5.12", "EPROTO 1006 >close(1002)", {MORE(""), TEXT("x")}},
    {"5.15",
     "t(fragment) EPROTO 1006 >close(1002)",
     {BEGIN("frag"), LAST("ment"), MORE("x"), TEXT("y")}},
    {"5.16, binary too", "b(ab) EPROTO 1006 >close(1002)", {F(0x02, "a"), LAST("b"), LAST("c")}},
    {"5.18", "EPROTO 1006 >close(1002)", {BEGIN("frag"), TEXT("another")}},
    {"5.19",
     "t(fragments) t(x) EPIPE 1000 >pong(2) >close(1000)",
     {BEGIN("frag"), PING("1"), MORE("ment"), PING("2"), LAST("s"), TEXT("x"), NORMAL}},
    {"5, a close between", "EPIPE 1000 >close(1000)", {BEGIN("frag"), NORMAL, LAST("ment")}},
    {"5, the end between", "ENODATA 1006", {BEGIN("frag")}},
    /* 6: UTF-8 */
    {"6.1.1", "t() EPIPE 1000 >close(1000)", {TEXT(""), NORMAL}},
    {"6.2.1",
     "t(h\\c3\\a9llo\\e2\\82\\ac\\f0\\9f\\98\\80) EPIPE 1000 >close(1000)",
     {TEXT("h\xc3\xa9llo\xe2\x82\xac\xf0\x9f\x98\x80"), NORMAL}},
    {"6.2.2, cut in characters",
     "t(h\\c3\\a9llo\\e2\\82\\ac\\f0\\9f\\98\\80) EPIPE 1000 >close(1000)",
     {BEGIN("h\xc3"), MORE("\xa9llo\xe2"), MORE("\x82"), MORE("\xac\xf0"), MORE("\x9f"),
      MORE("\x98"), LAST("\x80"), NORMAL}},
    {"6.3.1",
     "EILSEQ 1006 >close(1007)",
     {TEXT("\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80"
           "edited")}},
    {"6.3.2, another frame",
     "EILSEQ 1006 >close(1007)",
     {BEGIN("\xce\xba\xed"), MORE("\xa0"), LAST("\x80")}},
    {"6.4.1, before the end", "EILSEQ 1006 >close(1007)", {BEGIN("ok\xf4"), MORE("\x90")}},
    {"6.4, not finished", "EILSEQ 1006 >close(1007)", {TEXT("\xe2\x82")}},
    {"6.4, not finished by the last",
     "EILSEQ 1006 >close(1007)",
     {BEGIN("\xf0\x9f"), LAST("\x98")}},
    {"6.4, not finished by an empty last", "EILSEQ 1006 >close(1007)", {BEGIN("\xc3"), LAST("")}},
    {"6.5, bounds of 2",
     "t(\\c2\\80) t(\\df\\bf) EPIPE 1000 >close(1000)",
     {TEXT("\xc2\x80"), TEXT("\xdf\xbf"), NORMAL}},
    {"6.6, bounds of 3",
     "t(\\e0\\a0\\80) t(\\ed\\9f\\bf) t(\\ee\\80\\80) t(\\ef\\bf\\bf) EPIPE 1000 >close(1000)",
     {TEXT("\xe0\xa0\x80"), TEXT("\xed\x9f\xbf"), TEXT("\xee\x80\x80"), TEXT("\xef\xbf\xbf"),
      NORMAL}},
    {"6.7, bounds of 4",
     "t(\\f0\\90\\80\\80) t(\\f4\\8f\\bf\\bf) EPIPE 1000 >close(1000)",
     {TEXT("\xf0\x90\x80\x80"), TEXT("\xf4\x8f\xbf\xbf"), NORMAL}},
    {"6.8, too high", "EILSEQ 1006 >close(1007)", {TEXT("\xf4\x90\x80\x80")}},
    {"6.9, five", "EILSEQ 1006 >close(1007)", {TEXT("\xf8\x88\x80\x80\x80")}},
    {"6.10, six", "EILSEQ 1006 >close(1007)", {TEXT("\xfc\x84\x80\x80\x80\x80")}},
    {"6.12, alone", "EILSEQ 1006 >close(1007)", {TEXT("\x80")}},
    {"6.13, two of them", "EILSEQ 1006 >close(1007)", {TEXT("01234567\x80\xbf")}},
    {"6.14, none behind", "EILSEQ 1006 >close(1007)", {TEXT("\xc3 ")}},
    {"6.15, none behind", "EILSEQ 1006 >close(1007)", {TEXT("\xe2\x82 x")}},
    {"6.16, FE and FF", "EILSEQ 1006 >close(1007)", {TEXT("\xfe\xff")}},
    {"6.17, longer than it has to be", "EILSEQ 1006 >close(1007)", {TEXT("\xc0\xaf")}},
    {"6.18, the same in 3", "EILSEQ 1006 >close(1007)", {TEXT("\xe0\x9f\xbf")}},
    {"6.19, the same in 4", "EILSEQ 1006 >close(1007)", {TEXT("\xf0\x8f\xbf\xbf")}},
    {"6.20, surrogates", "EILSEQ 1006 >close(1007)", {TEXT("\xed\xa0\x80")}},
    {"6.21, pairs of them", "EILSEQ 1006 >close(1007)", {TEXT("\xed\xaf\xbf\xed\xbf\xbf")}},
    {"6.23, not of text", "b(\\ff\\c0) EPIPE 1000 >close(1000)", {BYTES("\xff\xc0"), NORMAL}},
    {"6, far behind ASCII",
     "t(" HUNDRED "\\c3\\bc" TEN ") EILSEQ 1006 >close(1007)",
     {TEXT(HUNDRED "\xc3\xbc" TEN), TEXT(HUNDRED "\xc3" TEN)}},
    /* 7: closing */
    {"7.1.1", "t(hello) EPIPE 1000 >close(1000)", {TEXT("hello"), NORMAL}},
    {"7.1.2", "EPIPE 1000 >close(1000)", {NORMAL, NORMAL}},
    {"7.1.3", "EPIPE 1000 >close(1000)", {NORMAL, PING("!")}},
    {"7.1.4", "EPIPE 1000 >close(1000)", {NORMAL, TEXT("late")}},
    {"7.3.1", "EPIPE 1005 >close()", {CLOSE("")}},
    {"7.3.2", "EPROTO 1006 >close(1002)", {CLOSE("x")}},
    {"7.3.4",
     "EPIPE 1000 'bye' >close(1000)",
     {CLOSE("\x03\xe8"
            "bye")}},
    {"7.3.5", "EPIPE 1000 '" OF_123 "' >close(1000)", {CLOSE("\x03\xe8" OF_123)}},
    {"7.3.6", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xe8" OF_123 "x")}},
    {"7.5.1", "EILSEQ 1006 >close(1007)", {CLOSE("\x03\xe8\xce\xba\xed\xa0\x80")}},
    {"7.5, not finished",
     "EILSEQ 1006 >close(1007)",
     {CLOSE("\x03\xe8"
            "ok\xe2\x82")}},
    {"7.7.2", "EPIPE 1001 >close(1001)", {CLOSE("\x03\xe9")}},
    {"7.7.3", "EPIPE 1002 >close(1002)", {CLOSE("\x03\xea")}},
    {"7.7.4", "EPIPE 1003 >close(1003)", {CLOSE("\x03\xeb")}},
    {"7.7.5", "EPIPE 1007 >close(1007)", {CLOSE("\x03\xef")}},
    {"7.7.9", "EPIPE 1011 >close(1011)", {CLOSE("\x03\xf3")}},
    {"7.7, registered later", "EPIPE 1014 >close(1014)", {CLOSE("\x03\xf6")}},
    {"7.7.10", "EPIPE 3000 >close(3000)", {CLOSE("\x0b\xb8")}},
    {"7.7.13", "EPIPE 4999 >close(4999)", {CLOSE("\x13\x87")}},
    {"7.9.1", "EPROTO 1006 >close(1002)", {CLOSE("\0\0")}},
    {"7.9.2", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xe7")}},
    {"7.9.3", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xec")}},
    {"7.9.4", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xed")}},
    {"7.9.5", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xee")}},
    {"7.9, for TLS", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xf7")}},
    {"7.9.6", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xf8")}},
    {"7.9.9", "EPROTO 1006 >close(1002)", {CLOSE("\x0b\xb7")}},
    {"7.13.1", "EPROTO 1006 >close(1002)", {CLOSE("\x13\x88")}},
    {"7.13.2", "EPROTO 1006 >close(1002)", {CLOSE("\xff\xff")}},
    /* the stream's end */
    {"nothing", "ENODATA 1006", {{0, NULL, 0, 0}}},
    {"after a message", "t(hello) ENODATA 1006", {TEXT("hello")}},
    /* 9: limits (70,000 bytes) */
    {"9, as large as it may be",
     "b[70000] EPIPE 1000 >close(1000)",
     {MANY(0x82, TEN, 7000), NORMAL}},
    {"9, larger", "EMSGSIZE 1006 >close(1009)", {MANY(0x82, TEN, 7001)}},
    {"9, larger together",
     "EMSGSIZE 1006 >close(1009)",
     {MANY(0x02, TEN, 6999), MORE(TEN), LAST("x")}},
    {"9, in 8 fragments",
     "b(12345) EMSGSIZE 1006 >close(1009)",
     {F(0x02, "1"), MORE("2"), MORE("3"), MORE("4"), LAST("5"), F(0x02, ""), MANY(0x00, "", 8),
      LAST("")}},
};

#endif
