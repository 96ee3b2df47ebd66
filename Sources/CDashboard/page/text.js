// Numbers, sizes and times as people read them, and the parts of URLs that they know things by.

const units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];

/** A number of bytes: `1.20 GB`. */
export function size(bytes) {
	if (!(bytes >= 0)) return "–";
	let unit = 0;
	while (bytes >= 999.5 && unit < units.length - 1) (bytes /= 1000), unit++;
	if (unit === 0) return bytes === 1 ? "1 byte" : `${Math.round(bytes)} bytes`;
	return `${bytes.toFixed(bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0)} ${units[unit]}`;
}

/** Bytes per second; nothing is a dash. */
export const rate = (bytes) => (bytes > 0 ? `${size(bytes)}/s` : "–");

/** A share from 0 to 1. 100 % only if it is all, 0 % only if it is nothing. */
export function percent(share) {
	if (!(share >= 0)) return "–";
	const rounded = Math.round(share * 100);
	return `${share > 0 && share < 1 ? Math.min(99, Math.max(1, rounded)) : Math.min(100, rounded)} %`;
}

/** A number with groups of three digits. */
export const count = (number) => Number(number).toLocaleString("en");

/** `1 film`, `2 films`. */
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** A length of time in its two largest units: `1 h 5 min`. */
export function duration(seconds) {
	if (!(seconds >= 0)) return "–";
	seconds = Math.round(seconds);
	const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
	const first = parts.findIndex(([length]) => seconds >= length);
	if (first < 0) return "0 s";
	const texts = [];
	for (const [length, name] of parts.slice(first, first + 2)) {
		const whole = Math.floor(seconds / length);
		if (whole > 0) texts.push(`${whole} ${name}`);
		seconds -= whole * length;
	}
	return texts.join(" ");
}

/** How long ago a time was, in seconds since 1970. */
export function ago(time) {
	const seconds = Date.now() / 1000 - time;
	return seconds < 60 ? "just now" : `${duration(seconds < 3600 ? seconds - (seconds % 60) : seconds).split(" ", 2).join(" ")} ago`;
}

/** A time of day, of another day with its weekday. */
export function clock(time) {
	const date = new Date(time);
	const weekday = date.toDateString() === new Date().toDateString() ? undefined : "short";
	return date.toLocaleString([], { weekday, hour: "2-digit", minute: "2-digit" });
}

/** The name of what is at a URL: the last part of its path that says something, decoded, or its host. */
export function name(url) {
	const { host, path } = parts(url);
	const names = path.split("/").filter(Boolean);
	const last = names.length > 1 && isGeneric(names.at(-1)) ? names.at(-2) : names.at(-1);
	if (!last) return host || url;
	try {
		return printable(decodeURIComponent(last)) || last;
	} catch {
		return printable(last);
	}
}

/** Whether a playlist's name says nothing: that of its directory says more. */
export const isGeneric = (name) => /^(master|index|playlist|manifest|main|stream)\.(m3u8|mpd)$/i.test(name);

/** The host of a URL, with its port. */
export const host = (url) => parts(url).host;

/** The host and the directory of a URL: where a thing of that name is. */
export function place(url) {
	const { host, path } = parts(url);
	return host + path.slice(0, path.lastIndexOf("/") + 1);
}

/** Not `URL`, which rewrites what it reads. */
function parts(url) {
	const [, host = "", path = ""] = /^[a-z]+:\/\/([^/?#]*)([^?#]*)/i.exec(url) ?? [];
	return { host: host.replace(/^.*@/, ""), path };
}

/**
 * Text without characters that could make it look like something else: controls, and marks that turn its direction. U+200C and U+200D
 * stay: Persian, Indic scripts and emoji need them.
 */
export const printable = (text) => String(text ?? "").replace(/(?![\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/gu, " ").trim();

/** Foreign text within a sentence: printable, and unable to turn the rest around. */
export function quoted(text) {
	const clean = printable(text);
	return /^[\x20-\x7e]*$/.test(clean) ? clean : `\u2068${clean}\u2069`;
}
