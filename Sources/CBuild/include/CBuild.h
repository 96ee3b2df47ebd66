#pragma once

/// The commit that this program was built from, or an empty string where the sources came without their history.
/// "-changed" follows where the sources had uncommitted changes. Package.swift defines it.
const char *reelcache_build_commit(void);

/// The names of the shared libraries that this program itself asks the dynamic linker for (DT_NEEDED), in their order.
/// - Returns: NULL after the last one.
const char *reelcache_build_needed_library(unsigned index);
