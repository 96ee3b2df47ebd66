import ArgumentParser

/// A command with `--json`, which then prints errors as JSON, too.
protocol JSONCommand: ParsableCommand {
    var json: Bool { get }
}

extension Stats: JSONCommand {}
extension List: JSONCommand {}
extension Show: JSONCommand {}
extension Pin: JSONCommand { var json: Bool { pinning.json } }
extension Unpin: JSONCommand { var json: Bool { pinning.json } }
extension Remove: JSONCommand {}
extension Export: JSONCommand {}
extension Import: JSONCommand {}
extension Verify: JSONCommand {}
extension ConfigCheck: JSONCommand {}
extension ConfigShow: JSONCommand {}
extension DownloadsList: JSONCommand {}
extension DownloadsPause: JSONCommand { var json: Bool { naming.json } }
extension DownloadsResume: JSONCommand { var json: Bool { naming.json } }
extension DownloadsCancel: JSONCommand { var json: Bool { naming.json } }
extension DownloadsRetry: JSONCommand { var json: Bool { naming.json } }
extension DownloadsMove: JSONCommand {}
extension DownloadsSet: JSONCommand {}
extension DownloadsClear: JSONCommand {}
extension History: JSONCommand {}
extension FeedsList: JSONCommand {}
extension FeedsAdd: JSONCommand {}
extension FeedsShow: JSONCommand {}
extension FeedsRemove: JSONCommand {}
extension FeedsImport: JSONCommand {}
extension DoctorCommand: JSONCommand {}
