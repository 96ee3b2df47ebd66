extension FeedDate {
    /// Recognizes months in European languages by the beginnings of their names.
    enum MonthNames {
        /// - Parameter name: the name in lower case. It may continue after a known beginning.
        /// - Returns: 1 to 12
        static func month(_ name: String) -> Int64? {
            for length in stride(from: min(name.count, longest), through: 3, by: -1) {
                if let month = beginnings[String(name.prefix(length))] { return month }
            }
            return nil
        }

        /// In Czech, seven letters distinguish June (`červen`) and July (`červenec`).
        private static let longest = 7

        private static let beginnings: [String: Int64] = {
            // English, German, French, Spanish, Italian, Portuguese, Dutch, the Nordic languages, Polish, Czech,
            // Russian.
            let months = [
                "jan jän ene gen sty led tam янв", "feb fév fev lut úno hel фев",
                "mar mär mrz mrt maa bře мар",
                "apr avr abr kwi dub huh апр", "may mai mag maj mei kvě tou май мая",
                "jun juin giu cze červen červn kes июн",
                "jul juil lug lip červenc červene heinä июл", "aug aoû aou ago sie srp elo авг",
                "sep set wrz zář syy сен", "oct okt ott out paź paz říj lok окт", "nov lis marras ноя",
                "dec dez déc dic des dez gru pro jou дек",
            ]
            let pairs = zip(Int64(1)..., months).flatMap { number, names in
                names.split(separator: " ").map { (String($0), number) }
            }
            return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
        }()
    }
}
