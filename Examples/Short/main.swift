import Foundation
import Reelcache

let film = URL(string: CommandLine.arguments[1])!
let cache = try await MediaCache.open()
try cache.startProxy()
print("a player opens \(try cache.proxiedURL(for: film))")
let file = try await cache.download(film)
print("downloaded to \(file.path)")
try cache.close()
