#pragma once
#include <curl/curl.h>

// curl's setopt and getinfo are variadic, which Swift cannot call. One typed function for each kind of argument.
static inline CURLcode reel_curl_set_long(CURL *easy, CURLoption option, long value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode reel_curl_set_string(CURL *easy, CURLoption option, const char *value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode reel_curl_set_pointer(CURL *easy, CURLoption option, void *value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode reel_curl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode reel_curl_set_data_callback(CURL *easy, CURLoption option, size_t (*value)(char *, size_t, size_t, void *)) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode reel_curl_set_off(CURL *easy, CURLoption option, curl_off_t value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode reel_curl_set_progress(CURL *easy, curl_xferinfo_callback value) { return curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, value); }
static inline CURLcode reel_curl_set_opensocket(CURL *easy, curl_opensocket_callback value) { return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, value); }
static inline CURLcode reel_curl_set_closesocket(CURL *easy, curl_closesocket_callback value) { return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, value); }
static inline CURLcode reel_curl_set_prereq(CURL *easy, curl_prereq_callback value) { return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, value); }

static inline CURLcode reel_curl_get_long(CURL *easy, CURLINFO info, long *value) { return curl_easy_getinfo(easy, info, value); }
static inline CURLcode reel_curl_get_off(CURL *easy, CURLINFO info, curl_off_t *value) { return curl_easy_getinfo(easy, info, value); }
static inline CURLcode reel_curl_get_string(CURL *easy, CURLINFO info, const char **value) { return curl_easy_getinfo(easy, info, value); }
static inline CURLcode reel_curl_get_list(CURL *easy, CURLINFO info, struct curl_slist **value) { return curl_easy_getinfo(easy, info, value); }
static inline CURLcode reel_curl_get_pointer(CURL *easy, CURLINFO info, void **value) { return curl_easy_getinfo(easy, info, value); }

static inline CURLMcode reel_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) { return curl_multi_setopt(multi, option, value); }
static inline CURLMcode reel_curl_multi_set_pointer(CURLM *multi, CURLMoption option, void *value) { return curl_multi_setopt(multi, option, value); }
static inline CURLMcode reel_curl_multi_set_socket(CURLM *multi, curl_socket_callback value) { return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, value); }
static inline CURLMcode reel_curl_multi_set_timer(CURLM *multi, curl_multi_timer_callback value) { return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, value); }

static inline CURLSHcode reel_curl_share(CURLSH *share, curl_lock_data what) { return curl_share_setopt(share, CURLSHOPT_SHARE, what); }

// Deprecated, but the only call that lets each transfer continue and reports the sockets that come of it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static inline CURLMcode reel_curl_multi_socket_all(CURLM *multi, int *running) { return curl_multi_socket_all(multi, running); }
#pragma GCC diagnostic pop
