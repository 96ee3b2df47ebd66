import CachePolicy
import Foundation
import HTTPModel
import HTTPTransport

extension ProxyConfiguration {
    /// The address to listen on.
    func address() throws(ProxyError) -> ListenAddress {
        guard let address = ListenAddress(listen) else {
            throw .invalidSetting("cannot listen on '\(listen)': write HOST:PORT, such as 127.0.0.1:7335")
        }
        return address
    }

    /// Checks the settings that need each other.
    package func checkTogether() throws(ProxyError) { _ = try checkedTrusted() }

    func checkedTransmission() throws(ProxyError) -> Transmission {
        guard let transmission = Transmission(rawValue: transmission) else {
            throw .invalidSetting("'\(transmission)' is not a transmission: write mapping or sendfile")
        }
        return transmission
    }

    /// Checks the settings that only the opening of a cache reads.
    /// - Returns: the number of loops.
    func checkedThreads() throws(ProxyError) -> Int {
        _ = try address()
        _ = try checkedTransmission()
        _ = try checkedTrusted()
        let threads = self.threads ?? ProcessInfo.processInfo.activeProcessorCount
        guard (1...256).contains(threads) else {
            throw .invalidSetting("\(threads) threads cannot work; choose 1 to 256")
        }
        if let name = names.first(where: { !HostName.isOne($0) }) {
            throw .invalidSetting(
                "'\(name)' in names is not a host name: write it without a port, like tv.example; addresses need no entry"
            )
        }
        if let file = certificateFile, access(file, R_OK) != 0 {
            throw .invalidSetting("cannot read the certificates in \(file): \(String(errno: errno))")
        }
        for (name, time, range) in [
            ("linger", linger, Self.lingerRange),
            ("connectTimeout", connectTimeout, Self.connectTimeoutRange),
            ("stallTimeout", stallTimeout, Self.stallTimeoutRange),
            ("downloadRetryTime", downloadRetryTime, Self.downloadRetryRange),
            ("drainTime", drainTime, Self.drainTimeRange),
        ] where !range.contains(time) {
            throw .invalidSetting("\(name) of \(time) cannot work; choose \(range.lowerBound) to \(range.upperBound)")
        }
        for (name, count) in [
            ("maxFetches", maxFetches), ("maxFetchesPerHost", maxFetchesPerHost),
        ]
        where !Self.fetchesRange.contains(count) {
            throw .invalidSetting(
                "\(name) of \(count) cannot work; choose 1 to \(Self.fetchesRange.upperBound)")
        }
        return threads
    }
}
