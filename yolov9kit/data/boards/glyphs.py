"""Letters and digits for the drawn boards: pen strokes on a grid of 3 columns and 5 rows, as a plotter draws them."""

from yolov9kit.data.boards.raster import Shapes

_WIDTH = 3  # grid columns of a letter with the space after it

# each word is one stroke; each pair of digits is a column and a row, counted from the top left
_STROKES = {
    "A": "040110120422 0323",
    "B": "00041423221202 0010211202",
    "C": "211001031423",
    "D": "0004142321100000",
    "E": "20000424 0212",
    "F": "200004 0212",
    "G": "21100103142322 2212",
    "H": "0004 2024 0222",
    "J": "2023140403",
    "K": "0004 2002 0224",
    "L": "000424",
    "M": "0400122024",
    "N": "04002420",
    "P": "000010211202 0204",
    "Q": "100103142321 1321 1324",
    "R": "000010211202 0204 1224",
    "S": "21100112231403",
    "T": "0020 1014",
    "U": "0003142320",
    "V": "001420",
    "X": "0024 2004",
    "Y": "0012 2012 1214",
    "Z": "00200424",
    "0": "100103142321 1021",
    "1": "011014 0424",
    "2": "0110210424",
    "3": "00201223140403",
    "4": "1401 0323 1014",
    "5": "2000021223140403",
    "6": "2010010314232212",
    "7": "002014",
    "8": "1021031423011001",
    "9": "2201102123140403",
    "+": "0222 1113",
    "-": "0222",
}
LETTERS = tuple(_STROKES)


def text(words: str, left: int, top: int, unit: int, pen: int, upright: bool = False) -> Shapes:
    """The strokes of ``words`` from their top left corner on; all lengths in sixteenths of a pixel.

    Args:
        unit: the distance of two grid lines: a letter is 2 units wide and 4 high.
        pen: half the width of a stroke.
        upright: turned by a quarter, to be read from below.
    """
    shapes = Shapes()
    for place, letter in enumerate(words):
        for stroke in _STROKES[letter].split():
            grid = [(int(stroke[i]) + _WIDTH * place, int(stroke[i + 1])) for i in range(0, len(stroke), 2)]
            points = [(y, -x) for x, y in grid] if upright else grid
            shapes.line([(left + x * unit, top + y * unit) for x, y in points], pen)
    return shapes
