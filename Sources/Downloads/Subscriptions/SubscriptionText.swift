import HTTPModel

/// Values of options as people write them, for commands and the control interface alike.
package enum SubscriptionText {
    /// What `SubscriptionChange.Keep` accepts.
    package static let keepForm = "a number of episodes such as 5, a size such as \"2GB\", \"until-played\", or \"all\""

    /// What `DownloadCap.list` accepts.
    package static let capForm = "a cap such as 500MB/day, 500MB/day,5GB/month, or none"

    /// A length of time in seconds; nil if it is not one.
    package static func seconds(_ text: String) -> Int64? { TimeSpan(text)?.seconds }
}
