"""The only place that opens media. FFmpeg, Pillow and the PDF libraries are loaded in a confined worker, never in the host."""

from weighlock.codecs.limits import Confinement, ProbeLimits
from weighlock.codecs.prober import Prober, descriptor_of, probe_bytes, versions
from weighlock.codecs.text import text_facts

__all__ = ["Confinement", "ProbeLimits", "Prober", "descriptor_of", "probe_bytes", "text_facts", "versions"]
