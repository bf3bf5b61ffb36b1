"""``python -m yolov9kit`` is the command ``yolov9kit``."""

import sys

from yolov9kit.cli import main

sys.exit(main())
