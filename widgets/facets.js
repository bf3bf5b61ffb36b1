// Lists and small charts beside the pictures. A line that is pressed is told to the kernel; nothing else is asked.

// ------------------------------------------------------------------------------------------------- numbers

const whole = (n) => n.toLocaleString("en");

/** Heights 0..1 of bars: the tallest is 1, and none that counts anything is invisible. */
export function heights(counts, least = 0.03) {
  const most = Math.max(1, ...counts);
  return counts.map((n) => (n ? Math.max(least, n / most) : 0));
}

/** Where the middle half of all that is counted lies: indices of the first and the last bar; null where there is none. */
export function middleHalf(counts) {
  const all = counts.reduce((sum, n) => sum + n, 0);
  if (!all) return null;
  let below = 0, first = -1, last = -1;
  counts.forEach((n, k) => {
    below += n;
    if (first < 0 && below > all / 4) first = k;
    if (last < 0 && below >= (3 * all) / 4) last = k;
  });
  return [first, last];
}

/** A histogram in words. */
export function binsInWords({ title, counts, edges }) {
  const half = middleHalf(counts);
  if (!half) return `${title}: nothing to count`;
  const bars = counts.map((n, k) => (n ? `${edges[k]} to ${edges[k + 1]}: ${whole(n)}` : "")).filter(Boolean);
  return `${title}: half lie between ${edges[half[0]]} and ${edges[half[1] + 1]}. ${bars.join("; ")}`;
}

const PLACES = ["top left", "top", "top right", "left", "middle", "right", "bottom left", "bottom", "bottom right"];

/** Shares of the nine parts of a picture, the largest first: [[name, share], ...]. */
export function parts(counts, columns) {
  const rows = counts.length / columns, sums = new Array(9).fill(0);
  counts.forEach((n, k) => {
    const [x, y] = [k % columns, Math.floor(k / columns)];
    sums[3 * Math.floor((3 * y) / rows) + Math.floor((3 * x) / columns)] += n;
  });
  const all = sums.reduce((sum, n) => sum + n, 0);
  return all ? sums.map((n, k) => [PLACES[k], n / all]).sort((a, b) => b[1] - a[1]) : [];
}

/** A heat map in words. */
export function heatInWords({ title, counts, columns }) {
  const found = parts(counts, columns);
  if (!found.length) return `${title}: nothing to count`;
  return `${title}: ${found.map(([name, share]) => `${name} ${Math.round(100 * share)} %`).join(", ")}`;
}

// ------------------------------------------------------------------------------------------------- elements

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false && value !== "") made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const titled = (node, text) => (node.append(shape("title", {}, text)), node);

const write = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

// ------------------------------------------------------------------------------------------------- sections

/** A list of lines to press. Lines stay where they are in the page when their numbers change: one may have the focus. */
class RowsPart {
  constructor(press) {
    this.press = press;
    this.lines = new Map();
    this.list = element("div", { class: "yk-lines", role: "group" });
    this.words = element("div", { class: "yk-words" });
    this.body = element("div", {}, this.list, this.words);
    this.list.addEventListener("keydown", (event) => this.walk(event));
  }

  show({ key, title, rows, words }) {
    this.list.setAttribute("aria-label", title);
    write(this.words, rows.length ? "" : words);
    for (const [name, line] of this.lines) {
      if (!rows.some((row) => row.key === name)) (line.root.remove(), this.lines.delete(name));
    }
    rows.forEach((row, k) => {
      if (!this.lines.has(row.key)) this.lines.set(row.key, this.line(key, row));
      const line = this.lines.get(row.key);
      if (this.list.children[k] !== line.root) this.list.insertBefore(line.root, this.list.children[k] ?? null);
      this.write(line, row);
    });
    const stops = [...this.list.children].filter((node) => node.tabIndex === 0);
    if (stops.length !== 1) [...this.list.children].forEach((node, k) => (node.tabIndex = k ? -1 : 0));
  }

  line(section, row) {
    const swatch = element("i", { class: "yk-swatch", hidden: !row.colour });
    const severity = element("b", { class: "yk-severity" }), label = element("span", { class: "yk-label" });
    const count = element("span", { class: "yk-count" }), bar = element("i", { class: "yk-bar-of" });
    const root = element("button", { type: "button", class: "yk-line", tabindex: "-1", "data-key": row.key }, bar, severity, swatch, label, count);
    root.addEventListener("click", () => this.press(section, row.key));
    root.addEventListener("focus", () => {
      for (const other of this.list.children) other.tabIndex = other === root ? 0 : -1;
    });
    return { root, swatch, severity, label, count, bar };
  }

  write(line, row) {
    line.root.setAttribute("aria-pressed", row.pressed);
    line.root.title = row.about;
    line.root.classList.toggle("yk-none", row.count === 0);
    line.swatch.style.background = row.colour;
    write(line.severity, row.severity);
    line.severity.className = `yk-severity yk-${row.severity || "plain"}`;
    write(line.label, row.label);
    write(line.count, whole(row.count));
    line.bar.style.width = row.share === null ? "0" : `${100 * row.share}%`;
    line.bar.style.background = row.colour || "";
  }

  walk(event) {
    const all = [...this.list.children], step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const target = { Home: all[0], End: all.at(-1) }[event.key] ?? (step && all[all.indexOf(event.target) + step]);
    if (step === undefined && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    target?.focus();
  }
}

const WIDTH = 240, HEIGHT = 64;

class BinsPart {
  constructor() {
    this.body = element("div", { class: "yk-drawing" });
  }

  show(section) {
    const { counts, edges, ticks } = section, wide = WIDTH / Math.max(1, counts.length);
    const bars = heights(counts).map((high, k) => titled(shape("rect", {
      x: k * wide + 0.5, y: HEIGHT * (1 - high), width: Math.max(1, wide - 1), height: HEIGHT * high, class: "yk-bar-shape",
    }), `${edges[k]} to ${edges[k + 1]}: ${whole(counts[k])}`));
    const names = ticks.map((k) => {
      const anchor = k === 0 ? "start" : k === counts.length ? "end" : "middle";
      return shape("text", { x: k * wide, y: HEIGHT + 13, "text-anchor": anchor }, edges[k]);
    });
    const floor = shape("path", { d: `M0 ${HEIGHT}.5H${WIDTH}`, class: "yk-floor" });
    const drawing = shape("svg", { viewBox: `0 -1 ${WIDTH} ${HEIGHT + 18}`, role: "img", "aria-label": binsInWords(section) });
    drawing.append(...bars, floor, ...names);
    this.body.replaceChildren(drawing);
  }
}

class HeatPart {
  constructor() {
    this.body = element("div", { class: "yk-drawing yk-map" });
  }

  show(section) {
    const { counts, columns } = section, most = Math.max(1, ...counts), rows = counts.length / columns;
    const drawing = shape("svg", { viewBox: `0 0 ${columns} ${rows}`, role: "img", "aria-label": heatInWords(section), "shape-rendering": "crispEdges" });
    drawing.append(...counts.map((n, k) => titled(shape("rect", {
      x: k % columns, y: Math.floor(k / columns), width: 1, height: 1, class: "yk-cell", "fill-opacity": n ? (0.08 + (0.92 * n) / most).toFixed(3) : 0,
    }), whole(n))));
    this.body.replaceChildren(drawing);
  }
}

const PARTS = { rows: RowsPart, bins: BinsPart, heat: HeatPart };

class FacetsView {
  constructor(model, el) {
    this.model = model;
    this.shown = new Map();
    this.root = element("div", { class: "yk-facets", role: "group", "aria-label": "Filters and facts", "data-lm-suppress-shortcuts": "true", "data-rendered": "0" });
    this.root.addEventListener("keydown", (event) => event.stopPropagation());
    el.append(this.root);
    this.hear = () => this.draw();
    model.on("change:sections", this.hear);
    this.draw();
  }

  press(section, row) {
    this.model.send({ kind: "pick", section, row });
  }

  draw() {
    const sections = this.model.get("sections"), keys = new Set(sections.map((section) => section.key));
    for (const [key, { root }] of this.shown) if (!keys.has(key)) (root.remove(), this.shown.delete(key));
    sections.forEach((section, k) => {
      if (!this.shown.has(section.key)) this.shown.set(section.key, this.add(section));
      const { root, title, note, part } = this.shown.get(section.key);
      if (this.root.children[k] !== root) this.root.insertBefore(root, this.root.children[k] ?? null);
      write(title, section.title);
      write(note, section.note);
      part.show(section);
    });
    this.root.dataset.rendered = Number(this.root.dataset.rendered) + 1;
  }

  add(section) {
    const part = new PARTS[section.kind]((list, row) => this.press(list, row));
    const title = element("h4"), note = element("span", { class: "yk-note" });
    const root = element("section", { class: `yk-facet yk-${section.kind}`, "data-key": section.key }, element("div", { class: "yk-head" }, title, note), part.body);
    return { root, title, note, part };
  }

  end() {
    this.model.off("change:sections", this.hear);
    this.root.remove();
  }
}

function render({ model, el }) {
  const view = new FacetsView(model, el);
  return () => view.end();
}

export default { render };
