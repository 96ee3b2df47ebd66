import CachePolicy
import ControlAPI
import DiskCache
import HTTPModel
import Synchronization

extension ResourceRoutes {
    /// A line of JSON whose lists of segments are written some at a time: a few bytes of a manifest stand for a
    /// million.
    final class SegmentListing: Sendable {
        /// How many segments there are at most, and the reports on some of them.
        typealias List = (count: Int, reports: @Sendable (Range<Int>) -> [SegmentReport])

        static let pieceCount = 256

        private let mask: URLMask?
        private let state: Mutex<State>

        private struct State: Sendable {
            /// What stands around the lists.
            var texts: ArraySlice<[UInt8]>
            var lists: ArraySlice<List>
            /// The place in the first list; nil before it.
            var position: Int?
            var isBegun = false
        }

        /// - Parameter line: has an empty list of segments for each of `lists`.
        init(_ line: [UInt8], lists: [List], _ mask: URLMask?) {
            // Not in a string: there quotation marks are escaped.
            var (texts, rest): ([[UInt8]], ArraySlice<UInt8>) = ([], line[...])
            let empty = Array("\"segment_list\":[]".utf8)
            while texts.count < lists.count, let place = rest.firstRange(of: empty) {
                texts.append(Array(rest[..<(place.upperBound - 1)]))
                rest = rest[(place.upperBound - 1)...]
            }
            self.mask = mask
            state = Mutex(State(texts: (texts + [Array(rest)])[...], lists: lists[...]))
        }

        /// The next bytes; nil at the end.
        func next() throws -> [UInt8]? {
            try state.withLock { state in
                guard let position = state.position, let list = state.lists.first else {
                    state.position = 0
                    return state.texts.popFirst()
                }
                let end = min(position + Self.pieceCount, list.count)
                let line = try ControlJSON.line(list.reports(position..<end), masked: mask).dropFirst().dropLast(2)
                let piece = (state.isBegun && !line.isEmpty ? [ASCII.comma] : []) + line
                state.isBegun = state.isBegun || !line.isEmpty
                state.position = end
                if end == list.count {
                    state.lists.removeFirst()
                    (state.position, state.isBegun) = (nil, false)
                }
                return piece
            }
        }
    }
}
