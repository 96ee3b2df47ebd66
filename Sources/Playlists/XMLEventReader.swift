import CExpat

/// Receives the events of an XML text in their order. No event is reported after `XMLEventReader.stop`, except ends of
/// elements.
protocol XMLEventReceiver: AnyObject {
    /// - Parameter attributes: names and values in turn, and a null pointer.
    func begin(_ name: UnsafePointer<CChar>, _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?)
    func end()
    /// A piece of text, in UTF-8.
    func take(_ text: UnsafeRawBufferPointer)
    /// A comment, a processing instruction or a reference to an entity, as it is written.
    func takeOther(_ text: UnsafeRawBufferPointer)
    func beginDocumentType()
    /// - Parameter value: nil for an external entity.
    func declareEntity(_ value: UnsafeRawBufferPointer?, isParameter: Bool)
    /// The document type declares an attribute. libexpat goes through all of an element's at each such element: the
    /// work grows with their product, and is not reported.
    func declareAttribute()
}

extension XMLEventReceiver {
    func takeOther(_ text: UnsafeRawBufferPointer) {}
    func beginDocumentType() {}
    func declareEntity(_ value: UnsafeRawBufferPointer?, isParameter: Bool) {}
    func declareAttribute() {}
}

/// Reads XML with libexpat, in pieces. Never reads external entities.
///
/// This is a class because libexpat's callbacks reach it through a pointer.
final class XMLEventReader {
    enum Encoding {
        /// The one that the text declares, and UTF-8 otherwise.
        case declared
        case utf8
        /// One byte for each character: those of the bytes from 128.
        case table([UInt32])
    }

    enum Outcome {
        case complete
        /// By `stop`.
        case stopped
        /// A tag or comment does not end within two pieces. The parser would have to hold all of it.
        case tooLong
        case malformed(reason: String, line: Int, isEncoding: Bool)
    }

    private let bytes: [UInt8]
    private let start: Int
    private let piece: Int
    private let table: [UInt32]
    private let parser: XML_Parser
    /// While it reads.
    private var receiver: (any XMLEventReceiver)?
    /// The offset up to which the parser has reported the text.
    private(set) var reached: Int
    private var isStopped = false

    /// - Parameters:
    ///   - start: the offset at which the XML begins.
    ///   - piece: how many bytes the parser gets at once. It buffers a tag until the tag is complete.
    /// - Returns: nil if memory is exhausted.
    init?(_ bytes: [UInt8], from start: Int = 0, _ encoding: Encoding, piece: Int) {
        let (name, table): (String?, [UInt32]) =
            switch encoding {
            case .declared: (nil, [])
            case .utf8: ("UTF-8", [])
            case .table(let table): ("x-reelcache-table", table)
            }
        guard let parser = XML_ParserCreate(name) else { return nil }
        (self.bytes, self.start, self.reached, self.piece) = (bytes, start, start, piece)
        (self.table, self.parser) = (table, parser)
    }

    deinit { XML_ParserFree(parser) }

    /// Reads the whole text, or up to the first mistake. Once.
    func read(to receiver: any XMLEventReceiver) -> Outcome {
        self.receiver = receiver
        defer { self.receiver = nil }
        setHandlers()
        var place = start
        repeat {
            let end = place + min(piece, bytes.count - place)
            let status = bytes.withUnsafeBytes { buffer in
                // no trap: a piece is far smaller than 2 GiB
                XML_Parse(parser, buffer.baseAddress.map { $0 + place }, Int32(end - place), end == bytes.count ? 1 : 0)
            }
            if isStopped { return .stopped }
            guard status == XML_STATUS_OK else { return malformed }
            if end - reached > piece * 2 { return .tooLong }
            place = end
        } while place < bytes.count
        return .complete
    }

    /// Ends reading, from within an event.
    func stop() {
        isStopped = true
        XML_StopParser(parser, 0)
    }

    /// The position of the current event: for elements, of the tag.
    var event: Range<Int> {
        let start = start + Int(clamping: XML_GetCurrentByteIndex(parser))
        let count = Int(XML_GetCurrentByteCount(parser))
        return max(0, start)..<max(0, start, min(bytes.count, start + count))
    }

    private var malformed: Outcome {
        let code = XML_GetErrorCode(parser)
        return .malformed(
            reason: XML_ErrorString(code).map { String(cString: $0) } ?? "it is not XML",
            line: Int(clamping: XML_GetCurrentLineNumber(parser)),
            isEncoding: code == XML_ERROR_UNKNOWN_ENCODING || code == XML_ERROR_INCORRECT_ENCODING)
    }

    // MARK: - Handlers

    private func setHandlers() {
        let context = Unmanaged.passUnretained(self).toOpaque()
        XML_SetUserData(parser, context)
        XML_SetElementHandler(
            parser,
            { context, name, attributes in
                if let name { XMLEventReader.of(context)?.received?.begin(name, attributes) }
            }, { context, _ in XMLEventReader.of(context)?.received?.end() })
        XML_SetCharacterDataHandler(parser) { XMLEventReader.of($0)?.received?.take(XMLEventReader.buffer($1, $2)) }
        // A default handler, and none for external entities: libexpat then reads no external entities.
        XML_SetDefaultHandler(parser) { XMLEventReader.of($0)?.received?.takeOther(XMLEventReader.buffer($1, $2)) }
        XML_SetStartDoctypeDeclHandler(parser) { context, _, _, _, _ in
            XMLEventReader.of(context)?.received?.beginDocumentType()
        }
        XML_SetEntityDeclHandler(parser) { context, _, isParameter, value, length, _, _, _, _ in
            let value = value.map { XMLEventReader.buffer($0, length) }
            XMLEventReader.of(context)?.received?.declareEntity(value, isParameter: isParameter != 0)
        }
        XML_SetAttlistDeclHandler(parser) { context, _, _, _, _, _ in
            XMLEventReader.of(context)?.received?.declareAttribute()
        }
        XML_SetUnknownEncodingHandler(parser, { XMLEventReader.of($0)?.fill($2) ?? 0 }, context)
    }

    /// The receiver, to which the current event goes.
    private var received: (any XMLEventReceiver)? {
        reached = event.upperBound
        return receiver
    }

    private func fill(_ encoding: UnsafeMutablePointer<XML_Encoding>?) -> Int32 {
        guard let encoding, table.count == 128 else { return 0 }
        withUnsafeMutableBytes(of: &encoding.pointee.map) { buffer in
            let map = buffer.bindMemory(to: Int32.self)
            for place in map.indices {
                map[place] = Int32(bitPattern: place < 128 ? UInt32(truncatingIfNeeded: place) : table[place - 128])
            }
        }
        encoding.pointee.data = nil
        encoding.pointee.convert = nil
        encoding.pointee.release = nil
        return 1
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> XMLEventReader? {
        context.map { Unmanaged<XMLEventReader>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func buffer(_ text: UnsafePointer<CChar>?, _ count: Int32) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: text, count: text == nil ? 0 : max(0, Int(count)))
    }
}
