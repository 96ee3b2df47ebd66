import CachePolicy
import Foundation
import HTTPModel

/// Runs a resolver's program for one URL and reads what it printed.
package enum ResolverCommand {
    /// Blocks until the program has ended or its time is over.
    /// - Parameters:
    ///   - environment: the variables of this process, of which the program gets some.
    ///   - now: the current time in seconds since 1970.
    ///   - isCancelled: whether to end the program early.
    package static func run(
        _ resolver: Resolver, for url: OriginURL,
        environment: [String: String] = ProcessInfo.processInfo.environment, now: () -> Int64,
        isCancelled: () -> Bool = { false }
    ) throws(ResolverFailure) -> MediaLocation {
        let name = resolver.name.printable
        let program: SpawnedProgram
        do throws(SpawnedProgram.StartError) {
            program = try SpawnedProgram(
                resolver.arguments(for: url), environment: ResolverEnvironment.variables(of: environment))
        } catch {
            throw .cannotStart(name, reason: "\(error)")
        }
        let limit = ResolverOutput.longest
        let end = program.collect(upTo: limit, within: resolver.timeout, isCancelled: isCancelled)
        switch end.reason {
        case .ended: break
        case .tooLong: throw .tooLong(name, limit: limit)
        case .timedOut: throw .timedOut(name, after: resolver.timeout)
        case .cancelled: throw .closing
        }
        switch end.status {
        case .exited(0), .unknown: break
        case .exited(let code): throw .exited(name, code: code, lastLine: lastLine(of: end.errors))
        case .killed(let signal): throw .killed(name, signal: signal)
        }
        do throws(ResolverOutput.Problem) { return try ResolverOutput.read(end.output, at: now()) } catch {
            throw .unusable(name, reason: error.reason)
        }
    }

    /// The longest part of an error that goes into a message, in characters.
    private static let longestLine = 300

    /// The last line that is not empty: programs end with what matters.
    static func lastLine(of errors: [UInt8]) -> String {
        let lines = String(decoding: errors, as: UTF8.self).split(whereSeparator: \.isNewline)
        let last = lines.last { !$0.allSatisfy(\.isWhitespace) } ?? ""
        return String(String(last).printable.prefix(longestLine)).trimmingCharacters(in: .whitespaces)
    }
}
