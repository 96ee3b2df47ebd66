import Administration
import CachePolicy
import ControlAPI
import Downloads
import Foundation
import HTTPModel
import Reelcache

/// The view of what happens now: waits for keys, signals and news, and draws.
final class TopView {
    private let screen: FullScreen
    private let signals: SignalReader
    private let cacheDirectory: String
    private let mask: URLMask?
    private var painter = ScreenPainter(hasStyles: FullScreen.hasStyles)
    private var keys = KeyReader()
    private var list = NowList()
    private var content = NowScreen.Content()
    private var isOver = false

    /// How long an Escape may take to become a sequence, in milliseconds.
    private static let escapeMilliseconds: Int32 = 50

    init(_ screen: FullScreen, _ signals: SignalReader, cacheDirectory: String, mask: URLMask?) {
        (self.screen, self.signals, self.cacheDirectory, self.mask) = (screen, signals, cacheDirectory, mask)
    }

    /// Runs until the person quits, a signal ends it, or the terminal is gone.
    func run() throws {
        let watch = try NowWatch(cacheDirectory: cacheDirectory)
        watch.start()
        defer { watch.end() }
        draw()
        while !isOver {
            var waits = [STDIN_FILENO, signals.descriptor, watch.descriptor].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            // A negative descriptor is not waited for.
            waits.append(pollfd(fd: screen.hasWaiting ? screen.output : -1, events: Int16(POLLOUT), revents: 0))
            // no trap: four
            let count = poll(&waits, nfds_t(waits.count), keys.isWaiting ? Self.escapeMilliseconds : -1)
            if count == 0 { press(keys.pause(), watch) }
            while let number = signals.next() { obey(number) }
            if waits[0].revents != 0 { readKeys(watch) }
            for news in watch.take() { learn(news) }
            screen.flush()
            if !isOver { draw() }
        }
    }

    private func draw() {
        guard screen.isReady else { return }
        let size = screen.size
        let lines = NowScreen(width: size.columns, height: size.rows, isUnicode: Terminal.isUnicode, mask: mask)
            .lines(content, list)
        screen.write(painter.paint(lines, columns: size.columns, rows: size.rows))
    }

    private func learn(_ news: NowWatch.News) {
        switch news {
        case .now(let report):
            content = NowScreen.Content(report)
            list.update(plays: report.plays, transfers: report.transfers, downloads: report.downloads)
        case .lost(let reason): content.trouble = "\(reason); trying again"
        case .outcome(let line): list.remark = line
        }
    }

    // MARK: Signals

    private func obey(_ number: Int32) {
        switch number {
        case SIGWINCH: break
        case SIGTSTP: suspend()
        case SIGCONT: resume()
        default: isOver = true
        }
    }

    /// Gives the terminal back to the shell until it continues this process, by SIGCONT.
    private func suspend() {
        screen.leave()
        kill(getpid(), SIGSTOP)
    }

    private func resume() {
        screen.enter()
        painter.forget()
    }

    // MARK: Keys

    private func readKeys(_ watch: NowWatch) {
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = read(STDIN_FILENO, &buffer, buffer.count)
        if count < 0, errno == EINTR || errno == EAGAIN { return }
        // The terminal is gone.
        guard count > 0 else { return isOver = true }
        press(keys.take(buffer[..<count]), watch)
    }

    private func press(_ keys: [Key], _ watch: NowWatch) {
        for key in keys {
            switch list.press(key) {
            case nil: break
            case .quit?: return isOver = true
            case .redraw?: painter.forget()
            case .change(let id, let action)?: change(id, action, watch)
            case .pin(let isPinned, let url)?: pin(isPinned, url, watch)
            }
        }
    }

    private func change(_ id: Int64, _ action: DownloadChange.Action, _ watch: NowWatch) {
        watch.perform { proxy in
            let reports = try proxy.change(.ids([id]), DownloadChange(action: action))
            guard let report = reports.first else { return "that download has ended" }
            return "\(report.name): \(report.state.rawValue)"
        }
    }

    private func pin(_ isPinned: Bool, _ url: String, _ watch: NowWatch) {
        watch.perform { proxy in
            let resource = try proxy.setPinned(isPinned, try proxy.url(url)).resource
            return "\(isPinned ? "pinned" : "unpinned") \(resource.urlText), \(resource.cachedBytes.size)"
        }
    }
}

extension NowScreen.Content {
    fileprivate init(_ report: NowReport) {
        self.init()
        (plays, transfers, downloads) = (report.plays, report.transfers, report.downloads)
        hidden = (report.hidden.plays, report.hidden.transfers, report.hidden.downloads)
        cache = (report.cache.size, report.cache.limit)
        hitRatio = report.served.hitRatio
    }
}
