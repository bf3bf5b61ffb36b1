"""A data set as HTML that needs neither kernel nor script: findings, class balance, a page of small pictures."""

import base64
import html
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yolov9kit
from widgets.data_facets import to_do
from widgets.data_pictures import title_of_code
from widgets.grid import Pictures, Tile

PICTURES = 12
_PLACES = 5
"""Findings of a kind that are told one by one."""

_INK = "#777777"  # readable on white and on dark
STYLE = """<style>
.yk-said { margin: 2px 0 8px; padding: 0; list-style: none; line-height: 1.45; }
.yk-said > li { margin: 0 0 6px; overflow-wrap: anywhere; }
.yk-said ul { margin: 0; padding-left: 20px; }
.yk-said b { margin-right: 6px; padding: 0 5px; border: 1px solid currentColor; border-radius: 3px; font-size: 11px; }
.yk-said b.yk-error { color: #ffffff; background: #c62828; border-color: #c62828; }
.yk-said b.yk-warning { color: #000000; background: #ffb74d; border-color: #ffb74d; }
.yk-said small { color: var(--jp-ui-font-color2, inherit); font-size: 12px; }
</style>"""


def findings_html(findings: Sequence[Any], folder: Path) -> str:
    """Findings kind by kind, with what to do; of many of a kind the first few. ``folder`` is left out of file names."""
    items = []
    for severity, code, same in _by_kind(findings):
        told = "".join(f"<li>{html.escape(_below(str(one), folder))}</li>" for one in same[:_PLACES])
        rest = f"<li>and {len(same) - _PLACES:,} more: <code>yolov9kit doctor --all</code></li>"
        items.append(
            f'<li><b class="yk-{severity}">{severity}</b>{html.escape(title_of_code(code))}. '
            f"<small>{html.escape(to_do(code))}</small><ul>{told}{rest * (len(same) > _PLACES)}</ul></li>"
        )
    return (
        f'{STYLE}<ul class="yk-said" aria-label="Findings about the data set">{"".join(items)}</ul>'
        * bool(items)
    )


def static_html(summary: str, diagnosis: Any, explorer: Any, pictures: Pictures | None) -> str:
    """What was found, how many boxes each class has, and the first of ``pictures``."""
    first, *lines = html.escape(summary).split("\n")
    told = "".join(f"<div>{line}</div>" for line in lines)
    folder = Path(diagnosis.data)
    folder = folder if folder.is_dir() else folder.parent
    parts = [told, _findings_table(diagnosis.findings, folder)]
    if explorer is not None and pictures is not None:
        parts.append(balance_svg(explorer.names, explorer.class_counts(explorer.select()).tolist()))
        shown = pictures.tiles(range(min(PICTURES, len(pictures))))
        parts.append(
            f'<div style="display: flex; flex-wrap: wrap; gap: 10px">{"".join(map(_figure, shown))}</div>'
        )
    return (
        '<details style="font: 13px/1.45 system-ui, sans-serif">'
        f"<summary>Static copy: {first}</summary>{''.join(parts)}</details>"
    )


def _findings_table(findings: Sequence[Any], folder: Path) -> str:
    if not findings:
        return "<p>No findings.</p>"
    cell = 'style="padding: 2px 14px 2px 0; text-align: left; vertical-align: top"'
    rows = []
    for severity, code, same in _by_kind(findings):
        words = (severity, title_of_code(code), f"{len(same):,}", _below(str(same[0]), folder), to_do(code))
        rows.append("".join(f"<td {cell}>{html.escape(word)}</td>" for word in words))
    head = "".join(
        f'<th scope="col" {cell}>{name}</th>' for name in ("", "finding", "times", "the first", "what to do")
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    style = "border-collapse: collapse; margin: 6px 0"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _by_kind(findings: Sequence[Any]) -> list[tuple[str, str, list[Any]]]:
    """Severity, code and all findings of each kind, errors first."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    ranks = {"error": 0, "warning": 1}
    ordered = sorted(groups.items(), key=lambda item: ranks.get(item[0][0], 2))
    return [(severity, code, same) for (severity, code), same in ordered]


def _below(text: str, folder: Path) -> str:
    """Without the folder in front of file names."""
    for start in (str(folder.resolve()), str(folder)):  # the longer one first: it ends with the other
        text = text.replace(f"{start}{os.sep}", "")
    return text


def balance_svg(names: Sequence[str], counts: Sequence[int], most_classes: int = 40) -> str:
    """Boxes of each class as bars; of many classes those that have the most and, last, the fewest."""
    ranked = sorted(range(len(names)), key=lambda label: -counts[label])
    if len(ranked) > most_classes:
        ranked = ranked[: most_classes - 10] + ranked[-10:]
    elif len(ranked) <= 24:
        ranked.sort()
    most, left, width, line = max(1, *counts, 1), 130, 300, 18
    rows = []
    for k, label in enumerate(ranked):
        y, colour = k * line, "#{:02x}{:02x}{:02x}".format(*yolov9kit.class_colour(label))
        long = max(1.0 if counts[label] else 0.0, width * counts[label] / most)
        name = names[label] if len(names[label]) <= 20 else f"{names[label][:19]}…"
        rows.append(
            f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{html.escape(name)}</text>'
            f'<rect x="{left}" y="{y + 3}" width="{long:.1f}" height="{line - 6}" fill="{colour}"/>'
            f'<text x="{left + long + 6:.1f}" y="{y + 13}">{counts[label]:,}</text>'
        )
    height = line * len(ranked)
    about = html.escape("Boxes of each class: " + ", ".join(f"{names[i]} {counts[i]:,}" for i in ranked))
    return (
        f'<svg viewBox="0 0 {left + width + 80} {height}" '
        f'width="{left + width + 80}" height="{height}" role="img" aria-label="{about}" '
        f'style="max-width: 100%; height: auto" font-family="system-ui, sans-serif" font-size="11" fill="{_INK}">'
        f"{''.join(rows)}</svg>"
    )


def _figure(tile: Tile) -> str:
    name = html.escape(tile.title)
    said = "".join(
        f"<div>{html.escape(f'{mark.severity}: {mark.text}')}</div>" for mark in list(tile.marks)[:3]
    )
    caption = f'<figcaption style="font-size: 11px; overflow-wrap: anywhere">{name}{said}</figcaption>'
    style = "width: 150px; margin: 0"
    if not tile.file:
        return f'<figure style="{style}"><div>{html.escape(tile.error)}</div>{caption}</figure>'
    address = f"data:{tile.mime};base64,{base64.b64encode(tile.file).decode('ascii')}"
    width, height = tile.picture_wh
    line = max(width, height) / 100
    boxes = "".join(
        f'<rect x="{x1:.1f}" y="{y1:.1f}" width="{x2 - x1:.1f}" height="{y2 - y1:.1f}" fill="none" '
        f'stroke="#{_hex(label)}" stroke-width="{line:.1f}"/>'
        for (x1, y1, x2, y2), label in zip(tile.boxes.tolist()[:100], tile.labels.tolist(), strict=False)
    )
    about = html.escape(f"{tile.title}: {len(tile.labels)} boxes")
    return (
        f'<figure style="{style}"><div style="position: relative"><img src="{address}" alt="{about}" '
        f'style="display: block; width: 100%; height: auto"><svg '
        f'viewBox="0 0 {width} {height}" style="position: absolute; inset: 0; width: 100%; height: 100%" '
        f'aria-hidden="true">{boxes}</svg></div>{caption}</figure>'
    )


def _hex(label: int) -> str:
    return "{:02x}{:02x}{:02x}".format(*yolov9kit.class_colour(label)) if label >= 0 else "9aa0a6"
