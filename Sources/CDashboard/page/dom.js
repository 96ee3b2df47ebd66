// Making and changing elements. Text is always text: nothing here reads markup.

const svgNames = new Set(["svg", "path", "rect", "line", "text", "g", "title"]);

/** The element with an id. */
export const id = (name) => document.getElementById(name);

/** Listens to the element with an id. */
export const on = (name, type, act) => id(name).addEventListener(type, act);

/** Does something when the form with an id is sent. */
export const onSubmit = (name, act) => on(name, "submit", (event) => {
	event.preventDefault();
	act();
});

/**
 * Makes an element.
 * @param tag with its classes: `td.number`
 * @param attributes values by name; functions become listeners; null and false are left out.
 * @param children elements and texts; null and false are left out.
 */
export function make(tag, attributes = {}, ...children) {
	const [kind, ...classes] = tag.split(".");
	const element = svgNames.has(kind) ? document.createElementNS("http://www.w3.org/2000/svg", kind) : document.createElement(kind);
	if (classes.length) element.classList.add(...classes);
	for (const [name, value] of Object.entries(attributes)) {
		if (typeof value === "function") element.addEventListener(name, value);
		else if (isThere(value)) element.setAttribute(name, value);
	}
	element.append(...children.flat().filter(isThere));
	return element;
}

const isThere = (value) => value !== null && value !== undefined && value !== false;

/** A text of somebody else's, kept from changing the direction of what is around it. */
export const foreign = (text) => make("bdi", { dir: "auto" }, text);

const found = (place) => (typeof place === "string" ? id(place) : place);

/** Sets the text of an element, or of that with an id, if it differs: screen readers may read changes out. */
export function say(place, text) {
	const element = found(place);
	if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute, only if it is another. */
export function set(element, name, value) {
	if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/**
 * Makes the children of an element, or of that with an id, those of a list. Those that stay are changed and not made anew. The focus stays when the order
 * changes, and goes to the next child, or to the heading, when its child goes.
 * @param keyOf tells items apart; those that are equal, as what differs is hidden, are told apart by their order.
 * @param create makes a child: `{ element, update(item) }`.
 */
export function list(place, items, keyOf, create) {
	const parent = found(place);
	const known = (parent.known ??= new Map());
	const wanted = new Map();
	for (const item of items) {
		let key = String(keyOf(item));
		while (wanted.has(key)) key += " ";
		wanted.set(key, item);
	}
	const held = parent.contains(document.activeElement) ? document.activeElement : null;
	const heldAt = held ? [...parent.children].findIndex((child) => child.contains(held)) : -1;
	for (const [key, child] of known) {
		if (wanted.has(key)) continue;
		child.element.remove();
		known.delete(key);
	}
	let next = parent.firstElementChild;
	for (const [key, item] of wanted) {
		let child = known.get(key);
		if (!child) known.set(key, (child = create(item)));
		child.update(item);
		if (child.element === next) next = next.nextElementSibling;
		else parent.insertBefore(child.element, next);
	}
	if (held && held !== document.activeElement) (parent.contains(held) ? held : neighbour(parent, heldAt, held)).focus({ preventScroll: true });
}

/** What gets the focus of an element that is gone: the same control of the next child, or the heading. */
function neighbour(parent, place, held) {
	const controls = [...(parent.children[Math.min(place, parent.children.length - 1)]?.querySelectorAll("button, select") ?? [])];
	if (controls.length) return controls.find((one) => one.textContent === held.textContent) ?? controls[0];
	return headingOf(parent);
}

/** What is always there to take the focus: the heading of an element's section, or the content. */
function headingOf(element) {
	const heading = element.closest("section")?.querySelector("h2") ?? id("main");
	heading.setAttribute("tabindex", "-1");
	return heading;
}

/** Hides the element with an id, or shows it. The heading gets the focus in it. */
export function hide(place, isHidden) {
	const element = id(place);
	if (isHidden && element.contains(document.activeElement)) headingOf(element).focus({ preventScroll: true });
	element.hidden = isHidden;
}

/** A button. */
export const button = (text, act, attributes = {}) => make("button", { type: "button", click: act, ...attributes }, text);

/** A button without a frame. @param label its name for those who do not see what it is beside. */
export const quiet = (text, act, label) => button(text, act, { class: "quiet", "aria-label": label });

/** A bar that fills: `update(share, text)`, a share from 0 to 1, or null while it is unknown. */
export function bar(label) {
	const fill = make("span.fill");
	const element = make("span.bar", { role: "progressbar", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100 }, fill);
	return {
		element,
		update(share, text) {
			const whole = share === null ? 0 : Math.floor(Math.min(1, Math.max(0, share)) * 100);
			fill.style.width = `${share === null ? 0 : Math.min(100, share * 100)}%`;
			if (share === null) element.removeAttribute("aria-valuenow");
			else set(element, "aria-valuenow", whole);
			set(element, "aria-valuetext", text);
		},
	};
}

/** Tells the last of several questions from the former, whose answers may come later: each begins with the function. */
export function turns() {
	let last = 0;
	return (mine = ++last) => () => mine === last;
}

let timer;

/** Takes the news away. */
export function dismiss() {
	hide("news", true);
	id("news").classList.remove("error");
	say("news-text", "");
}

/** Reports to eyes and screen readers: what is behind an open dialog is for neither. */
export function tell(text, isError = false) {
	const inside = document.querySelector("dialog[open] .error");
	if (inside && isError) return say(inside, text);
	const place = id("news");
	clearTimeout(timer);
	place.classList.toggle("error", isError);
	place.hidden = false;
	say("news-text", text);
	// An error stays until it is dismissed.
	if (!isError) timer = setTimeout(dismiss, 8000);
}

/** Does something, and tells why it failed if it does. */
export async function attempt(action) {
	try {
		return await action();
	} catch (error) {
		tell(error.message, true);
	}
}

let asking = Promise.resolve();

/** Asks before something is done that cannot be undone: one question after the other. */
export const confirm = (question, action) => (asking = asking.then(() => ask(question, action)));

function ask(question, action) {
	const dialog = id("confirm");
	say("confirm-text", question);
	say("confirm-yes", action);
	dialog.returnValue = "";
	dialog.showModal();
	return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}
