// The picture with its boxes. Everything that moves boxes happens here, in the page: the kernel is asked for the next
// picture and told what was chosen, and nothing else.
//
// Candidates are Float32Arrays of rows x1, y1, x2, y2, score, label: picture pixels, from before NMS, by falling score.
// What of them is shown must equal `yolov9kit.reselect` to the last box, so the arithmetic is that of float32.

export const COLUMNS = 6;
const round32 = Math.fround;

// ------------------------------------------------------------------------------------------------- boxes

/** Intersection over union of row i of a and row j of b, in float32 as torchvision's NMS has it. NaN if both are empty. */
export function iou(a, i, b, j) {
  const p = i * COLUMNS, q = j * COLUMNS;
  const width = Math.max(0, round32(Math.min(a[p + 2], b[q + 2]) - Math.max(a[p], b[q])));
  const height = Math.max(0, round32(Math.min(a[p + 3], b[q + 3]) - Math.max(a[p + 1], b[q + 1])));
  const shared = round32(width * height);
  return round32(shared / round32(round32(area(a, i) + area(b, j)) - shared));
}

function area(rows, i) {
  const p = i * COLUMNS;
  return round32(round32(rows[p + 2] - rows[p]) * round32(rows[p + 3] - rows[p + 1]));
}

/** Indices of the rows that stay: a row falls when a better one of its class (agnostic: of any) overlaps it by more. */
export function nms(rows, maxIou, agnostic = false, maxDetections = Infinity) {
  const n = rows.length / COLUMNS, fallen = new Uint8Array(n), kept = [];
  for (let i = 0; i < n && kept.length < maxDetections; i++) {
    if (fallen[i]) continue;
    kept.push(i);
    const label = rows[i * COLUMNS + 5];
    for (let j = i + 1; j < n; j++) {
      if (fallen[j] || !(agnostic || rows[j * COLUMNS + 5] === label)) continue;
      if (iou(rows, i, rows, j) > maxIou) fallen[j] = 1;
    }
  }
  return kept;
}

/** The box of row i held inside a picture of width x height. */
export function clipped(rows, i, width, height) {
  const p = i * COLUMNS, hold = (value, limit) => Math.min(Math.max(value, 0), limit);
  return [hold(rows[p], width), hold(rows[p + 1], height), hold(rows[p + 2], width), hold(rows[p + 3], height)];
}

/**
 * Which candidates are shown, by falling score: indices into rows.
 * state: minScore, maxIou, hidden (labels), agnostic, maxDetections, width, height.
 */
export function select(rows, state) {
  const minScore = round32(state.minScore), hidden = new Set(state.hidden), indices = [];
  for (let i = 0; i < rows.length / COLUMNS; i++) {
    if (!(rows[i * COLUMNS + 4] > minScore) || hidden.has(rows[i * COLUMNS + 5])) continue;
    const [x1, y1, x2, y2] = clipped(rows, i, state.width, state.height);
    if (x2 > x1 && y2 > y1) indices.push(i);
  }
  const chosen = nms(taken(rows, indices), state.maxIou, state.agnostic, state.maxDetections);
  return chosen.map((i) => indices[i]);
}

function taken(rows, indices) {
  const out = new Float32Array(indices.length * COLUMNS);
  indices.forEach((i, k) => out.set(rows.subarray(i * COLUMNS, (i + 1) * COLUMNS), k * COLUMNS));
  return out;
}

/** The rows at these indices, each box held inside the picture. */
export function shownRows(rows, indices, width, height) {
  const out = taken(rows, indices);
  indices.forEach((i, k) => out.set(clipped(rows, i, width, height), k * COLUMNS));
  return out;
}

/**
 * Two runs on one picture: which boxes of a (the reference) are found again in b. Pairs are of one class and overlap by
 * minIou or more; the pair that overlaps most is made first. Drift is score of b minus score of a.
 */
export function match(a, b, minIou = 0.5) {
  const candidates = [];
  for (let i = 0; i < a.length / COLUMNS; i++) {
    for (let j = 0; j < b.length / COLUMNS; j++) {
      if (a[i * COLUMNS + 5] !== b[j * COLUMNS + 5]) continue;
      const overlap = iou(a, i, b, j);
      if (overlap >= minIou) candidates.push({ i, j, iou: overlap });
    }
  }
  candidates.sort((p, q) => q.iou - p.iou || p.i - q.i || p.j - q.j);
  const ofA = new Map(), ofB = new Map();
  for (const pair of candidates) {
    if (ofA.has(pair.i) || ofB.has(pair.j)) continue;
    pair.drift = b[pair.j * COLUMNS + 4] - a[pair.i * COLUMNS + 4];
    ofA.set(pair.i, pair);
    ofB.set(pair.j, pair);
  }
  const pairs = [...ofA.values()].sort((p, q) => p.i - q.i);
  const drifts = pairs.map((pair) => Math.abs(pair.drift));
  return {
    pairs,
    lost: without(a, ofA),
    fresh: without(b, ofB),
    meanDrift: mean(drifts),
    maxDrift: Math.max(0, ...drifts),
    meanIou: mean(pairs.map((pair) => pair.iou)),
  };
}

const mean = (values) => (values.length ? values.reduce((sum, v) => sum + v, 0) / values.length : 0);
const without = (rows, found) => Array.from({ length: rows.length / COLUMNS }, (_, i) => i).filter((i) => !found.has(i));

/** The smallest box around a point of the picture, grown by tolerance pixels; -1 if there is none. */
export function hitTest(rows, x, y, tolerance = 0) {
  let best = -1, smallest = Infinity;
  for (let i = 0; i < rows.length / COLUMNS; i++) {
    const [x1, y1, x2, y2] = rows.subarray(i * COLUMNS, i * COLUMNS + 4);
    const inside = x >= x1 - tolerance && x <= x2 + tolerance && y >= y1 - tolerance && y <= y2 + tolerance;
    const size = (x2 - x1) * (y2 - y1);
    if (inside && size < smallest) [best, smallest] = [i, size];
  }
  return best;
}

// ------------------------------------------------------------------------------------------------- zoom

// A view places the picture in a window: window = picture * scale + (x, y). Sizes are [width, height].

/** The whole picture, centred; a tiny one is enlarged eight times at most. */
export function fit(picture, window) {
  const scale = Math.min(window[0] / picture[0], window[1] / picture[1], 8);
  return held({ scale, x: 0, y: 0 }, picture, window);
}

/** The view with the picture kept in reach: centred where it is smaller than the window, else covering it. */
export function held(view, picture, window) {
  const place = (offset, k) => {
    const slack = window[k] - picture[k] * view.scale;
    return slack >= 0 ? slack / 2 : Math.min(0, Math.max(slack, offset));
  };
  return { scale: view.scale, x: place(view.x, 0), y: place(view.y, 1) };
}

/** Zoomed by factor while the picture point under (x, y) of the window stays there, as far as the edges allow. */
export function zoomed(view, factor, x, y, picture, window) {
  const smallest = fit(picture, window).scale, largest = Math.max(32, smallest);
  const scale = Math.min(Math.max(view.scale * factor, smallest), largest);
  const ratio = scale / view.scale;
  return held({ scale, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio }, picture, window);
}

/** Moved by (dx, dy) window pixels. */
export function panned(view, dx, dy, picture, window) {
  return held({ scale: view.scale, x: view.x + dx, y: view.y + dy }, picture, window);
}

/** Moved no further than needed to have the box in sight. */
export function revealed(view, box, picture, window, margin = 24) {
  const nudge = (low, high, size) => {
    if (high - low > size - 2 * margin) return size / 2 - (low + high) / 2;
    return Math.max(0, margin - low) + Math.min(0, size - margin - high);
  };
  const dx = nudge(box[0] * view.scale + view.x, box[2] * view.scale + view.x, window[0]);
  const dy = nudge(box[1] * view.scale + view.y, box[3] * view.scale + view.y, window[1]);
  return panned(view, dx, dy, picture, window);
}

// ------------------------------------------------------------------------------------------------- words and numbers

/** Rounded to decimal digits as Python's round() does it: a tie goes to the even neighbour. */
export function roundHalfEven(value, digits) {
  const twice = 2 * value * 10 ** digits;
  const tie = Number.isInteger(value * 2 ** (digits + 1)) && Number.isInteger(twice) && twice % 2 !== 0;
  if (!tie) return Number(value.toFixed(digits));
  const lower = (twice - 1) / 2;
  return (lower % 2 ? lower + 1 : lower) / 10 ** digits;
}

/** One entry of `images` in the JSON form of yolov9kit. */
export function record(page, side, rows, names) {
  const detections = [];
  for (let p = 0; p < rows.length; p += COLUMNS) {
    const label = rows[p + 5];
    const box = Array.from(rows.subarray(p, p + 4), (v) => roundHalfEven(v, 4));
    detections.push({ box, score: roundHalfEven(rows[p + 4], 6), label, name: names[label] });
  }
  const entry = { path: page.path, width: page.width, height: page.height, run: side.label, detections };
  entry.timings_ms = side.timings;
  if (page.frame !== null && page.frame !== undefined) entry.frame = page.frame;
  if (page.notes.length) entry.notes = page.notes;
  return entry;
}

/** What a person typed, as a number between low and high; null where it is none. A decimal comma is understood. */
export function typedNumber(text, low, high) {
  const value = Number(String(text).trim().replace(",", "."));
  if (String(text).trim() === "" || !Number.isFinite(value)) return null;
  return Math.min(Math.max(value, low), high);
}

const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const milliseconds = (ms) => `${ms < 9.95 ? ms.toFixed(1) : Math.round(ms).toLocaleString("en")} ms`;
const compact = (value) => value.toFixed(4).replace(/0{1,2}$/, ""); // 0.70, 0.065
const stages = (timings) =>
  Object.entries(timings)
    .filter(() => Object.values(timings).some((ms) => ms > 0)) // nothing was measured
    .map(([stage, ms]) => `${stage === "nms" ? "NMS" : stage} ${milliseconds(ms)}`);

/** The line that sums up a comparison. */
export function summary(found) {
  const parts = [`matched ${found.pairs.length}`, `lost ${found.lost.length}`, `new ${found.fresh.length}`];
  if (found.pairs.length) {
    parts.push(`score drift mean ${found.meanDrift.toFixed(3)} max ${found.maxDrift.toFixed(3)}`);
    parts.push(`IoU mean ${found.meanIou.toFixed(3)}`);
  }
  return parts.join(" · ");
}

// ------------------------------------------------------------------------------------------------- drawing

const DASHES = { lost: [7, 5], new: [1.5, 4] };

/** Black or white, whichever is easier to read on the colour "#rrggbb". */
export function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const c = parseInt(colour.slice(at, at + 2), 16) / 255;
    return c <= 10 / 255 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

/** Draws picture, boxes and names. Returns how many names found no place. */
function drawScene(pen, scene) {
  const { image, picture, view, boxes, line } = scene;
  pen.imageSmoothingEnabled = view.scale * (picture[0] / image.width) * scene.density < 3;
  pen.imageSmoothingQuality = "high";
  pen.drawImage(image, view.x, view.y, picture[0] * view.scale, picture[1] * view.scale);
  const placed = boxes.map((box) => placedBox(box, view)).filter((box) => inWindow(box, scene.window));
  for (const box of [...placed].reverse()) drawBox(pen, box, line, scene.selected === box.of);
  return scene.labels ? drawTags(pen, placed, scene) : 0;
}

function placedBox(box, view) {
  const [x1, y1, x2, y2] = box.box;
  return {
    of: box,
    left: x1 * view.scale + view.x,
    top: y1 * view.scale + view.y,
    right: x2 * view.scale + view.x,
    bottom: y2 * view.scale + view.y,
  };
}

const inWindow = (box, [width, height]) => box.right > 0 && box.bottom > 0 && box.left < width && box.top < height;

function drawBox(pen, place, line, selected) {
  const { left, top, right, bottom, of: box } = place;
  const grow = line / 2;
  const frame = () => pen.strokeRect(left - grow, top - grow, right - left + line, bottom - top + line);
  pen.save();
  pen.lineJoin = "miter";
  for (const [colour, width] of selected ? [["#000000", line * 4 + 3], ["#ffffff", line * 4]] : []) {
    pen.strokeStyle = colour; // a ring that shows on any picture
    pen.lineWidth = width;
    frame();
  }
  pen.setLineDash((DASHES[box.status] ?? []).map((length) => length * Math.max(1, line / 2)));
  pen.strokeStyle = inkOn(box.colour);
  pen.lineWidth = line + Math.max(2, line / 2);
  if (!selected) frame();
  pen.strokeStyle = box.colour;
  pen.lineWidth = selected ? line * 2 : line;
  frame();
  pen.restore();
}

/**
 * Each name where it hides least of those before it: above its box, else below, else inside; the selected one first.
 * One that would hide too much is left out. Returns how many were.
 */
function drawTags(pen, placed, scene) {
  const { font, family, line, window, selected } = scene;
  pen.save();
  pen.font = `600 ${font}px ${family}`;
  pen.textBaseline = "middle";
  const [pad, height] = [font * 0.35, Math.round(font * 1.5)];
  const ordered = [...placed].sort((a, b) => (b.of === selected) - (a.of === selected));
  const tags = [];
  for (const place of ordered) {
    const width = Math.ceil(pen.measureText(place.of.text).width + 2 * pad);
    const [above, below] = [place.top - line - height, place.bottom + line];
    const [left, right] = [place.left - line, place.right + line - width];
    const wishes = [[left, above], [right, above], [left, below], [right, below], [left, place.top - line]];
    let best = null;
    for (const [x, y] of wishes) {
      const tag = {
        x: Math.round(Math.min(Math.max(0, x), window[0] - width)),
        y: Math.round(Math.min(Math.max(0, y), window[1] - height)),
        width, height, place,
      };
      tag.hides = tags.reduce((sum, other) => sum + overlap(tag, other), 0);
      if (best === null || tag.hides < best.hides) best = tag;
      if (best.hides === 0) break;
    }
    if (best.hides < 0.2 * best.width * best.height) tags.push(best);
  }
  const omitted = ordered.length - tags.length;
  for (const tag of tags.reverse()) {
    const box = tag.place.of;
    pen.fillStyle = box.colour;
    pen.fillRect(tag.x, tag.y, tag.width, tag.height);
    pen.fillStyle = inkOn(box.colour);
    pen.fillText(box.text, tag.x + pad, tag.y + height / 2 + font * 0.05);
  }
  pen.restore();
  return omitted;
}

const overlap = (a, b) =>
  Math.max(0, Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x)) *
  Math.max(0, Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y));

// ------------------------------------------------------------------------------------------------- elements

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const write = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

const KEYS = [
  ["→ ↓ j PageDown", "next picture"],
  ["← ↑ k PageUp", "previous picture"],
  ["Home, End", "first, last picture"],
  ["+ − 0", "zoom in, zoom out, fit"],
  ["Shift + arrows", "move the zoomed picture"],
  ["Tab, Shift + Tab", "next box, previous box"],
  ["d", "next box that only one side has"],
  ["l", "labels on or off"],
  ["Esc", "let go of the box; Tab then leaves the picture"],
  ["?", "this list"],
  ["Wheel", "zooms while the picture has the focus, or with Ctrl; else the page scrolls"],
  ["Drag, double click", "move, fit"],
  ["Shift + click on a class", "show this class only"],
];

let views = 0; // makes ids unique when one page shows several views

class CanvasView {
  constructor(model, el) {
    this.model = model;
    this.id = `yk-canvas-${++views}`;
    this.seen = new Map(); // pages that came from the kernel, the last used at the end
    this.loaded = null; // the page on screen: { page, about, image, sides }
    this.boxes = []; // what is shown of it, side after side, by falling score
    this.found = null; // the comparison of two sides
    this.selected = this.hovered = null;
    this.view = null;
    this.wish = model.get("selected"); // what an earlier view had selected; it counts once
    this.unsaved = this.leaving = this.closed = false;
    this.work = { frame: 0, select: false, width: 0 };
    this.timers = new Map();
    this.ends = new AbortController();
    this.build();
    el.append(this.root);
    this.connect();
    this.showPage();
  }

  // ---- the page

  build() {
    const button = (text, action, title) => {
      const made = element("button", { type: "button", class: "yk-button", title }, text);
      this.on(made, "click", () => made.getAttribute("aria-disabled") !== "true" && action());
      return made;
    };
    this.previous = button("Previous", () => this.turn(-1), "Previous picture (←)");
    this.next = button("Next", () => this.turn(1), "Next picture (→)");
    this.number = element("input", {
      class: "yk-number yk-page", type: "text", inputmode: "numeric", "aria-label": "Picture number", autocomplete: "off",
    });
    this.total = element("span", { class: "yk-total" });
    this.title = element("span", { class: "yk-title" });
    this.percent = element("output", { class: "yk-percent", "aria-label": "Zoom" });
    const out = button("Zoom out", () => this.zoom(1 / 1.5), "Zoom out (−)");
    const into = button("Zoom in", () => this.zoom(1.5), "Zoom in (+)");
    this.labelsButton = button("Labels", () => this.choose("show_labels", !this.model.get("show_labels")), "Names on the boxes (l)");
    this.helpButton = button("Keys", () => this.help(true), "Keyboard and mouse (?)");
    this.saves = [
      button("Save picture", () => this.savePicture(), "Download the picture with its boxes as PNG"),
      button("Save JSON", () => this.saveJson(), "Download the boxes shown as JSON"),
    ];
    const group = (label, ...children) => element("div", { class: "yk-group", role: "group", "aria-label": label }, ...children);
    this.bar = element("div", { class: "yk-bar" },
      group("Pictures", this.previous, element("span", { class: "yk-where" }, this.number, this.total), this.next),
      this.title,
      group("Zoom", out, this.percent, into, button("Fit", () => this.fitView(), "Show the whole picture (0, double click)")),
      group("Show", this.labelsButton),
      group("Save and help", ...this.saves, this.helpButton));
    this.figures = element("div", { class: "yk-figures" });
    this.message = element("div", { class: "yk-message", hidden: true });
    this.tip = element("div", { class: "yk-tip", "aria-hidden": "true", hidden: true });
    this.stage = element("div", { class: "yk-stage" }, this.figures, this.message, this.tip);
    this.comparison = this.buildComparison(button);
    this.status = element("div", { class: "yk-status" });
    this.spoken = element("div", { class: "yk-spoken", role: "status", "aria-live": "polite" });
    this.dialog = this.buildHelp(button);
    this.root = element("div", {
      class: "yk-canvas", role: "group", "aria-label": "Detections", "data-lm-suppress-shortcuts": "true",
      "data-rendered": "0", "data-state": "empty",
    },
      this.bar,
      element("div", { class: "yk-body" },
        element("div", { class: "yk-main" }, this.stage, this.comparison, this.status),
        this.buildPanel(button)),
      this.spoken, this.dialog);
    this.sides = [];
  }

  buildPanel(button) {
    this.sliders = [
      this.buildSlider("min_score", "Confidence", "Show boxes that score more", () => this.model.get("score_floor")),
      this.buildSlider("max_iou", "NMS IoU", "Of two boxes of a class that overlap more, the better stays", () => 0),
    ];
    this.agnostic = element("input", { type: "checkbox", id: `${this.id}-agnostic`, class: "yk-check" });
    this.on(this.agnostic, "change", () => this.choose("agnostic", this.agnostic.checked));
    this.chips = element("div", { class: "yk-chips", role: "group", "aria-label": "Classes shown" });
    this.classNote = element("div", { class: "yk-hint" });
    this.readout = element("dl", { class: "yk-readout" });
    const section = (heading, extra, ...children) =>
      element("section", { class: "yk-section" }, element("div", { class: "yk-heading" }, element("h4", {}, heading), extra), ...children);
    const pick = element("div", { class: "yk-group", role: "group", "aria-label": "All classes" },
      button("All", () => this.hide([]), "Show every class"),
      button("None", () => this.hide(this.model.get("names").map((_, label) => label)), "Hide every class"));
    return element("div", { class: "yk-panel" },
      section("Thresholds", null,
        ...this.sliders.map((slider) => slider.row),
        element("label", { class: "yk-option", for: this.agnostic.id }, this.agnostic, "NMS across classes")),
      section("Classes", pick, this.chips, this.classNote),
      section("Box", null, this.readout));
  }

  buildSlider(trait, label, purpose, floor) {
    const id = `${this.id}-${trait}`;
    const range = element("input", { type: "range", class: "yk-range", id, max: 1, step: "any", title: purpose });
    const number = element("input", {
      class: "yk-number", type: "number", max: 1, step: 0.01, "aria-label": `${label}, number`, title: purpose,
    });
    const hint = element("div", { class: "yk-hint", id: `${id}-hint`, hidden: true });
    for (const input of [range, number]) input.setAttribute("aria-describedby", hint.id);
    const head = element("div", { class: "yk-slider-head" }, element("label", { for: id }, label), number);
    const slider = { trait, range, number, hint, floor, row: element("div", { class: "yk-slider" }, head, range, hint) };
    const set = (value) => this.choose(trait, Math.min(Math.max(value, floor()), 1));
    this.on(range, "pointerdown", () => range.focus());
    this.on(range, "input", () => set(Math.round(Number(range.value) * 100) / 100));
    this.on(range, "keydown", (event) => {
      const steps = {
        ArrowRight: 0.01, ArrowUp: 0.01, ArrowLeft: -0.01, ArrowDown: -0.01, PageUp: 0.1, PageDown: -0.1, Home: -2, End: 2,
      };
      if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      set(Math.round((this.model.get(trait) + steps[event.key]) * 100) / 100);
    });
    this.on(number, "input", () => {
      const value = typedNumber(number.value, 0, 1);
      if (value !== null && value >= floor()) set(value); // "0" on the way to "0.06" is not a wish yet
    });
    this.on(number, "change", () => {
      const value = typedNumber(number.value, 0, 1);
      if (value !== null) set(value);
      this.refuse(slider, value !== null && value < floor());
      number.value = compact(this.model.get(trait));
    });
    return slider;
  }

  /** Says why a slider goes no lower, and stops saying it. */
  refuse(slider, below) {
    const floor = compact(slider.floor());
    write(slider.hint, below ? `The candidates were kept above ${floor}. Lower scores need a new run.` : "");
    slider.hint.hidden = !below;
    if (below) this.say(slider.hint.textContent);
  }

  buildComparison(button) {
    this.summaryLine = element("div", { class: "yk-summary" });
    this.meanings = { matched: element("span"), lost: element("span"), new: element("span") };
    this.legend = element("div", { class: "yk-legend" }, ...Object.entries(this.meanings).map(([kind, meaning]) =>
      element("span", {}, element("i", { class: `yk-sample yk-${kind}` }), meaning)));
    this.jump = button("Next difference", () => this.nextDifference(), "Go to the next box that only one side has (d)");
    return element("div", { class: "yk-comparison", hidden: true }, this.summaryLine, this.legend, this.jump);
  }

  buildHelp(button) {
    const rows = KEYS.map(([keys, meaning]) => element("tr", {}, element("th", { scope: "row" }, keys), element("td", {}, meaning)));
    this.closeHelp = button("Close", () => this.help(false));
    const card = element("div", { class: "yk-card", role: "dialog", "aria-modal": "true", "aria-labelledby": `${this.id}-keys` },
      element("div", { class: "yk-heading" }, element("h4", { id: `${this.id}-keys` }, "Keyboard and mouse"), this.closeHelp),
      element("table", {}, element("tbody", {}, ...rows)));
    const dialog = element("div", { class: "yk-help", hidden: true }, card);
    this.on(dialog, "click", (event) => event.target === dialog && this.help(false));
    return dialog;
  }

  // ---- what happens

  on(target, events, act, options = {}) {
    for (const event of events.split(" ")) target.addEventListener(event, act, { signal: this.ends.signal, ...options });
  }

  connect() {
    const hear = (name, act) => {
      this.model.on(name, act);
      this.ends.signal.addEventListener("abort", () => this.model.off(name, act));
    };
    hear("change:page", () => this.showPage());
    hear("change:pictures", () => this.showPage());
    hear("change:current", () => this.receive());
    hear("change:selected", () => this.adoptSelected());
    for (const trait of ["min_score", "max_iou", "hidden_classes", "agnostic", "max_detections", "score_floor", "names", "colours", "show_labels"]) {
      hear(`change:${trait}`, () => this.refresh(true));
    }
    hear("msg:custom", (content) => content?.kind === "save" && this.save(true));
    this.on(this.root, "keydown", (event) => this.key(event));
    this.on(this.root, "keyup keypress", (event) => event.stopPropagation());
    // who turns to something else on the page may ask the kernel there what was chosen here
    const leave = (event) => event.composedPath().includes(this.root) || this.save();
    this.on(document, "pointerdown focusin", leave, { capture: true });
    this.on(window, "pagehide", () => this.save());
    this.on(document, "visibilitychange", () => document.visibilityState === "hidden" && this.save());
    this.on(this.number, "change", () => {
      this.goTo((typedNumber(this.number.value, 1, this.pageCount()) ?? this.page() + 1) - 1);
      this.number.value = this.pageCount() ? this.page() + 1 : "";
    });
    this.on(this.figures, "pointerleave", () => this.hover(null));
    this.on(this.chips, "keydown", (event) => this.walkChips(event));
    this.sizes = new ResizeObserver(() => this.stage.clientWidth !== this.work.width && this.refresh(false));
    this.sizes.observe(this.stage);
    const watch = () => {
      const density = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
      this.on(density, "change", () => (this.refresh(false), watch()), { once: true });
    };
    watch();
  }

  close() {
    this.closed = true;
    this.ends.abort();
    this.sizes.disconnect();
    cancelAnimationFrame(this.work.frame);
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.blank();
    this.root.remove();
  }

  /** Shows no picture, but keeps the canvas: it may have the focus, and the next page comes by keyboard. */
  blank() {
    this.loaded?.image.close();
    this.loaded = this.found = this.selected = this.hovered = null;
    this.boxes = [];
    this.writeReadout();
    this.writeStatus([]);
    write(this.summaryLine, "");
    this.chips.replaceChildren();
    this.chips.dataset.key = "";
    for (const { note, omitted, canvas } of this.sides) {
      write(note, "");
      write(omitted, "");
      canvas.setAttribute("aria-label", "No picture");
      canvas.getContext("2d").clearRect(0, 0, 1e5, 1e5);
    }
  }

  /** Does something later, once, however often it is asked for meanwhile. */
  later(name, delay, act) {
    clearTimeout(this.timers.get(name));
    this.timers.set(name, setTimeout(act, delay));
  }

  say(text) {
    this.later("say", 400, () => (this.spoken.textContent = text));
  }

  /** Changes the page's copy of the state. The kernel hears of it with the next `save`. */
  choose(trait, value) {
    if (JSON.stringify(this.model.get(trait)) === JSON.stringify(value)) return;
    this.unsaved = true;
    this.model.set(trait, value);
  }

  save(always = false) {
    if (!this.unsaved && !always) return;
    this.unsaved = false;
    this.model.save_changes();
  }

  focused() {
    return this.root.getRootNode().activeElement;
  }

  page() {
    return this.model.get("page");
  }

  pageCount() {
    return this.model.get("pictures").length;
  }

  turn(step) {
    this.goTo(this.page() + step);
  }

  goTo(page) {
    const wanted = Math.min(Math.max(Math.trunc(page), 0), this.pageCount() - 1);
    if (wanted < 0 || wanted === this.page()) return;
    this.choose("selected", -1);
    this.choose("page", wanted);
    this.save();
  }

  /** A page came from the kernel. The last few stay here, so that going back asks nobody. */
  receive() {
    const current = this.model.get("current");
    if (!current || current.page === undefined) return;
    for (const [key, page] of this.seen) if (page.revision !== current.revision) this.seen.delete(key);
    const same = this.seen.get(current.page) ?? current; // of one revision a page is always the same
    this.seen.delete(current.page);
    if (!current.error) this.seen.set(current.page, same);
    let bytes = 0;
    for (const [key, page] of [...this.seen].reverse()) {
      bytes += page.picture.bytes.byteLength;
      if (bytes > 24e6 && key !== current.page) this.seen.delete(key);
    }
    if (this.seen.size > 12) this.seen.delete(this.seen.keys().next().value);
    if (current.page === this.page()) this.showPage();
  }

  async showPage() {
    const [page, total] = [this.page(), this.pageCount()];
    this.writeWhere();
    if (!total) {
      this.blank();
      return this.tell("empty", "No pictures yet.");
    }
    const current = this.model.get("current");
    const kept = this.seen.get(page);
    const known = kept?.revision === current?.revision ? kept ?? current : current;
    if (known?.page !== page) return this.wait(page);
    clearTimeout(this.timers.get("wait"));
    if (known.error) {
      this.blank();
      return this.tell("error", known.error);
    }
    this.seen.set(page, known);
    if (this.loaded?.from === known) return this.tell("ready", "");
    if (this.decoding === known) return;
    this.decoding = known;
    try {
      const image = await createImageBitmap(new Blob([known.picture.bytes], { type: known.picture.mime }));
      if (this.closed || page !== this.page()) return image.close();
      this.load(known, image);
    } catch (error) {
      this.tell("error", `The picture cannot be shown: ${error.message}`);
    } finally {
      if (this.decoding === known) this.decoding = null;
    }
  }

  wait(page) {
    this.root.dataset.state = "loading";
    this.later("wait", 200, () => {
      this.tell("loading", `Loading picture ${page + 1} …`);
      this.later("wait", 5000, () => this.tell("loading", "Still waiting for the kernel: it is busy, or gone. Pictures seen before open at once."));
    });
  }

  tell(state, text) {
    this.root.dataset.state = state;
    this.message.hidden = !text;
    this.message.setAttribute("role", state === "error" ? "alert" : "note");
    write(this.message, text);
    this.stage.classList.toggle("yk-quiet", state === "loading" || state === "error");
    if (state !== "ready") this.hover(null);
    this.refresh(false);
  }

  load(known, image) {
    const about = this.model.get("pictures")[known.page];
    const before = this.loaded?.about;
    this.loaded?.image.close();
    const sides = about.sides.map((side, k) => ({ ...side, rows: rowsOf(known.sides[k].rows) }));
    this.loaded = { from: known, page: known.page, about, image, sides, window: null };
    this.root.dataset.page = known.page;
    this.buildFigures(sides);
    if (before?.width !== about.width || before?.height !== about.height) this.view = null;
    this.selected = this.hovered = null;
    this.buildChips();
    this.work.width = 0; // lay out anew
    this.tell("ready", "");
    this.refresh(true);
  }

  buildFigures(sides) {
    if (this.sides.length !== sides.length) {
      this.sides = sides.map((_, side) => {
        const name = element("span", { class: "yk-side" }), note = element("span", { class: "yk-side-note" });
        const omitted = element("span", { class: "yk-side-note" });
        const canvas = element("canvas", { class: "yk-picture", role: "application", tabindex: side ? "-1" : "0" });
        this.listenOn(canvas, side);
        return { name, note, omitted, canvas, figure: element("figure", {}, element("figcaption", {}, name, note, omitted), canvas) };
      });
      this.figures.replaceChildren(...this.sides.map((side) => side.figure));
      this.root.classList.toggle("yk-two", sides.length > 1);
      this.comparison.hidden = sides.length < 2;
    }
  }

  listenOn(canvas, side) {
    let drag = null;
    const at = (event) => {
      const bounds = canvas.getBoundingClientRect();
      return [event.clientX - bounds.left, event.clientY - bounds.top];
    };
    this.on(canvas, "pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.focus({ preventScroll: true });
      canvas.setPointerCapture(event.pointerId);
      drag = { at: at(event), moved: false };
    });
    this.on(canvas, "pointermove", (event) => {
      const [x, y] = at(event);
      if (!drag) return this.hover(this.boxAt(side, x, y), canvas, x, y);
      const [dx, dy] = [x - drag.at[0], y - drag.at[1]];
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      drag = { at: [x, y], moved: true };
      canvas.classList.add("yk-dragging");
      this.hover(null);
      this.move(dx, dy);
    });
    this.on(canvas, "pointerup pointercancel", (event) => {
      if (drag && !drag.moved && event.type === "pointerup") this.pick(this.boxAt(side, ...at(event)), false);
      drag = null;
      canvas.classList.remove("yk-dragging");
    });
    this.on(canvas, "pointerleave", () => this.hover(null));
    this.on(canvas, "dblclick", () => this.fitView());
    this.on(canvas, "focus blur", () => (this.leaving = false));
    this.on(canvas, "wheel", (event) => {
      if (!this.loaded || !(event.ctrlKey || event.metaKey || this.focused() === canvas)) return;
      event.preventDefault();
      const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1);
      this.hover(null);
      this.zoom(Math.exp(-pixels / 300), ...at(event));
    }, { passive: false });
  }

  key(event) {
    event.stopPropagation();
    if (!this.dialog.hidden) return this.keyInHelp(event);
    const target = event.target, onCanvas = target.classList.contains("yk-picture");
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (target.matches("input.yk-number")) return this.keyInNumber(event);
    if (event.key === "Tab") return onCanvas && this.tab(event);
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const actions = {
      j: () => this.turn(1), k: () => this.turn(-1), PageDown: () => this.turn(1), PageUp: () => this.turn(-1),
      "+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), 0: () => this.fitView(),
      l: () => this.labelsButton.click(), d: () => this.nextDifference(), "?": () => this.help(true), Escape: () => this.escape(),
    };
    if (onCanvas) {
      for (const [name, step] of [["ArrowRight", 1], ["ArrowDown", 1], ["ArrowLeft", -1], ["ArrowUp", -1]]) {
        actions[name] = () => (event.shiftKey ? this.move(...moves[name]) : this.turn(step));
      }
      actions.Home = () => this.goTo(0);
      actions.End = () => this.goTo(this.pageCount() - 1);
    }
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  keyInNumber(event) {
    if (event.key === "Escape") event.target.blur();
  }

  keyInHelp(event) {
    if (event.key === "Escape" || event.key === "?") this.help(false);
    if (event.key === "Tab" || event.key === "Escape" || event.key === "?") event.preventDefault(); // Close is all there is
  }

  help(open) {
    if (open) this.before = this.focused();
    this.dialog.hidden = !open;
    if (open) this.closeHelp.focus();
    else if (this.root.contains(this.before)) this.before.focus({ preventScroll: true });
  }

  /** Tab walks through the boxes; past either end, or after Esc, it leaves the picture as it would any control. */
  tab(event) {
    if (this.leaving || !this.boxes.length) return;
    const step = event.shiftKey ? -1 : 1;
    const at = this.selected ? this.boxes.indexOf(this.selected) + step : event.shiftKey ? -1 : 0;
    if (at < 0 || at >= this.boxes.length) return this.pick(null);
    event.preventDefault();
    this.pick(this.boxes[at]);
  }

  escape() {
    this.leaving = true;
    this.pick(null);
    this.say("No box selected. Tab leaves the picture.");
  }

  nextDifference() {
    const odd = this.boxes.filter((box) => box.status === "lost" || box.status === "new");
    if (odd.length) this.pick(odd[(odd.indexOf(this.selected) + 1) % odd.length]);
  }

  pick(box, reveal = true) {
    this.selected = box;
    if (box) this.leaving = false;
    this.choose("selected", box ? this.boxes.indexOf(box) : -1);
    if (box && reveal && this.view) this.view = revealed(this.view, box.box, this.pictureSize(), this.loaded.window);
    if (box) this.say(this.describe(box).map(([term, text]) => `${term} ${text}`).join(", "));
    this.refresh(false);
  }

  /** The kernel, or another view of the same widget, selected a box. */
  adoptSelected() {
    const index = this.model.get("selected");
    if ((this.selected ? this.boxes.indexOf(this.selected) : -1) === index) return;
    this.selected = this.boxes[index] ?? null;
    this.refresh(false);
  }

  hide(labels) {
    this.choose("hidden_classes", [...labels].sort((a, b) => a - b));
  }

  toggle(label, only) {
    const hidden = new Set(this.model.get("hidden_classes"));
    const others = this.model.get("names").map((_, other) => other).filter((other) => other !== label);
    if (only) return this.hide(others.every((other) => hidden.has(other)) && !hidden.has(label) ? [] : others);
    hidden.delete(label) || hidden.add(label);
    this.hide(hidden);
  }

  walkChips(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const all = [...this.chips.children];
    const target = { Home: all[0], End: all.at(-1) }[event.key] ?? all[all.indexOf(event.target) + (step ?? NaN)];
    if (step === undefined && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    event.stopPropagation();
    target?.focus();
  }

  // ---- where things lie

  pictureSize() {
    return [this.loaded.about.width, this.loaded.about.height];
  }

  /** The canvas gets one height for all pages, from the shape that their pictures have on average. */
  resize() {
    const [first] = this.sides;
    if (!first || !this.loaded) return;
    const width = first.canvas.parentElement.clientWidth;
    this.work.width = this.stage.clientWidth;
    if (!width) return; // not on the page now
    const shapes = this.model.get("pictures").map((picture) => picture.height / picture.width);
    const tallest = Math.min(640, Math.max(320, 0.7 * window.innerHeight));
    const height = Math.round(Math.min(Math.max(240, width * mean(shapes)), tallest));
    const before = this.loaded.window;
    this.loaded.window = [width, height];
    for (const { canvas } of this.sides) canvas.style.height = `${height}px`;
    const wasFit = this.view && before && this.view.scale === fit(this.pictureSize(), before).scale;
    if (!this.view || wasFit) this.view = fit(this.pictureSize(), this.loaded.window);
    else this.view = zoomed(this.view, 1, 0, 0, this.pictureSize(), this.loaded.window);
  }

  fitView() {
    if (!this.loaded?.window) return;
    this.view = fit(this.pictureSize(), this.loaded.window);
    this.refresh(false);
  }

  zoom(factor, x, y) {
    if (!this.loaded?.window) return;
    const window = this.loaded.window;
    this.view = zoomed(this.view, factor, x ?? window[0] / 2, y ?? window[1] / 2, this.pictureSize(), window);
    this.refresh(false);
  }

  move(dx, dy) {
    if (!this.loaded?.window) return;
    this.view = panned(this.view, dx, dy, this.pictureSize(), this.loaded.window);
    this.refresh(false);
  }

  boxAt(side, x, y) {
    if (!this.loaded || !this.view || this.root.dataset.state !== "ready") return null;
    const [px, py] = [(x - this.view.x) / this.view.scale, (y - this.view.y) / this.view.scale];
    const index = hitTest(this.loaded.sides[side].shown ?? new Float32Array(), px, py, 3 / this.view.scale);
    return this.boxes.find((box) => box.side === side && box.index === index) ?? null;
  }

  hover(box, canvas, x, y) {
    this.tip.hidden = !box;
    if (box) {
      this.tip.replaceChildren(...this.describe(box).map(([term, text]) => element("div", {}, element("b", {}, term), ` ${text}`)));
      const [stage, bounds] = [this.stage.getBoundingClientRect(), canvas.getBoundingClientRect()];
      const [left, top] = [bounds.left - stage.left + x, bounds.top - stage.top + y];
      const flip = left + 14 + this.tip.offsetWidth > stage.width;
      this.tip.style.left = `${Math.max(0, flip ? left - 14 - this.tip.offsetWidth : left + 14)}px`;
      this.tip.style.top = `${Math.min(top + 14, Math.max(0, stage.height - this.tip.offsetHeight - 4))}px`;
    }
    for (const side of this.sides) side.canvas.classList.toggle("yk-over", Boolean(box));
    if (box === this.hovered) return;
    this.hovered = box;
    this.writeReadout();
  }

  // ---- what is shown

  refresh(select) {
    this.work.select ||= select;
    if (this.work.frame || this.closed) return;
    this.work.frame = requestAnimationFrame(() => {
      this.work.frame = 0;
      const current = this.loaded?.from.revision === this.model.get("current")?.revision; // else others come at once
      if (this.work.select && this.loaded && current) this.selectBoxes();
      this.work.select = false;
      if (this.stage.clientWidth !== this.work.width) this.resize();
      this.writeControls();
      this.paint();
      this.root.dataset.rendered = Number(this.root.dataset.rendered) + 1;
    });
  }

  state() {
    const get = (trait) => this.model.get(trait);
    return {
      minScore: get("min_score"), maxIou: get("max_iou"), hidden: get("hidden_classes"), agnostic: get("agnostic"),
      maxDetections: get("max_detections"), width: this.loaded.about.width, height: this.loaded.about.height,
    };
  }

  selectBoxes() {
    const state = this.state(), { sides } = this.loaded;
    const [names, colours] = [this.model.get("names"), this.model.get("colours")];
    const held = this.selected && { side: this.selected.side, row: this.selected.row };
    for (const side of sides) {
      side.chosen = select(side.rows, state);
      side.shown = shownRows(side.rows, side.chosen, state.width, state.height);
      side.counts = tally(side.shown, names.length);
      if (state.hidden.length) {
        const all = shownRows(side.rows, select(side.rows, { ...state, hidden: [] }), state.width, state.height);
        const would = tally(all, names.length);
        for (const label of state.hidden) side.counts[label] = would[label];
      }
    }
    this.found = sides.length === 2 ? match(sides[0].shown, sides[1].shown) : null;
    this.boxes = sides.flatMap((side, k) => side.chosen.map((row, index) => {
      const [x1, y1, x2, y2, score, label] = side.shown.subarray(index * COLUMNS, (index + 1) * COLUMNS);
      const { status, pair } = this.outcome(k, index);
      const prefix = status === "lost" || status === "new" ? `${status}: ` : "";
      const text = `${prefix}${names[label]} ${score.toFixed(2)}`;
      return { side: k, row, index, box: [x1, y1, x2, y2], score, label, colour: colours[label], status, pair, text };
    }));
    this.selected = held ? this.boxes.find((box) => box.side === held.side && box.row === held.row) ?? null : this.boxes[this.wish] ?? null;
    this.wish = -1;
    this.hovered = null;
    this.tip.hidden = true;
    this.choose("selected", this.selected ? this.boxes.indexOf(this.selected) : -1);
  }

  outcome(side, index) {
    if (!this.found) return { status: "", pair: null };
    const pair = this.found.pairs.find((each) => (side ? each.j : each.i) === index) ?? null;
    return { status: pair ? "matched" : side ? "new" : "lost", pair };
  }

  /** A box in words: pairs of a term and what there is to say. */
  describe(box) {
    const [x1, y1, x2, y2] = box.box.map((v) => v.toFixed(1));
    const size = [box.box[2] - box.box[0], box.box[3] - box.box[1]].map((v) => v.toFixed(1)).join(" × ");
    const lines = [
      ["Class", this.model.get("names")[box.label]],
      ["Score", box.score.toFixed(3)],
      ["Box", `${x1}, ${y1} to ${x2}, ${y2}`],
      ["Size", `${size} px`],
    ];
    if (!this.found) return lines;
    const [mine, other] = [this.loaded.sides[box.side].label, this.loaded.sides[1 - box.side].label];
    lines.push(["Side", mine]);
    if (!box.pair) return [...lines, [box.status === "lost" ? "Lost" : "New", `not found by ${other}`]];
    const theirs = this.boxes.find((each) => each.side !== box.side && each.pair === box.pair);
    const drift = theirs.score - box.score;
    lines.push([`In ${other}`, `${theirs.score.toFixed(3)} (${drift < 0 ? "−" : "+"}${Math.abs(drift).toFixed(3)}), IoU ${box.pair.iou.toFixed(3)}`]);
    return lines;
  }

  writeControls() {
    this.writeWhere();
    for (const slider of this.sliders) {
      const [value, floor] = [this.model.get(slider.trait), slider.floor()];
      slider.range.min = slider.number.min = floor;
      slider.range.value = value;
      slider.range.style.setProperty("--yk-filled", `${(100 * (value - floor)) / Math.max(1e-9, 1 - floor)}%`);
      slider.range.setAttribute("aria-valuetext", compact(value));
      const typing = this.focused() === slider.number;
      if (!typing && typedNumber(slider.number.value, 0, 1) !== value) slider.number.value = compact(value);
      if (value > floor) this.refuse(slider, false);
    }
    this.agnostic.checked = this.model.get("agnostic");
    this.labelsButton.setAttribute("aria-pressed", this.model.get("show_labels"));
    write(this.percent, this.loaded && this.view ? `${Math.round(this.view.scale * 100)} %` : "");
    for (const save of this.saves) save.setAttribute("aria-disabled", !this.loaded);
    if (!this.loaded) return;
    this.writeChips();
    this.writeSides();
    this.writeReadout();
  }

  writeWhere() {
    const [page, total] = [this.page(), this.pageCount()];
    const about = this.model.get("pictures")[page];
    if (this.focused() !== this.number) this.number.value = total ? page + 1 : "";
    write(this.total, `/ ${total.toLocaleString("en")}`);
    write(this.title, about?.title ?? "");
    this.title.title = about?.path ?? "";
    this.previous.setAttribute("aria-disabled", page <= 0);
    this.next.setAttribute("aria-disabled", page >= total - 1);
  }

  /** Up to 24 classes are all listed; of more, those of the picture's candidates, the surest first, and those hidden. */
  buildChips() {
    const [names, colours] = [this.model.get("names"), this.model.get("colours")];
    const here = new Set();
    for (const side of this.loaded.sides) for (let p = 5; p < side.rows.length; p += COLUMNS) here.add(side.rows[p]);
    for (const label of this.model.get("hidden_classes")) here.add(label);
    const labels = names.length <= 24 ? [...names.keys()] : [...here];
    const key = JSON.stringify([labels, names, colours]);
    const sides = this.loaded.sides.map((side) => side.label).join(" | ");
    write(this.classNote, [
      this.loaded.sides.length > 1 ? `Numbers: ${sides}` : "",
      labels.length < names.length ? `${labels.length} of ${names.length} classes are candidates here.` : "",
    ].filter(Boolean).join(". "));
    if (this.chips.dataset.key === key) return;
    this.chips.dataset.key = key;
    this.chips.replaceChildren(...labels.map((label, k) => {
      const chip = element("button", { type: "button", class: "yk-chip", "data-label": label, tabindex: k ? "-1" : "0" },
        element("i", { class: "yk-swatch" }),
        element("span", { class: "yk-name" }, names[label]), element("span", { class: "yk-count" }));
      chip.firstChild.style.setProperty("--yk-colour", colours[label]);
      chip.addEventListener("click", (event) => this.toggle(label, event.shiftKey));
      chip.addEventListener("focus", () => {
        for (const other of this.chips.children) other.tabIndex = other === chip ? 0 : -1;
      });
      return chip;
    }));
  }

  writeChips() {
    const hidden = new Set(this.model.get("hidden_classes"));
    for (const chip of this.chips.children) {
      const label = Number(chip.dataset.label), off = hidden.has(label);
      const counts = this.loaded.sides.map((side) => side.counts?.[label] ?? 0);
      write(chip.lastChild, counts.join(" | "));
      chip.setAttribute("aria-pressed", !off);
      chip.classList.toggle("yk-none", counts.every((n) => n === 0));
      const spoken = this.loaded.sides.map((side, k) => (counts.length > 1 ? `${side.label} ${counts[k]}` : counts[k])).join(", ");
      chip.setAttribute("aria-label", `${this.model.get("names")[label]}: ${spoken} ${off ? "hidden" : "shown"}`);
      chip.title = off ? "Hidden. Click to show; Shift + click shows this class only" : "Click to hide; Shift + click shows this class only";
    }
  }

  writeSides() {
    const { about, sides, image } = this.loaded, limit = this.model.get("max_detections"), lines = [];
    sides.forEach((side, k) => {
      const shown = side.chosen?.length ?? 0, total = side.rows.length / COLUMNS;
      const cut = side.cut ? ` (${side.cut.toLocaleString("en")} lower ones were cut)` : "";
      const full = shown >= limit ? `, more are not shown (limit ${limit.toLocaleString("en")})` : "";
      const { name, note, canvas } = this.sides[k];
      write(name, side.label);
      write(note, `${sides.length > 1 ? (k ? "compared · " : "reference · ") : ""}${count(shown, "box", "boxes")}`);
      canvas.setAttribute("aria-label",
        `${about.title}, picture ${this.loaded.page + 1} of ${this.pageCount()}, ${side.label}: ${count(shown, "box", "boxes")}. ` +
        `Tab walks through them, arrow keys turn pages, question mark lists the keys.`);
      const start = `${shown.toLocaleString("en")} of ${count(total, "candidate")}${cut}${full}`;
      lines.push([...(sides.length > 1 ? [side.label] : []), start, ...stages(side.timings)].join(" · "));
    });
    if (this.found) {
      write(this.summaryLine, summary(this.found));
      const [reference, other] = sides.map((side) => side.label);
      write(this.meanings.matched, "found by both");
      write(this.meanings.lost, `lost: only ${reference}`);
      write(this.meanings.new, `new: only ${other}`);
      this.jump.setAttribute("aria-disabled", !(this.found.lost.length + this.found.fresh.length));
    }
    if (image.width < about.width) lines.push(`Shown at ${image.width} × ${image.height}, the picture has ${about.width} × ${about.height} pixels`);
    lines.push(...about.notes.map((note) => `Note: ${note}`));
    this.root.dataset.shown = sides.map((side) => side.chosen?.length ?? 0).join(" ");
    if (this.writeStatus(lines)) this.say([lines[0], this.found && summary(this.found)].filter(Boolean).join(". "));
  }

  writeStatus(lines) {
    const text = lines.join("\n");
    if (this.status.dataset.text === text) return false;
    this.status.dataset.text = text;
    this.status.replaceChildren(...lines.map((line) => element("div", {}, line)));
    return true;
  }

  writeReadout() {
    const box = this.hovered ?? this.selected;
    const key = box ? `${box.side} ${box.row} ${box.text} ${this.loaded?.page}` : "";
    if (this.readout.dataset.key === key && this.readout.firstChild) return;
    this.readout.dataset.key = key;
    const lines = box ? this.describe(box) : [["", "Point at a box, click it, or press Tab in the picture."]];
    this.readout.classList.toggle("yk-hint", !box);
    this.readout.replaceChildren(...lines.flatMap(([term, text]) => [...(term ? [element("dt", {}, term)] : []), element("dd", {}, text)]));
  }

  scene(side, more) {
    return {
      image: this.loaded.image, picture: this.pictureSize(), boxes: this.boxes.filter((box) => box.side === side),
      labels: this.model.get("show_labels"), family: getComputedStyle(this.root).fontFamily, ...more,
    };
  }

  /** The selected box, or on the other side the one it is paired with. */
  selectedOn(side) {
    const box = this.selected;
    if (!box || box.side === side) return box;
    return box.pair && this.boxes.find((each) => each.side === side && each.pair === box.pair);
  }

  paint() {
    if (!this.loaded?.window || !this.view) return;
    const density = devicePixelRatio, window = this.loaded.window;
    this.sides.forEach(({ canvas }, side) => {
      const [width, height] = window.map((length) => Math.round(length * density));
      if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
      const pen = canvas.getContext("2d");
      pen.setTransform(density, 0, 0, density, 0, 0);
      pen.clearRect(0, 0, ...window);
      const selected = this.selectedOn(side);
      const omitted = drawScene(pen, this.scene(side, { view: this.view, window, density, line: 2, font: 12, selected }));
      write(this.sides[side].omitted, omitted ? `${omitted} names find no room: zoom in` : "");
      canvas.classList.toggle("yk-zoomed", this.view.scale > fit(this.pictureSize(), window).scale * 1.001);
    });
  }

  // ---- to files

  stem() {
    return (this.loaded.about.title.replace(/\.\w{1,5}$/, "") || "picture").replace(/[\\/:*?"<>|\s]+/g, "_");
  }

  /** The picture as large as it came, its boxes drawn in the proportions of `yolov9kit.draw_detections`. */
  async savePicture() {
    const { image, sides, about } = this.loaded, scale = image.width / about.width;
    const middle = (image.width + image.height) / 2;
    const [line, font] = [Math.max(1, Math.round(0.003 * middle)), Math.max(8, Math.round(0.011 * middle + 6))];
    const head = sides.length > 1 ? font * 2 : 0, gap = sides.length > 1 ? font : 0;
    const canvas = element("canvas");
    canvas.width = sides.length * image.width + (sides.length - 1) * gap;
    canvas.height = head + image.height;
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#ffffff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    sides.forEach((side, k) => {
      pen.save();
      pen.translate(k * (image.width + gap), 0);
      if (head) {
        pen.fillStyle = "#000000";
        pen.font = `600 ${font}px ${getComputedStyle(this.root).fontFamily}`;
        pen.fillText(`${side.label}: ${count(side.chosen.length, "box", "boxes")}`, 0, font * 1.35);
      }
      pen.translate(0, head);
      pen.beginPath();
      pen.rect(0, 0, image.width, image.height);
      pen.clip();
      const window = [image.width, image.height];
      drawScene(pen, this.scene(k, { view: { scale, x: 0, y: 0 }, window, density: 1, line, font, selected: null }));
      pen.restore();
    });
    const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
    this.download(blob, `${this.stem()}_detections.png`);
  }

  saveJson() {
    const names = this.model.get("names"), { about, sides } = this.loaded, state = this.state();
    const hidden = new Set(state.hidden);
    const settings = {
      min_score: state.minScore, max_iou: state.maxIou, max_detections: state.maxDetections, agnostic: state.agnostic,
      classes: hidden.size ? names.map((_, label) => label).filter((label) => !hidden.has(label)) : null,
    };
    const images = sides.map((side) => record(about, side, side.shown, names));
    this.download(new Blob([JSON.stringify({ settings, images }, null, 1)], { type: "application/json" }), `${this.stem()}_detections.json`);
  }

  download(blob, name) {
    const address = URL.createObjectURL(blob);
    const link = element("a", { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    this.say(`Saved ${name}`);
    this.save();
  }
}

/** The kernel's bytes as numbers; copied where they do not start at a multiple of four. */
function rowsOf(bytes) {
  const start = bytes.byteOffset ?? 0, buffer = bytes.buffer ?? bytes;
  return new Float32Array(buffer.slice(start, start + bytes.byteLength));
}

function tally(rows, classes) {
  const counts = new Array(classes).fill(0);
  for (let p = 5; p < rows.length; p += COLUMNS) counts[rows[p]]++;
  return counts;
}

function render({ model, el }) {
  const view = new CanvasView(model, el);
  return () => view.close();
}

export default { render };
