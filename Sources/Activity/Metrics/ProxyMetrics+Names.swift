import Synchronization

extension MetricFamily {
    /// What a number is called, and where it is shown.
    package final class Name: Sendable {
        /// In `GET /stats`: its own name, after that of the object that it is in, such as `cache.size`; nil if it is not
        /// there.
        let place: String?
        /// In `GET /metrics`, without the ending of its kind; nil if it is not there.
        let metric: String?
        let unit: Unit?
        /// Tells it from others of the same metric, which stand beside it and have no help.
        let label: Label?
        /// One sentence.
        let help: String

        init(
            _ place: String?, _ metric: String?, _ unit: Unit?, _ label: (name: String, value: String)?,
            _ help: String
        ) {
            (self.place, self.metric, self.unit, self.help) = (place, metric, unit, help)
            self.label = label.map { Label(name: $0.name, value: $0.value) }
        }
    }

    /// A number that is shown under its name.
    protocol Number: Sendable {
        /// Nil if it is a part of something else.
        var name: Name? { get }
        /// Nil as long as it is unknown.
        var reading: Value? { get }
    }
}

extension ProxyMetrics {
    /// The numbers that have a name, in the order of their declarations.
    var numbers: [any MetricFamily.Number] { found(\.all) }

    /// Those that `GET /stats` has.
    var placed: [any MetricFamily.Number] { found(\.placed) }

    private func found(_ list: KeyPath<Found.Lists, [any MetricFamily.Number]>) -> [any MetricFamily.Number] {
        found.lists.withLock { lists in
            if lists.all.isEmpty {
                lists.all = Mirror(reflecting: self).children.compactMap { $0.value as? any MetricFamily.Number }
                lists.placed = lists.all.filter { $0.name?.place != nil }
            }
            return lists[keyPath: list]
        }
    }

    /// The numbers, once they were looked for.
    final class Found: Sendable {
        fileprivate struct Lists {
            var all: [any MetricFamily.Number] = []
            var placed: [any MetricFamily.Number] = []
        }

        fileprivate let lists = Mutex(Lists())
    }
}
