// Over time: what the proxy has counted, as plots and as a table.

import * as api from "./api.js";
import { attempt, id, list, make, on, say, set } from "./dom.js";
import { percent, plural, size } from "./text.js";

/** Of a plot, in units that are stretched to the room there is. */
const [width, height] = [600, 120];
/** How many periods a row of the table sums up: an hour is shown by minutes. */
const periodsOfRow = 6;

let span = "hour";
let latest = null;

const bytesOf = (period) => period.bytes.from_cache + period.bytes.from_upstream;
const per = (period, value) => (period.seconds > 0 ? value / period.seconds : null);

/** What is drawn: lines of one unit share a plot. */
const plots = [
	{
		title: "From the cache", text: percent, most: 1,
		lines: [{ name: "share of the bytes sent", of: (period) => (bytesOf(period) ? period.bytes.from_cache / bytesOf(period) : null) }],
	},
	{
		title: "Bytes", least: 1000, text: (value) => `${size(value)}/s`,
		lines: [
			{ name: "sent to players", of: (period) => per(period, bytesOf(period)) },
			{ name: "fetched from origins", of: (period) => per(period, period.upstream_bytes) },
		],
	},
	{
		title: "First byte", least: 10, text: (value) => `${Math.round(value)} ms`,
		lines: [
			{ name: "cached, median", of: (period) => period.first_byte_of_hits.p50 },
			{ name: "cached, 99 %", of: (period) => period.first_byte_of_hits.p99 },
			{ name: "fetched, median", of: (period) => period.first_byte_of_misses.p50 },
		],
	},
	{ title: "On the disk", least: 1000, text: size, lines: [{ name: "size", of: (period) => period.size }] },
	{ title: "Errors", least: 2, text: (value) => plural(value, "error"), lines: [{ name: "errors", of: (period) => period.errors }] },
];

export function begin() {
	for (const choice of document.querySelectorAll("[name=span]")) {
		choice.addEventListener("change", () => {
			span = choice.value;
			attempt(refresh);
		});
	}
	on("history-details", "toggle", table);
}

/** Asks the proxy again. */
export async function refresh() {
	const asked = span;
	const report = await api.history(asked);
	if (asked !== span) return;
	latest = report;
	list("plots", plots, (plot) => plot.title, figure);
	table();
}

/** A plot, which stays while its lines change, with the values that somebody points at. */
function figure(plot) {
	const lines = plot.lines.map((_, index) => make("path", { class: `line line-${index}` }));
	const pointer = make("line.pointer", { y1: 0, y2: height, visibility: "hidden" });
	const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" },
		[0, 0.5, 1].map((share) => make("line.grid", { x1: 0, x2: width, y1: height * share, y2: height * share })), lines, pointer);
	const values = [make("span"), make("span"), make("span")];
	const times = [make("span"), make("span"), make("span", {}, "now")];
	const reading = make("p.reading", {}, legend(plot));
	let drawn = null;
	let pointed = null;

	function read() {
		const bounds = svg.getBoundingClientRect();
		const place = pointed === null ? -1 : drawn.at(((pointed - bounds.left) / bounds.width) * width);
		pointer.setAttribute("visibility", place < 0 ? "hidden" : "visible");
		if (place < 0) return reading.replaceChildren(legend(plot));
		for (const name of ["x1", "x2"]) set(pointer, name, drawn.x(place));
		const texts = plot.lines.map((line, index) => `${line.name} ${drawn.values[index][place] === null ? "–" : plot.text(drawn.values[index][place])}`);
		say(reading, `${clock(latest.periods[place].start)}: ${texts.join(", ")}`);
	}

	svg.addEventListener("pointermove", (event) => ((pointed = event.clientX), read()));
	svg.addEventListener("pointerleave", () => ((pointed = null), read()));
	return {
		element: make("figure.plot", {}, make("figcaption", {}, plot.title),
			make("div.chart", {}, make("div.values", {}, values), svg, make("div.times", {}, times)), reading),
		update() {
			drawn = scaled(plot, latest);
			drawn.paths.forEach((path, index) => set(lines[index], "d", path));
			[1, 0.5, 0].forEach((share, index) => say(values[index], plot.text(drawn.most * share)));
			[0, 0.5].forEach((share, index) => say(times[index], clock(latest.from + (latest.to - latest.from) * share)));
			set(svg, "aria-label", summary(plot, drawn.values));
			if (pointed !== null) read();
		},
	};
}

/** A plot's values in the units of its drawing. */
function scaled(plot, { from, to, periods, period_seconds: step }) {
	const end = Math.max(to, from + step);
	const x = (time) => ((time - from) / (end - from)) * width;
	const values = plot.lines.map((line) => periods.map((period) => line.of(period) ?? null));
	const most = plot.most ?? (Math.max(0, ...values.flat().filter((value) => value !== null)) || plot.least);
	const y = (value) => height - (value / most) * height;
	return {
		values, most,
		paths: values.map((line) => path(periods, line, step, x, y)),
		x: (place) => x(periods[place].start + step / 2),
		at: (place) => periods.findIndex(({ start }) => place >= x(start) && place < x(start + step)),
	};
}

const legend = (plot) => make("span", {}, plot.lines.map((line, index) => make("span", { class: `key key-${index}` }, line.name)));

/** A line through the middles of periods; where one is missing or has no value, a gap. */
function path(periods, values, step, x, y) {
	let [text, last] = ["", null];
	periods.forEach((period, place) => {
		if (values[place] === null) return (last = null);
		const isNext = last !== null && period.start - last <= step;
		const [at, up] = [x(period.start + step / 2).toFixed(1), y(values[place]).toFixed(1)];
		text += isNext ? `L${at} ${up}` : `M${at} ${up}h0.5`;
		last = period.start;
	});
	return text;
}

function summary(plot, values) {
	const texts = plot.lines.map((line, index) => {
		const known = values[index].filter((value) => value !== null);
		if (!known.length) return `${line.name}: nothing yet`;
		return `${line.name}: last ${plot.text(known.at(-1))}, highest ${plot.text(Math.max(...known))}`;
	});
	return `${plot.title}: ${texts.join("; ")}`;
}

const clock = (time) => {
	const day = span === "month" ? { day: "numeric", month: "short" } : {};
	return new Date(time * 1000).toLocaleString(undefined, { ...day, hour: "2-digit", minute: "2-digit" });
};

/** The same as a table, while it is open. */
function table() {
	if (!id("history-details").open || !latest) return;
	const lines = plots.flatMap((plot) => plot.lines.map((line) => ({ ...line, text: plot.text, title: plot.lines.length > 1 ? `${plot.title}: ${line.name}` : plot.title })));
	const head = id("history-table").tHead;
	if (!head.childElementCount) head.append(make("tr", {}, ["From", ...lines.map((line) => line.title)].map((title) => make("th", {}, title))));
	const rows = new Map();
	for (const period of latest.periods) {
		const start = period.start - (period.start % (latest.period_seconds * periodsOfRow));
		rows.set(start, [...(rows.get(start) ?? []), period]);
	}
	const sums = [...rows].reverse().map(([start, periods]) => ({ start, period: summed(periods) }));
	list(id("history-table").tBodies[0], sums, ({ start }) => `${span} ${start}`, ({ start }) => {
		const cells = lines.map(() => make("td.number"));
		return {
			element: make("tr", {}, make("th", { scope: "row" }, clock(start)), cells),
			update: ({ period }) => cells.forEach((cell, index) => {
				const value = lines[index].of(period) ?? null;
				say(cell, value === null ? "–" : lines[index].text(value));
			}),
		};
	});
}

/** Several periods as one. Percentiles have no sum: the longest stands for all. */
function summed(periods) {
	const sums = (parts, ...names) => Object.fromEntries(names.map((name) => [name, parts.reduce((sum, part) => sum + part[name], 0)]));
	const longest = (kind, percentile) => periods.map((period) => period[kind][percentile] ?? null)
		.reduce((most, value) => (most === null || value > most ? value : most));
	const waits = (kind) => ({ p50: longest(kind, "p50"), p99: longest(kind, "p99") });
	return {
		...sums(periods, "seconds", "errors", "upstream_bytes"), size: periods.at(-1).size,
		bytes: sums(periods.map((period) => period.bytes), "from_cache", "from_upstream"),
		first_byte_of_hits: waits("first_byte_of_hits"), first_byte_of_misses: waits("first_byte_of_misses"),
	};
}
