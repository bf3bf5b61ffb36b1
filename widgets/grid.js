// Pages of small pictures with their boxes. The kernel is asked for a page when it is turned to, and for those beside
// it before; it sends pictures as files and boxes as Float32Arrays of rows x1, y1, x2, y2, label, kind in picture pixels.

export const COLUMNS = 6;

// ------------------------------------------------------------------------------------------------- where things are

/** How many pages hold `total` pictures. */
export const pageCount = (total, perPage) => Math.ceil(total / perPage);

/** How many pictures a page has. */
export const onPage = (page, perPage, total) => Math.max(0, Math.min(perPage, total - page * perPage));

/**
 * Where a key leads from a picture: { page, index }. Arrows go on over the ends of a page, up and down in their column.
 * null: the key leads nowhere.
 */
export function moved(key, { page, index }, columns, perPage, total) {
  const last = pageCount(total, perPage) - 1, count = (at) => onPage(at, perPage, total);
  if (last < 0) return null;
  const to = (at, place) => {
    const there = Math.min(Math.max(at, 0), last);
    return { page: there, index: Math.min(Math.max(place, 0), count(there) - 1) };
  };
  const flat = (place) => {
    const held = Math.min(Math.max(place, 0), total - 1);
    return { page: Math.floor(held / perPage), index: held % perPage };
  };
  if (key === "ArrowRight") return flat(page * perPage + index + 1);
  if (key === "ArrowLeft") return flat(page * perPage + index - 1);
  if (key === "PageDown") return page === last ? to(page, index) : to(page + 1, index);
  if (key === "PageUp") return to(page - 1, index);
  if (key === "Home") return to(0, 0);
  if (key === "End") return to(last, count(last) - 1);
  const row = Math.floor(index / columns), rows = Math.ceil(count(page) / columns);
  if (key === "ArrowDown") {
    if (row < rows - 1) return to(page, index + columns);
    return page === last ? to(page, index) : to(page + 1, index % columns);
  }
  if (key === "ArrowUp") {
    if (row > 0) return to(page, index - columns);
    if (page === 0) return to(page, index);
    const above = Math.ceil(count(page - 1) / columns) - 1;
    return to(page - 1, above * columns + (index % columns));
  }
  return null;
}

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
  const scale = Math.min(Math.max(view.scale * factor, smallest), largest), ratio = scale / view.scale;
  return held({ scale, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio }, picture, window);
}

/** Zoomed and moved so that the box takes about a third of the window, at least as near as the view was. */
export function closeUp(view, box, picture, window) {
  const size = [Math.max(1, box[2] - box[0]), Math.max(1, box[3] - box[1])];
  const wanted = Math.min(window[0] / (3 * size[0]), window[1] / (3 * size[1]));
  const whole = fit(picture, window).scale, scale = Math.min(Math.max(whole, wanted), Math.max(16, whole));
  const middle = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
  const at = { scale, x: window[0] / 2 - middle[0] * scale, y: window[1] / 2 - middle[1] * scale };
  return held(at, picture, window);
}

/** The boxes in a window: [{ left, top, right, bottom, label, kind }], at least a pixel large. */
export function placed(rows, view) {
  const boxes = [];
  for (let p = 0; p < rows.length; p += COLUMNS) {
    const [x1, y1, x2, y2, label, kind] = rows.subarray(p, p + COLUMNS);
    const left = x1 * view.scale + view.x, top = y1 * view.scale + view.y;
    boxes.push({
      left, top, label, kind,
      right: Math.max(left + 1, x2 * view.scale + view.x), bottom: Math.max(top + 1, y2 * view.scale + view.y),
    });
  }
  return boxes;
}

/** Which numbers stand at which box: box -> the numbers of its marks, counted over the marks that mean a box. */
export function numbers(marks) {
  const found = new Map();
  let next = 0;
  for (const { box } of marks) if (box >= 0) found.set(box, [...(found.get(box) ?? []), ++next]);
  return found;
}

// ------------------------------------------------------------------------------------------------- words

export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** "24 of 96 pictures", "96 pictures". */
export function counted(total, everything, noun) {
  const many = everything.toLocaleString("en"), word = everything === 1 ? noun.replace(/s$/, "") : noun;
  return total === everything ? `${many} ${word}` : `${total.toLocaleString("en")} of ${many} ${word}`;
}

/** How many boxes the labels have: not those that are dotted, which no label says. */
export function labelled(rows) {
  let found = 0;
  for (let p = 5; p < rows.length; p += COLUMNS) found += rows[p] === 0;
  return found;
}

/** A picture as a screen reader says it. */
export function spoken(tile) {
  const said = [tile.title, tile.error || count(labelled(tile.rows), "box", "boxes"), tile.about];
  const marks = tile.marks.map((mark) => `${mark.severity}: ${mark.text}`);
  if (tile.more) marks.push(`and ${tile.more} more`);
  return [...said, ...marks].filter(Boolean).join(", ");
}

const SIGNS = { error: "\u2715", warning: "!", note: "i" };
const KEYS = [
  ["← → ↑ ↓", "next picture; over the end of a page to the next page"],
  ["PageDown, PageUp", "next page, previous page"],
  ["Home, End", "first page, last page"],
  ["Enter or Space", "open the picture"],
  ["In an open picture", ""],
  ["← →", "previous, next picture"],
  ["+ − 0", "zoom in, zoom out, fit"],
  ["Shift + arrows", "move the zoomed picture"],
  ["l", "names of the boxes on or off"],
  ["Wheel, drag", "zoom (with Ctrl, or while the picture has the focus), move"],
  ["Esc", "back to the pages"],
  ["?", "this list"],
];

// ------------------------------------------------------------------------------------------------- drawing

/** Black or white, whichever is easier to read on the colour "#rrggbb". */
export function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const c = parseInt(colour.slice(at, at + 2), 16) / 255;
    return c <= 10 / 255 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

const GREY = "#9aa0a6"; // a row whose class does not exist

/** Draws the picture and its boxes. scene: image, picture, view, window, rows, marks, colours, names, line, chosen, family. */
function drawScene(pen, scene) {
  const { image, picture, view, marks, colours, line } = scene;
  pen.imageSmoothingEnabled = view.scale * (picture[0] / image.width) < 4;
  pen.imageSmoothingQuality = "high";
  pen.drawImage(image, view.x, view.y, picture[0] * view.scale, picture[1] * view.scale);
  const boxes = placed(scene.rows, view), numbered = numbers(marks);
  for (const box of boxes) drawBox(pen, box, colours[box.label] ?? GREY, line);
  const rings = new Map();
  for (const box of [...numbered.keys(), scene.chosen]) if (boxes[box]) rings.set(box, ringAround(boxes[box], line));
  for (const [box, ring] of rings) drawRing(pen, ring, line, box === scene.chosen);
  if (scene.names) drawNames(pen, boxes, rings, scene);
  for (const [box, marks] of numbered) if (rings.has(box)) drawNumbers(pen, rings.get(box), marks, scene);
}

function drawBox(pen, { left, top, right, bottom, kind }, colour, line) {
  pen.save();
  const frame = () => pen.strokeRect(left, top, right - left, bottom - top);
  pen.strokeStyle = inkOn(colour);
  pen.lineWidth = line + 1.5;
  pen.globalAlpha = 0.6;
  if (kind) pen.setLineDash([line, 2.5 * line]);
  frame();
  pen.globalAlpha = 1;
  pen.strokeStyle = colour;
  pen.lineWidth = line;
  frame();
  pen.restore();
}

/** Where the ring around a marked box runs: it shows however small the box is. */
export function ringAround(box, line) {
  const grow = Math.max(2 * line + 1, (12 - Math.min(box.right - box.left, box.bottom - box.top)) / 2);
  return { left: box.left - grow, top: box.top - grow, right: box.right + grow, bottom: box.bottom + grow };
}

/** Dashed, white on black: it shows on any picture. */
function drawRing(pen, { left, top, right, bottom }, line, chosen) {
  pen.save();
  for (const [colour, width, dash] of [["#000000", line + 2, []], ["#ffffff", line, [4, 4]]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = chosen ? width + 1 : width;
    pen.setLineDash(dash);
    pen.strokeRect(left, top, right - left, bottom - top);
  }
  pen.restore();
}

/** The numbers of the marks that mean a box, on its ring. */
function drawNumbers(pen, ring, marks, { window, family, font }) {
  const text = marks.length > 3 ? `${marks[0]}\u2026${marks.at(-1)}` : marks.join(" ");
  pen.save();
  pen.font = `700 ${font}px ${family}`;
  const width = Math.ceil(pen.measureText(text).width) + 8, height = font + 6;
  const x = Math.min(Math.max(1, ring.right + 3 - width), window[0] - width - 1);
  const y = Math.min(Math.max(1, ring.top - height / 2), window[1] - height - 1);
  pen.fillStyle = "#ffffff";
  pen.strokeStyle = "#000000";
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.roundRect(x, y, width, height, 4);
  pen.fill();
  pen.stroke();
  pen.fillStyle = "#000000";
  pen.textBaseline = "middle";
  pen.fillText(text, x + 4, y + height / 2 + 0.5);
  pen.restore();
}

/** Each name where it hides little of those before it: above its box, else below, else inside; else it is left out. */
function drawNames(pen, boxes, rings, { names, colours, window, family, font }) {
  pen.save();
  pen.font = `600 ${font}px ${family}`;
  pen.textBaseline = "middle";
  const height = Math.round(font * 1.5), tags = [];
  const ringed = boxes.map((box, at) => ({ ...box, ...rings.get(at), first: rings.has(at) }));
  const ordered = ringed.sort((a, b) => b.first - a.first);
  for (const box of ordered) {
    if (box.right < 0 || box.bottom < 0 || box.left > window[0] || box.top > window[1]) continue;
    const text = names[box.label] ?? (box.label < 0 ? "no class" : `class ${box.label}`);
    const width = Math.ceil(pen.measureText(text).width) + 8;
    for (const wish of [box.top - height - 2, box.bottom + 2, box.top + 2]) {
      const tag = {
        x: Math.round(Math.min(Math.max(0, box.left - 1), window[0] - width)),
        y: Math.round(Math.min(Math.max(0, wish), window[1] - height)), width, height,
      };
      if (tags.some((other) => overlap(tag, other) > 0.2 * width * height)) continue;
      tags.push(tag);
      pen.fillStyle = colours[box.label] ?? GREY;
      pen.fillRect(tag.x, tag.y, width, height);
      pen.fillStyle = inkOn(colours[box.label] ?? GREY);
      pen.fillText(text, tag.x + 4, tag.y + height / 2 + 0.5);
      break;
    }
  }
  pen.restore();
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
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const write = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/** The kernel's bytes as numbers; copied, as they need not start at a multiple of four. */
function rowsOf(bytes) {
  const start = bytes.byteOffset ?? 0, buffer = bytes.buffer ?? bytes;
  return new Float32Array(buffer.slice(start, start + bytes.byteLength));
}

function badge(mark, number) {
  return element("i", { class: `yk-badge yk-${mark.severity}`, title: mark.severity }, number ? String(number) : SIGNS[mark.severity] ?? "i");
}

/** [mark, its number or 0], numbered as in the picture. */
function numberedMarks(marks) {
  let next = 0;
  return marks.map((mark) => [mark, mark.box >= 0 ? ++next : 0]);
}

let views = 0; // makes ids unique when one page shows several views

class GridView {
  constructor(model, el) {
    this.model = model;
    this.id = `yk-grid-${++views}`;
    this.pages = new Map(); // page -> tiles that have come, of the revision shown
    this.larges = new Map(); // place -> picture seen large
    this.cells = [];
    this.index = 0; // the picture on the page that has, or would have, the focus
    this.open = -1; // the place of the picture seen large
    this.view = this.seen = null;
    this.chosen = -1;
    this.names = true;
    this.asked = "";
    this.timers = new Map();
    this.ends = new AbortController();
    this.build();
    el.append(this.root);
    this.connect();
    this.restart();
  }

  get(trait) {
    return this.model.get(trait);
  }

  // ---- the page

  build() {
    const button = (text, action, title) => {
      const made = element("button", { type: "button", class: "yk-button", title }, text);
      this.on(made, "click", () => made.getAttribute("aria-disabled") !== "true" && action());
      return made;
    };
    const pager = () => {
      const previous = button("Previous", () => this.turn("PageUp"), "Previous page (PageUp)");
      const next = button("Next", () => this.turn("PageDown"), "Next page (PageDown)");
      const where = element("span", { class: "yk-where" });
      return { previous, next, where, root: element("div", { class: "yk-group", role: "group", "aria-label": "Pages" }, previous, where, next) };
    };
    this.pagers = [pager(), pager()];
    this.total = element("strong", { class: "yk-total", role: "status", "aria-live": "polite" });
    this.chips = element("div", { class: "yk-chips", role: "group", "aria-label": "Filters" });
    const keys = button("Keys", () => this.help(true), "Keyboard and mouse (?)");
    this.bar = element("div", { class: "yk-bar" }, this.total, this.chips, element("span", { class: "yk-space" }), this.pagers[0].root, keys);
    this.list = element("div", { class: "yk-tiles", role: "listbox", "aria-label": "Pictures", "aria-orientation": "horizontal" });
    this.message = element("div", { class: "yk-message", role: "note", hidden: true });
    this.foot = element("div", { class: "yk-bar yk-foot" }, this.pagers[1].root);
    this.large = this.buildLarge(button);
    this.dialog = this.buildHelp(button);
    this.voice = element("div", { class: "yk-spoken", role: "status", "aria-live": "polite" });
    this.root = element("div", {
      class: "yk-grid", role: "group", "aria-label": "Pictures", "data-lm-suppress-shortcuts": "true", "data-rendered": "0",
      "data-page": "-1", "data-state": "empty",
    }, this.bar, this.message, this.list, this.foot, this.large, this.voice, this.dialog);
  }

  buildLarge(button) {
    this.back = button("Back", () => this.close(), "Back to the pages (Esc)");
    this.before = button("Previous", () => this.step(-1), "Previous picture (←)");
    this.after = button("Next", () => this.step(1), "Next picture (→)");
    this.labels = button("Names", () => this.toggleNames(), "Names on the boxes (l)");
    this.largeTitle = element("strong", { class: "yk-title" });
    this.largeWhere = element("span", { class: "yk-where" });
    this.canvas = element("canvas", { class: "yk-picture", role: "application", tabindex: "0" });
    this.largeWords = element("div", { class: "yk-message", role: "alert", hidden: true });
    this.facts = element("div", { class: "yk-facts" });
    this.findings = element("ol", { class: "yk-findings", "aria-label": "Findings" });
    this.listen();
    return element("div", { class: "yk-large", role: "region", "aria-label": "Picture", hidden: true },
      element("div", { class: "yk-bar" }, this.back, this.largeTitle, element("span", { class: "yk-space" }),
        element("div", { class: "yk-group" }, this.before, this.largeWhere, this.after),
        element("div", { class: "yk-group", role: "group", "aria-label": "Zoom" },
          button("Zoom out", () => this.zoom(1 / 1.5), "Zoom out (−)"), button("Zoom in", () => this.zoom(1.5), "Zoom in (+)"),
          button("Fit", () => this.fitView(), "Show the whole picture (0)")),
        this.labels),
      element("div", { class: "yk-body" },
        element("div", { class: "yk-stage" }, this.canvas, this.largeWords),
        element("div", { class: "yk-side" }, this.facts, this.findings)));
  }

  buildHelp(button) {
    const rows = KEYS.map(([keys, meaning]) => element("tr", {},
      element("th", { scope: "row", colspan: meaning ? null : "2" }, keys), meaning ? element("td", {}, meaning) : null));
    this.closeHelp = button("Close", () => this.help(false));
    const card = element("div", { class: "yk-card", role: "dialog", "aria-modal": "true", "aria-labelledby": `${this.id}-keys` },
      element("div", { class: "yk-heading" }, element("h4", { id: `${this.id}-keys` }, "Keyboard and mouse"), this.closeHelp),
      element("table", {}, element("tbody", {}, ...rows)));
    const dialog = element("div", { class: "yk-help", hidden: true }, card);
    this.on(dialog, "click", (event) => event.target === dialog && this.help(false));
    return dialog;
  }

  on(target, events, act, options = {}) {
    for (const event of events.split(" ")) target.addEventListener(event, act, { signal: this.ends.signal, ...options });
  }

  connect() {
    const hear = (name, act) => {
      this.model.on(name, act);
      this.ends.signal.addEventListener("abort", () => this.model.off(name, act));
    };
    hear("change:revision", () => this.restart());
    hear("change:page", () => this.showPage());
    hear("change:chips", () => this.writeBar());
    hear("msg:custom", (content, buffers) => this.receive(content, buffers));
    this.on(this.root, "keydown", (event) => this.key(event));
    this.on(this.root, "keyup keypress", (event) => event.stopPropagation());
    this.sizes = new ResizeObserver(() => this.refresh());
    this.sizes.observe(this.root);
    const watch = () => {
      const density = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
      this.on(density, "change", () => (this.refresh(), watch()), { once: true });
    };
    watch();
  }

  end() {
    this.ended = true;
    this.ends.abort();
    this.sizes.disconnect();
    cancelAnimationFrame(this.frame);
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.forget();
    this.root.remove();
  }

  /** Other pictures are shown from now on. */
  restart() {
    this.forget();
    this.index = 0;
    const focus = this.list.contains(this.focused()) || this.large.contains(this.focused());
    this.showGrid();
    this.showPage();
    if (focus) this.focusCell();
  }

  forget() {
    for (const tiles of this.pages.values()) for (const tile of tiles) tile?.image?.close();
    for (const tile of this.larges.values()) tile.image?.close();
    this.pages.clear();
    this.larges.clear();
    this.asked = "";
  }

  focused() {
    return this.root.getRootNode().activeElement;
  }

  page() {
    return Math.min(this.get("page"), Math.max(0, pageCount(this.get("total"), this.get("per_page")) - 1));
  }

  place() {
    return this.page() * this.get("per_page") + this.index;
  }

  later(name, delay, act) {
    clearTimeout(this.timers.get(name));
    this.timers.set(name, setTimeout(act, delay));
  }

  say(text) {
    this.later("say", 300, () => write(this.voice, text));
  }

  // ---- asking and receiving

  /** Whether all tiles of a page have come. */
  complete(page) {
    const tiles = this.pages.get(page), wanted = onPage(page, this.get("per_page"), this.get("total"));
    return Boolean(tiles) && Array.from({ length: wanted }, (_, k) => tiles[k]).every(Boolean);
  }

  /** Tells the kernel what is needed: the picture seen large, this page, and those beside it. Each wish is told once. */
  ask() {
    const page = this.page(), total = this.get("total"), perPage = this.get("per_page");
    const pages = [page, page + 1, page - 1].filter((at) => at >= 0 && onPage(at, perPage, total) && !this.complete(at));
    const large = this.open >= 0 && !this.larges.has(this.open) ? [this.open] : [];
    const wish = JSON.stringify([this.get("revision"), pages, large]);
    if (wish === this.asked || !(pages.length + large.length)) return;
    this.asked = wish;
    this.model.send({ kind: "want", revision: this.get("revision"), pages, large });
  }

  async receive(content, buffers) {
    if (content?.revision !== this.get("revision")) return;
    const revision = content.revision;
    if (content.kind === "large") {
      const tile = await opened(content.tile, buffers[0], buffers[1]);
      if (this.ended || revision !== this.get("revision")) return tile.image?.close();
      this.larges.set(content.place, tile);
      for (const place of this.larges.keys()) {
        if (this.larges.size > 6 && place !== this.open) this.larges.delete(place);
      }
      if (content.place === this.open) this.showLarge();
      return;
    }
    if (content.kind !== "tiles") return;
    const made = await Promise.all(content.tiles.map((tile, k) => opened(tile, buffers[2 * k], buffers[2 * k + 1])));
    if (this.ended || revision !== this.get("revision")) return made.forEach((tile) => tile.image?.close());
    const tiles = this.pages.get(content.page) ?? [];
    made.forEach((tile, k) => (tiles[content.first + k] = tile));
    this.pages.delete(content.page);
    this.pages.set(content.page, tiles);
    for (const page of this.pages.keys()) {
      if (this.pages.size > 8 && page !== this.page()) this.pages.delete(page);
    }
    if (content.page === this.page()) this.fill();
    if (this.complete(this.page())) clearTimeout(this.timers.get("wait"));
  }

  // ---- pages

  /** Lays out the cells of the page, filled where the pictures are here, and asks for those that are not. */
  showPage() {
    const page = this.page(), perPage = this.get("per_page"), total = this.get("total");
    const cells = onPage(page, perPage, total), focus = this.list.contains(this.focused());
    this.index = Math.min(this.index, Math.max(0, cells - 1));
    this.root.style.setProperty("--yk-aspect", this.get("aspect"));
    while (this.cells.length > cells) this.cells.pop().root.remove();
    while (this.cells.length < cells) this.addCell();
    this.cells.forEach((cell, k) => {
      cell.tile = null;
      cell.root.setAttribute("aria-posinset", page * perPage + k + 1);
      cell.root.setAttribute("aria-setsize", total);
    });
    this.writeBar();
    this.message.hidden = total > 0;
    write(this.message, total ? "" : this.get("words"));
    this.root.dataset.page = page;
    this.fill();
    this.rove();
    if (focus) this.focusCell();
    this.ask();
  }

  addCell() {
    const at = this.cells.length;
    const canvas = element("canvas", { "aria-hidden": "true" });
    const stage = element("div", { class: "yk-thumb" }, canvas);
    const title = element("div", { class: "yk-name" }), about = element("div", { class: "yk-about" });
    const marks = element("div", { class: "yk-marks" }), words = element("div", { class: "yk-error-words" });
    stage.append(words);
    const root = element("div", { class: "yk-tile", role: "option", tabindex: "-1", "aria-selected": "false" }, stage, title, about, marks);
    const cell = { root, stage, canvas, title, about, marks, words, tile: null };
    root.addEventListener("click", () => ((this.index = at), this.rove(), this.openLarge()));
    root.addEventListener("focus", () => ((this.index = at), this.rove()));
    this.cells.push(cell);
    this.list.append(root);
  }

  fill() {
    const tiles = this.pages.get(this.page()) ?? [];
    this.cells.forEach((cell, k) => this.fillCell(cell, tiles[k]));
    const complete = this.complete(this.page());
    this.root.dataset.state = this.cells.length ? (complete ? "ready" : "loading") : "empty";
    if (!complete && this.cells.length) {
      this.later("wait", 5000, () => {
        write(this.message, "Still waiting for the kernel: it is busy, or gone.");
        this.message.hidden = false;
      });
    } else if (complete) this.message.hidden = true;
    this.refresh();
  }

  fillCell(cell, tile) {
    if (cell.tile === tile && tile) return;
    cell.tile = tile ?? null;
    cell.root.classList.toggle("yk-waiting", !tile);
    write(cell.title, tile?.title ?? "\u00a0");
    cell.title.title = tile?.title ?? "";
    write(cell.about, tile ? [tile.error ? "" : count(labelled(tile.rows), "box", "boxes"), tile.about].filter(Boolean).join(" \u00b7 ") : "\u00a0");
    write(cell.words, tile?.error ?? "");
    cell.words.hidden = !tile?.error;
    cell.root.setAttribute("aria-label", tile ? spoken(tile) : "loading");
    const shown = tile ? numberedMarks(tile.marks).slice(0, 3) : [];
    cell.marks.replaceChildren(...shown.map(([mark, number]) =>
      element("div", { class: "yk-mark", title: `${mark.severity}: ${mark.message || mark.text}` }, badge(mark, number), element("span", {}, mark.text))));
    const rest = tile ? tile.marks.length - shown.length + tile.more : 0;
    if (rest > 0) cell.marks.append(element("div", { class: "yk-mark yk-rest" }, `and ${rest} more`));
  }

  /** One picture of the page can be tabbed to: that which had the focus last. */
  rove() {
    this.cells.forEach((cell, k) => {
      cell.root.tabIndex = k === this.index ? 0 : -1;
      cell.root.setAttribute("aria-selected", k === this.index);
    });
  }

  focusCell() {
    this.cells[this.index]?.root.focus();
  }

  columns() {
    const top = this.cells[0]?.root.offsetTop;
    const next = this.cells.findIndex((cell) => cell.root.offsetTop !== top);
    return next < 0 ? Math.max(1, this.cells.length) : next;
  }

  turn(key) {
    const to = moved(key, { page: this.page(), index: this.index }, this.columns(), this.get("per_page"), this.get("total"));
    if (!to) return;
    const turned = to.page !== this.page();
    this.index = to.index;
    if (turned) {
      this.model.set("page", to.page); // the view hears of it and shows the page
      this.model.save_changes();
    } else this.rove();
  }

  writeBar() {
    const total = this.get("total"), everything = this.get("everything"), pages = pageCount(total, this.get("per_page"));
    write(this.total, everything ? counted(total, everything, this.get("noun")) : "");
    const chips = this.get("chips"), key = JSON.stringify(chips);
    if (this.chips.dataset.key !== key) {
      const within = this.chips.contains(this.focused());
      this.chips.dataset.key = key;
      const chip = (name, text, title) => {
        const made = element("button", { type: "button", class: "yk-chip", title, "aria-label": title }, text, name ? element("span", { "aria-hidden": "true" }, " \u2715") : null);
        made.addEventListener("click", () => this.model.send({ kind: "clear", key: name }));
        return made;
      };
      this.chips.replaceChildren(...chips.map(({ key: name, text }) => chip(name, text, `Clear the filter ${text}`)));
      if (chips.length > 1) this.chips.append(chip("", "Clear all", "Clear all filters"));
      if (within) (this.chips.firstChild ?? this.cells[this.index]?.root)?.focus();
    }
    this.pagers.forEach(({ previous, next, where, root }, k) => {
      root.hidden = pages < 2 && k > 0;
      write(where, pages ? `page ${this.page() + 1} of ${pages.toLocaleString("en")}` : "");
      previous.setAttribute("aria-disabled", this.page() <= 0);
      next.setAttribute("aria-disabled", this.page() >= pages - 1);
    });
  }

  // ---- keys

  key(event) {
    event.stopPropagation();
    if (!this.dialog.hidden) return this.keyInHelp(event);
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "?") return (event.preventDefault(), this.help(true));
    if (this.open >= 0) return this.keyInLarge(event);
    if (!event.target.classList.contains("yk-tile")) {
      if (event.key === "PageDown" || event.key === "PageUp") (event.preventDefault(), this.turn(event.key));
      return;
    }
    if (event.key === "Enter" || event.key === " ") return (event.preventDefault(), this.openLarge());
    if (!/^(Arrow|Page|Home|End)/.test(event.key)) return;
    event.preventDefault();
    this.turn(event.key);
    this.focusCell();
  }

  keyInLarge(event) {
    const pans = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const actions = {
      Escape: () => this.close(), ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), l: () => this.toggleNames(),
      "+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), 0: () => this.fitView(),
    };
    const act = event.shiftKey && event.key in pans ? () => this.pan(...pans[event.key]) : actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  keyInHelp(event) {
    if (["Escape", "?", "Tab"].includes(event.key)) event.preventDefault(); // Close is all there is
    if (event.key === "Escape" || event.key === "?") this.help(false);
  }

  help(open) {
    if (open) this.came = this.focused();
    this.dialog.hidden = !open;
    if (open) this.closeHelp.focus();
    else if (this.root.contains(this.came)) this.came.focus({ preventScroll: true });
  }

  // ---- one picture, large

  openLarge() {
    this.open = this.place();
    for (const part of [this.bar, this.message, this.list, this.foot]) part.hidden = true;
    this.large.hidden = false;
    this.showLarge();
    this.canvas.focus();
    this.root.scrollIntoView({ block: "nearest" });
  }

  showGrid() {
    this.open = -1;
    for (const part of [this.bar, this.list, this.foot]) part.hidden = false;
    this.message.hidden = this.get("total") > 0;
    this.large.hidden = true;
    this.root.dataset.open = "";
  }

  close() {
    this.showGrid();
    this.fill();
    this.focusCell();
  }

  step(by) {
    this.turn(by > 0 ? "ArrowRight" : "ArrowLeft");
    if (this.open === this.place()) return;
    this.open = this.place();
    this.showLarge();
  }

  showLarge() {
    const tile = this.larges.get(this.open), total = this.get("total");
    write(this.largeWhere, `${(this.open + 1).toLocaleString("en")} of ${total.toLocaleString("en")}`);
    this.before.setAttribute("aria-disabled", this.open <= 0);
    this.after.setAttribute("aria-disabled", this.open >= total - 1);
    this.view = null;
    this.chosen = -1;
    this.seen = tile ?? null;
    this.root.dataset.open = tile ? this.open : "";
    this.ask();
    const small = this.pages.get(this.page())?.[this.index];
    write(this.largeTitle, (tile ?? small)?.title ?? "");
    write(this.largeWords, tile?.error ?? "");
    this.largeWords.hidden = !tile?.error;
    this.writeFacts(tile);
    this.refresh();
    if (tile) this.say(spoken(tile));
  }

  writeFacts(tile) {
    const facts = tile && !tile.error ? [`${tile.width} \u00d7 ${tile.height} px`, count(labelled(tile.rows), "box", "boxes"), tile.about] : [tile?.about];
    this.facts.replaceChildren(...facts.filter(Boolean).map((fact) => element("div", {}, fact)));
    this.canvas.setAttribute("aria-label", tile ? `${spoken(tile)}. Arrow keys go to the next picture, Escape goes back, question mark lists the keys.` : "loading");
    this.findings.replaceChildren(...numberedMarks(tile?.marks ?? []).map(([mark, number]) => {
      const head = element("div", { class: "yk-mark" }, badge(mark, number), element("strong", {}, `${mark.severity}: ${mark.text}`));
      const row = mark.row ? element("code", {}, mark.row) : null;
      const where = mark.where ? element("div", { class: "yk-file" }, mark.where) : null;
      const item = element("li", {}, head, mark.message ? element("div", {}, mark.message) : null, where, row);
      if (number) {
        const show = element("button", { type: "button", class: "yk-button", title: `Zoom to box ${number}` }, "Show box");
        show.addEventListener("click", () => this.showBox(mark.box));
        item.append(show);
      }
      return item;
    }));
  }

  showBox(box) {
    this.chosen = box;
    const window = this.window();
    this.view = closeUp(this.view, this.seen.rows.subarray(box * COLUMNS, box * COLUMNS + 4), this.size(), window);
    this.refresh();
  }

  toggleNames() {
    this.names = !this.names;
    this.refresh();
  }

  size() {
    return [this.seen.width, this.seen.height];
  }

  window() {
    return [this.canvas.clientWidth, this.canvas.clientHeight];
  }

  ready() {
    return Boolean(this.seen?.image && this.view);
  }

  fitView() {
    if (!this.ready()) return;
    this.view = fit(this.size(), this.window());
    this.chosen = -1;
    this.refresh();
  }

  zoom(factor, x, y) {
    if (!this.ready()) return;
    const window = this.window();
    this.view = zoomed(this.view, factor, x ?? window[0] / 2, y ?? window[1] / 2, this.size(), window);
    this.refresh();
  }

  pan(dx, dy) {
    if (!this.ready()) return;
    this.view = held({ ...this.view, x: this.view.x + dx, y: this.view.y + dy }, this.size(), this.window());
    this.refresh();
  }

  listen() {
    let from = null;
    this.on(this.canvas, "pointerdown", (event) => {
      if (event.button !== 0) return;
      this.canvas.focus({ preventScroll: true });
      this.canvas.setPointerCapture(event.pointerId);
      from = [event.clientX, event.clientY];
    });
    this.on(this.canvas, "pointermove", (event) => {
      if (!from) return;
      this.pan(event.clientX - from[0], event.clientY - from[1]);
      from = [event.clientX, event.clientY];
    });
    this.on(this.canvas, "pointerup pointercancel", () => (from = null));
    this.on(this.canvas, "dblclick", () => this.fitView());
    this.on(this.canvas, "wheel", (event) => {
      if (!this.ready() || !(event.ctrlKey || event.metaKey || this.focused() === this.canvas)) return;
      event.preventDefault();
      const bounds = this.canvas.getBoundingClientRect();
      const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1);
      this.zoom(Math.exp(-pixels / 300), event.clientX - bounds.left, event.clientY - bounds.top);
    }, { passive: false });
  }

  // ---- painting

  refresh() {
    if (this.frame || this.ended) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.root.clientWidth) return; // not on the page now; the size's observer comes back
      if (this.open < 0) for (const cell of this.cells) this.paintCell(cell);
      else this.paintLarge();
      this.root.dataset.rendered = Number(this.root.dataset.rendered) + 1;
    });
  }

  paintCell({ stage, canvas, tile }) {
    const window = [stage.clientWidth, stage.clientHeight];
    const pen = sized(canvas, window);
    if (!tile?.image) return;
    const picture = [tile.width, tile.height];
    drawScene(pen, { ...this.scene(tile, window), view: fit(picture, window), line: 1.5, font: 10, names: null, chosen: -1 });
  }

  paintLarge() {
    const tile = this.seen, width = this.canvas.clientWidth;
    this.labels.setAttribute("aria-pressed", this.names);
    const shape = tile?.image ? tile.height / tile.width : 0.6;
    const tallest = Math.min(680, Math.max(320, 0.75 * window.innerHeight));
    this.canvas.style.height = `${Math.round(Math.min(Math.max(240, width * shape), tallest))}px`;
    const size = this.window(), pen = sized(this.canvas, size);
    if (!tile?.image) return;
    this.view = this.view ? zoomed(this.view, 1, 0, 0, this.size(), size) : fit(this.size(), size);
    drawScene(pen, {
      ...this.scene(tile, size), view: this.view, line: 2, font: 12, names: this.names ? this.get("names") : null, chosen: this.chosen,
    });
  }

  scene(tile, window) {
    return {
      image: tile.image, picture: [tile.width, tile.height], window, rows: tile.rows, marks: tile.marks, colours: this.get("colours"),
      family: getComputedStyle(this.root).fontFamily,
    };
  }
}

/** The canvas as large as it is on the page, cleared; its pen, in CSS pixels. */
function sized(canvas, [width, height]) {
  const density = devicePixelRatio, wanted = [Math.round(width * density), Math.round(height * density)];
  if (canvas.width !== wanted[0] || canvas.height !== wanted[1]) [canvas.width, canvas.height] = wanted;
  const pen = canvas.getContext("2d");
  pen.setTransform(density, 0, 0, density, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

/** A picture as it came, with its image and its boxes ready. */
async function opened(tile, file, rows) {
  const made = { ...tile, rows: rowsOf(rows), image: null };
  if (tile.error) return made;
  try {
    made.image = await createImageBitmap(new Blob([file], { type: tile.mime }));
  } catch (error) {
    made.error = `The picture cannot be shown: ${error.message}`;
  }
  return made;
}

function render({ model, el }) {
  const view = new GridView(model, el);
  return () => view.end();
}

export default { render };
