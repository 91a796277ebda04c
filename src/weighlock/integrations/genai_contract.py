"""What is relied on of the SDK beside its public face: looked at when the client is imported."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import google.genai
from google.genai.models import AsyncModels, Models

from weighlock.errors import ConfigError

_PRIVATE = ("_generate_content", "_generate_content_stream")
_CALLERS = {
    "_generate_content": "_generate_content_with_continuation",
    "_generate_content_stream": "_generate_content_stream_with_continuation",
}
_TAKEN = {"model", "contents", "config"}
CLIENT = frozenset(
    {"models", "chats", "caches", "batches"}
    | {"aio", "files", "operations", "vertexai", "close", "aclose"}
    | {"webhooks", "environments", "credentials", "voices"}
)
"""Attributes of a client whose requests go through the line, and those through which no model is asked.

Not `auth_tokens`, with which others ask one past every budget, nor `file_search_stores`, which embed what is put there.
"""
MODELS = frozenset(
    {"generate_content", "generate_content_stream", "count_tokens", "embed_content"}
    | {"compute_tokens", "delete", "get", "list", "update", "vertexai"}
)
"""The same of `models`."""
CACHES = frozenset({"create", "delete", "get", "list", "update", "vertexai"})
"""The same of `caches`."""
BATCHES = frozenset({"create", "cancel", "delete", "get", "list", "vertexai"})
"""The same of `batches`."""


def demand_contract() -> None:
    """Does nothing where the SDK is as it is relied on.

    Raises:
        ConfigError: this version of it is put together differently.
    """
    if broken := list(_broken()):
        raise ConfigError(
            f"weighlock.Client does not know google-genai {google.genai.__version__}: {'; '.join(broken)}. Use a "
            "version it is tested with (2.34, 3.6), or call prepare and settle around the SDK's own client"
        )


def _broken() -> Iterator[str]:
    for models in (Models, AsyncModels):
        for name in _PRIVATE:
            method = getattr(models, name, None)
            if method is None:
                yield f"{models.__name__}.{name} is gone"
                continue
            taken = inspect.signature(method).parameters.values()
            names = {one.name for one in taken if one.kind is inspect.Parameter.KEYWORD_ONLY}
            if names != _TAKEN:
                yield f"{models.__name__}.{name} takes {', '.join(sorted(names)) or 'nothing by name'}"
            if not _is_called(models, name):
                yield f"{models.__name__}.{name} is not what its public methods call"


def _is_called(models: type, name: str) -> bool:
    callers = (_CALLERS[name], name.removeprefix("_"))
    sources = [inspect.getsource(found) for caller in callers if (found := getattr(models, caller, None))]
    return any(f"self.{name}(" in source for source in sources)


def uncovered(plain: type, known: frozenset[str]) -> list[str]:
    """Public attributes of a class of the SDK's, also of one to come, that are not known to be weighed or harmless."""
    return sorted({name for name, _ in inspect.getmembers(plain) if not name.startswith("_")} - known)
