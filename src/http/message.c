/* Texts, fields, reason phrases and dates. Pure functions; any thread may call them. */
#include "bide/http_message.h"

#include "characters.h"

#include <errno.h>
#include <string.h>

bool bide_http_is(bide_slice text, const char *name)
{
    size_t i = 0;
    for (; i < text.size && name[i] != '\0'; i++)
        if (text.data[i] != name[i] && http_lower(text.data[i]) != http_lower(name[i]))
            return false;
    return i == text.size && name[i] == '\0';
}

bide_slice bide_http_find(const bide_http_field *fields, size_t count, const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < count; i++)
        if (fields[i].name.size == size && bide_http_is(fields[i].name, name))
            return fields[i].value;
    return (bide_slice){NULL, 0};
}

/* ---- Phrases ---- */

const char *bide_http_reason(int status)
{
    static const char *const phrases[5][32] = {
        {"Continue", "Switching Protocols", "Processing", "Early Hints"},
        {"OK", "Created", "Accepted", "Non-Authoritative Information", "No Content",
         "Reset Content", "Partial Content", "Multi-Status"},
        {"Multiple Choices", "Moved Permanently", "Found", "See Other", "Not Modified", "Use Proxy",
         "", "Temporary Redirect", "Permanent Redirect"},
        {"Bad Request",
         "Unauthorized",
         "Payment Required",
         "Forbidden",
         "Not Found",
         "Method Not Allowed",
         "Not Acceptable",
         "Proxy Authentication Required",
         "Request Timeout",
         "Conflict",
         "Gone",
         "Length Required",
         "Precondition Failed",
         "Content Too Large",
         "URI Too Long",
         "Unsupported Media Type",
         "Range Not Satisfiable",
         "Expectation Failed",
         "",
         "",
         "",
         "Misdirected Request",
         "Unprocessable Content",
         "Locked",
         "Failed Dependency",
         "Too Early",
         "Upgrade Required",
         "",
         "Precondition Required",
         "Too Many Requests",
         "",
         "Request Header Fields Too Large"},
        {"Internal Server Error", "Not Implemented", "Bad Gateway", "Service Unavailable",
         "Gateway Timeout", "HTTP Version Not Supported"},
    };
    if (status < 100 || status > 599 || status % 100 >= 32)
        return status == 451 ? "Unavailable For Legal Reasons" : "";
    const char *phrase = phrases[status / 100 - 1][status % 100];
    return phrase != NULL ? phrase : "";
}

/* ---- Dates ---- */

static const char http_date_days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char http_date_months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static void http_date_put_number(char *at, int64_t number, int digits)
{
    while (digits-- != 0) {
        at[digits] = (char)('0' + number % 10);
        number /= 10;
    }
}

/* The number of days since 1970 of a Gregorian date, counted in years that begin in March. */
static int64_t http_date_to_days(int64_t year, int month, int day)
{
    year -= month < 3;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void bide_http_print_date(char date[BIDE_HTTP_DATE_SIZE], int64_t time)
{
    int64_t day = (time >= 0 ? time : time - 86399) / 86400;
    int64_t second = time - day * 86400;
    int64_t shifted = day + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t of_era = shifted - era * 146097;
    int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
    int64_t of_months = (5 * of_year + 2) / 153;
    int64_t month = of_months < 10 ? of_months + 3 : of_months - 9;
    int64_t year = years + era * 400 + (month <= 2);
    memcpy(date, http_date_days[((day % 7) + 11) % 7], 3);
    memcpy(date + 3, ", ", 2);
    http_date_put_number(date + 5, of_year - (153 * of_months + 2) / 5 + 1, 2);
    date[7] = ' ';
    memcpy(date + 8, http_date_months[month - 1], 3);
    date[11] = ' ';
    http_date_put_number(date + 12, year, 4);
    date[16] = ' ';
    http_date_put_number(date + 17, second / 3600, 2);
    date[19] = ':';
    http_date_put_number(date + 20, second / 60 % 60, 2);
    date[22] = ':';
    http_date_put_number(date + 23, second % 60, 2);
    memcpy(date + 25, " GMT", 4);
}

/* Parses a number of `digits` digits; a leading space counts as 0. Returns -1 if it is invalid. */
static int http_date_number_at(const char *at, int digits)
{
    int number = 0;
    for (int i = 0; i < digits; i++) {
        if (i == 0 && at[i] == ' ' && digits > 1)
            continue;
        if (!http_is_of(at[i], HTTP_DIGIT))
            return -1;
        number = number * 10 + (at[i] - '0');
    }
    return number;
}

static int http_date_month_at(const char *at)
{
    for (int i = 0; i < 12; i++)
        if (memcmp(at, http_date_months[i], 3) == 0)
            return i + 1;
    return -1;
}

/* Combines the parts. Returns -EINVAL if there is no such time. */
static int http_date_make_time(int year, int month, int day, const char *clock, int64_t *time)
{
    int hour = http_date_number_at(clock, 2);
    int minute = http_date_number_at(clock + 3, 2);
    int second = http_date_number_at(clock + 6, 2);
    if (year < 0 || month < 1 || day < 1 || day > 31 || hour < 0 || hour > 23 || minute < 0 ||
        minute > 59 || second < 0 || second > 60 || clock[2] != ':' || clock[5] != ':')
        return -EINVAL;
    *time = http_date_to_days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    return 0;
}

int bide_http_parse_date(bide_slice date, int64_t *time)
{
    const char *at = date.data;
    if (date.size == 29 && at[3] == ',' && memcmp(at + 25, " GMT", 4) == 0)
        return http_date_make_time(http_date_number_at(at + 12, 4), http_date_month_at(at + 8),
                                   http_date_number_at(at + 5, 2), at + 17, time);
    if (date.size == 24 && at[3] == ' ') /* asctime */
        return http_date_make_time(http_date_number_at(at + 20, 4), http_date_month_at(at + 4),
                                   http_date_number_at(at + 8, 2), at + 11, time);
    const char *comma = date.size > 23 ? memchr(at, ',', date.size) : NULL; /* RFC 850 */
    if (comma == NULL || date.size - (size_t)(comma - at) != 24 ||
        memcmp(comma + 20, " GMT", 4) != 0)
        return -EINVAL;
    int year = http_date_number_at(comma + 9, 2);
    return http_date_make_time(year < 0 ? -1 : year + (year < 70 ? 2000 : 1900),
                               http_date_month_at(comma + 5), http_date_number_at(comma + 2, 2),
                               comma + 12, time);
}
