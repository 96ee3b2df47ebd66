// The coverage map: what of a resource is there, what is coming in, and where players read.

import * as api from "./api.js";
import { attempt, button, foreign, id, list, make, on, say, set } from "./dom.js";
import { maySee, withSession } from "./session.js";
import { count, percent, printable, size } from "./text.js";

const width = 1000;
const height = 10;
/** Lines between chunks or segments are drawn if there are no more of them than this. */
const mostLines = 64;

/** A strip: `update(strip, live)`, where `live` has what has moved since the strip was asked for. */
function strip(name) {
	// Marks lie on outlines, which part them from what is below.
	const names = ["part", "there", "arrived", "lines", "edge", "coming", "edges", "readers"];
	const layers = Object.fromEntries(names.map((layer) => [layer, make("path", { class: layer })]));
	const element = make("svg.strip", { role: "img", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" }, Object.values(layers));
	return {
		element,
		update(strip, live = strip) {
			const { from, to, cells } = strip;
			const at = (place) => ((place - from) / Math.max(1, to - from)) * width;
			const inside = (x) => Math.min(width, Math.max(0, x));
			const cell = width / Math.max(1, cells.length);
			const runs = (test, top = 0) => {
				let [path, start] = ["", null];
				for (let index = 0; index <= cells.length; index++) {
					const isIn = index < cells.length && test(cells[index]);
					if (isIn && start === null) start = index;
					if (!isIn && start !== null) (path += box(start * cell, index * cell, top)), (start = null);
				}
				return path;
			};
			set(layers.there, "d", runs((share) => share === 100));
			set(layers.part, "d", runs((share) => share > 0 && share < 100, height / 2));
			// What has arrived since the strip was asked for is there; a mark shows where more comes in.
			set(layers.arrived, "d", live.arriving.map((one) => box(inside(at(one.from)), inside(at(one.at)))).join(""));
			const marks = (places, above) => places.filter((one) => one.at >= from && one.at <= to)
				.map((one) => `M${at(one.at).toFixed(1)} ${-above}V${height + above}`).join("");
			set(layers.lines, "d", boundaries(strip).map((place) => `M${at(place).toFixed(1)} 0V${height}`).join(""));
			for (const layer of ["edge", "coming"]) set(layers[layer], "d", marks(live.arriving, 0));
			for (const layer of ["edges", "readers"]) set(layers[layer], "d", marks(live.readers, 2));
			set(element, "aria-label", description(name, strip, live));
			set(element, "data-cached", cached(strip));
		},
	};
}

const box = (from, to, top = 0) => `M${from.toFixed(1)} ${top}H${to.toFixed(1)}V${height}H${from.toFixed(1)}Z`;

/** Where chunks or segments meet within a strip, if they are few. */
function boundaries({ from, to, chunk_size: unit = 1 }) {
	const first = Math.floor(from / unit) + 1;
	const amount = Math.ceil(to / unit) - first;
	return amount > 0 && amount <= mostLines ? Array.from({ length: amount }, (_, index) => (first + index) * unit) : [];
}

/** The average of the cells, in percent. */
const cached = ({ cells }) => Math.floor(cells.reduce((sum, cell) => sum + cell, 0) / Math.max(1, cells.length));

function description(name, strip, live) {
	const texts = [`${name}: ${percent(cached(strip) / 100)} cached`];
	const extent = Math.max(1, strip.to - strip.from);
	if (live.arriving.length) texts.push(`${live.arriving.length === 1 ? "a transfer is" : `${live.arriving.length} transfers are`} bringing more`);
	for (const reader of live.readers) texts.push(`${printable(reader.player)} reads at ${percent((reader.at - strip.from) / extent)}`);
	return texts.join("; ");
}

/**
 * What the proxy says now of players of a resource and of transfers of a file, for a strip of it. Where a part of the URL is hidden,
 * another resource may show the same: then only what the strip knows counts.
 */
function liveMarks(url, now, { unit, name, arriving, readers }) {
	const ofThis = (known) => (one) => one.url === url && (!api.isHidden(url) || known.includes(one.id));
	const plays = now.plays.filter(ofThis(readers.map((one) => one.play)));
	if (unit === "segments") {
		return { arriving, readers: plays.flatMap(({ player, segments }) => segments.filter((one) => one.rendition === name).map((one) => ({ at: one.number - 1, player }))) };
	}
	return {
		arriving: now.transfers.filter(ofThis(arriving.map((one) => one.transfer))).filter((one) => one.received > 0)
			.map((one) => ({ from: one.from, at: one.from + one.received })),
		readers: plays.flatMap((one) => one.positions.map((at) => ({ at, player: one.player }))),
	};
}

/** Whether a report tells of a resource: somebody plays it, or it is being fetched. */
export const concerns = (now, url) => [...now.plays, ...now.transfers].some((one) => one.url === url);

/** What is being asked, or was within the last moment: a play and its row of the list show the same. */
const lately = new Map();

/** What is there of a whole resource. */
function coverage(url, buckets) {
	const key = `${buckets} ${url}`;
	if (!lately.has(key)) {
		const answer = api.coverage(url, { buckets });
		const forget = () => setTimeout(() => lately.delete(key), 500);
		answer.then(forget, forget);
		lately.set(key, answer);
	}
	return lately.get(key);
}

/** What of a strip is shown. */
const extent = (one) => (one.unit === "segments"
	? `segments ${count(Math.min(one.from + 1, one.to))} to ${count(one.to)} of ${count(one.length)}${one.unexamined ? `; ${count(one.unexamined)} more were not examined` : ""}`
	: `${size(one.from)} to ${size(one.to)} of ${size(one.length)}`);

/**
 * The strips of one resource, one for each rendition.
 * @param options `most`: no more strips than this; `hasExtents`: each says which part of its rendition it shows; `shown`: the URL in
 * reports.
 */
export function strips(url, { most = Infinity, hasExtents = false, shown = url } = {}) {
	const drawn = make("div");
	const note = make("p.faint");
	const element = make("div.strips", {}, drawn, note);
	let report = null;
	let live = null;
	let whole = null;

	async function ask(window) {
		try {
			whole ??= await api.whole(url);
			return (await (window.to ? api.coverage(whole, window) : coverage(whole, window.buckets))).strips;
		} catch (error) {
			if (error.status !== 404) throw error;
			whole = null;
			return [];
		}
	}

	return {
		element,
		/**
		 * Asks the proxy. Nothing is shown of what is not cached.
		 * @param view the share of each rendition to show.
		 */
		async refresh(buckets = 400, view = { from: 0, to: 1 }) {
			if (!maySee(url)) {
				report = null;
				return (say(note, "Parts of this address are hidden: sign in to see what of it is cached."), []);
			}
			const isWhole = (view.from === 0 && view.to === 1) || !report?.length;
			if (isWhole) return (report = await ask({ buckets }));
			// A request has one window, and renditions differ in length.
			const found = [];
			for (const length of new Set(report.map((one) => one.length))) {
				const from = Math.floor(view.from * length);
				const shown = await ask({ buckets, from, to: Math.max(from + 1, Math.ceil(view.to * length)) });
				const names = report.filter((one) => one.length === length).map((one) => one.name);
				found.push(...shown.filter((one) => names.includes(one.name)));
			}
			const order = report.map((one) => one.name);
			return (report = found.sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name)));
		},
		/** Nobody is asked about a file that is there as a whole. */
		fill(length) {
			report = [{ unit: "bytes", from: 0, to: length, length, cells: [100], chunk_size: length, arriving: [], readers: [] }];
		},
		/** Draws what the proxy said last, with what moves. */
		draw(now) {
			live = now;
			if (!report) return drawn.replaceChildren(), drawn.known?.clear();
			const more = report.length - most;
			say(note, more > 0 ? `${count(more)} more on its map` : "");
			list(drawn, report.slice(0, most), (one) => one.name ?? "", (first) => {
				const one = strip(printable(first.name ?? "the file"));
				const where = make("span");
				const label = first.name ? make("span.rendition", {}, foreign(printable(first.name)), where) : null;
				return {
					element: make("div.named-strip", {}, label, one.element),
					update(latest) {
						if (hasExtents) say(where, `, ${extent(latest)}`);
						one.update(latest, live ? liveMarks(shown, live, latest) : latest);
					},
				};
			});
		},
	};
}

// The map of one resource, at any scale

let open = null;

/** Shows the map of a resource. */
export function showMap(url, title) {
	if (!maySee(url)) return withSession(async () => showMap(url, title));
	const dialog = id("map");
	dialog.querySelector("h2").replaceChildren(foreign(title));
	open = { map: strips(url, { hasExtents: true }), view: { from: 0, to: 1 }, smallest: 1e-6 };
	id("map-strips").replaceChildren(open.map.element);
	for (const name of ["map-text", "map-error"]) say(name, "");
	dialog.showModal();
	attempt(draw);
}

/** Makes the buttons and keys of the map. */
export function begin() {
	const dialog = id("map");
	const keys = { "+": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), Home: () => zoom(Infinity) };
	id("map-tools").append(
		button("Zoom in", keys["+"]), button("Zoom out", keys["-"]), button("Left", keys.ArrowLeft),
		button("Right", keys.ArrowRight), button("All of it", keys.Home), button("Close", () => dialog.close()));
	dialog.addEventListener("keydown", (event) => {
		if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
		event.preventDefault();
		keys[event.key]();
	});
	on("map-strips", "wheel", (event) => {
		// A map of many renditions is scrolled; with Ctrl, it zooms like a small one.
		if (dialog.scrollHeight > dialog.clientHeight && !event.ctrlKey) return;
		event.preventDefault();
		const bounds = id("map-strips").getBoundingClientRect();
		zoom(event.deltaY > 0 ? 1.5 : 1 / 1.5, (event.clientX - bounds.left) / bounds.width);
	}, { passive: false });
	dialog.addEventListener("close", () => (open = null));
}

/** Draws the open map again. */
export async function refreshMap() {
	if (open) await draw();
}

function zoom(factor, around = 0.5) {
	const { from, to } = open.view;
	const wide = Math.min(1, Math.max(open.smallest, (to - from) * factor));
	show(from + (to - from) * around - wide * around, wide);
}

function move(share) {
	const { from, to } = open.view;
	show(from + (to - from) * share, to - from);
}

function show(from, wide) {
	const inside = Math.min(1 - wide, Math.max(0, from));
	open.view = { from: inside, to: inside + wide };
	attempt(draw);
}

/** Draws the open map: one request at a time, and one more after a change. */
async function draw() {
	const shown = open;
	shown.isStale = true;
	if (shown.isAsking) return;
	shown.isAsking = true;
	try {
		while (shown.isStale && open === shown) {
			shown.isStale = false;
			const { view } = shown;
			const found = await shown.map.refresh(1000, view);
			// Not what was asked for before the last zoom.
			if (open === shown && shown.view === view) paint(shown, found);
		}
	} finally {
		shown.isAsking = false;
	}
}

function paint(shown, found) {
	shown.map.draw();
	// It zooms to four chunks or segments.
	shown.smallest = Math.min(1, ...found.map((one) => (4 * (one.chunk_size ?? 1)) / Math.max(1, one.length)));
	const [one] = found;
	say("map-text", !one ? "Nothing of it is cached." : one.unit === "bytes"
		? `${extent(one)}, in chunks of ${size(one.chunk_size)}`
		: `${percent(shown.view.from)} to ${percent(shown.view.to)} of each rendition`);
}
