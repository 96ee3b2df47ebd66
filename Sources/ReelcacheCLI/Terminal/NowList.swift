import Activity
import Downloads

/// What a person does in the view of what happens now: the selected entry, and what keys mean. A value: it returns
/// actions.
package struct NowList: Sendable, Equatable {
    /// An entry of one of the three lists.
    package enum Entry: Sendable, Hashable {
        case play(Int64)
        case transfer(String)
        case download(Int64)
    }

    /// What is to be done.
    package enum Action: Sendable, Equatable {
        case quit
        case redraw
        /// Change the download with this ID.
        case change(Int64, DownloadChange.Action)
        /// Pin or unpin the resource at this URL.
        case pin(Bool, url: String)
    }

    /// What is shown besides the lists.
    package enum Mode: Sendable, Equatable {
        case lists
        case help
        /// Asks whether to cancel a download.
        case cancelling(Int64)
    }

    package private(set) var mode = Mode.lists
    package private(set) var selected: Entry?
    /// A remark on the last key, or on the last action; nil for none.
    package var remark: String?
    private var entries: [Entry] = []
    private var urls: [Entry: String] = [:]
    /// What was paused or resumed last.
    private var changed: Entry?

    /// How far a page goes, in entries.
    private static let page = 10

    package init() {}

    /// Takes the present lists. The selection stays with its entry; once that is gone, it goes to the one that is now
    /// in its place. If it is gone because it was paused or resumed, nothing is selected: the next key would undo that
    /// for another one.
    package mutating func update(plays: [PlayReport], transfers: [TransferReport], downloads: [Download]) {
        let place = selected.flatMap { entries.firstIndex(of: $0) }
        let isChanged = selected != nil && selected == changed
        let present: [(Entry, String)] =
            plays.map { (.play($0.id), $0.urlText) } + transfers.map { (.transfer($0.id), $0.urlText) }
            + downloads.map { (.download($0.id), $0.urlText) }
        entries = present.map(\.0)
        urls = Dictionary(present) { first, _ in first }
        if let selected, urls[selected] == nil { self.selected = nil }
        if selected == nil, let place, !entries.isEmpty, !isChanged {
            selected = entries[min(place, entries.count - 1)]
        }
        if case .cancelling(let id) = mode, urls[.download(id)] == nil {
            (mode, remark) = (.lists, "that download has ended")
        }
    }

    /// Takes a key.
    /// - Returns: what to do; nil for nothing besides drawing.
    package mutating func press(_ key: Key) -> Action? {
        if key == .redraw { return .redraw }
        remark = nil
        switch mode {
        case .lists: return pressInLists(key)
        case .help:
            mode = .lists
            return key == .character("q") ? .quit : nil
        case .cancelling(let id):
            mode = .lists
            guard key == .character("y") || key == .character("Y") else {
                remark = "not cancelled"
                return nil
            }
            return .change(id, .cancel)
        }
    }

    private mutating func pressInLists(_ key: Key) -> Action? {
        switch key {
        case .up, .character("k"): move(by: -1)
        case .down, .character("j"): move(by: 1)
        case .pageUp: move(by: -Self.page)
        case .pageDown: move(by: Self.page)
        case .home, .character("g"): selected = entries.first
        case .end, .character("G"): selected = entries.last
        case .escape: selected = nil
        case .character("?"), .character("h"): mode = .help
        case .character("q"): return .quit
        case .character("p"): return change(.pause)
        case .character("r"): return change(.resume)
        case .character("c"):
            if let id = selectedDownload("cancel") { mode = .cancelling(id) }
        case .character("P"): return pin(true)
        case .character("u"): return pin(false)
        case .character, .enter: remark = "press ? for the keys"
        case .redraw: break
        }
        return nil
    }

    private mutating func move(by count: Int) {
        guard !entries.isEmpty else { return }
        guard let place = selected.flatMap({ entries.firstIndex(of: $0) }) else {
            selected = count < 0 ? entries[entries.count - 1] : entries[0]
            return
        }
        selected = entries[min(max(0, place + count), entries.count - 1)]
    }

    private mutating func selectedDownload(_ verb: String) -> Int64? {
        if case .download(let id)? = selected { return id }
        remark = "select a download to \(verb)"
        return nil
    }

    private mutating func change(_ action: DownloadChange.Action) -> Action? {
        selectedDownload(action.rawValue).map { id in
            changed = .download(id)
            return .change(id, action)
        }
    }

    private mutating func pin(_ isPinned: Bool) -> Action? {
        guard let url = selected.flatMap({ urls[$0] }) else {
            remark = "select what to \(isPinned ? "pin" : "unpin")"
            return nil
        }
        return .pin(isPinned, url: url)
    }
}
