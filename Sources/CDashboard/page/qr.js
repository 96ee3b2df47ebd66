// QR codes (ISO/IEC 18004): bytes, error correction level M, versions 1 to 40. Pure: text in, modules out.

/** Error correction codewords of each block, and blocks, by version (level M, table 9). */
const correction = [
	10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26, 26, ...new Array(19).fill(28),
];
const blocks = [
	1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16,
	17, 17, 18, 20, 21, 23, 25, 26, 28, 29, 31, 33, 35, 37, 38, 40, 43, 45, 47, 49,
];

/**
 * The modules of a text's code, row by row: true is dark. Without the quiet zone of four modules around it.
 * @returns null if the text is too long.
 */
export function matrix(text) {
	const bytes = new TextEncoder().encode(text);
	for (let version = 1; version <= 40; version++) {
		const lengthBits = version < 10 ? 8 : 16;
		if (4 + lengthBits + bytes.length * 8 <= dataCount(version) * 8) return draw(version, interleaved(version, data(version, bytes, lengthBits)));
	}
	return null;
}

/** The modules that carry codewords, in bits (table 1). */
function rawBits(version) {
	let bits = (16 * version + 128) * version + 64;
	if (version >= 2) {
		const alignments = Math.floor(version / 7) + 2;
		bits -= (25 * alignments - 10) * alignments - 55;
		if (version >= 7) bits -= 36;
	}
	return bits;
}

const codewordCount = (version) => Math.floor(rawBits(version) / 8);
const dataCount = (version) => codewordCount(version) - correction[version - 1] * blocks[version - 1];

// Codewords

/** Mode, length, bytes, terminator and padding (§7.4). */
function data(version, bytes, lengthBits) {
	const bits = [];
	const put = (value, count) => {
		for (let bit = count - 1; bit >= 0; bit--) bits.push((value >>> bit) & 1);
	};
	put(0b0100, 4);
	put(bytes.length, lengthBits);
	for (const byte of bytes) put(byte, 8);
	const capacity = dataCount(version) * 8;
	put(0, Math.min(4, capacity - bits.length));
	put(0, (8 - (bits.length % 8)) % 8);
	for (let pad = 0xec; bits.length < capacity; pad ^= 0xec ^ 0x11) put(pad, 8);
	const words = [];
	for (let place = 0; place < bits.length; place += 8) words.push(parseInt(bits.slice(place, place + 8).join(""), 2));
	return words;
}

/** The blocks with their error correction, taken by turns (§7.6). The last are longer by a word. */
function interleaved(version, words) {
	const [amount, extra] = [blocks[version - 1], correction[version - 1]];
	const short = Math.floor(words.length / amount);
	const longer = words.length % amount;
	const parts = [];
	for (let block = 0, place = 0; block < amount; block++) {
		const length = short + (block >= amount - longer ? 1 : 0);
		parts.push(words.slice(place, place + length));
		place += length;
	}
	const checks = parts.map((part) => remainder(part, generator(extra)));
	const all = [];
	for (let place = 0; place <= short; place++) for (const part of parts) if (place < part.length) all.push(part[place]);
	for (let place = 0; place < extra; place++) for (const check of checks) all.push(check[place]);
	return all;
}

/** A product in GF(256) modulo x⁸ + x⁴ + x³ + x² + 1. */
function product(a, b) {
	let result = 0;
	for (let bit = 7; bit >= 0; bit--) {
		result = (result << 1) ^ ((result >>> 7) * 0x11d);
		result ^= ((b >>> bit) & 1) * a;
	}
	return result;
}

/** The product of (x - 2⁰) … (x - 2ⁿ⁻¹), without its first coefficient, which is 1. */
function generator(degree) {
	const factors = [...new Array(degree - 1).fill(0), 1];
	for (let turn = 0, root = 1; turn < degree; turn++, root = product(root, 2)) {
		for (let place = 0; place < degree; place++) factors[place] = product(factors[place], root) ^ (factors[place + 1] ?? 0);
	}
	return factors;
}

function remainder(words, divisor) {
	const rest = new Array(divisor.length).fill(0);
	for (const word of words) {
		const factor = word ^ rest.shift();
		rest.push(0);
		divisor.forEach((coefficient, place) => (rest[place] ^= product(coefficient, factor)));
	}
	return rest;
}

// Modules

const masks = [
	(x, y) => (x + y) % 2, (x, y) => y % 2, (x) => x % 3, (x, y) => (x + y) % 3, (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2,
	(x, y) => ((x * y) % 2) + ((x * y) % 3), (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];

function draw(version, words) {
	const extent = version * 4 + 17;
	const modules = Array.from({ length: extent }, () => new Array(extent).fill(null));
	drawPatterns(modules, version);
	const isFree = modules.map((row) => row.map((module) => module === null));
	drawWords(modules, words);
	let best = null;
	for (let mask = 0; mask < masks.length; mask++) {
		const masked = modules.map((row, y) => row.map((isDark, x) => (isFree[y][x] ? isDark !== (masks[mask](x, y) === 0) : isDark)));
		drawFormat(masked, mask);
		const penalty = penaltyOf(masked);
		if (!best || penalty < best.penalty) best = { penalty, masked };
	}
	return best.masked;
}

function drawPatterns(modules, version) {
	const extent = modules.length;
	for (let place = 0; place < extent; place++) modules[6][place] = modules[place][6] = place % 2 === 0;
	for (const [x, y] of [[3, 3], [extent - 4, 3], [3, extent - 4]]) drawSquare(modules, x, y, 4, (ring) => ring !== 2 && ring !== 4);
	const centres = alignmentCentres(version);
	const last = centres.length - 1;
	centres.forEach((y, row) => centres.forEach((x, column) => {
		const isAtFinder = (row === 0 && column === 0) || (row === 0 && column === last) || (row === last && column === 0);
		if (!isAtFinder) drawSquare(modules, x, y, 2, (ring) => ring !== 1);
	}));
	drawFormat(modules, 0);
	if (version >= 7) drawVersion(modules, version);
}

function drawSquare(modules, x, y, radius, isDark) {
	for (let dy = -radius; dy <= radius; dy++) {
		for (let dx = -radius; dx <= radius; dx++) {
			if (modules[y + dy]?.[x + dx] !== undefined) modules[y + dy][x + dx] = isDark(Math.max(Math.abs(dx), Math.abs(dy)));
		}
	}
}

/** Annex E. */
function alignmentCentres(version) {
	if (version === 1) return [];
	const amount = Math.floor(version / 7) + 2;
	const step = version === 32 ? 26 : Math.ceil((version * 4 + 4) / (amount * 2 - 2)) * 2;
	const centres = [6];
	for (let place = version * 4 + 10; centres.length < amount; place -= step) centres.splice(1, 0, place);
	return centres;
}

/** The bits of a value with check bits (annexes C and D). */
function coded(value, count, divisor, mask = 0) {
	let rest = value;
	for (let turn = 0; turn < count; turn++) rest = (rest << 1) ^ ((rest >>> (count - 1)) * divisor);
	const bits = ((value << count) | rest) ^ mask;
	return (place) => ((bits >>> place) & 1) === 1;
}

/** Level M is 00 (§7.9). */
function drawFormat(modules, mask) {
	const bit = coded(mask, 10, 0x537, 0x5412);
	const extent = modules.length;
	for (let place = 0; place <= 5; place++) modules[place][8] = bit(place);
	[modules[7][8], modules[8][8], modules[8][7]] = [bit(6), bit(7), bit(8)];
	for (let place = 9; place < 15; place++) modules[8][14 - place] = bit(place);
	for (let place = 0; place < 8; place++) modules[8][extent - 1 - place] = bit(place);
	for (let place = 8; place < 15; place++) modules[extent - 15 + place][8] = bit(place);
	modules[extent - 8][8] = true;
}

/** §7.10 */
function drawVersion(modules, version) {
	const bit = coded(version, 12, 0x1f25);
	for (let place = 0; place < 18; place++) {
		const [a, b] = [modules.length - 11 + (place % 3), Math.floor(place / 3)];
		modules[b][a] = modules[a][b] = bit(place);
	}
}

/** Columns of two from the right, up and down by turns (§7.7.3). */
function drawWords(modules, words) {
	const extent = modules.length;
	let place = 0;
	for (let right = extent - 1; right >= 1; right -= 2) {
		if (right === 6) right = 5;
		const isUpward = ((right + 1) & 2) === 0;
		for (let step = 0; step < extent; step++) {
			const y = isUpward ? extent - 1 - step : step;
			for (const x of [right, right - 1]) {
				if (modules[y][x] !== null) continue;
				modules[y][x] = place < words.length * 8 && ((words[place >>> 3] >>> (7 - (place & 7))) & 1) === 1;
				place++;
			}
		}
	}
}

/** §7.8.3 */
function penaltyOf(modules) {
	const extent = modules.length;
	const columns = modules.map((_, x) => modules.map((row) => row[x]));
	let penalty = 0;
	for (const line of [...modules, ...columns]) {
		const text = line.map((isDark) => (isDark ? "1" : "0")).join("");
		for (const run of text.match(/0{5,}|1{5,}/g) ?? []) penalty += run.length - 2;
		for (const pattern of [/(?=10111010000)/g, /(?=00001011101)/g]) penalty += 40 * (text.match(pattern) ?? []).length;
	}
	for (let y = 1; y < extent; y++) {
		for (let x = 1; x < extent; x++) {
			const corner = modules[y][x];
			if (corner === modules[y - 1][x] && corner === modules[y][x - 1] && corner === modules[y - 1][x - 1]) penalty += 3;
		}
	}
	const dark = modules.flat().filter(Boolean).length;
	return penalty + 10 * Math.floor(Math.abs((dark * 20) / (extent * extent) - 10));
}
