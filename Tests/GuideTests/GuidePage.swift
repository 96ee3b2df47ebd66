/// A page of the guide, and the commands of it that are run here.
struct GuidePage {
    struct Command {
        let block: MarkdownPage.Block
        let proxyRuns: Bool
        let fails: Bool
        let showsMore: Bool
    }

    let path: String
    private let page: MarkdownPage
    let commands: [Command]

    init(_ path: String) throws {
        self.path = path
        page = try Documents.page(path)
        commands = try page.blocks.filter { $0.language == "sh" }.compactMap { block in
            guard case .here(let proxyRuns, let fails, let showsMore) = try RunMarker(block.marker) else { return nil }
            return Command(block: block, proxyRuns: proxyRuns, fails: fails, showsMore: showsMore)
        }
    }

    /// The block of JSON that follows directly, if any: it shows the output of this block.
    func shape(after block: MarkdownPage.Block) -> MarkdownPage.Block? {
        guard let index = page.blocks.firstIndex(of: block), page.blocks.indices.contains(index + 1) else { return nil }
        return page.blocks[index + 1].language == "json" ? page.blocks[index + 1] : nil
    }
}
