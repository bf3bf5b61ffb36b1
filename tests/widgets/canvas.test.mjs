// The arithmetic of the canvas, without a page. What it shares with Python is compared there: test_canvas.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const source = readFileSync(new URL("../../widgets/canvas.js", import.meta.url), "utf8");
// as text: without a package.json an older node would take a .js file for CommonJS
const canvas = await import(`data:text/javascript;base64,${Buffer.from(source).toString("base64")}`);
const { clipped, fit, held, hitTest, iou, match, nms, panned, record, revealed } = canvas;
const { roundHalfEven, select, shownRows, summary, typedNumber, zoomed } = canvas;

const rows = (...each) => Float32Array.from(each.flat());
const close = (a, b, within = 1e-6) => assert.ok(Math.abs(a - b) <= within, `${a} is not ${b}`);
const all = { minScore: 0, maxIou: 0.5, hidden: [], agnostic: false, maxDetections: 300, width: 100, height: 100 };

let seed = 1;
const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
function randomRows(n, classes = 3) {
  const made = Array.from({ length: n }, () => {
    const [x, y] = [random() * 90, random() * 90];
    return [x, y, x + 5 + random() * 40, y + 5 + random() * 40, random(), Math.floor(random() * classes)];
  });
  return rows(...made.sort((a, b) => b[4] - a[4]));
}

test("the module asks for nothing and offers a render function", () => {
  assert.doesNotMatch(source, /^\s*import\b|\bimport\(|\bfetch\(|https?:/m);
  assert.equal(typeof canvas.default.render, "function");
});

test("IoU is symmetric, 1 for a box with itself, 0 for boxes apart", () => {
  const some = randomRows(40);
  for (let i = 0; i < 40; i++) {
    assert.equal(iou(some, i, some, i), 1);
    for (let j = 0; j < 40; j++) {
      assert.equal(iou(some, i, some, j), iou(some, j, some, i));
      assert.equal(Math.fround(iou(some, i, some, j)), iou(some, i, some, j));
    }
  }
  assert.equal(iou(rows([0, 0, 10, 10, 1, 0]), 0, rows([20, 0, 30, 10, 1, 0]), 0), 0);
  close(iou(rows([0, 0, 10, 10, 1, 0]), 0, rows([5, 0, 15, 10, 1, 0]), 0), 1 / 3);
});

test("NMS keeps the better of two, class by class unless told otherwise, and an overlap equal to the limit", () => {
  const three = rows([0, 0, 10, 10, 0.9, 0], [0, 0, 10, 10, 0.8, 0], [0, 0, 10, 10, 0.7, 1]);
  assert.deepEqual(nms(three, 0.5), [0, 2]);
  assert.deepEqual(nms(three, 0.5, true), [0]);
  assert.deepEqual(nms(three, 1), [0, 1, 2]);
  assert.deepEqual(nms(three, 1, false, 2), [0, 1]);
  assert.deepEqual(nms(rows(), 0.5), []);
});

test("what NMS keeps does not overlap, and what falls is overlapped by something better", () => {
  const some = randomRows(120), kept = nms(some, 0.4), stays = new Set(kept);
  const clash = (i, j) => some[i * 6 + 5] === some[j * 6 + 5] && iou(some, i, some, j) > 0.4;
  for (const i of kept) for (const j of kept) assert.ok(i === j || !clash(i, j));
  for (let i = 0; i < 120; i++) assert.ok(stays.has(i) || kept.some((k) => k < i && clash(k, i)));
});

test("select takes scores above the threshold, visible classes, boxes that touch the picture", () => {
  const some = rows([0, 0, 10, 10, 0.9, 0], [20, 0, 30, 10, 0.5, 1], [-20, 0, -5, 10, 0.5, 0], [40, 0, 50, 10, 0.5, 0]);
  assert.deepEqual(select(some, all), [0, 1, 3]);
  assert.deepEqual(select(some, { ...all, minScore: 0.5 }), [0]);
  assert.deepEqual(select(some, { ...all, hidden: [0] }), [1]);
  assert.deepEqual(select(some, { ...all, maxDetections: 2 }), [0, 1]);
  assert.deepEqual(clipped(rows([-3, 5, 120, 101, 0.9, 0]), 0, 100, 100), [0, 5, 100, 100]);
  assert.deepEqual([...shownRows(some, [3], 45, 100)], [40, 0, 45, 10, 0.5, 0]);
});

test("a threshold typed in decimals meets a float32 score where Python has them meet", () => {
  assert.deepEqual(select(rows([0, 0, 9, 9, 0.3, 0]), { ...all, minScore: 0.3 }), []);
});

test("a higher confidence never shows more boxes", () => {
  const some = randomRows(150);
  let before = Infinity;
  for (let step = 0; step <= 20; step++) {
    const now = select(some, { ...all, minScore: step / 20 }).length;
    assert.ok(now <= before);
    before = now;
  }
  assert.equal(before, 0);
});

test("a run matches itself entirely, without drift", () => {
  const some = shownRows(randomRows(60), nms(randomRows(60), 0.3), 100, 100);
  const found = match(some, some);
  assert.equal(found.pairs.length, some.length / 6);
  assert.deepEqual([found.lost, found.fresh, found.maxDrift, found.meanIou], [[], [], 0, 1]);
});

test("matching pairs boxes one to one, of one class, the closest first", () => {
  const a = rows([0, 0, 10, 10, 0.9, 0], [50, 50, 60, 60, 0.8, 1], [80, 80, 90, 90, 0.7, 0]);
  const b = rows([1, 0, 11, 10, 0.95, 0], [0, 0, 10, 10, 0.7, 0], [50, 50, 60, 60, 0.6, 2], [81, 80, 91, 90, 0.6, 0]);
  const found = match(a, b);
  assert.deepEqual(found.pairs.map((pair) => [pair.i, pair.j]), [[0, 1], [2, 3]]);
  assert.deepEqual([found.lost, found.fresh], [[1], [0, 2]]);
  close(found.maxDrift, 0.2);
  close(found.meanDrift, 0.15);
  close(found.meanIou, (1 + 90 / 110) / 2);
  assert.equal(summary(found), "matched 2 · lost 1 · new 2 · score drift mean 0.150 max 0.200 · IoU mean 0.909");
});

test("matching the other way round swaps lost and new", () => {
  const a = randomRows(40), b = a.map((v, k) => (k % 6 < 4 ? v + random() * 4 : v)).subarray(6); // shaken, one missing
  const [there, back] = [match(a, b), match(b, a)];
  assert.deepEqual([there.lost, there.fresh], [back.fresh, back.lost]);
  assert.equal(there.pairs.length, back.pairs.length);
  assert.ok(there.pairs.length > 0 && there.lost.length > 0);
  for (const pair of there.pairs) assert.ok(pair.iou >= 0.5);
});

test("nothing matches nothing", () => {
  assert.equal(summary(match(rows(), rows())), "matched 0 · lost 0 · new 0");
  assert.equal(summary(match(rows(), randomRows(2))), "matched 0 · lost 0 · new 2");
});

test("fit shows the whole picture, centred", () => {
  assert.deepEqual(fit([200, 100], [100, 100]), { scale: 0.5, x: 0, y: 25 });
  assert.deepEqual(fit([4, 4], [100, 100]), { scale: 8, x: 34, y: 34 });
});

test("zooming keeps the point under the pointer, and comes back", () => {
  const [picture, window] = [[1000, 800], [500, 400]], start = fit(picture, window);
  const near = zoomed(start, 4, 300, 150, picture, window);
  close((300 - near.x) / near.scale, (300 - start.x) / start.scale);
  close((150 - near.y) / near.scale, (150 - start.y) / start.scale);
  const back = zoomed(near, 1 / 4, 300, 150, picture, window);
  for (const key of ["scale", "x", "y"]) close(back[key], start[key]);
});

test("zoom has an end on both sides, and no gap opens at the picture's edge", () => {
  const [picture, window] = [[1000, 800], [500, 400]];
  let view = fit(picture, window);
  assert.equal(zoomed(view, 0.01, 0, 0, picture, window).scale, view.scale);
  for (let i = 0; i < 40; i++) {
    view = zoomed(view, 0.5 + random() * 1.5, random() * 500, random() * 400, picture, window);
    view = panned(view, (random() - 0.5) * 900, (random() - 0.5) * 900, picture, window);
    assert.ok(view.scale >= 0.5 && view.scale <= 32);
    assert.ok(view.x <= 0 && view.x + 1000 * view.scale >= 500 - 1e-6);
    assert.ok(view.y <= 0 && view.y + 800 * view.scale >= 400 - 1e-6);
  }
  assert.equal(zoomed(view, 1e6, 0, 0, picture, window).scale, 32);
  assert.deepEqual(held({ scale: 1, x: 77, y: -900 }, [100, 1000], [200, 400]), { scale: 1, x: 50, y: -600 });
});

test("a box out of sight is brought in, one in sight moves nothing", () => {
  const [picture, window] = [[1000, 1000], [200, 200]], view = { scale: 1, x: 0, y: 0 };
  const moved = revealed(view, [600, 40, 640, 80], picture, window);
  assert.ok(600 + moved.x >= 0 && 640 + moved.x <= 200);
  assert.equal(moved.y, 0);
  assert.deepEqual(revealed(moved, [600, 40, 640, 80], picture, window), moved);
});

test("pointing takes the smallest box, with some tolerance", () => {
  const boxes = rows([0, 0, 50, 50, 0.9, 0], [10, 10, 20, 20, 0.5, 0]);
  assert.equal(hitTest(boxes, 15, 15), 1);
  assert.equal(hitTest(boxes, 40, 40), 0);
  assert.equal(hitTest(boxes, 22, 15, 3), 1);
  assert.equal(hitTest(boxes, 60, 60, 3), -1);
});

test("numbers round as in Python, ties to the even neighbour", () => {
  assert.equal(roundHalfEven(12.03125, 4), 12.0312);
  assert.equal(roundHalfEven(12.09375, 4), 12.0938);
  assert.equal(roundHalfEven(-0.5, 0), 0);
  assert.equal(roundHalfEven(2.5, 0), 2);
  assert.equal(roundHalfEven(3.5, 0), 4);
  assert.equal(roundHalfEven(1 / 3, 4), 0.3333);
});

test("typed numbers are held in range, a decimal comma is understood, words are none", () => {
  assert.equal(typedNumber("0.06", 0, 1), 0.06);
  assert.equal(typedNumber(" 0,06 ", 0, 1), 0.06);
  assert.equal(typedNumber("7", 0, 1), 1);
  for (const text of ["", "  ", "many", "1e999", "--1"]) assert.equal(typedNumber(text, 0, 1), null);
});

test("the JSON entry names picture, run and boxes", () => {
  const page = { path: "a.jpg", width: 10, height: 20, frame: null, notes: [] };
  const entry = record(page, { label: "fp32", timings: { network: 1 } }, rows([1, 2, 3, 4, 0.5, 1]), ["open", "short"]);
  assert.deepEqual(entry, {
    path: "a.jpg", width: 10, height: 20, run: "fp32",
    detections: [{ box: [1, 2, 3, 4], score: 0.5, label: 1, name: "short" }],
    timings_ms: { network: 1 },
  });
});

test("ink is black on pale colours and white on dark ones", () => {
  assert.equal(canvas.inkOn("#f0e442"), "#000000");
  assert.equal(canvas.inkOn("#0000ff"), "#ffffff");
});
