"""Media type and stored size from the bytes. Pure: whoever calls does the reading."""

from weighlock.mime.aliases import agrees, canonical, is_text, spelling
from weighlock.mime.ending import ends_early, stops_short
from weighlock.mime.file_names import declared_from_name, refine_text
from weighlock.mime.image_size import ImageSize, image_size
from weighlock.mime.sniff import sniff
from weighlock.mime.sniffed import Flag, Sniffed
from weighlock.mime.textual import encoding_of as text_encoding
from weighlock.mime.window import HEAD_BYTES, Window

__all__ = [
    "HEAD_BYTES",
    "Flag",
    "ImageSize",
    "Sniffed",
    "Window",
    "agrees",
    "canonical",
    "declared_from_name",
    "ends_early",
    "image_size",
    "is_text",
    "refine_text",
    "sniff",
    "spelling",
    "stops_short",
    "text_encoding",
]
