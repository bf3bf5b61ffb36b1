"""Page and picture of a report: whole, offline, honest about names, small enough."""

import io
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.chromium import launched
from tests.evaluation.random_boxes import boxes, random_set
from tests.evaluation.test_report import report_of
from yolov9kit.errors import PictureError
from yolov9kit.evaluation.figure import WIDTH, draw_report
from yolov9kit.evaluation.gallery import MOST
from yolov9kit.evaluation.page import draw_page
from yolov9kit.evaluation.report import EvalReport

ODD = ("</script><b>x</b>", 'a "b" & c', "üß 漢字", "plain", "plain")


class Elements(HTMLParser):
    """Every element with its attributes, and the text of the scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and self.scripts:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> EvalReport:
    """30 pictures of noise, the hardest to compress, with odd class names."""
    folder = tmp_path_factory.mktemp("noise")
    noise = np.random.default_rng(0).integers(0, 256, (640, 640, 3), dtype=np.uint8)
    paths = tuple(str(folder / f"{n} & <i>.png") for n in range(30))
    for n, path in enumerate(paths):
        Image.fromarray(np.roll(noise, n)).resize((80, 80)).save(path)
    made = report_of(*random_set(9, pictures=30), ODD, notes=("a <note>",), weights="w<e>.pt")
    small = [type(one)(one.boxes / 8, one.labels, one.scores) for one in (*made.truths, *made.found)]
    more = {"notes": made.notes, "weights": made.weights, "worst_count": 30}
    smaller = report_of(small[:30], small[30:], ODD, **more)
    return EvalReport(**{**vars_of(smaller), "paths": paths, "sizes_wh": ((80, 80),) * 30})


def vars_of(report: EvalReport) -> dict[str, Any]:
    return {name: vars(report)[name] for name in EvalReport.__dataclass_fields__}


@pytest.fixture(scope="module")
def page(report: EvalReport) -> str:
    return draw_page(report)


def test_the_page_loads_nothing_from_outside(page: str) -> None:
    elements = Elements(page)
    for tag, attributes in elements.found:
        for name in ("src", "href", "srcset", "data", "action"):
            assert (attributes.get(name) or "data:").startswith("data:"), (tag, attributes)
        assert tag not in ("link", "iframe", "base", "object")
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style and "@import" not in style


def test_the_page_holds_plotly_once_and_is_under_6_mb(page: str) -> None:
    assert len(page.encode()) < 6_000_000
    assert len(re.findall(r"plotly\.js v\d", page)) == 1
    assert "sendChartToCloud" in page[page.index("const config") :]


def test_with_hundreds_of_classes_it_still_is_under_6_mb(report: EvalReport) -> None:
    names = tuple(f"class {n}" for n in range(365))
    many = report_of(*random_set(2, pictures=30, classes=365), names)
    many = EvalReport(**{**vars_of(many), "paths": report.paths, "worst_count": MOST})
    assert len(draw_page(many).encode()) < 6_000_000


def test_names_of_classes_and_files_stay_text(page: str) -> None:
    elements = Elements(page)
    assert [tag for tag, _ in elements.found].count("script") == 3
    assert "</script><b>x" not in page and "&lt;/script&gt;&lt;b&gt;x&lt;/b&gt;" in page
    assert "w&lt;e&gt;.pt" in page and "a &lt;note&gt;" in page and "漢字" in page
    assert "<i>" not in page[page.index("<body>") :]


def test_the_page_shows_the_worst_pictures(page: str, report: EvalReport) -> None:
    pictures = [attributes["src"] for tag, attributes in Elements(page).found if tag == "img"]
    assert len(pictures) == min(MOST, len(report.worst())) == MOST
    assert all(uri.startswith("data:image/jpeg;base64,") for uri in pictures)
    one = report.worst()[0]
    assert f"<b>{one.missed} missed of {one.objects}, {one.wrong} wrong</b>" in page


def test_the_values_of_the_page_are_those_of_the_report(page: str, report: EvalReport) -> None:
    text = page[page.index("const DATA = ") + len("const DATA = ") :]
    values = json.loads(text[: text.index(";</script>")].replace("<\\/", "</").replace("<\\!", "<!"))
    assert values["confusion"]["customdata"] == report.confusion().tolist()
    assert len(set(values["confusion"]["x"])) == len(ODD) + 1
    place = values["thresholds"].index(0.4)
    right, kept, objects = (values[k][0] for k in ("right", "kept", "objects"))
    assert right[place] / kept[place] == report.at(0.4).all.precision
    assert right[place] / objects == report.at(0.4).all.recall
    assert np.mean(values["recall"][-1]["y"]) == pytest.approx(report.ap50, abs=1e-4)


def test_a_picture_that_is_gone_is_named(report: EvalReport, tmp_path: Path) -> None:
    gone = EvalReport(**{**vars_of(report), "paths": tuple(str(tmp_path / f"{n}.png") for n in range(30))})
    with pytest.raises(PictureError, match=re.escape(str(tmp_path))):
        draw_page(gone)


def test_v08_without_objects_page_and_picture_say_so() -> None:
    empty = report_of([boxes()], [boxes()], ("a",))
    page = draw_page(empty)
    assert page.count('<b class="none">no objects</b>') == 6
    assert Image.open(io.BytesIO(draw_report(empty))).size[0] == WIDTH


def test_the_picture_is_a_png_that_grows_with_the_classes(report: EvalReport) -> None:
    few = Image.open(io.BytesIO(draw_report(report)))
    many_names = tuple(f"class {n}" for n in range(80))
    many = Image.open(io.BytesIO(draw_report(report_of(*random_set(1, classes=80), many_names))))
    assert few.format == "PNG" and few.size[0] == many.size[0] == WIDTH
    assert few.size[1] < many.size[1] < 2000
    assert len({*few.convert("RGB").get_flattened_data()}) > 50


@pytest.fixture(scope="module")
def tab() -> Iterator[Any]:
    with launched() as chromium:
        yield chromium.new_page(viewport={"width": 1280, "height": 900}, offline=True)


def test_a_browser_draws_it_offline_and_the_slider_moves_the_table(
    tab: Any, page: str, report: EvalReport, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    faults: list[str] = []
    asked: list[str] = []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(file.as_uri())
    tab.wait_for_function("() => document.querySelectorAll('.js-plotly-plot .main-svg').length >= 3")
    cells = tab.locator("#classes tbody tr").first.locator("td")
    assert cells.nth(3).inner_text() == f"{report.at().all.precision:.3f}"
    tab.locator("#threshold").evaluate(
        "(s) => { s.value = DATA.thresholds.indexOf(0.8); s.dispatchEvent(new Event('input')); }"
    )
    assert cells.nth(3).inner_text() == f"{report.at(0.8).all.precision:.3f}"
    assert cells.nth(4).inner_text() == f"{report.at(0.8).all.recall:.3f}"
    tab.locator("#best").click()
    assert cells.nth(3).inner_text() == f"{report.at().all.precision:.3f}"
    assert tab.evaluate("() => [...document.images].every((image) => image.naturalWidth > 100)")
    assert faults == [] and [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
