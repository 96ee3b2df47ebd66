// A layer between a program and the files of one directory, loaded with LD_PRELOAD. It records what is done to them, and fails on demand.
//
//   FAULT_LAYER_DIRECTORY   the directory, absolute and without symbolic links
//   FAULT_LAYER_LOG         a file outside of it, to which each change is appended; none where unset
//   FAULT_LAYER_CONTROL     a file of 64-bit words that a test writes while the program runs (`struct control`)
//
// A change and its record are made under one lock, so the log has all changes in the order in which they took effect, however the program
// ends; only its last record may be incomplete. System calls are made directly, so nothing depends on the order in which libraries start.
// What is written through a mapping is not seen. SQLite does that to its "-shm" files, which are not recorded: they are made anew.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// Which files: bits for rules.
enum { DATA = 1, INDEX = 2, OTHER = 4, SHARED_MEMORY = 8 };
// Which calls: bits for rules.
enum { WRITE = 1, READ = 2, CREATE = 4, OPEN_FOR_WRITING = 8, TRUNCATE = 16, PUNCH = 32, ALLOCATE = 64, SYNC = 128, REMOVE = 256, NAME = 512, OPEN_DIRECTORY = 1024, IN_MEMORY = 2048, SEND_MAPPED = 4096, MAP = 8192 };

struct rule { uint64_t calls, files, code, passes, hits; }; // `passes` calls get through first

struct control {
    uint64_t records;
    // SIGKILL as soon as `kill_count` records of the kind `kill_kind` ('*': any; 0: never) and then `kill_more` of any have been made.
    uint64_t kill_kind, kill_count, kill_more;
    struct rule rules[4];
};

// What a record begins with; then come the two paths, relative to the directory, and the data.
struct record { uint32_t size; uint8_t kind, unused; uint16_t path_size, other_size, unused2; uint32_t data_size; uint64_t file; int64_t offset, length; };

static struct { uint64_t inode; uint8_t class; } files[1 << 16]; // by descriptor; class 0: not in the directory
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct control off, *control = &off;
static const char *directory;
static size_t directory_size;
static int log_file = -1;

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("FAULT_LAYER_LOG"), *words = getenv("FAULT_LAYER_CONTROL"), *path = getenv("FAULT_LAYER_DIRECTORY");
    if (log) log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (words) {
        int file = syscall(SYS_openat, AT_FDCWD, words, O_RDWR | O_CLOEXEC);
        void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) control = mapped;
        syscall(SYS_close, file);
    }
    if ((log && log_file < 0) || (words && control == &off)) {
        fprintf(stderr, "fault layer: cannot open %s or %s\n", log, words);
        _exit(70);
    }
    directory_size = path ? strlen(path) : 0;
    directory = path;
}

// MARK: Places

// The path relative to the directory; NULL outside of it. `buffer` has PATH_MAX bytes.
static const char *inside(int at, const char *path, char *buffer) {
    if (!directory || !path) return NULL;
    if (path[0] != '/') {
        char link[64];
        snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
        ssize_t size = readlink(link, buffer, PATH_MAX - 1);
        if (size < 0) return NULL;
        snprintf(buffer + size, PATH_MAX - size, "/%s", path);
        path = buffer;
    }
    if (strncmp(path, directory, directory_size) != 0 || (path[directory_size] && path[directory_size] != '/')) return NULL;
    path += directory_size;
    while (*path == '/') path++;
    return path;
}

static int class_of(const char *path) {
    size_t size = strlen(path);
    if (size > 4 && strcmp(path + size - 4, "-shm") == 0) return SHARED_MEMORY;
    return strncmp(path, "data/", 5) == 0 ? DATA : strncmp(path, "index.sqlite", 12) == 0 ? INDEX : OTHER;
}

static int class(int fd) { return fd >= 0 && fd < 1 << 16 ? files[fd].class : 0; }

// MARK: Faults and records. Under the lock.

static int denied(uint64_t call, int class) {
    for (struct rule *rule = control->rules; rule < control->rules + 4; rule++) {
        if (!(rule->calls & call) || !(rule->files & class)) continue;
        if (rule->passes > 0) { rule->passes--; continue; }
        rule->hits++;
        errno = rule->code;
        return 1;
    }
    return 0;
}

static void note(char kind, uint64_t file, int64_t offset, int64_t length, const char *path, const char *other, const void *data, size_t size) {
    int saved = errno;
    struct record record = { 0, kind, 0, path ? strlen(path) : 0, other ? strlen(other) : 0, 0, size, file, offset, length };
    record.size = sizeof record + record.path_size + record.other_size + size;
    struct iovec parts[] = { { &record, sizeof record }, { (void *)path, record.path_size }, { (void *)other, record.other_size }, { (void *)data, size } };
    if (log_file >= 0 && syscall(SYS_writev, log_file, parts, 4) != record.size) {
        fprintf(stderr, "fault layer: the log takes no more\n");
        _exit(70);
    }
    control->records++;
    if (control->kill_count > 0 && (control->kill_kind == '*' || control->kill_kind == (uint64_t)kind)) control->kill_count--;
    if (control->kill_kind && control->kill_count == 0 && control->kill_more-- == 0) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    errno = saved;
}

static void note_file(char kind, int fd, int64_t offset, int64_t length, const void *data, size_t size) {
    if (files[fd].class != SHARED_MEMORY) note(kind, files[fd].inode, offset, length, NULL, NULL, data, size);
}

// Runs `call` under the lock unless a rule denies it, and `then` where it succeeded.
#define GUARDED(call_bit, class_bits, call, then) ({ \
    pthread_mutex_lock(&lock); \
    long result = denied(call_bit, class_bits) ? -1 : (call); \
    if (result >= 0) { then; } \
    pthread_mutex_unlock(&lock); \
    result; })

// MARK: Opening and closing

static int open_at(int at, const char *path, int flags, mode_t mode) {
    char buffer[PATH_MAX];
    const char *name = inside(at, path, buffer);
    if (!name) return syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat info;
    int is_new = flags & O_CREAT && fstatat(at, path, &info, AT_SYMLINK_NOFOLLOW) != 0, class = class_of(name), fd = -1;
    uint64_t calls = (is_new ? CREATE : 0) | ((flags & O_ACCMODE) != O_RDONLY ? OPEN_FOR_WRITING : 0)
        | (flags & O_DIRECTORY ? OPEN_DIRECTORY : 0);
    if (!denied(calls, class)) fd = syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 1 << 16) abort();
    if (fd >= 0 && fstat(fd, &info) == 0) {
        files[fd].inode = info.st_ino;
        files[fd].class = class;
        if (class != SHARED_MEMORY) note(is_new ? 'c' : 'o', info.st_ino, 0, 0, name, NULL, NULL, 0);
        if (flags & O_TRUNC && !is_new) note_file('t', fd, 0, 0, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

#define OPEN(function, at, first) \
    int function(first const char *path, int flags, ...) { \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        return open_at(at, path, flags, mode); \
    }
#define NOTHING
#define DIRECTORY int at,
OPEN(open, AT_FDCWD, NOTHING)
OPEN(open64, AT_FDCWD, NOTHING)
OPEN(openat, at, DIRECTORY)
OPEN(openat64, at, DIRECTORY)
int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

static int copied(int from, int to) {
    if (to >= 0 && to < 1 << 16) files[to] = files[from];
    return to;
}

int close(int fd) {
    if (class(fd)) files[fd].class = 0; // first: another thread may get this descriptor at once
    return syscall(SYS_close, fd);
}
int dup(int fd) { return copied(fd, syscall(SYS_dup, fd)); }
int dup3(int fd, int to, int flags) { return copied(fd, syscall(SYS_dup3, fd, to, flags)); }
int dup2(int fd, int to) { return fd == to ? to : dup3(fd, to, 0); }

// MARK: Content

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    if (!class(fd)) return syscall(SYS_pwrite64, fd, data, size, offset);
    return GUARDED(WRITE, files[fd].class, syscall(SYS_pwrite64, fd, data, size, offset), note_file('w', fd, offset, result, data, result));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) { return pwrite(fd, data, size, offset); }

ssize_t write(int fd, const void *data, size_t size) {
    if (!class(fd)) return syscall(SYS_write, fd, data, size);
    return GUARDED(WRITE, files[fd].class, syscall(SYS_write, fd, data, size),
                   note_file('w', fd, syscall(SYS_lseek, fd, 0, SEEK_CUR) - result, result, data, result));
}

// Of several pieces the first: to write less than all is allowed.
static const struct iovec *first(const struct iovec *parts, int count) {
    while (count-- > 1 && parts->iov_len == 0) parts++;
    return parts;
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!class(fd) || count < 1) return syscall(SYS_writev, fd, parts, count);
    return write(fd, first(parts, count)->iov_base, first(parts, count)->iov_len);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    if (!class(fd) || count < 1) return syscall(SYS_pwritev, fd, parts, count, offset, 0);
    return pwrite(fd, first(parts, count)->iov_base, first(parts, count)->iov_len, offset);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset) { return pwritev(fd, parts, count, offset); }

ssize_t pread(int fd, void *data, size_t size, off_t offset) {
    if (class(fd)) {
        pthread_mutex_lock(&lock);
        int is_denied = denied(READ, files[fd].class);
        pthread_mutex_unlock(&lock);
        if (is_denied) return -1;
    }
    return syscall(SYS_pread64, fd, data, size, offset);
}
ssize_t pread64(int fd, void *data, size_t size, off_t offset) { return pread(fd, data, size, offset); }

// MARK: Mapped data, which the kernel reads by itself

static struct { char *start; size_t size; } mapped[1 << 12];

static void note_mapped(void *from, size_t from_size, void *to, size_t to_size) {
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < sizeof mapped / sizeof *mapped && (mapped[i].start != from || mapped[i].size != from_size)) i++;
    if (i < sizeof mapped / sizeof *mapped) {
        mapped[i].start = to;
        mapped[i].size = to_size;
    } else if (to) abort();
    pthread_mutex_unlock(&lock);
}

static int is_mapped(const char *place) {
    for (size_t i = 0; i < sizeof mapped / sizeof *mapped; i++)
        if (mapped[i].start <= place && place < mapped[i].start + mapped[i].size) return 1;
    return 0;
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    // Memory for bytes of files counts as theirs.
    int is_data = fd < 0 ? flags & MAP_NORESERVE : class(fd) == DATA;
    if (is_data) {
        pthread_mutex_lock(&lock);
        int is_denied = denied(MAP, DATA);
        pthread_mutex_unlock(&lock);
        if (is_denied) return MAP_FAILED;
    }
    void *start = (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
    if (start != MAP_FAILED && class(fd) == DATA) note_mapped(NULL, 0, start, size);
    return start;
}
void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset) { return mmap(address, size, protection, flags, fd, offset); }

int munmap(void *address, size_t size) {
    note_mapped(address, size, NULL, 0);
    return syscall(SYS_munmap, address, size);
}

// A page that cannot be read ends the call, as it does in the kernel.
ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    int is_denied = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < message->msg_iovlen && !is_denied; i++)
        is_denied = message->msg_iov[i].iov_len > 0 && is_mapped(message->msg_iov[i].iov_base) && denied(SEND_MAPPED, DATA);
    pthread_mutex_unlock(&lock);
    return is_denied ? -1 : syscall(SYS_sendmsg, socket, message, flags);
}

// What is in memory is told of, and read without waiting; a rule says that nothing is.
int mincore(void *address, size_t size, unsigned char *pages) {
    int result = syscall(SYS_mincore, address, size, pages);
    pthread_mutex_lock(&lock);
    if (result == 0 && is_mapped(address) && denied(IN_MEMORY, DATA)) memset(pages, 0, (size + 4095) / 4096);
    pthread_mutex_unlock(&lock);
    return result;
}

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
    pthread_mutex_lock(&lock);
    int is_denied = class(fd) && denied(IN_MEMORY, files[fd].class);
    pthread_mutex_unlock(&lock);
    return is_denied ? -1 : syscall(SYS_preadv2, fd, parts, count, offset, 0, flags);
}
ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off_t offset, int flags) { return preadv2(fd, parts, count, offset, flags); }

int ftruncate(int fd, off_t length) {
    if (!class(fd)) return syscall(SYS_ftruncate, fd, length);
    return GUARDED(TRUNCATE, files[fd].class, syscall(SYS_ftruncate, fd, length), note_file('t', fd, 0, length, NULL, 0));
}
int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }
int truncate(const char *path, off_t length) {
    int fd = open_at(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    int result = ftruncate(fd, length), code = errno;
    close(fd);
    errno = code;
    return result;
}
int truncate64(const char *path, off_t length) { return truncate(path, length); }

// Records what changes content or size: holes, and space beyond the end.
int fallocate(int fd, int mode, off_t offset, off_t length) {
    if (!class(fd)) return syscall(SYS_fallocate, fd, mode, offset, length);
    int is_hole = mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
    if (!is_hole && mode & ~FALLOC_FL_KEEP_SIZE) return errno = EOPNOTSUPP, -1;
    return GUARDED(is_hole ? PUNCH : ALLOCATE, files[fd].class, syscall(SYS_fallocate, fd, mode, offset, length),
                   if (mode != FALLOC_FL_KEEP_SIZE) note_file(is_hole ? 'p' : 'a', fd, offset, length, NULL, 0));
}
int fallocate64(int fd, int mode, off_t offset, off_t length) { return fallocate(fd, mode, offset, length); }
int posix_fallocate(int fd, off_t offset, off_t length) { return fallocate(fd, 0, offset, length) == 0 ? 0 : errno; }
int posix_fallocate64(int fd, off_t offset, off_t length) { return posix_fallocate(fd, offset, length); }

// What copies inside the kernel has no data to record: programs do without it.
static int is_none_supported(int fd) { return class(fd) ? (errno = EOPNOTSUPP, 1) : 0; }
ssize_t copy_file_range(int from, off_t *at, int to, off_t *start, size_t size, unsigned flags) {
    return is_none_supported(to) ? -1 : syscall(SYS_copy_file_range, from, at, to, start, size, flags);
}
int ioctl(int fd, unsigned long request, ...) {
    va_list more;
    va_start(more, request);
    void *argument = va_arg(more, void *);
    va_end(more);
    return (request == FICLONE || request == FICLONERANGE) && is_none_supported(fd) ? -1 : syscall(SYS_ioctl, fd, request, argument);
}

// MARK: Durability

int fdatasync(int fd) {
    if (!class(fd)) return syscall(SYS_fdatasync, fd);
    return GUARDED(SYNC, files[fd].class, syscall(SYS_fdatasync, fd), note_file('s', fd, 0, 0, NULL, 0));
}
int fsync(int fd) {
    if (!class(fd)) return syscall(SYS_fsync, fd);
    return GUARDED(SYNC, files[fd].class, syscall(SYS_fsync, fd), note_file('s', fd, 0, 0, NULL, 0));
}
// sync_file_range promises nothing (its manual page warns so), and is not recorded.
int syncfs(int fd) {
    if (!class(fd)) return syscall(SYS_syncfs, fd);
    return GUARDED(SYNC, files[fd].class, syscall(SYS_syncfs, fd), note('S', 0, 0, 0, NULL, NULL, NULL, 0));
}
void sync(void) { GUARDED(SYNC, DATA | INDEX | OTHER, syscall(SYS_sync), note('S', 0, 0, 0, NULL, NULL, NULL, 0)); }

// MARK: Names

// A change of one name; `kind` is its record's.
static int change(char kind, uint64_t call, int at, const char *path, long number, long argument) {
    char buffer[PATH_MAX];
    const char *name = inside(at, path, buffer);
    if (!name) return syscall(number, at, path, argument);
    return GUARDED(call, class_of(name), syscall(number, at, path, argument),
                   if (class_of(name) != SHARED_MEMORY) note(kind, 0, 0, 0, name, NULL, NULL, 0));
}

int unlinkat(int at, const char *path, int flags) { return change(flags & AT_REMOVEDIR ? 'd' : 'u', REMOVE, at, path, SYS_unlinkat, flags); }
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    int result = unlink(path);
    return result != 0 && errno == EISDIR ? rmdir(path) : result;
}
int mkdirat(int at, const char *path, mode_t mode) { return change('m', NAME, at, path, SYS_mkdirat, mode); }
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int renameat2(int at, const char *path, int to, const char *other, unsigned flags) {
    char buffers[2][PATH_MAX];
    const char *from_name = inside(at, path, buffers[0]), *to_name = inside(to, other, buffers[1]);
    if (!from_name && !to_name) return syscall(SYS_renameat2, at, path, to, other, flags);
    if (!from_name || !to_name || flags & RENAME_EXCHANGE) return errno = EXDEV, -1;
    return GUARDED(NAME, class_of(to_name), syscall(SYS_renameat2, at, path, to, other, flags), note('r', 0, 0, 0, from_name, to_name, NULL, 0));
}
int renameat(int at, const char *path, int to, const char *other) { return renameat2(at, path, to, other, 0); }
int rename(const char *path, const char *other) { return renameat2(AT_FDCWD, path, AT_FDCWD, other, 0); }

// Second names are not modelled; some file systems have none.
int linkat(int at, const char *path, int to, const char *other, int flags) {
    char buffer[PATH_MAX];
    if (inside(to, other, buffer)) return errno = EPERM, -1;
    return syscall(SYS_linkat, at, path, to, other, flags);
}
int link(const char *path, const char *other) { return linkat(AT_FDCWD, path, AT_FDCWD, other, 0); }
