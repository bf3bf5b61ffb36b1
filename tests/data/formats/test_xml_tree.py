"""XML files as trees: lines, encodings, and what is refused."""

from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yolov9kit.data.formats.xml_tree import XmlError, parse_xml, read_xml, root_tag

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc"), max_codepoint=0xFFFD), max_size=20)


@given(
    texts=st.lists(TEXT, max_size=5), encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "gb18030"])
)
def test_what_is_written_is_read_with_its_line(texts: list[str], encoding: str) -> None:
    rows = "".join(f"\n<b><c>{escape(text)}</c></b>" for text in texts)
    written = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>\n<a x="1">{rows}</a>'
    root = parse_xml(written.encode(encoding))
    assert root.tag == "a" and root.attributes == {"x": "1"} and root.line == 2
    assert [node.text_of("c") for node in root.all("b")] == [text.strip() for text in texts]
    assert [node.line for node in root.all("b")] == list(range(3, 3 + len(texts)))
    assert root.first("c") is None and root.text_of("c") == ""


@given(
    content=st.binary(max_size=200) | st.text("<>/ab!?[]&;\"'= \nxmlencoding-8", max_size=200).map(str.encode)
)
@settings(max_examples=200)
def test_any_bytes_are_a_tree_or_refused(content: bytes) -> None:
    try:
        root = parse_xml(content)
    except XmlError as fault:
        message, line = str(fault), fault.line
    else:
        message, line = root.tag, root.line
    assert message and (line is None or line >= 1)


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY x "y">',
        '<!ENTITY x SYSTEM "file:///etc/hostname">',
        '<!ENTITY x PUBLIC "p" "http://localhost/x">',
        '<!ENTITY % x SYSTEM "http://localhost/x"> %x;',
        '<!ENTITY x "&#60;">',
    ],
)
@pytest.mark.parametrize("use", ["", "&x;"])
def test_declared_entities_are_refused_whether_used_or_not(declaration: str, use: str) -> None:
    with pytest.raises(XmlError, match="declares the entity 'x'") as caught:
        parse_xml(f"<!DOCTYPE a [\n{declaration}]><a>{use}</a>".encode())
    assert caught.value.line == 2


def test_a_plain_document_type_and_the_usual_characters_are_fine() -> None:
    assert parse_xml(b"<!DOCTYPE a [<!ELEMENT a (#PCDATA)>]><a>&lt;&amp;&#65;</a>").text == "<&A"


@pytest.mark.parametrize("deep", [100, 101])
def test_elements_lie_a_hundred_deep_at_most(deep: int) -> None:
    content = b"<a>" * deep + b"</a>" * deep
    if deep == 100:
        assert parse_xml(content).tag == "a"
        return
    with pytest.raises(XmlError, match="more than 100 deep"):
        parse_xml(content)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(XmlError, match="No such file"):
        read_xml(tmp_path / "a.xml")
    assert root_tag(tmp_path / "a.xml") == ""


@pytest.mark.parametrize(
    ("content", "tag"),
    [
        ("<a/>", "a"),
        ('\ufeff<?xml version="1.0"?>\n<!-- <b/> -->\n<!DOCTYPE a>\n<a x="<"/>', "a"),
        ("<annotations><image/></annotations>", "annotations"),
        ("text <a/>", ""),
        ("", ""),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_root_is_told_from_the_beginning(tmp_path: Path, content: str, tag: str, encoding: str) -> None:
    (tmp_path / "a.xml").write_bytes(content.removeprefix("\ufeff" * (encoding == "utf-16")).encode(encoding))
    assert root_tag(tmp_path / "a.xml") == tag
