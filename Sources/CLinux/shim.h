#pragma once
// Calls of Linux that glibc declares only with _GNU_SOURCE, which Swift's Glibc module is built without.
// A declaration belongs to the first module of a target that includes its header, this one or Glibc: files that name
// types of sockets (SOCK_STREAM) in a target that imports this module import it as well.
#include <sys/eventfd.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/prctl.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <sys/signalfd.h>
#include <sys/vfs.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <ifaddrs.h>
#include <malloc.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <semaphore.h>
#include <spawn.h>
#include <time.h>

extern int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
extern int fallocate(int descriptor, int mode, off_t offset, off_t length);
extern int syncfs(int descriptor);
extern int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until);
extern ssize_t preadv2(int descriptor, const struct iovec *vectors, int count, off_t offset, int flags);
extern int memfd_create(const char *name, unsigned int flags);

// SQLite counts each of its allocations under a lock of the process, for figures that nobody reads. Before its first use.
extern int sqlite3_config(int option, ...);
static inline void reel_sqlite_count_no_memory(void) { sqlite3_config(9 /* SQLITE_CONFIG_MEMSTATUS */, 0); }

static const unsigned int reel_memfd_cloexec = 1;
static const int reel_rwf_nowait = 0x08;
static const long reel_utime_omit = (1l << 30) - 2l;
static const int reel_falloc_keep_size = 0x01;
static const int reel_falloc_punch_hole = 0x02 | 0x01; // with KEEP_SIZE, as fallocate(2) requires

// prctl is variadic, which Swift cannot call.
static inline int reel_name_thread(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }

// A write to a pipe or socket that nobody reads fails, and does not end the program, which may not be ours: in a thread of ours, and,
// in any, by this write(2).
static inline ssize_t reel_write(int descriptor, const void *bytes, size_t count) {
    sigset_t broken, former, pending;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, &former);
    sigpending(&pending);
    ssize_t written = write(descriptor, bytes, count);
    int code = errno;
    struct timespec now = {0};
    if (written < 0 && code == EPIPE && !sigismember(&pending, SIGPIPE)) sigtimedwait(&broken, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    errno = code;
    return written;
}
static inline void reel_block_broken_pipes(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

// Files without a name, and sharing the blocks of a file. ioctl is variadic, too.
static const int reel_o_tmpfile = __O_TMPFILE;
extern ssize_t copy_file_range(int source, off_t *source_offset, int target, off_t *target_offset, size_t length, unsigned int flags);
static inline int reel_clone_file(int target, int source) { return ioctl(target, _IOW(0x94, 9, int), source); } // FICLONE; linux/fs.h conflicts with sys/mount.h
static inline int reel_start_writing(int file, long long from, long long count) { // SYNC_FILE_RANGE_WRITE
  extern int sync_file_range(int, __off64_t, __off64_t, unsigned int);
  return sync_file_range(file, from, count, 2);
}

/// The width of a terminal in columns; 0 if it is unknown or the descriptor is not a terminal.
static inline int reel_terminal_width(int descriptor) {
    struct winsize size;
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// The height of a terminal in rows; 0 likewise.
static inline int reel_terminal_height(int descriptor) {
    struct winsize size;
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

static inline int reel_set_terminal_size(int descriptor, unsigned short columns, unsigned short rows) {
    struct winsize size = { .ws_row = rows, .ws_col = columns };
    return ioctl(descriptor, TIOCSWINSZ, &size);
}

// The bytes of a socket that its other end has not taken (tcp(7), SIOCOUTQ); 0 if that is unknown.
static inline int reel_unsent_bytes(int socket) {
    int count = 0;
    return ioctl(socket, TIOCOUTQ, &count) == 0 ? count : 0;
}

// The type of the file system that holds a path, from statfs(2); -1 if that fails.
static inline long reel_file_system(const char *path) {
    struct statfs info;
    return statfs(path, &info) == 0 ? (long)info.f_type : -1;
}
extern int mkostemp(char *path, int flags);

extern int posix_openpt(int flags);
extern int grantpt(int master);
extern int unlockpt(int master);
extern int ptsname_r(int master, char *name, size_t size);

/// A socket that becomes readable when this machine gains or loses an address; -1 if the kernel refuses it to this process.
static inline int reel_address_changes(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    struct sockaddr_nl group = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&group, sizeof group) == 0) return descriptor;
    close(descriptor);
    return -1;
}

/// A descriptor from which the signals of a set are read, which must be blocked in all threads; -1 on failure.
static inline int reel_signals(const sigset_t *set) { return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK); }

/// The number of the next signal; 0 if there is none.
static inline int reel_next_signal(int descriptor) {
    struct signalfd_siginfo info;
    return read(descriptor, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

/// A pipe whose ends other programs do not inherit.
static inline int reel_pipe(int ends[2]) {
    extern int pipe2(int ends[2], int flags);
    return pipe2(ends, O_CLOEXEC);
}
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
extern int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *path);

/// Gives a terminal back: writes the text, and sets the modes of standard input, if any. If the terminal takes no more,
/// what waits to be shown is dropped.
/// - Parameter output: does not block.
static inline void reel_give_back_terminal(int output, const char *text, const struct termios *modes) {
    ssize_t length = (ssize_t)strlen(text);
    if (write(output, text, length) != length && tcflush(output, TCOFLUSH) == 0) (void)!write(output, text, length);
    if (modes) tcsetattr(STDIN_FILENO, TCSANOW, modes);
}

/// Whether standard input has these modes.
static inline int reel_terminal_has(const struct termios *modes) {
    struct termios now;
    return tcgetattr(STDIN_FILENO, &now) == 0 && now.c_iflag == modes->c_iflag && now.c_oflag == modes->c_oflag
        && now.c_lflag == modes->c_lflag;
}

/// Starts a process that gives the terminal back if this one ends while it has the screen. It ends with this one.
/// - Parameters:
///   - news: a pipe in which this process writes 1 when it takes the screen, and 0 when it has given it back.
///   - taken: the modes that this process sets.
/// - Returns: its ID; -1 on failure.
static inline pid_t reel_guard_terminal(
    int news, int output, const char *text, const struct termios *saved, const struct termios *taken
) {
    extern void closefrom(int first);
    pid_t own = getpgrp(), shell = getpgid(getppid());
    pid_t guardian = fork();
    if (guardian != 0) return guardian;
    // Only calls that a process with threads may make after fork.
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0); // What is sent to the whole job does not reach it, not even SIGKILL.
    reel_name_thread("terminal-keeper");
    dup2(news, 1);
    dup2(output, 2);
    closefrom(3);
    char hasScreen = 0, byte;
    for (ssize_t count; (count = read(1, &byte, 1)) != 0;) {
        if (count == 1) hasScreen = byte;
        else if (errno != EINTR) break;
    }
    // By now, the shell may have the terminal again, and modes of its own; or it has given it to another program.
    pid_t front = tcgetpgrp(STDIN_FILENO);
    int isFree = front < 0 || front == own || front == shell || front == getsid(0);
    if (hasScreen && isFree) reel_give_back_terminal(2, text, reel_terminal_has(taken) ? saved : NULL);
    _exit(0);
}
