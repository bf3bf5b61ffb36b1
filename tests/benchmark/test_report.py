"""The report in words, as JSON and as a page: nothing too wide, no NaN, nothing loaded, nothing lost when stopped."""

import json
import re
from html.parser import HTMLParser

import pytest

from tests.benchmark.made_report import FULL, TOO_LARGE, full_row, made_report, plain_row
from yolov9kit.benchmark.page import draw_page
from yolov9kit.benchmark.record import MEANINGS, SCHEMA, as_record
from yolov9kit.benchmark.report import BenchmarkReport
from yolov9kit.benchmark.text import WIDTH, duration, plan_text, table

ALL, NONE, STOPPED = made_report(), made_report(()), made_report((plain_row(),))
REPORTS = pytest.mark.parametrize("report", [ALL, NONE, STOPPED], ids=["all", "none", "stopped"])


@REPORTS
def test_no_line_is_too_wide(report: BenchmarkReport) -> None:
    lines = (table(report) + "\n" + plan_text(report.plan)).splitlines()
    assert max(map(len, lines)) <= WIDTH


@REPORTS
def test_json_is_strict_and_comes_back(report: BenchmarkReport) -> None:
    record = as_record(report)
    assert json.loads(json.dumps(record, allow_nan=False)) == record | {
        name: json.loads(json.dumps(record[name])) for name in ("settings", "rows", "refused")
    }
    assert record["schema"] == SCHEMA and record["complete"] == report.complete


def test_times_and_sizes_carry_their_unit_in_json() -> None:
    row = as_record(ALL)["rows"][0]
    assert MEANINGS.keys() - row.keys() == {"first_ms"}  # which stands in network
    assert row["network"]["first_ms"] == 30123.4 and row["network"]["count"] == 3 and row["network"]["capped"]
    assert row["floor"]["floor_ms"] == 2.9 and row["memory"]["peak_mib"] == 141312.0
    assert row["difference"]["lost"] == 1 and row["difference"]["new"] == 2
    assert row["end_to_end"]["nms"]["median_ms"] == 45678.9
    assert (row["precision"], row["precision_native"], row["mode"]) == ("bf16", False, "compiled")


def test_what_was_not_measured_is_null_with_its_reason() -> None:
    _, plain, failed = as_record(ALL)["rows"]
    assert (
        failed["network"] is None
        and failed["pictures_per_s"] is None
        and "not enough memory" in failed["error"]
    )
    assert plain["error"] is None and plain["latency"] is None and plain["difference"]["mean_iou"] is None
    assert plain["usage"]["missing"] == {"power_w": "the driver does not tell"}


def test_the_table_names_what_went_wrong_and_what_was_refused() -> None:
    text = table(ALL)
    assert f"not enough memory for {TOO_LARGE}: take a smaller batch or size" in text
    assert "cannot be had: fp32, onnx: mode onnx: is for a processor in fp32" in text
    assert f"{FULL}: the seconds were over after 3 of 500 timed runs" in text
    assert "emulated" in text and f"unsteady, as if others use the device too: {FULL}" in text
    assert "not known: power_w (the driver does not tell)" in text
    assert "faster than the floor" in text


def test_a_row_that_needs_no_remark_has_none() -> None:
    text = table(STOPPED)
    assert not any(word in text for word in ("unsteady", "emulated", "seconds were over", "faster than"))
    assert "stopped after 1 of 3 rows" in text


def test_the_mean_of_the_network_makes_the_rate() -> None:
    assert plain_row().pictures_per_s == pytest.approx(64 * 1000 / 11)


class Page(HTMLParser):
    """What a page has, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "srcset", "data")]
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@REPORTS
def test_the_page_is_whole_and_loads_nothing(report: BenchmarkReport) -> None:
    text = draw_page(report)
    page = Page(text)
    assert page.open == [] and page.loads == []
    assert not re.search(r"https?:|@import|url\(|<script", text) and "$" not in text
    assert "prefers-color-scheme: dark" in text


def test_the_page_shows_the_same_numbers_and_escapes_names() -> None:
    text = draw_page(ALL)
    shown = "".join(Page(text).texts)
    assert "runs/<exp>/best.pt" in shown and "a <remark> & more" in shown and "<exp>" not in text
    assert "12344 -1 +2" in shown and "0.9870" in shown and "not enough memory" in shown
    assert "2 of 3 rows" in "".join(Page(draw_page(made_report((full_row(), plain_row())))).texts)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "0 s"), (99.0, "99 s"), (100.0, "2 minutes"), (7200.0, "2.0 hours")]
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
