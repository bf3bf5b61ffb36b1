"""Which findings are about which picture, for each way in which files belong together."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from yolov9kit.data.findings import Finding
from yolov9kit.explore.finding_index import index_findings
from yolov9kit.explore.item import Entry


def entry(picture: str, label_path: str | None, *rows: int) -> Entry:
    count = len(rows)
    return Entry(
        Path("/set/images") / picture,
        0,
        (10, 10),
        np.tile(np.array([1, 1, 5, 5], np.float32), (count, 1)),
        np.zeros(count, np.int64),
        None if label_path is None else Path("/set") / label_path,
        np.array(rows) if rows else None,
    )


def said(path: str, line: int | None = None, code: str = "label_clipped", severity: str = "note") -> Finding:
    return Finding(code, severity, Path("/set") / path, "said", line)


def test_picture_and_label_file_lead_to_the_picture() -> None:
    entries = [entry("a.png", "labels/a.txt", 1, 2), entry("b.png", None)]
    about_a = [said("images/a.png"), said("labels/a.txt"), said("labels/a.txt", 2)]
    index = index_findings(
        [*about_a, said("images/b.png"), said("data.yaml"), said("labels/z.txt", 1)], entries
    )
    assert index.of_picture == {0: about_a, 1: [said("images/b.png")]}
    assert index.of_data == [said("data.yaml"), said("labels/z.txt", 1)]
    assert index.pictures["label_clipped"].tolist() == [0, 1]
    assert [entries[0].row_of(finding) for finding in about_a] == [-1, -1, 1]


def test_two_pictures_that_share_a_label_file_share_its_findings() -> None:
    entries = [
        entry("a.png", "labels/a.txt", 1),
        entry("a.jpg", "labels/a.txt", 1),
        entry("b.png", "labels/b.txt", 1),
    ]
    for line in (None, 1, 2):  # in line 2 stands no box: it was left out
        assert set(index_findings([said("labels/a.txt", line)], entries).of_picture) == {0, 1}


def test_one_file_for_all_pictures_belongs_to_none() -> None:
    entries = [entry("a.png", "all.json"), entry("b.png", "all.json")]
    index = index_findings([said("all.json"), said("all.json", 3)], entries)
    assert (index.of_picture, len(index.of_data)) == ({}, 2)


def test_what_reading_a_picture_found_in_such_a_file_is_about_that_picture() -> None:
    entries = [entry("a.png", "all.json"), entry("b.png", "all.json")]
    found = replace(said("all.json"), picture=Path("/set/images/b.png"))
    assert index_findings([found], entries).of_picture == {1: [found]}


def test_a_line_of_one_file_for_all_pictures_leads_to_its_box() -> None:
    entries = [entry("a.png", "all.csv", 2, 5), entry("b.png", "all.csv", 3, 4)]
    index = index_findings([said("all.csv", 4), said("all.csv", 9)], entries)
    assert (index.of_picture, index.of_data) == ({1: [said("all.csv", 4)]}, [said("all.csv", 9)])
    assert entries[1].row_of(said("all.csv", 4)) == 1


def test_a_picture_in_two_splits_has_its_findings_in_both() -> None:
    index = index_findings([said("images/a.png")], [entry("a.png", None), entry("a.png", None)])
    assert set(index.of_picture) == {0, 1}


@pytest.mark.parametrize("code", ["duplicate_inside", "duplicate_across", "near_inside", "near_across"])
def test_a_finding_about_two_pictures_is_about_both(code: str) -> None:
    pair = Finding(code, "warning", Path("/set/images/b.png"), "said", value="/set/images/a.png")
    entries = [entry("a.png", None), entry("b.png", None), entry("c.png", None)]
    assert index_findings([pair], entries).pictures[code].tolist() == [0, 1]


def test_a_finding_that_counts_pictures_is_about_each_of_them() -> None:
    """In split 0; what is alike in split 1 has a finding of its own, or none."""
    entries = [
        entry("a.png", "labels/a.txt", 1),
        entry("b.png", None),
        entry("c.png", None),
        entry("d.png", "labels/d.txt"),
        entry("e.png", "labels/e.txt"),
        entry("f.png", "labels/f.txt"),  # its only row is left out
        entry("g.png", "images/g.txt", 1),
        entry("h.png", "images/h.txt", 1),
        replace(entry("broken.png", None), size_wh=(0, 0)),
        replace(entry("z.png", None), split=1),
        replace(entry("y.png", "images/y.txt"), split=1),
    ]
    found = [
        said("images/b.png", code="label_missing"),
        said("labels/d.txt", code="label_empty"),
        said("images/g.txt", code="label_beside"),
        said("labels/f.txt", 1, code="label_number", severity="error"),
    ]
    pictures = {code: numbers.tolist() for code, numbers in index_findings(found, entries).pictures.items()}
    assert pictures == {
        "label_number": [5],
        "label_beside": [6, 7],
        "label_empty": [3, 4],
        "label_missing": [1, 2],
    }


def test_findings_count_once_and_the_worst_severity_stands_for_a_code() -> None:
    found = [said("images/a.png"), said("images/a.png"), said("images/b.png", severity="error")]
    index = index_findings(
        [*found, said("images/b.png", code="picture_end")], [entry("a.png", None), entry("b.png", None)]
    )
    assert index.severity == {"label_clipped": "error", "picture_end": "note"}
    assert list(index.pictures) == ["label_clipped", "picture_end"]
    assert index.counts.tolist() == [[0, 0, 1], [1, 0, 1]]
