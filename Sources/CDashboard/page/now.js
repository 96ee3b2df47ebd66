// What happens now: who plays what, and what comes from origins.

import { refreshMap, showMap, strips } from "./coverage.js";
import { bar, foreign, id, list, make, quiet, say } from "./dom.js";
import { duration, host, isGeneric, name, percent, place, plural, printable, quoted, rate, size } from "./text.js";

/** Milliseconds between requests for the map of a play, whose marks move meanwhile. */
const mapInterval = 2000;

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

const purposes = { play: "a player", ahead: "a player soon", fill: "the rest of the file", download: "a download", subscription: "a subscription" };

let latest = null;

/** Shows a report. */
export function show(now) {
	latest = now;
	summarize(now);
	say("plays-none", now.plays.length ? "" : "Nobody plays anything.");
	list("plays", now.plays, (play) => play.id, playCard);
	say("transfers-none", now.transfers.length ? "" : "Nothing is being fetched.");
	id("transfers-table").hidden = !now.transfers.length;
	list("transfers", now.transfers, (transfer) => transfer.id, transferRow);
	const hidden = now.hidden?.plays + now.hidden?.transfers;
	say("now-more", hidden ? `${hidden} more are not shown.` : "");
	refreshMap().catch(() => {});
}

/** The title of a play; a playlist that is called index.m3u8 has that of its directory. */
const titleOf = (play) => printable(isGeneric(play.title) ? name(play.url) : play.title);

function summarize(now) {
	const fetching = now.transfers.reduce((sum, transfer) => sum + (transfer.rate ?? 0), 0);
	// A film that plays from a full buffer makes no request for a while. The proxy tells when a play is over.
	say("sum-playing", String(now.plays.length));
	say("sum-playing-more", now.plays.map((play) => quoted(titleOf(play))).join(", "));
	say("sum-fetching", rate(fetching));
	say("sum-fetching-more", plural(now.transfers.length, "transfer"));
	say("sum-disk", size(now.cache.size));
	say("sum-disk-more", `of ${size(now.cache.limit)}`);
	const { from_cache: cached, from_origin: fetched } = now.served;
	say("sum-saved", percent(now.served.hit_ratio));
	say("sum-saved-more", cached + fetched ? `${size(cached)} saved` : "nothing was played yet");
}

// Plays

function playCard(first) {
	const title = titleOf(first);
	const state = make("span.badge");
	const facts = make("p.facts");
	const map = strips(first.url, { most: 8 });
	// Never, while the answer is awaited.
	let due = 0;
	const element = make("li.card", { "data-url": first.url },
		make("div.row", {}, make("h4", {}, foreign(title)), state, quiet("Map", () => showMap(first.url, title), `Map of ${title}`)),
		map.element, facts);
	return {
		element,
		update(play) {
			say(state, states[play.state] ?? play.state);
			element.dataset.state = play.state;
			say(facts, playFacts(play).join(" · "));
			map.draw(latest);
			if (Date.now() < due) return;
			due = Infinity;
			map.refresh().then(() => map.draw(latest), () => {}).finally(() => (due = Date.now() + mapInterval));
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

function transferRow(first) {
	const label = make("span");
	const progress = bar("received");
	const what = make("th", { scope: "row" }, foreign(printable(name(first.url))), make("span.faint", {}, foreign(printable(host(first.url)))));
	const [why, how, bytes, speed] = [make("td"), make("td", {}, label), make("td.number"), make("td.number")];
	return {
		element: make("tr", {}, what, why, how, bytes, speed),
		update(transfer) {
			say(why, `${reasons[transfer.reason] ?? transfer.reason}${transfer.purposes.length ? `, for ${transfer.purposes.map((one) => purposes[one] ?? one).join(" and ")}` : ", kept for a while"}`);
			const gives = transfer.phase === "held" && transfer.purposes.length && !/play|ahead/.test(transfer.purposes);
			say(label, gives ? "waits for its turn" : phases[transfer.phase] ?? transfer.phase);
			if (transfer.to !== undefined) {
				if (!progress.element.isConnected) how.append(progress.element);
				progress.update(transfer.received / Math.max(1, transfer.to - transfer.from), size(transfer.received));
			}
			say(bytes, size(transfer.received));
			say(speed, rate(transfer.rate));
		},
	};
}
