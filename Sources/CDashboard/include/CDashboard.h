#pragma once
#include <stddef.h>

/// A file of the dashboard, as it stands in `page`.
struct reelcache_dashboard_file {
    const char *name;
    /// Its media type.
    const char *type;
    const unsigned char *bytes;
    size_t length;
};

/// The files of the dashboard, which are part of the program.
/// - Returns: `NULL` after the last one.
const struct reelcache_dashboard_file *reelcache_dashboard_file(size_t index);
