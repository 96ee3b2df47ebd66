// One line that judges: all is well, or what is not, since when, and what helps; what was saved, and how full the disk is.

import * as api from "./api.js";
import { id, say } from "./dom.js";
import { failures } from "./downloads.js";
import { clock, host, percent, plural, printable, quoted, size } from "./text.js";

const interval = 60_000;
const day = 86_400;
/** With less, the cache takes nothing more. */
const leastRoom = 16e6;

let [now, lost, month, hours] = [null, null, null, null];
/** When `now` came. */
let came = 0;
/** When `month` was read. */
let read = 0;
/** When this page saw each trouble first. */
const seen = new Map();
/** The count of failed responses, each time that it rose within five minutes, and once before. */
let counts = [];

export function show(report) {
	const { failures = 0 } = report.served;
	// Another process counts anew.
	if (counts.at(-1)?.failures > failures) counts = [];
	if (counts.at(-1)?.failures !== failures) counts.push({ time: report.time, failures });
	[now, lost, came] = [report, null, Date.now()];
	judge();
}

/** The number of responses that failed within five minutes, of which no report may have come for a while. */
function countFaults() {
	const from = now.time + (Date.now() - came) / 1000 - 300;
	while (counts[1]?.time <= from) counts.shift();
	return counts.at(-1).failures - counts[0].failures;
}

/** The connection is lost. */
export function isGone(reason) {
	lost = reason;
	judge();
}

/** Asks the proxy for what changes slowly. */
export async function refresh() {
	if (Date.now() - read < interval) return;
	const whole = await api.history("month");
	// Its periods begin at even hours of UTC, and not each day does.
	const parts = midnight() / 1000 % whole.period_seconds ? await api.history("day") : whole;
	[month, hours, read] = [whole, parts, Date.now()];
	judge();
}

/** Each with its name, what it is, and since when, if that is known. */
function troubles() {
	if (lost) return [["lost", `${lost}. What is below may be out of date.`]];
	const { size: bytes, limit, pinned, free, min_free: least } = now.cache;
	const faults = countFaults();
	const held = now.downloads.find((one) => one.retry_at && one.is_held);
	const failed = failures.ends.filter((time) => time > Date.now() - day * 1000);
	const isAll = failed.length < failures.ends.length || failed.length === failures.total;
	const stalled = now.plays.filter((play) => play.state === "stalled").length;
	return [
		bytes < limit && free - least < leastRoom && ["disk", `The disk is full: ${size(free)} are free, and min_free is ${size(least)}. Delete something on it, or lower min_free.`],
		pinned > 0.9 * limit && ["pins", `Pinned media fill the cache. Unpin or remove some of it, or raise max_size (it is ${size(limit)}).`],
		held && [`held ${host(held.url)}`, `Downloads from ${quoted(host(held.url))} wait: ${printable(held.message)}. The next attempt is at ${clock(held.retry_at * 1000)}; "Retry now" is below.`],
		stalled && ["stalled", `${plural(stalled, "player")} ${stalled === 1 ? "waits for its" : "wait for their"} origin, which sends nothing.`],
		faults > 0 && ["faults", `${plural(faults, "response")} to players failed within five minutes: the requests could not be answered in full. reelcache stats counts the reasons; reelcache doctor URL says more.`],
		failed.length && ["failed", `${isAll ? "" : "At least "}${plural(failed.length, "download")} failed within a day. Retry under Downloads, or forget what has ended.`, isAll && Math.min(...failed)],
		now.queue?.is_offline && ["offline", "The proxy is offline: only what is cached plays."],
	].filter(Boolean);
}

/** Says again how things are. */
export function judge() {
	if (!now && !lost) return;
	const found = troubles();
	for (const key of seen.keys()) if (!found.some(([one]) => one === key)) seen.delete(key);
	for (const [key] of found) if (!seen.has(key)) seen.set(key, Date.now());
	const when = (key, since) => (since ? `Since ${clock(since)}.` : `Seen since ${clock(seen.get(key))}.`);
	say("verdict", found.map(([key, text, since]) => `${text} (${when(key, since)})`).join("\n") || "All is well.");
	id("verdict").classList.toggle("bad", found.length > 0);
	if (now) summarize(now);
}

function summarize({ cache, served }) {
	const { size: bytes, limit, pinned, free } = cache;
	say("sum-disk", size(bytes));
	say("sum-disk-more", [`of ${size(limit)}`, pinned && `${size(pinned)} pinned`, free !== undefined && `${size(free)} free`, month && untilFull(cache)].filter(Boolean).join(", "));
	if (!month) return;
	const saved = ({ periods, period_seconds: long }, from) =>
		size(periods.filter(({ start }) => start + long > from / 1000).reduce((sum, { bytes }) => sum + bytes.from_cache, 0));
	say("sum-saved", saved(hours, midnight()));
	say("sum-saved-more", `${saved(month, new Date(midnight()).setDate(1))} this month${served.hit_ratio === undefined ? "" : `, ${percent(served.hit_ratio)} since the start`}`);
}

const midnight = () => new Date().setHours(0, 0, 0, 0);

/** When the cache will be full if it grows as it did within a week. */
function untilFull({ size: bytes, limit, free, min_free: least }) {
	const room = Math.min(limit - bytes, (free ?? Infinity) - (least ?? 0));
	if (room < limit / 50) return "full: the oldest makes room";
	const then = month.periods.find(({ start, size }) => size && start > month.to - 7 * day);
	const days = then && Math.round(room / ((bytes - then.size) / Math.max(day, month.to - then.start)) / day);
	return days >= 0 && days < 1000 ? `full in ${plural(days, "day")}` : "";
}
