// What happens now: who plays what, and what comes from origins.

import { refreshMap, showMap, strips } from "./coverage.js";
import { foreign, list, make, quiet, say } from "./dom.js";
import { duration, isGeneric, name, percent, place, plural, printable, quoted, rate, size } from "./text.js";

/** Milliseconds between requests for the map of a play, if something else comes for it, and if nothing does: its marks move meanwhile. */
const [mapInterval, restInterval] = [2000, 10_000];

const states = { starting: "starting", active: "playing", stalled: "waiting for the origin", buffered: "buffered", idle: "between requests" };

const reasons = {
	"uri-miss": "nothing of it was cached", gap: "a part was missing", resume: "to go on after a break", bypass: "it is not to be cached",
	validation: "to see whether it has changed", head: "its length was asked for", method: "it is never cached",
	feed: "to look for new episodes",
};

const phases = {
	waiting: "waits to try again", queued: "waits for a slot", connecting: "connecting", requested: "waits for the origin", receiving: "receiving",
	held: "far enough ahead", finishing: "being written",
};

const labels = { play: "a player", ahead: "a player soon", fill: "the rest of the file", download: "a download", subscription: "a subscription" };

let latest = null;
/** The transfers of each play: those of its URL, and what players need of what is beside a playlist. */
let own = new Map();

/** Shows a report. */
export function show(now) {
	latest = now;
	own = new Map(now.plays.map((play) => [play.id, []]));
	const others = now.transfers.filter((transfer) => {
		const plays = playsOf(transfer, now.plays);
		for (const play of plays) own.get(play.id).push(transfer);
		return !plays.length;
	});
	summarize(now);
	say("plays-none", now.plays.length ? "" : "Nobody plays anything.");
	// Another process counts them anew, and some are named only once their head has come.
	list("plays", now.plays, (play) => `${play.id} ${play.url} ${titleOf(play)}`, playCard);
	list("transfers", others.length ? others : [null], (transfer) => transfer && `${transfer.id} ${transfer.url}`, transferLine);
	const hidden = now.hidden?.plays + now.hidden?.transfers;
	say("now-more", hidden ? `${hidden} more are not shown.` : "");
	refreshMap().catch(() => {});
}

/** The plays of a transfer's URL, or else, for what a player needs now or soon, those of the playlists nearest above it. */
function playsOf({ url, purposes }, plays) {
	const same = plays.filter((play) => play.url === url);
	if (same.length || !/play|ahead/.test(purposes)) return same;
	const above = plays.filter((play) => play.segments.length && place(url).startsWith(place(play.url)));
	const longest = Math.max(...above.map((play) => place(play.url).length));
	return above.filter((play) => place(play.url).length === longest);
}

/** The title of a play; a playlist that is called index.m3u8 has that of its directory. */
const titleOf = (play) => printable(isGeneric(play.title.replace(/.*\//, "")) ? name(play.url) : play.title);

function summarize(now) {
	const fetching = now.transfers.reduce((sum, transfer) => sum + (transfer.rate ?? 0), 0);
	// A film that plays from a full buffer makes no request for a while. The proxy tells when a play is over.
	say("sum-playing", String(now.plays.length + (now.hidden?.plays ?? 0)));
	say("sum-playing-more", now.plays.map((play) => quoted(titleOf(play))).join(", "));
	say("sum-fetching", rate(fetching));
	say("sum-fetching-more", plural(now.transfers.length + (now.hidden?.transfers ?? 0), "transfer"));
}

// Plays

function playCard(first) {
	const title = titleOf(first);
	const state = make("span.badge");
	const facts = make("p.facts");
	const source = make("p.facts");
	const map = strips(first.url, { most: 8 });
	let [asked, shown] = [-Infinity, null];
	const element = make("li.card", { "data-url": first.url },
		make("div.row", {}, make("h4", {}, foreign(title)), state, quiet("Map", () => showMap(first.url, title), `Map of ${title}`)),
		map.element, facts, source);
	return {
		element,
		update(play) {
			say(source, own.get(play.id).map(transferText).join("; ") || "Nothing is fetched for it.");
			say(state, states[play.state] ?? play.state);
			element.dataset.state = play.state;
			say(facts, playFacts(play).join(" · "));
			map.draw(latest);
			// What a transfer brings is drawn as it comes.
			const coming = own.get(play.id).map((transfer) => transfer.id).join(" ") || play.from_origin;
			if (Date.now() < asked + (coming === shown ? restInterval : mapInterval)) return;
			// Never again, while the answer is awaited.
			[asked, shown] = [Infinity, coming];
			map.refresh().then(() => map.draw(latest), () => {}).finally(() => (asked = Date.now()));
		},
	};
}

function playFacts(play) {
	const all = play.from_cache + play.from_origin;
	const [segment] = play.segments;
	return [
		quoted(play.player), quoted(play.client),
		segment ? `${quoted(segment.rendition)}, segment ${segment.number} of ${segment.count}`
			: play.length ? `at ${size(play.position ?? 0)} of ${size(play.length)}` : null,
		play.rate ? rate(play.rate) : null,
		all ? `${percent(play.from_cache / all)} from the cache` : null,
		`for ${duration(latest.time - play.since)}`,
		quoted(place(play.url)),
	].filter(Boolean);
}

// Transfers

function transferText({ reason, purposes, phase, received, from, to, rate: speed }) {
	const why = `${reasons[reason] ?? reason}${purposes.length ? `, for ${purposes.map((one) => labels[one] ?? one).join(" and ")}` : ", kept for a while"}`;
	const how = phase === "held" && purposes.length && !/play|ahead/.test(purposes) ? "waits for its turn" : phases[phase] ?? phase;
	return [`${size(received)}${to === undefined ? "" : ` of ${size(to - from)}`} fetched`, speed ? rate(speed) : null, how, why].filter(Boolean).join(" · ");
}

function transferLine(first) {
	const facts = make("span");
	return {
		element: make("li", {}, first && foreign(printable(name(first.url))), facts),
		update: (transfer) => say(facts, transfer ? ` · ${transferText(transfer)}` : "Nothing."),
	};
}
