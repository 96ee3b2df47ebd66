#pragma once
// Calls of Linux that glibc declares only with _GNU_SOURCE, which Swift's Glibc module is built without.
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/prctl.h>

extern int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
extern int fallocate(int descriptor, int mode, off_t offset, off_t length);
extern int memfd_create(const char *name, unsigned int flags);

static const unsigned int reel_memfd_cloexec = 1;
static const int reel_falloc_punch_hole = 0x02 | 0x01; // with KEEP_SIZE, as the manual asks for

// prctl is variadic, which Swift cannot call.
static inline int reel_name_thread(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }
