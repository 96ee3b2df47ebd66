import CBuild
import CCurl
import CEvent
import CExpat
import CIDN2
import CXXHash
import CZlib
import GRDBSQLite
import Reelcache

/// What `reelcache --version` tells: this program, the commit it was built from, and the libraries it runs with.
///
/// The versions are those of the libraries that are loaded, which may be later than those it was built with.
struct BuildInformation: Equatable {
    var version: String
    /// In full; empty if unknown. Ends in `-changed` if the sources had uncommitted changes.
    var commit: String
    var compiler: String
    /// Names and versions.
    var libraries: [Library]
    /// File names of the shared libraries that the dynamic linker loads for this program, without those that they need
    /// in turn.
    var neededFiles: [String]

    struct Library: Equatable {
        var name: String
        var version: String
    }

    static var current: BuildInformation {
        BuildInformation(
            version: Proxy.version, commit: String(cString: reelcache_build_commit()), compiler: compiler,
            libraries: libraries, neededFiles: neededFiles)
    }

    private static var libraries: [Library] {
        [
            Library(name: "libevent", version: String(cString: event_get_version())),
            Library(name: "libcurl", version: curl),
            Library(name: "SQLite", version: sqlite),
            Library(name: "expat", version: expat),
            Library(name: "zlib", version: String(cString: zlibVersion())),
            Library(name: "xxHash", version: xxHash),
            Library(name: "libidn2", version: String(cString: idn2_check_version(nil))),
        ]
    }

    /// Its first words: `libcurl/7.88.1 OpenSSL/3.0.17`. The rest names libraries that Reelcache doesn't use.
    private static var curl: String {
        let words = String(cString: curl_version()).split(separator: " ")
        let version = words.first.map { $0.drop { $0 != "/" }.dropFirst() } ?? ""
        return words.count > 1
            ? "\(version) (\(words[1].replacing("/", with: " ", maxReplacements: 1)))" : String(version)
    }

    private static var sqlite: String {
        String(cString: sqlite3_libversion())
    }

    private static var expat: String {
        let version = XML_ExpatVersionInfo()
        return "\(version.major).\(version.minor).\(version.micro)"
    }

    /// major * 10000 + minor * 100 + release: xxhash.h.
    private static var xxHash: String {
        let number = XXH_versionNumber()
        return "\(number / 10000).\(number / 100 % 100).\(number % 100)"
    }

    private static var neededFiles: [String] {
        var names: [String] = []
        // no trap: there are as many as this program was linked with.
        while let name = reelcache_build_needed_library(UInt32(names.count)) { names.append(String(cString: name)) }
        return names
    }

    private static var compiler: String {
        #if compiler(>=6.4)
        "Swift 6.4 or later"
        #elseif compiler(>=6.3)
        "Swift 6.3"
        #elseif compiler(>=6.2)
        "Swift 6.2"
        #else
        "Swift 6.1"
        #endif
    }
}
