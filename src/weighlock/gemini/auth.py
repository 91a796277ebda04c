"""Who asks. A key or token goes into a header and nowhere else: no URL, log, error, repr.

The door to `google.auth`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn, Protocol

from weighlock.errors import ConfigError, ServiceUnreachable
from weighlock.io import Io
from weighlock.locks import Lock

if TYPE_CHECKING:
    import google.auth.credentials

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


class Credential(Protocol):
    """Proof of who asks."""

    @property
    def refreshable(self) -> bool:
        """Whether asking again with `fresh` may help after a 401."""
        ...

    async def headers(self, io: Io, *, fresh: bool = False) -> Mapping[str, str]:
        """What every request carries.

        Raises:
            ConfigError: there is no usable key or login.
            ServiceUnreachable: whoever hands out tokens does not answer.
        """
        ...

    def hidden(self) -> tuple[str, ...]:
        """The secrets it has handed out, to be taken out of whatever the service says."""
        ...


class ApiKey:
    """A key of the Developer API, or of Vertex in express mode."""

    __slots__ = ("_key",)
    refreshable = False

    def __init__(self, key: str) -> None:
        """Surrounding blanks, as a file's line end, are taken off.

        Raises:
            ConfigError: it is empty, or no header can hold it.
        """
        self._key = key.strip()
        if not self._key or not self._key.isascii() or not self._key.isprintable() or " " in self._key:
            raise ConfigError("the API key is empty, or holds blanks or characters no key has")

    def __repr__(self) -> str:
        return "ApiKey(…)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is neither stored nor copied; make the ApiKey where it is needed")

    async def headers(self, io: Io, *, fresh: bool = False) -> Mapping[str, str]:
        return {"x-goog-api-key": self._key}

    def hidden(self) -> tuple[str, ...]:
        return (self._key,)


class GoogleLogin:
    """Tokens of google-auth: the application default login, or credentials of the caller's. Thread-safe."""

    __slots__ = ("_credentials", "_lock", "_token")
    refreshable = True

    def __init__(self, credentials: google.auth.credentials.Credentials | None = None) -> None:
        self._credentials = credentials
        self._lock = Lock()
        self._token: str | None = None

    def __repr__(self) -> str:
        return "GoogleLogin(…)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a login is neither stored nor copied; make the GoogleLogin where it is needed")

    async def headers(self, io: Io, *, fresh: bool = False) -> Mapping[str, str]:
        known = self._credentials
        if fresh or known is None or not known.valid:
            known = await io.call(self._refreshed, known.token if fresh and known is not None else None)
        self._token = known.token
        billed = getattr(known, "quota_project_id", None)
        return {"authorization": f"Bearer {known.token}"} | ({"x-goog-user-project": billed} if billed else {})

    def hidden(self) -> tuple[str, ...]:
        return (self._token,) if self._token else ()

    def _refreshed(self, refused: str | None) -> google.auth.credentials.Credentials:
        """The login with a token that is valid and not the `refused` one. One refresh serves all who wait for it."""
        import google.auth
        import google.auth.exceptions
        import google.auth.transport.requests

        with self._lock:
            try:
                if self._credentials is None:
                    self._credentials, _ = google.auth.default(scopes=_SCOPES)
                if not self._credentials.valid or self._credentials.token == refused:
                    self._credentials.refresh(google.auth.transport.requests.Request())  # type: ignore[no-untyped-call]
            except google.auth.exceptions.DefaultCredentialsError:
                raise ConfigError(
                    "no Google login here; run `gcloud auth application-default login`, or set "
                    "GOOGLE_APPLICATION_CREDENTIALS"
                ) from None
            except google.auth.exceptions.TransportError as error:
                raise ServiceUnreachable(
                    f"no token: the login service does not answer ({type(error).__name__})",
                    unsent=True,
                    timed_out=False,
                ) from None
            except google.auth.exceptions.GoogleAuthError as error:  # their texts quote the answer, tokens and all
                raise ConfigError(f"the Google login gives no token ({type(error).__name__}); log in again") from None
            return self._credentials
