/*
 * The back end of a loop whose calls are made when a descriptor is ready: epoll, or poll if the
 * library was built without epoll.
 */
#ifndef BIDE_TESTS_BY_READINESS_H
#define BIDE_TESTS_BY_READINESS_H

#if defined BIDE_HAS_EPOLL && !BIDE_HAS_EPOLL
#define HAS_EPOLL         0
#define BY_READINESS      BIDE_LOOP_POLL
#define BY_READINESS_NAME "poll"
#else
#define HAS_EPOLL         1
#define BY_READINESS      BIDE_LOOP_EPOLL
#define BY_READINESS_NAME "epoll"
#endif

#endif
