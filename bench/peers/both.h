/*
 * The C++20 peers are compiled with g++ and with clang, where there are both, and end up in one program:
 * what the peer `name` exports is name_gxx and name_clang. BENCH_GXX and BENCH_CLANG say which there are.
 */
#ifndef BENCH_PEERS_BOTH_H
#define BENCH_PEERS_BOTH_H

#ifdef __clang__
#define PEER(name) name##_clang
#else
#define PEER(name) name##_gxx
#endif

#endif
