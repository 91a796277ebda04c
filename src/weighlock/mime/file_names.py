"""What a file name claims. A claim is compared with the bytes, and may refine plain text; it never decides."""

from __future__ import annotations

_CLAIMS: dict[str, str] = {
    extension: mime
    for mime, extensions in {
        "image/png": "png apng",
        "image/jpeg": "jpg jpeg jpe jfif pjpeg pjp mpo",
        "image/webp": "webp",
        "image/gif": "gif",
        "image/bmp": "bmp dib",
        "image/heic": "heic heics hif",
        "image/heif": "heif heifs",
        "image/avif": "avif avifs",
        "image/tiff": "tif tiff",
        "image/svg+xml": "svg",
        "image/vnd.adobe.photoshop": "psd",
        "image/x-icon": "ico",
        "image/jp2": "jp2",
        "image/jxl": "jxl",
        "audio/mpeg": "mp3 mp2 mpga",
        "audio/mp4": "m4a m4b",
        "audio/wav": "wav wave",
        "audio/ogg": "ogg oga opus spx",
        "audio/flac": "flac",
        "audio/aac": "aac adts",
        "audio/aiff": "aif aiff aifc",
        "audio/amr": "amr",
        "audio/ac3": "ac3",
        "audio/eac3": "eac3 ec3",
        "audio/midi": "mid midi",
        "audio/webm": "weba",
        "audio/x-matroska": "mka",
        "audio/x-ms-wma": "wma",
        "audio/x-wavpack": "wv",
        "audio/x-musepack": "mpc",
        "audio/x-caf": "caf",
        "audio/basic": "au snd",
        "video/mp4": "mp4 m4v mp4v",
        "video/quicktime": "mov qt",
        "video/webm": "webm",
        "video/x-matroska": "mkv",
        "video/x-msvideo": "avi",
        "video/mpeg": "mpeg mpg mpe m1v m2v vob",
        "video/x-ms-wmv": "wmv",
        "video/x-flv": "flv",
        "video/3gpp": "3gp 3gpp",
        "video/3gpp2": "3g2",
        "video/ogg": "ogv",
        "video/mp2t": "m2ts",
        "application/pdf": "pdf",
        "text/plain": "txt text log",
        "text/markdown": "md markdown",
        "text/csv": "csv",
        "text/tab-separated-values": "tsv",
        "text/html": "html htm xhtml",
        "text/css": "css",
        "text/xml": "xml",
        "text/rtf": "rtf",
        "text/vtt": "vtt",
        "text/calendar": "ics",
        "text/vcard": "vcf",
        "application/json": "json",
        "application/x-ndjson": "jsonl ndjson",
        "application/zip": "zip",
        "application/gzip": "gz svgz",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
        "application/epub+zip": "epub",
    }.items()
    for extension in extensions.split()
}
"""Extensions that mean one thing. Those that mean several claim nothing: `.ts` (MPEG or TypeScript), `.mts`, `.mod`,
`.m`, `.adp`, `.cu`, `.asf`. Our own table, because the system's differs from machine to machine."""

_REFINEMENTS: dict[str, frozenset[str]] = {
    "text/plain": frozenset({"text/markdown", "text/csv", "text/tab-separated-values", "text/html", "text/css"}),
    # A Markdown table or list can look like comma-separated values, and one line of JSON lines like JSON.
    "text/csv": frozenset({"text/markdown"}),
    "application/json": frozenset({"application/x-ndjson"}),
}


def extension(file_name: str) -> str:
    """The part after the last dot of the last path component, lower case; empty where there is none."""
    stem, _, suffix = file_name.replace("\\", "/").rpartition("/")[2].rpartition(".")
    return suffix.lower() if stem else ""


def declared_from_name(file_name: str) -> str | None:
    """The MIME type a file name claims; `None` where its extension is unknown or means several things."""
    return claim_of(extension(file_name))


def claim_of(extension: str) -> str | None:
    """What one extension claims, given without its dot and in lower case."""
    return _CLAIMS.get(extension)


def refine_text(mime: str, file_name: str) -> str:
    """A finer name for text whose bytes leave its flavour open: `.md` → text/markdown, `.csv` → text/csv.

    Only from one flavour of text to another: bytes that are not text keep their type whatever they are called, and
    code stays text/plain, which is what the service takes.
    """
    claim = declared_from_name(file_name)
    return claim if claim is not None and claim in _REFINEMENTS.get(mime, ()) else mime
