// The arithmetic of the grid and of the lists beside it, without a page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

async function loaded(name) {
  const source = readFileSync(new URL(`../../widgets/${name}`, import.meta.url), "utf8");
  // as text: without a package.json an older node would take a .js file for CommonJS
  return [source, await import(`data:text/javascript;base64,${Buffer.from(source).toString("base64")}`)];
}
const [gridSource, grid] = await loaded("grid.js");
const [facetsSource, facets] = await loaded("facets.js");
const { closeUp, counted, fit, held, labelled, moved, numbers, onPage, pageCount, placed, ringAround, spoken, zoomed } = grid;

const rows = (...each) => Float32Array.from(each.flat());
const close = (a, b, within = 1e-6) => assert.ok(Math.abs(a - b) <= within, `${a} is not ${b}`);
const KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"];

test("the modules ask for nothing and offer a render function", () => {
  for (const [source, module] of [[gridSource, grid], [facetsSource, facets]]) {
    assert.doesNotMatch(source, /^\s*import\b|\bimport\(|\bfetch\(|https?:(?!\/\/www\.w3\.org\/2000\/svg)/m);
    assert.equal(typeof module.default.render, "function");
  }
});

test("pages hold all pictures, each once", () => {
  for (const total of [0, 1, 23, 24, 25, 48, 100]) {
    const sizes = Array.from({ length: pageCount(total, 24) }, (_, page) => onPage(page, 24, total));
    assert.equal(sizes.reduce((sum, n) => sum + n, 0), total);
    assert.ok(sizes.every((n, k) => n === 24 || k === sizes.length - 1));
    assert.equal(onPage(sizes.length, 24, total), 0);
  }
});

function everyPlace(act) {
  for (const total of [1, 5, 12, 13, 29]) {
    for (const perPage of [6, 12]) {
      for (const columns of [1, 4, 5, 20]) {
        for (let place = 0; place < total; place++) {
          act({ page: Math.floor(place / perPage), index: place % perPage }, columns, perPage, total, place);
        }
      }
    }
  }
}

test("every key leads from every picture to a picture", () => {
  everyPlace((at, columns, perPage, total) => {
    for (const key of KEYS) {
      const to = moved(key, at, columns, perPage, total);
      assert.ok(to.index >= 0 && to.index < onPage(to.page, perPage, total), `${key} from ${JSON.stringify(at)} to ${JSON.stringify(to)}`);
    }
  });
});

test("right and left go through all pictures, over the ends of pages, and undo each other", () => {
  everyPlace((at, columns, perPage, total, place) => {
    const flat = (to) => to.page * perPage + to.index;
    assert.equal(flat(moved("ArrowRight", at, columns, perPage, total)), Math.min(place + 1, total - 1));
    assert.equal(flat(moved("ArrowLeft", at, columns, perPage, total)), Math.max(place - 1, 0));
  });
});

test("down and up stay in their column where there is a picture in it", () => {
  assert.deepEqual(moved("ArrowDown", { page: 0, index: 1 }, 4, 12, 29), { page: 0, index: 5 });
  assert.deepEqual(moved("ArrowDown", { page: 0, index: 9 }, 4, 12, 29), { page: 1, index: 1 });
  assert.deepEqual(moved("ArrowUp", { page: 1, index: 2 }, 4, 12, 29), { page: 0, index: 10 });
  assert.deepEqual(moved("ArrowDown", { page: 2, index: 3 }, 4, 12, 29), { page: 2, index: 4 }); // the row below is short
  assert.deepEqual(moved("ArrowDown", { page: 2, index: 4 }, 4, 12, 29), { page: 2, index: 4 });
  assert.deepEqual(moved("ArrowUp", { page: 0, index: 2 }, 4, 12, 29), { page: 0, index: 2 });
});

test("pages turn and end at the ends", () => {
  const at = { page: 1, index: 7 };
  assert.deepEqual(moved("PageDown", at, 4, 12, 29), { page: 2, index: 4 }); // as far as the last page goes
  assert.deepEqual(moved("PageUp", at, 4, 12, 29), { page: 0, index: 7 });
  assert.deepEqual(moved("Home", at, 4, 12, 29), { page: 0, index: 0 });
  assert.deepEqual(moved("End", at, 4, 12, 29), { page: 2, index: 4 });
  assert.deepEqual(moved("PageDown", { page: 2, index: 1 }, 4, 12, 29), { page: 2, index: 1 });
  assert.equal(moved("x", at, 4, 12, 29), null);
  assert.equal(moved("ArrowDown", { page: 0, index: 0 }, 4, 12, 0), null);
});

test("the whole picture fits, and zooming keeps the point under the pointer", () => {
  const picture = [640, 480], window = [300, 300], view = fit(picture, window);
  close(view.scale, 300 / 640);
  close(view.x, 0);
  close(view.y, (300 - 225) / 2);
  const near = zoomed(view, 4, 100, 150, picture, window);
  close((100 - near.x) / near.scale, (100 - view.x) / view.scale, 1e-4);
  assert.deepEqual(zoomed(near, 1e-9, 0, 0, picture, window), view);
  const moved = held({ ...near, x: 1e6, y: -1e6 }, picture, window);
  assert.ok(moved.x <= 0 && moved.y >= window[1] - picture[1] * moved.scale - 1e-6);
});

test("a close-up has the box in sight, however small it is and wherever it lies", () => {
  const picture = [1000, 800], window = [500, 400];
  for (const box of [[0, 0, 1, 1], [990, 790, 1000, 800], [400, 300, 600, 500], [0, 0, 1000, 800]]) {
    const view = closeUp(null, box, picture, window);
    const [left, top, right, bottom] = box.map((v, k) => v * view.scale + (k % 2 ? view.y : view.x));
    assert.ok(left >= -0.5 && top >= -0.5 && right <= window[0] + 0.5 && bottom <= window[1] + 0.5, JSON.stringify([box, view]));
    assert.ok(view.scale >= fit(picture, window).scale - 1e-9);
  }
});

test("boxes lie where the view puts them and are never too thin to be seen", () => {
  const [box, dot] = placed(rows([10, 20, 30, 60, 2, 0], [5, 5, 5, 5, 1, 1]), { scale: 2, x: 3, y: 4 });
  assert.deepEqual(box, { left: 23, top: 44, right: 63, bottom: 124, label: 2, kind: 0 });
  assert.ok(dot.right - dot.left >= 1 && dot.bottom - dot.top >= 1);
  for (const each of [box, dot]) {
    const ring = ringAround(each, 2);
    assert.ok(ring.left < each.left && ring.top < each.top && ring.right > each.right && ring.bottom > each.bottom);
    assert.ok(Math.min(ring.right - ring.left, ring.bottom - ring.top) >= 11);
  }
});

test("marks that mean a box are numbered, and several can mean one", () => {
  const marks = [{ box: 4 }, { box: 0 }, { box: 4 }, { box: -1 }];
  assert.deepEqual([...numbers(marks)], [[4, [1, 3]], [0, [2]]]);
  assert.equal(numbers([]).size, 0);
});

test("what is counted and said", () => {
  assert.equal(counted(96, 96, "pictures"), "96 pictures");
  assert.equal(counted(0, 1, "pictures"), "0 of 1 picture");
  assert.equal(counted(24, 20000, "pictures"), "24 of 20,000 pictures");
  const some = rows([0, 0, 1, 1, 0, 0], [0, 0, 1, 1, 9, 1]);
  assert.equal(labelled(some), 1);
  const tile = { title: "a.jpg", about: "train", error: "", rows: some, marks: [{ severity: "error", text: "Class that does not exist, line 3" }], more: 2 };
  assert.equal(spoken(tile), "a.jpg, 1 box, train, error: Class that does not exist, line 3, and 2 more");
  assert.equal(spoken({ ...tile, error: "empty", marks: [], more: 0 }), "a.jpg, empty, train");
});

test("bars are as high as their share, and none that counts is invisible", () => {
  assert.deepEqual(facets.heights([0, 5, 10]), [0, 0.5, 1]);
  assert.ok(facets.heights([1, 100000])[0] > 0);
  assert.deepEqual(facets.heights([0, 0]), [0, 0]);
  assert.deepEqual(facets.heights([]), []);
});

test("a histogram in words: the middle half, and every bar that counts", () => {
  assert.deepEqual(facets.middleHalf([1, 0, 2, 1]), [2, 2]);
  assert.equal(facets.middleHalf([0, 0]), null);
  const words = facets.binsInWords({ title: "Sizes", edges: ["1", "2", "4", "8"], counts: [0, 1, 3] });
  assert.equal(words, "Sizes: half lie between 4 and 8. 2 to 4: 1; 4 to 8: 3");
  assert.equal(facets.binsInWords({ title: "Sizes", edges: ["1", "2"], counts: [0] }), "Sizes: nothing to count");
});

test("a heat map in words: the nine parts of a picture", () => {
  const counts = new Array(256).fill(0);
  counts[0] = 3; // top left
  counts[255] = 1; // bottom right
  const found = facets.parts(counts, 16);
  assert.deepEqual(found.slice(0, 2), [["top left", 0.75], ["bottom right", 0.25]]);
  close(found.reduce((sum, [, share]) => sum + share, 0), 1);
  assert.match(facets.heatInWords({ title: "Where", counts, columns: 16 }), /^Where: top left 75 %, bottom right 25 %/);
  assert.equal(facets.heatInWords({ title: "Where", counts: [0], columns: 1 }), "Where: nothing to count");
});
