"""What the GPU and the processor do while something runs: sampled in a thread, kept for a while, sent nowhere."""

from yolov9kit.telemetry.sample import UTILISATION, Facts, Sample, telemetry_series
from yolov9kit.telemetry.sampler import Sampler

__all__ = ["UTILISATION", "Facts", "Sample", "Sampler", "telemetry_series"]
