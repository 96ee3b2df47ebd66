#include "CBuild.h"
#include <link.h>
#include <stddef.h>

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

const char *reelcache_build_commit(void) {
#ifdef REELCACHE_COMMIT
    return TEXT(REELCACHE_COMMIT);
#else
    return "";
#endif
}

/// The dynamic section of this program: System V gABI, chapter 5, "Dynamic Section".
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden"), weak));

const char *reelcache_build_needed_library(unsigned index) {
    const char *names = NULL;
    if (_DYNAMIC == NULL) return NULL;
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB) names = (const char *)entry->d_un.d_ptr;
    if (names == NULL) return NULL;
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED && index-- == 0) return names + entry->d_un.d_val;
    return NULL;
}
