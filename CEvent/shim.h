#pragma once
// libevent's headers use fd_set and timeval without including them; Swift's importer rejects them otherwise.
#include <sys/types.h>
#include <sys/time.h>
#include <sys/socket.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <event2/util.h>
#include <sys/prctl.h>

// prctl is variadic, which Swift cannot call.
static inline int reel_name_thread(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }
