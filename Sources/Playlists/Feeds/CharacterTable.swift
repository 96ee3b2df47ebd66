import HTTPModel

/// The characters of a single-byte encoding's upper half.
struct CharacterTable: Sendable, Equatable {
    /// The characters of bytes 128 to 255.
    let characters: [UInt32]

    /// - Parameter label: the name in a declaration or `charset`, in any spelling: `ISO-8859-1`, `latin1`, `cp1252`.
    /// - Returns: nil for UTF-8 and UTF-16, which are not single-byte encodings. The table of an unknown encoding has
    ///   U+FFFD throughout: ASCII, and with it most addresses, stays right.
    static func named(_ label: String) -> CharacterTable? {
        let name = label.lowercased().filter { $0 != "-" && $0 != "_" && $0 != " " }
        guard !others.contains(name), !name.hasPrefix("utf"), !name.hasPrefix("iso10646") else { return nil }
        guard let text = texts[aliases[name] ?? name] else { return unknown }
        return CharacterTable(text)
    }

    /// windows-1252, which Western texts use whatever they declare. It contains ISO-8859-1.
    static let western = CharacterTable(texts["windows1252"] ?? "")
    static let unknown = CharacterTable(characters: Array(repeating: 0xFFFD, count: 128))

    private init(characters: [UInt32]) { self.characters = characters }

    /// A period stands for the code point with the number of the byte, such as a no-break space.
    private init(_ text: String) {
        let codes = text.unicodeScalars.map(\.value)
        characters = (0..<128).map { place in
            let code = codes.indices.contains(place) ? codes[place] : 0x2E
            return code == 0x2E ? UInt32(place) +| 128 : code // no trap: below 128
        }
    }

    /// Names of Unicode and of ASCII, which the bytes themselves confirm or refute.
    private static let others: Set<String> = ["unicode11utf8", "unicode", "ucs2", "ucs4", "usascii", "ascii", ""]

    private static let aliases = [
        "iso88591": "windows1252", "latin1": "windows1252", "l1": "windows1252", "cp1252": "windows1252",
        "latin9": "iso885915", "latin2": "iso88592", "cp1250": "windows1250", "cp1251": "windows1251",
        "koi8u": "koi8r", "koi8": "koi8r", "iso88599": "windows1254", "latin5": "windows1254", "cp1254": "windows1254",
        "iso88597": "windows1253", "cp1253": "windows1253",
    ]

    private static let texts = [
        "windows1252":
            "€.‚ƒ„…†‡ˆ‰Š‹Œ.Ž..‘’“”•–—˜™š›œ.žŸ.¡¢£¤¥¦§¨©ª«¬.®¯°±²³´µ¶·¸¹º»¼½¾¿"
            + "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ",
        "iso885915":
            ".................................¡¢£€¥Š§š©ª«¬.®¯°±²³Žµ¶·ž¹º»ŒœŸ¿"
            + "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ",
        "iso88592":
            ".................................Ą˘Ł¤ĽŚ§¨ŠŞŤŹ.ŽŻ°ą˛ł´ľśˇ¸šşťź˝žż"
            + "ŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙",
        "windows1250":
            "€.‚.„…†‡.‰Š‹ŚŤŽŹ.‘’“”•–—.™š›śťžź.ˇ˘Ł¤Ą¦§¨©Ş«¬.®Ż°±˛ł´µ¶·¸ąş»Ľ˝ľż"
            + "ŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙",
        "windows1251":
            "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—.™љ›њќћџ.ЎўЈ¤Ґ¦§Ё©Є«¬.®Ї°±Ііґµ¶·ё№є»јЅѕї"
            + "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя",
        "koi8r":
            "─│┌┐└┘├┤┬┴┼▀▄█▌▐░▒▓⌠■∙√≈≤≥\u{A0}⌡°²·÷═║╒ё╓╔╕╖╗╘╙╚╛╜╝╞╟╠╡Ё╢╣╤╥╦╧╨╩╪╫╬©"
            + "юабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ",
        "windows1254":
            "€.‚ƒ„…†‡ˆ‰Š‹Œ....‘’“”•–—˜™š›œ..Ÿ.¡¢£¤¥¦§¨©ª«¬.®¯°±²³´µ¶·¸¹º»¼½¾¿"
            + "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæçèéêëìíîïğñòóôõö÷øùúûüışÿ",
        "iso88595":
            ".................................ЁЂЃЄЅІЇЈЉЊЋЌ.ЎЏАБВГДЕЖЗИЙКЛМНОП"
            + "РСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя№ёђѓєѕіїјљњћќ§ўџ",
        "windows1253":
            "€.‚ƒ„…†‡.‰.‹.....‘’“”•–—.™.›.....΅Ά£¤¥¦§¨©.«¬.®―°±²³΄µ¶·ΈΉΊ»Ό½ΎΏ"
            + "ΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ.ΣΤΥΦΧΨΩΪΫάέήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ.",
    ]
}
