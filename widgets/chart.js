// Live curves and strips. The kernel sends what is new; what is drawn, hidden and pointed at is decided here.
//
// The state lies in the model's trait `points`: all views of a model share that one object. A delta changes it in place,
// once, whoever hears it first; a delta that does not fit (one before it was lost) makes the page ask for the whole.
// The axes are those of widgets/chart_svg.py, which the tests hold against these.

const FACTORS = [1, 2, 5];

// ------------------------------------------------------------------------------------------------- axes

/** The smallest of 1, 2, 5 times a power of ten that cuts `span` into at most `count` pieces. */
export function niceStep(span, count) {
  const rough = span / count, power = 10 ** Math.floor(Math.log10(rough));
  return [...FACTORS, 10].map((factor) => factor * power).find((step) => step >= rough * (1 - 1e-9));
}

/** The multiples of a nice step, or of `step`, from low to high. */
export function ticks(low, high, count, step = niceStep(high - low, count)) {
  const first = Math.ceil(low / step - 1e-6), last = Math.floor(high / step + 1e-6);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => (first + k) * step);
}

/** Ticks of what is counted, steps or epochs: whole numbers, unless less than one is shown. */
export function wholeTicks(low, high, count) {
  const step = niceStep(high - low, count);
  return ticks(low, high, count, high - low < 1 ? step : Math.max(1, step));
}

/** The ends of an axis for values from low to high: a little air, ends that seldom move, zero where it is near. */
export function axisRange(low, high, minimum = null, maximum = null, count = 4) {
  if (minimum !== null) low = Math.min(low, minimum);
  if (maximum !== null) high = Math.max(high, maximum);
  if (low === high) {
    const half = Math.abs(low) * 0.1 || 1;
    return low === minimum ? [low, low + 2 * half] : [low - half, low + half];
  }
  const snap = niceStep(high - low, count) / 2, air = 0.04 * (high - low);
  let start = Math.floor((low - air) / snap) * snap;
  const end = Math.ceil((high + air) / snap) * snap;
  if (low >= 0 && (start < 0 || low <= 0.3 * high)) start = 0;
  return [low === minimum ? low : start, high === maximum ? high : end];
}

const atRung = (number) => FACTORS[((number % 3) + 3) % 3] * 10 ** Math.floor(number / 3);

function rung(value, up) {
  const power = Math.floor(Math.log10(value)), rungs = Array.from({ length: 6 }, (_, k) => 3 * power + k - 1);
  return up ? rungs.find((k) => atRung(k) >= value * (1 - 1e-6)) : rungs.findLast((k) => atRung(k) <= value * (1 + 1e-6));
}

/** The ends of a logarithmic axis for positive values from low to high, each 1, 2 or 5 times a power of ten. */
export function logRange(low, high) {
  const [start, end] = [rung(low, false), rung(high, true)];
  return start === end ? [atRung(start - 1), atRung(end + 1)] : [atRung(start), atRung(end)];
}

/** 1, 2 and 5 times the powers of ten where there is room for them, else powers of ten alone. */
export function logTicks(low, high, count) {
  const [start, end] = [rung(low, true), rung(high, false)];
  if (end - start < count + 2) return Array.from({ length: Math.max(0, end - start + 1) }, (_, k) => atRung(start + k));
  const first = Math.ceil(start / 3), last = Math.floor(end / 3), stride = Math.ceil((last - first + 1) / (count + 1));
  return Array.from({ length: Math.floor((last - first) / stride) + 1 }, (_, k) => 10 ** (first + k * stride));
}

/** `fresh`, or the range that was shown before where the values still fill at least 60 % of it: an axis seldom moves. */
export function settled(fresh, before, log = false) {
  if (!before || fresh[0] < before[0] || fresh[1] > before[1]) return fresh;
  const span = ([low, high]) => (log ? Math.log(high / low) : high - low);
  return span(fresh) >= 0.6 * span(before) ? before : fresh;
}

/** A function from values to places: low is at start, high at end. Values that a logarithmic axis has not give NaN. */
export function scale([low, high], start, end, log = false) {
  const level = log ? (v) => (v > 0 ? Math.log10(v) : NaN) : (v) => v;
  const [from, to] = [level(low), level(high)], slope = (end - start) / (to - from);
  return (value) => start + (level(value) - from) * slope;
}

/** A number for people: four digits that count, whole numbers whole, thousands apart, a dash for none. */
export function formatted(value, unit = "", digits = 4) {
  if (!Number.isFinite(value)) return "\u2013";
  const size = Math.abs(value), tidy = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  const apart = (text) => text.replace(/^(-?\d+)/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
  let text = "0";
  if (Number.isInteger(value) && size < 1e9 && size) text = apart(value.toFixed(0));
  else if (size && (size < 1e-3 || size >= 1e6)) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    text = `${tidy(mantissa)}e${Number(exponent)}`;
  } else if (size) text = tidy(apart(value.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(size))))));
  return text.replaceAll("-", "\u2212") + (unit ? ` ${unit}` : "");
}

// ------------------------------------------------------------------------------------------------- points

/** Places of a line in runs without a gap: [[x, y, x, y, ...], ...]. A run of one point is a dot. */
export function runs(x, y, placeX, placeY, from = 0) {
  const found = [];
  let run = null;
  for (let i = from; i < x.length; i++) {
    const at = placeY(y[i]);
    if (!Number.isFinite(at)) run = null;
    else {
      if (!run) found.push((run = []));
      run.push(placeX(x[i]), at);
    }
  }
  return found;
}

/** The index of the first of rising xs that is not below the target: xs.length if there is none. */
export function firstFrom(xs, target) {
  let [low, high] = [0, xs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < target) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The index of that of rising xs which is nearest to the target, the first of equal ones; -1 if there is none. */
export function nearest(xs, target) {
  const after = firstFrom(xs, target);
  if (after === xs.length) return xs.length ? firstFrom(xs, xs[after - 1]) : -1;
  if (after === 0) return 0;
  return target - xs[after - 1] <= xs[after] - target ? firstFrom(xs, xs[after - 1]) : after;
}

/** Where `steps` from an index lead: over as many points, but at least over as many pixels, or dense ones take for ever. */
export function moved(xs, index, steps, pixel) {
  if (!Number.isFinite(steps)) return steps < 0 ? 0 : xs.length - 1;
  const target = xs[index] + steps * pixel;
  return steps > 0 ? Math.max(index + steps, firstFrom(xs, target)) : Math.min(index + steps, firstFrom(xs, target));
}

/** All xs of several series, rising, each once. */
export function merged(all) {
  return [...new Set(all.flatMap((xs) => Array.from(xs)))].sort((a, b) => a - b);
}

/** Lowest and highest of the values that can be drawn, and how many a logarithmic axis leaves out. */
export function extremes(arrays, log = false) {
  let [low, high, left] = [Infinity, -Infinity, 0];
  for (const values of arrays) {
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      if (log && value <= 0) left++;
      else [low, high] = [Math.min(low, value), Math.max(high, value)];
    }
  }
  return { low, high, left };
}

const decoded = new WeakMap(); // the kernel's bytes as numbers, kept as long as the bytes

/** Bytes as numbers; copied where they do not start at a multiple of their size. */
export function numbers(bytes, Kind) {
  if (!bytes) return null;
  if (!decoded.has(bytes)) decoded.set(bytes, new Kind(own(bytes).buffer));
  return decoded.get(bytes);
}

/** A copy of bytes alone: they come as a part of a whole message, which would stay in memory with them. */
function own(bytes) {
  const start = bytes.byteOffset ?? 0, buffer = bytes.buffer ?? bytes;
  return new DataView(buffer.slice(start, start + bytes.byteLength));
}

/** The last `size` items of `old` and `fresh` together. */
function joined(old, fresh, Kind, size) {
  const [a, b] = [numbers(old, Kind), numbers(fresh, Kind)], whole = new Kind(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return new DataView(whole.slice(-size).buffer);
}

/**
 * Brings `points` ({revision, plots}) to the state after a delta, in place. False: the delta does not follow it.
 * A delta that is in already is none to worry about: several views hear the same one.
 */
export function apply(points, delta, buffers, limits) {
  if (delta.revision <= points.revision) return true;
  if (delta.from !== points.revision) return false;
  let at = 0;
  for (const { key, series, add, arrays, total } of delta.changes) {
    const [x, y, raw] = buffers.slice(at, (at += arrays));
    const held = points.plots[key].series, old = held[series];
    held[series] = { x: own(x), y: own(y), ...(raw && { raw: own(raw) }), total };
    if (!add || !old) continue;
    held[series].x = joined(old.x, x, Float64Array, limits[key]);
    held[series].y = joined(old.y, y, Float32Array, limits[key]);
    if (raw) held[series].raw = joined(old.raw, raw, Float32Array, limits[key]);
  }
  for (const [key, words] of Object.entries(delta.words)) Object.assign(points.plots[key], words);
  points.revision = delta.revision;
  return true;
}

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

/** A piece of line as the plot draws it: colour and dash. */
function sample({ colour, dash }) {
  const box = element("span", { "aria-hidden": "true" });
  box.innerHTML = '<svg viewBox="0 0 24 8"><line x1="0" y1="4" x2="24" y2="4" stroke-width="2.5"></line></svg>';
  box.querySelector("line").setAttribute("stroke", colour);
  box.querySelector("line").setAttribute("stroke-dasharray", dash.join(" "));
  return box;
}

const LINE = 1.75, RAW = 0.33, FONT = 11;

// ------------------------------------------------------------------------------------------------- one plot

class PlotView {
  constructor(chart, about) {
    Object.assign(this, { chart, about, key: about.key, strip: about.kind === "strip", range: null, across: null });
    this.build();
  }

  build() {
    const { about, chart } = this;
    this.logButton = element("button", { type: "button", class: "yk-button", title: "Logarithmic axis" }, "log");
    chart.on(this.logButton, "click", () => chart.toggleLog(this.key));
    const unit = about.unit && element("span", { class: "yk-plot-unit" }, ` ${about.unit}`);
    const head = element("div", { class: "yk-plot-head" },
      element("span", { class: "yk-plot-title" }, about.title, unit || null), this.strip ? null : this.logButton);
    this.readout = element("div", { class: "yk-plot-readout" });
    this.canvas = element("canvas", { role: "application", "aria-roledescription": "plot", tabindex: "0" });
    this.canvas.style.height = `${about.height}px`;
    this.words = element("div", { class: "yk-plot-words", hidden: true });
    this.area = element("div", { class: "yk-plot-area" }, this.canvas, this.words);
    this.now = element("div", { class: "yk-plot-now" });
    this.hint = element("div", { class: "yk-plot-hint", hidden: true });
    this.chips = about.series.length < 2 ? [] : about.series.map((series) => this.chip(series));
    this.root = element("figure", { class: "yk-plot", "data-key": this.key, "aria-label": about.title },
      head, this.readout,
      element("div", { class: "yk-plot-body" }, this.area, this.strip ? this.now : null),
      this.hint,
      this.chips.length ? element("div", { class: "yk-plot-legend", role: "group", "aria-label": `${about.title}: series` }, ...this.chips) : null);
    this.listen();
  }

  chip(series) {
    const chip = element("button", { type: "button", class: "yk-chip", "data-series": series.name },
      sample(series), element("span", { class: "yk-chip-name" }, series.name));
    this.chart.on(chip, "click", () => this.chart.toggleSeries(this.key, series.name));
    return chip;
  }

  listen() {
    const { canvas, chart } = this;
    chart.on(canvas, "pointermove pointerdown", (event) => {
      if (!this.across) return;
      const x = event.clientX - canvas.getBoundingClientRect().left;
      const { range: [low, high], left, right } = this.across;
      chart.point(this, this.nearestX(low + ((x - left) / (right - left)) * (high - low)));
    });
    chart.on(canvas, "pointerleave", () => chart.focused() !== canvas && chart.point(this, null));
    chart.on(canvas, "blur", () => chart.point(this, null));
    chart.on(canvas, "keydown", (event) => this.press(event));
  }

  press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    if (event.key !== "Escape" && !(event.key in steps)) return;
    event.preventDefault();
    if (event.key === "Escape") return this.chart.point(this, null);
    const xs = this.xs(), cursor = this.cursor(), last = xs.length - 1;
    if (last < 0 || !this.across) return;
    const start = cursor === null ? last : nearest(xs, cursor), step = steps[event.key];
    const wanted = cursor === null && step !== -Infinity ? last : moved(xs, start, step, this.pixel()); // first the newest
    this.chart.point(this, xs[Math.min(Math.max(wanted, 0), last)]);
    this.chart.say(() => this.sentence());
  }

  /** How much of x one pixel shows. */
  pixel() {
    const { range: [low, high], left, right } = this.across;
    return (high - low) / Math.max(1, right - left);
  }

  // ---- what there is

  state() {
    return this.chart.points().plots?.[this.key] ?? { series: {}, marks: [], note: "" };
  }

  log() {
    return !this.strip && this.chart.model.get("log_axes").includes(this.key);
  }

  hides(name) {
    return (this.chart.model.get("hidden")[this.key] ?? []).includes(name);
  }

  /** The series with points, those hidden left out. */
  lines() {
    const { series } = this.state();
    return this.about.series.filter(({ name }) => series[name] && !this.hides(name)).map((about) => {
      const { x, y, raw, total } = series[about.name];
      return { ...about, x: numbers(x, Float64Array), y: numbers(y, Float32Array), raw: numbers(raw, Float32Array), total };
    }).filter((line) => line.x.length);
  }

  /** Where the cursor may stand: every x on the plot. */
  xs() {
    const from = this.strip && this.across ? this.across.range[0] : -Infinity;
    return merged(this.lines().map((line) => line.x.subarray(firstFrom(line.x, from))));
  }

  nearestX(x) {
    const xs = this.xs(), index = nearest(xs, x);
    return index < 0 ? null : xs[index];
  }

  cursor() {
    const cursor = this.chart.cursor;
    if (!cursor || cursor.kind !== this.about.kind || cursor.x_name !== this.about.x_name) return null;
    return this.across && cursor.x < this.across.range[0] ? null : cursor.x;
  }

  // ---- words

  place(x) {
    if (!this.strip) return `${this.about.x_name} ${formatted(x)}`;
    const ago = this.chart.newest() - x;
    return ago < 0.05 ? "now" : `${ago.toFixed(1)} s ago`;
  }

  /** Where the cursor is and what each series has there; without a cursor, the newest. */
  sentence(cursor = this.cursor()) {
    const lines = this.lines(), { unit } = this.about;
    if (!lines.length) return "";
    const x = cursor ?? Math.max(...lines.map((line) => line.x.at(-1)));
    const values = lines.map((line) => {
      const index = cursor === null ? line.x.length - 1 : nearest(line.x, cursor);
      const raw = cursor !== null && line.raw && Number.isFinite(line.raw[index]) ? ` (raw ${formatted(line.raw[index], unit)})` : "";
      const elsewhere = this.strip || this.near(line.x[index], x) ? "" : ` at ${formatted(line.x[index])}`;
      const name = this.about.series.length > 1 ? `${line.name} ` : "";
      return `${name}${formatted(line.y[index], unit)}${raw}${elsewhere}`;
    });
    return [this.place(x), ...values].join(" · ");
  }

  /** Whether two xs are the same to the eye. The points of a thinned series stand a little elsewhere than its neighbour's. */
  near(a, b) {
    return a === b || (this.across !== null && Math.abs(a - b) <= 0.005 * (this.across.range[1] - this.across.range[0]));
  }

  /** What the line below the title says: of a strip nobody points at, between what its values were. */
  summary(lines, low, high) {
    if (!this.strip || this.cursor() !== null || lines.length > 1) return this.sentence();
    const [from, to] = [formatted(low, "", 3), formatted(high, this.about.unit, 3)];
    const seconds = Math.min(this.about.window_s, lines[0].x.at(-1) - lines[0].x[0]);
    return `last ${Math.ceil(seconds)} s: ${low === high ? to : `${from} to ${to}`}`;
  }

  /** Words that stand where the curves would. */
  instead(lines, left) {
    const { note, series } = this.state();
    if (note) return note;
    const any = Object.values(series).some(({ x }) => x.byteLength);
    if (!any) return "no values yet";
    if (!lines.length) return "all series are hidden";
    return left ? "no values above 0 for a logarithmic axis" : "no values yet";
  }

  writeNow(lines) {
    this.now.hidden = !lines.length;
    if (!lines.length) return;
    const text = formatted(lines[0].y.at(-1), "", 3);
    const key = `${text} ${this.about.unit}`;
    if (this.now.dataset.value === key) return;
    this.now.dataset.value = key;
    this.now.replaceChildren(element("span", { class: "yk-plot-value" }, text, element("small", {}, this.about.unit && ` ${this.about.unit}`)));
  }

  writeHint(lines, left) {
    const thin = lines.find((line) => line.total > line.x.length);
    write(this.hint, [
      left ? `${left.toLocaleString("en")} ${left === 1 ? "value is" : "values are"} 0 or below: not on a log axis` : "",
      thin && !this.strip ? `drawn: ${thin.x.length.toLocaleString("en")} of ${thin.total.toLocaleString("en")} points` : "",
    ].filter(Boolean).join(" · "));
    this.hint.hidden = !this.hint.textContent;
  }

  // ---- drawing

  draw(look) {
    const log = this.log(), all = this.lines();
    const from = this.strip ? this.chart.newest() - this.about.window_s : -Infinity;
    const lines = all.filter((line) => line.x.at(-1) >= from);
    const seen = lines.flatMap((line) => [line.y, line.raw].filter(Boolean).map((v) => v.subarray(firstFrom(line.x, from))));
    const { low, high, left } = extremes(seen, log);
    const words = low > high || this.state().note ? this.instead(all, left) : "";
    write(this.words, words);
    this.words.hidden = !words;
    this.logButton.setAttribute("aria-pressed", log);
    for (const chip of this.chips) {
      const off = this.hides(chip.dataset.series);
      chip.setAttribute("aria-pressed", !off);
      chip.title = off ? "Hidden. Click to show" : "Click to hide";
    }
    this.range = words ? null : this.rangeFor(low, high, log);
    this.across = words ? null : { range: this.rangeAcross(lines, from) };
    this.writeHint(words ? [] : lines, left);
    if (this.strip) this.writeNow(words ? [] : lines);
    this.paint(lines, look, log);
    write(this.readout, words ? "" : this.summary(lines, low, high));
    this.keepRoom(words, look);
    this.canvas.setAttribute("aria-label", `${this.about.title}. ${words || this.sentence()}. Left and right arrow keys move the cursor.`);
    this.root.dataset.shown = lines.map((line) => line.name).join(" ");
    this.root.dataset.points = lines.map((line) => line.x.length).join(" ");
    this.root.dataset.range = this.range ? this.range.join(" ") : "";
  }

  /** Room for the longest readout, so that the plot below does not jump when the cursor comes. */
  keepRoom(words, look) {
    const width = this.area.parentElement.clientWidth, key = `${width} ${this.root.dataset.shown}`;
    if (this.roomKey !== key) [this.roomKey, this.room] = [key, 1];
    if (words || !this.across) return;
    const pen = this.canvas.getContext("2d");
    pen.font = `12px ${look.family}`;
    const text = this.sentence(this.across.range[1]);
    this.room = Math.max(this.room, Math.ceil((pen.measureText(text).width * 1.12) / width));
    this.readout.style.minHeight = `${17 * this.room}px`;
  }

  rangeFor(low, high, log) {
    const { minimum, maximum } = this.about;
    const before = this.range && this.wasLog === log ? this.range : null;
    this.wasLog = log;
    return log ? settled(logRange(low, high), before, true) : settled(axisRange(low, high, minimum, maximum), before);
  }

  rangeAcross(lines, from) {
    const newest = this.strip ? this.chart.newest() : Math.max(...lines.map((line) => line.x.at(-1)));
    const oldest = this.strip ? from : Math.min(...lines.map((line) => line.x[0]));
    return oldest < newest ? [oldest, newest] : [oldest - 0.5, newest + 0.5];
  }

  paint(lines, look, log) {
    const width = this.area.clientWidth, height = this.about.height, density = devicePixelRatio;
    const [w, h] = [Math.round(width * density), Math.round(height * density)];
    if (this.canvas.width !== w || this.canvas.height !== h) [this.canvas.width, this.canvas.height] = [w, h];
    const pen = this.canvas.getContext("2d");
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.clearRect(0, 0, width, height);
    if (!this.range) return;
    pen.font = `${FONT}px ${look.family}`;
    const count = Math.max(2, Math.min(5, Math.floor(height / 36)));
    const rows = log ? logTicks(...this.range, count) : ticks(...this.range, count);
    const names = rows.map((value) => formatted(value));
    const left = Math.ceil(Math.max(18, ...names.map((name) => pen.measureText(name).width))) + 8;
    const [right, top, bottom] = [width - 8, 8, height - 18];
    Object.assign(this.across, { left, right });
    const placeX = scale(this.across.range, left, right), placeY = scale(this.range, bottom, top, log);
    this.paintAxes(pen, look, rows.map((value, k) => [placeY(value), names[k]]), placeX, { left, right, top, bottom, width });
    pen.save();
    pen.beginPath();
    pen.rect(left - 3, 0, right - left + 6, bottom + 3);
    pen.clip();
    this.paintMarks(pen, look, placeX, { left, right, top, bottom });
    lines.forEach((line, k) => this.paintLine(pen, line, placeX, placeY, this.strip && k === 0 ? bottom : null));
    pen.restore();
    this.paintCursor(pen, look, lines, placeX, placeY, { top, bottom });
  }

  paintAxes(pen, look, rows, placeX, { left, right, bottom, width }) {
    pen.lineWidth = 1;
    pen.strokeStyle = look.grid;
    pen.fillStyle = look.muted;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    pen.beginPath();
    for (const [y, name] of rows) {
      pen.moveTo(left, Math.round(y) + 0.5);
      pen.lineTo(right, Math.round(y) + 0.5);
      pen.fillText(name, left - 6, y);
    }
    pen.stroke();
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    const [low, high] = this.across.range;
    if (this.strip) {
      for (const ago of ticks(0, high - low, Math.max(1, Math.min(4, Math.floor(width / 90))))) {
        const text = ago ? `\u2212${formatted(ago, "s")}` : "now";
        const half = pen.measureText(text).width / 2;
        pen.fillText(text, Math.min(placeX(high - ago), width - half - 1), bottom + 14);
      }
      return;
    }
    const count = Math.max(1, Math.min(6, Math.floor((right - left) / 70)));
    for (const value of wholeTicks(low, high, count)) {
      const text = formatted(value), half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(placeX(value), width - half - 1), bottom + 14);
    }
  }

  paintMarks(pen, look, placeX, { left, right, top, bottom }) {
    const taken = []; // where the words of each row end
    pen.textBaseline = "top";
    for (const [x, text] of this.state().marks) {
      const at = Math.round(placeX(x)) + 0.5;
      if (at < left - 1 || at > right + 1) continue;
      pen.strokeStyle = pen.fillStyle = look.muted;
      pen.lineWidth = 1;
      pen.setLineDash([3, 3]);
      pen.beginPath();
      pen.moveTo(at, top);
      pen.lineTo(at, bottom);
      pen.stroke();
      pen.setLineDash([]);
      const width = pen.measureText(text).width, flip = at + 4 + width > right;
      const start = flip ? at - 4 - width : at + 4;
      const free = taken.findIndex((end) => end < start);
      const row = free < 0 ? taken.length : free;
      if (row > 3) continue; // the line stays; its word finds no room
      taken[row] = start + width + 4;
      pen.textAlign = "left";
      pen.fillStyle = look.back;
      pen.fillRect(start - 2, row * 13, width + 4, 13);
      pen.fillStyle = look.text;
      pen.fillText(text, start, row * 13 + 1);
    }
  }

  paintLine(pen, { x, y, raw, colour, dash }, placeX, placeY, floor) {
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineJoin = "round";
    const from = Math.max(0, firstFrom(x, this.across.range[0]) - 1);
    const trace = (values, width, pattern) => {
      pen.lineWidth = width;
      pen.setLineDash(pattern);
      const found = runs(x, values, placeX, placeY, from);
      pen.beginPath();
      for (const run of found) {
        pen.moveTo(run[0], run[1]);
        for (let i = 2; i < run.length; i += 2) pen.lineTo(run[i], run[i + 1]);
      }
      pen.stroke();
      for (const run of found) if (run.length === 2) dot(pen, run[0], run[1], width + 1);
      return found;
    };
    if (raw) {
      pen.globalAlpha = RAW;
      trace(raw, 1, []);
      pen.globalAlpha = 1;
    }
    const found = trace(y, LINE, dash);
    pen.setLineDash([]);
    if (floor === null) return;
    pen.globalAlpha = 0.18;
    for (const run of found) {
      pen.beginPath();
      pen.moveTo(run[0], floor);
      for (let i = 0; i < run.length; i += 2) pen.lineTo(run[i], run[i + 1]);
      pen.lineTo(run.at(-2), floor);
      pen.fill();
    }
    pen.globalAlpha = 1;
  }

  paintCursor(pen, look, lines, placeX, placeY, { top, bottom }) {
    const cursor = this.cursor();
    if (cursor === null || cursor > this.across.range[1]) return;
    const at = Math.round(placeX(cursor)) + 0.5;
    pen.strokeStyle = look.text;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(at, top);
    pen.lineTo(at, bottom);
    pen.stroke();
    for (const { x, y, colour } of lines) {
      const index = nearest(x, cursor);
      if (!this.near(x[index], cursor) || !Number.isFinite(placeY(y[index]))) continue;
      pen.fillStyle = look.back;
      dot(pen, placeX(x[index]), placeY(y[index]), 5);
      pen.fillStyle = colour;
      dot(pen, placeX(x[index]), placeY(y[index]), 3.5);
    }
  }
}

function dot(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

// ------------------------------------------------------------------------------------------------- the chart

class ChartView {
  constructor(model, el) {
    this.model = model;
    this.ends = new AbortController();
    this.cursor = null; // { kind, x_name, x, owner }: one for all plots that count the same
    this.frame = this.timer = this.asked = 0;
    this.plots = [];
    this.spoken = element("div", { class: "yk-spoken", role: "status", "aria-live": "polite" });
    this.root = element("div", {
      class: "yk-chart", role: "group", "aria-label": "Charts", "data-lm-suppress-shortcuts": "true", "data-rendered": "0",
    });
    el.append(this.root);
    this.build();
    this.connect();
  }

  build() {
    this.root.style.setProperty("--yk-least", `${this.model.get("min_width")}px`);
    this.plots = this.model.get("plots").map((about) => new PlotView(this, about));
    this.root.replaceChildren(...this.plots.map((plot) => plot.root), this.spoken);
    this.refresh();
  }

  on(target, events, act, options = {}) {
    for (const event of events.split(" ")) target.addEventListener(event, act, { signal: this.ends.signal, ...options });
  }

  connect() {
    const hear = (name, act) => {
      this.model.on(name, act);
      this.ends.signal.addEventListener("abort", () => this.model.off(name, act));
    };
    for (const trait of ["points", "hidden", "log_axes"]) hear(`change:${trait}`, () => this.refresh());
    hear("msg:custom", (content, buffers) => receive(this.model, content, buffers) && this.refresh());
    this.on(this.root, "keydown keyup keypress", (event) => event.stopPropagation());
    this.on(this.root, "transitionend", (event) => event.target === this.root && this.refresh());
    this.on(document, "visibilitychange", () => this.refresh());
    this.sizes = new ResizeObserver(() => this.refresh());
    this.sizes.observe(this.root);
    for (const plot of this.plots) this.sizes.observe(plot.area);
    const watch = () => {
      const density = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
      this.on(density, "change", () => (this.refresh(), watch()), { once: true });
    };
    watch();
  }

  close() {
    this.ends.abort();
    this.sizes.disconnect();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.root.remove();
  }

  points() {
    return this.model.get("points");
  }

  /** The newest time of all strips: they end at the same moment. */
  newest() {
    const ends = this.plots.filter((plot) => plot.strip).flatMap((plot) => plot.lines().map((line) => line.x.at(-1)));
    return Math.max(...ends);
  }

  focused() {
    return this.root.getRootNode().activeElement;
  }

  point(plot, x) {
    if (x === null && this.cursor?.owner !== plot) return;
    this.cursor = x === null ? null : { kind: plot.about.kind, x_name: plot.about.x_name, x, owner: plot };
    this.refresh();
  }

  /** Speaks once the keys rest. The lines on the page are not read out: they change with every update. */
  say(words) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => write(this.spoken, words()), 400);
  }

  toggleLog(key) {
    const keys = this.model.get("log_axes");
    this.choose("log_axes", keys.includes(key) ? keys.filter((each) => each !== key) : [...keys, key]);
  }

  toggleSeries(key, name) {
    const hidden = this.model.get("hidden"), names = hidden[key] ?? [];
    this.choose("hidden", { ...hidden, [key]: names.includes(name) ? names.filter((each) => each !== name) : [...names, name] });
  }

  choose(trait, value) {
    this.model.set(trait, value);
    this.model.save_changes();
  }

  refresh() {
    if (this.frame || this.ends.signal.aborted || document.hidden) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.root.clientWidth) return; // not on the page now; the size's observer comes back
      const style = getComputedStyle(this.root);
      const look = {
        text: style.color, back: style.backgroundColor, grid: style.borderTopColor, muted: style.outlineColor, family: style.fontFamily,
      };
      for (const plot of this.plots) plot.draw(look);
      this.root.dataset.revision = this.points().revision ?? 0;
      this.root.dataset.rendered = Number(this.root.dataset.rendered) + 1;
    });
  }
}

const asking = new WeakSet(); // states for which the kernel was asked to send a newer one

/** Takes a delta from the kernel into the model; asks for the whole where one before it is missing. */
function receive(model, content, buffers) {
  if (content?.kind !== "delta") return false;
  const points = model.get("points"), limits = {};
  for (const { key, limit } of model.get("plots")) limits[key] = limit;
  if (apply(points, content, buffers, limits)) return true;
  if (!asking.has(points)) {
    asking.add(points); // the answer brings another object
    have(model);
  }
  return false;
}

/** Tells the kernel what the page has. It answers with the whole where that is not the newest. */
function have(model) {
  model.send({ kind: "have", revision: model.get("points").revision ?? -1 });
}

/** Once for a model, before any view: deltas are taken in even while nothing is on the page. */
function initialize({ model }) {
  const take = (content, buffers) => receive(model, content, buffers);
  model.on("msg:custom", take);
  have(model);
  return () => model.off("msg:custom", take);
}

function render({ model, el }) {
  const view = new ChartView(model, el);
  return () => view.close();
}

export default { initialize, render };
