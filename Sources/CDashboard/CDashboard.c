#include "CDashboard.h"

// C23, which clang knows in every mode of C since version 19, that of Swift 6.1.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char index_html[] = {
#embed "page/index.html"
};
static const unsigned char style_css[] = {
#embed "page/style.css"
};
static const unsigned char api_js[] = {
#embed "page/api.js"
};
static const unsigned char app_js[] = {
#embed "page/app.js"
};
static const unsigned char cache_js[] = {
#embed "page/cache.js"
};
static const unsigned char coverage_js[] = {
#embed "page/coverage.js"
};
static const unsigned char dom_js[] = {
#embed "page/dom.js"
};
static const unsigned char downloads_js[] = {
#embed "page/downloads.js"
};
static const unsigned char feeds_js[] = {
#embed "page/feeds.js"
};
static const unsigned char health_js[] = {
#embed "page/health.js"
};
static const unsigned char history_js[] = {
#embed "page/history.js"
};
static const unsigned char now_js[] = {
#embed "page/now.js"
};
static const unsigned char qr_js[] = {
#embed "page/qr.js"
};
static const unsigned char session_js[] = {
#embed "page/session.js"
};
static const unsigned char text_js[] = {
#embed "page/text.js"
};
static const unsigned char try_js[] = {
#embed "page/try.js"
};

#define FILE(name, type, bytes) {name, type, bytes, sizeof bytes}
#define SCRIPT(name, bytes) FILE(name, "text/javascript; charset=utf-8", bytes)

static const struct reelcache_dashboard_file files[] = {
    FILE("index.html", "text/html; charset=utf-8", index_html),
    FILE("style.css", "text/css; charset=utf-8", style_css),
    SCRIPT("api.js", api_js),
    SCRIPT("app.js", app_js),
    SCRIPT("cache.js", cache_js),
    SCRIPT("coverage.js", coverage_js),
    SCRIPT("dom.js", dom_js),
    SCRIPT("downloads.js", downloads_js),
    SCRIPT("feeds.js", feeds_js),
    SCRIPT("health.js", health_js),
    SCRIPT("history.js", history_js),
    SCRIPT("now.js", now_js),
    SCRIPT("qr.js", qr_js),
    SCRIPT("session.js", session_js),
    SCRIPT("text.js", text_js),
    SCRIPT("try.js", try_js),
};

const struct reelcache_dashboard_file *reelcache_dashboard_file(size_t index) {
    return index < sizeof files / sizeof *files ? &files[index] : NULL;
}
