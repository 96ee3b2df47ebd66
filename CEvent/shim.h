#pragma once
// libevent's headers use fd_set and timeval without including them; Swift's importer rejects them otherwise.
#include <sys/types.h>
#include <sys/time.h>
#include <sys/socket.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <event2/util.h>
