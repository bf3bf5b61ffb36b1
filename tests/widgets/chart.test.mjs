// The arithmetic of the charts, without a page. What it shares with Python is compared there: test_chart.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const source = readFileSync(new URL("../../widgets/chart.js", import.meta.url), "utf8");
// as text: without a package.json an older node would take a .js file for CommonJS
const chart = await import(`data:text/javascript;base64,${Buffer.from(source).toString("base64")}`);
const { apply, axisRange, extremes, firstFrom, formatted, logRange, logTicks, merged, moved } = chart;
const { nearest, niceStep, numbers, runs, scale, settled, ticks, wholeTicks } = chart;

const close = (a, b, within = 1e-9) => assert.ok(Math.abs(a - b) <= within * Math.max(1, Math.abs(b)), `${a} is not ${b}`);
let seed = 1;
const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
const anyNumber = () => (random() - 0.3) * 10 ** Math.floor(random() * 12 - 6);
const mantissa = (value) => value / 10 ** Math.floor(Math.log10(value) + 1e-9);
const is125 = (value) => [1, 2, 5, 10].some((factor) => Math.abs(mantissa(value) - factor) < 1e-6);

test("the module asks for nothing and offers initialize and render", () => {
  assert.doesNotMatch(source, /^\s*import\b|\bimport\(|\bfetch\(|https?:/m);
  assert.equal(typeof chart.default.render, "function");
  assert.equal(typeof chart.default.initialize, "function");
});

test("ticks are multiples of 1, 2 or 5 times a power of ten, inside, and not too many", () => {
  for (let i = 0; i < 500; i++) {
    const low = anyNumber(), high = low + Math.abs(anyNumber()) + 1e-9 * Math.abs(low) + 1e-12, count = 2 + Math.floor(random() * 6);
    const step = niceStep(high - low, count), found = ticks(low, high, count);
    assert.ok(is125(step), `${step}`);
    assert.ok(found.length <= count + 1);
    for (const value of found) {
      close(value / step, Math.round(value / step), 1e-6);
      assert.ok(value >= low - step * 1e-3 && value <= high + step * 1e-3);
    }
  }
  assert.deepEqual(ticks(0, 100, 4), [0, 50, 100]);
  assert.deepEqual(wholeTicks(0, 3, 6), [0, 1, 2, 3]);
});

test("a range holds its values and its limits, and its ends are nice", () => {
  for (let i = 0; i < 500; i++) {
    const low = anyNumber(), high = low + Math.abs(anyNumber()) * Math.round(random() + 0.2);
    const [start, end] = axisRange(low, high);
    assert.ok(start < end && start <= low && end >= high);
    const [bounded, top] = axisRange(low, high, -1, 2);
    assert.ok(bounded <= Math.min(-1, low) && top >= Math.max(2, high));
  }
  assert.deepEqual(axisRange(0.2, 0.7, 0, 1), [0, 1]);
  assert.deepEqual(axisRange(20, 130, 0, 100), [0, 150]); // more than 100 % is drawn, not cut
});

test("a constant series lies in the middle, at any value", () => {
  for (const value of [3.2, -7, 0, 1e-9, 4e12]) {
    const [start, end] = axisRange(value, value);
    close((start + end) / 2, value);
    assert.ok(ticks(start, end, 4).length >= 2);
  }
  assert.deepEqual(axisRange(0, 0, 0), [0, 2]);
});

test("an axis stays where it is until the values leave it or fill too little of it", () => {
  assert.deepEqual(settled([0, 9], [0, 10]), [0, 10]);
  assert.deepEqual(settled([0, 5], [0, 10]), [0, 5]);
  assert.deepEqual(settled([0, 11], [0, 10]), [0, 11]);
  assert.deepEqual(settled([1, 500], [1, 1000], true), [1, 1000]);
  assert.deepEqual(settled([1, 2], null), [1, 2]);
  let [range, changes] = [null, 0];
  const values = [];
  for (let step = 0; step < 1000; step++) {
    values.push(10 * Math.exp(-step / 200) + 2 + random());
    const { low, high } = extremes([values.slice(-300)]); // as a strip moves on
    const next = settled(axisRange(low, high), range);
    if (range && next.join() !== range.join()) changes++;
    range = next;
  }
  assert.ok(changes < 30, `${changes} changes`);
});

test("a logarithmic axis holds its values, ends at 1, 2 or 5, and leaves out what it has not", () => {
  for (let i = 0; i < 300; i++) {
    const low = 10 ** (random() * 12 - 8), high = low * 10 ** (random() * 7);
    const [start, end] = logRange(low, high), found = logTicks(start, end, 4);
    assert.ok(start <= low * 1.001 && end >= high * 0.999 && start < end);
    assert.ok(is125(start) && is125(end));
    assert.ok(found.length >= 1 && found.length <= 6, `${found}`);
    assert.ok(found.every((value) => value >= start * 0.999 && value <= end * 1.001));
  }
  assert.deepEqual(extremes([[-1, 0, NaN, 5], [2]], true), { low: 2, high: 5, left: 2 });
  assert.deepEqual(extremes([[-1, NaN, 5]]), { low: -1, high: 5, left: 0 });
  const place = scale([1, 100], 100, 0, true);
  assert.deepEqual([1, 10, 100].map(place), [100, 50, 0]);
  assert.ok(Number.isNaN(place(0)) && Number.isNaN(place(-3)));
  assert.deepEqual(runs([0, 1, 2], [1, 0, 100], (x) => x, place), [[0, 100], [2, 0]]);
});

test("a line breaks at a gap and nowhere else; a point alone is a run of its own", () => {
  const id = (v) => v;
  assert.deepEqual(runs([0, 1, 2, 3, 4, 5], [1, 2, NaN, 3, NaN, NaN], id, id), [[0, 1, 1, 2], [3, 3]]);
  assert.deepEqual(runs([], [], id, id), []);
  assert.deepEqual(runs([7], [8], id, id), [[7, 8]]);
  for (let i = 0; i < 50; i++) {
    const y = Array.from({ length: 40 }, () => (random() < 0.3 ? NaN : random())), x = y.map((_, k) => k);
    const flat = runs(x, y, id, id).flat();
    assert.deepEqual(flat, x.filter((k) => Number.isFinite(y[k])).flatMap((k) => [k, y[k]]));
  }
});

test("the nearest point is the one that a search of all finds", () => {
  for (let i = 0; i < 200; i++) {
    const xs = Array.from({ length: Math.floor(random() * 12) }, () => Math.floor(random() * 20)).sort((a, b) => a - b);
    const target = random() * 24 - 2, away = (k) => Math.abs(xs[k] - target);
    const index = nearest(xs, target);
    if (!xs.length) assert.equal(index, -1);
    else assert.equal(away(index), Math.min(...xs.map((_, k) => away(k))));
    const first = xs.findIndex((x) => x >= target);
    assert.equal(firstFrom(xs, target), first < 0 ? xs.length : first);
  }
  assert.deepEqual(merged([[1, 3], [2, 3], []]), [1, 2, 3]);
});

test("the keys go point by point, but over dense points a pixel at a time", () => {
  assert.equal(moved([0, 10, 20], 1, 1, 0.1), 2);
  assert.equal(moved([0, 10, 20], 1, -1, 0.1), 0);
  const dense = Array.from({ length: 1000 }, (_, k) => k);
  assert.equal(moved(dense, 100, 1, 5), 105);
  assert.equal(moved(dense, 100, -10, 5), 50);
  assert.equal(moved(dense, 100, -Infinity, 5), 0);
  assert.equal(moved(dense, 100, Infinity, 5), 999);
});

test("numbers are written for people", () => {
  const cases = [
    [87, "%", "87 %"], [87.25, "%", "87.25 %"], [0, "", "0"], [-0.5, "", "\u22120.5"], [1234567, "", "1,234,567"], [0.00001234, "", "1.234e\u22125"],
    [12345.678, "MiB", "12,346 MiB"], [NaN, "W", "\u2013"], [3.2, "", "3.2"], [99.99999, "", "100"], [0.01, "", "0.01"], [1e12, "", "1e12"],
  ];
  for (const [value, unit, text] of cases) assert.equal(formatted(value, unit), text);
  assert.equal(formatted(86.23, "", 3), "86.2");
});

const bytes = (Kind, ...values) => new DataView(Kind.from(values).buffer);
const empty = () => ({ revision: 4, plots: { a: { series: {}, marks: [], note: "" } } });
const delta = (from, add, total) => ({
  kind: "delta", from, revision: from + 1, changes: [{ key: "a", series: "v", add, arrays: 2, total }], words: {},
});

test("deltas set and append, roll over at the limit, and come once", () => {
  const points = empty(), held = () => points.plots.a.series.v;
  const [x, y] = [bytes(Float64Array, 0, 1), bytes(Float32Array, 5, 6)];
  assert.equal(apply(points, delta(4, false, 2), [x, y], { a: 3 }), true);
  assert.equal(apply(points, delta(4, false, 2), [x, y], { a: 3 }), true); // heard by another view
  const more = [bytes(Float64Array, 2, 3), bytes(Float32Array, 7, 8)];
  for (let k = 0; k < 2; k++) assert.equal(apply(points, delta(5, true, 4), more, { a: 3 }), true);
  assert.deepEqual([...numbers(held().x, Float64Array)], [1, 2, 3]);
  assert.deepEqual([...numbers(held().y, Float32Array)], [6, 7, 8]);
  assert.equal(held().x.buffer.byteLength, 24); // a view of a larger buffer would be saved with all of it
  assert.equal(points.revision, 6);
});

test("a delta after a lost one changes nothing and is refused", () => {
  const points = empty();
  assert.equal(apply(points, delta(5, true, 1), [bytes(Float64Array, 1), bytes(Float32Array, 1)], { a: 3 }), false);
  assert.deepEqual(points, empty());
});

test("numbers are read where they do not start at a multiple of their size", () => {
  const whole = new Uint8Array(12);
  whole.set(new Uint8Array(Float32Array.from([1.5, 2.5]).buffer), 3);
  assert.deepEqual([...numbers(new DataView(whole.buffer, 3, 8), Float32Array)], [1.5, 2.5]);
});
