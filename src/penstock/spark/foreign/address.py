"""From the address that a user has to the one application that is watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from penstock.core.errors import EngineError, InputError, MissingError, unknown
from penstock.spark.read.http import (
    Endpoint,
    Limits,
    NotSparkError,
    RefusedError,
    strange_answers,
)

# The first part of a path that belongs to a UI itself; what stands before it is a proxy's.
_PAGES = {
    "api", "jobs", "stages", "storage", "environment", "executors", "sql", "streaming",
    "streamingquery", "connect", "home", "static",
}  # fmt: skip
FIRST_ANSWER = 60.0  # seconds: a driver sets up its REST interface when it is first asked
LISTED = 10  # applications that an error names


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One application and where its interface is.

    base: the UI's address without a slash at its end
    attempt: on YARN, where an application may have several
    spark: the version of Spark
    ended: whether the application has
    """

    base: str
    id: str
    name: str
    attempt: str | None = None
    spark: str | None = None
    ended: bool = False

    @property
    def path(self) -> str:
        """Its part of the path below ``/api/v1/applications``."""
        return self.id if self.attempt is None else f"{self.id}/{self.attempt}"


def find(url: str, app: str | None = None, *, ended: bool = False) -> Application:
    """The application at an address: a driver's UI, a proxy's path, a history server, a master.

    ``app`` is its id, needed where there are several · ``ended`` whether one that has ended will
    do, as a history server has them.
    """
    base, named = split(url)
    wanted = app or named
    try:
        return _at(_patient(base), wanted, ended=ended)
    except NotSparkError as error:
        raise InputError(
            f"--app-url {url} is not a Spark UI: {error}. Give the address of the driver's UI, "
            "as the driver's log names it (mostly http://DRIVER:4040)"
        ) from error
    except RefusedError as error:
        raise MissingError(
            f"{error}. Is the application running, spark.ui.enabled true, and the port right "
            "(4040, or 4041, 4042 … where several drivers share a host)?"
        ) from error
    except EngineError as error:
        raise MissingError(f"cannot read the Spark UI: {error}") from error


def split(url: str) -> tuple[str, str | None]:
    """The address of a UI without the page, and the application that the page is about.

    >>> split("localhost:4040/jobs/")
    ('http://localhost:4040', None)
    >>> split("https://rm:8090/proxy/application_17_0042/executors/")
    ('https://rm:8090/proxy/application_17_0042', None)
    >>> split("http://history:18080/history/app-1/jobs/")
    ('http://history:18080', 'app-1')
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise InputError(f"--app-url {url!r} must look like http://HOST:4040")
    if "@" in parts.netloc:
        raise InputError("--app-url cannot hold a user and a password; use a tunnel that logs in")
    kept: list[str] = []
    segments = [s for s in parts.path.split("/") if s]
    for at, segment in enumerate(segments):
        after_proxy = at > 0 and segments[at - 1] == "proxy"
        if segment == "history" and at + 1 < len(segments):
            return _joined(parts.scheme, parts.netloc, kept), segments[at + 1]
        if segment.lower() in _PAGES and not after_proxy:
            if segments[at : at + 3] == ["api", "v1", "applications"] and len(segments) > at + 3:
                return _joined(parts.scheme, parts.netloc, kept), segments[at + 3]
            break
        kept.append(segment)
    return _joined(parts.scheme, parts.netloc, kept), None


def refreshed(application: Application, endpoint: Endpoint) -> Application:
    """The same application as it is now; ``NotSparkError`` if it is no longer at its address."""
    found = endpoint.get(f"/api/v1/applications/{application.id}")
    return _application(application.base, found, application.attempt)


def _joined(scheme: str, host: str, path: Sequence[str]) -> str:
    return "/".join([f"{scheme}://{host}", *path])


def _patient(base: str) -> Endpoint:
    return Endpoint(base, timeout=FIRST_ANSWER, limits=Limits(seconds=FIRST_ANSWER))


def _at(endpoint: Endpoint, wanted: str | None, *, ended: bool) -> Application:
    with endpoint.budget(), strange_answers():
        return _found(endpoint, wanted, ended=ended)


def _found(endpoint: Endpoint, wanted: str | None, *, ended: bool) -> Application:
    try:
        documents = endpoint.get("/api/v1/applications")
    except NotSparkError:
        return _below_master(endpoint, wanted, ended=ended)
    if not isinstance(documents, list):
        raise NotSparkError(f"no list of applications at {endpoint.base}/api/v1/applications")
    known = {str(d.get("id")): d for d in documents if isinstance(d, Mapping)}
    if not known:
        raise InputError(f"{endpoint.base} knows no application yet")
    chosen = _choose(endpoint.base, {id: str(d.get("name")) for id, d in known.items()}, wanted)
    application = _application(endpoint.base, known[chosen], None)
    if application.ended and not ended:
        raise InputError(
            f"application {application.id} ({application.name}) has ended; advise watches one "
            "that runs"
        )
    return application


def _choose(base: str, names: Mapping[str, str], wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in names:
            raise unknown(f"application at {base}:", wanted, names)
        return wanted
    if len(names) == 1:
        return next(iter(names))
    listed = "".join(f"\n  {id}  {name}" for id, name in list(names.items())[:LISTED])
    more = f"\n  … and {len(names) - LISTED} more" if len(names) > LISTED else ""
    raise InputError(
        f"{base} has {len(names)} applications; choose one with --app ID:{listed}{more}"
    )


def _below_master(endpoint: Endpoint, wanted: str | None, *, ended: bool) -> Application:
    """A standalone master's page lists applications; it passes their UIs on only if told to."""
    page = endpoint.get("/json/")
    if not isinstance(page, Mapping) or not isinstance(page.get("activeapps"), list):
        raise NotSparkError(f"neither a driver's nor a master's page at {endpoint.base}")
    names = {str(a["id"]): str(a.get("name")) for a in page["activeapps"]}
    if not names:
        raise InputError(f"the master at {endpoint.base} has no running application")
    chosen = _choose(endpoint.base, names, wanted)
    try:
        return _at(_patient(f"{endpoint.base}/proxy/{quote(chosen)}"), chosen, ended=ended)
    except EngineError as error:
        raise InputError(
            f"{endpoint.base} is a standalone master that does not pass on the UI of {chosen} "
            f"({names[chosen]}): spark.ui.reverseProxy is off. Give the driver's own address, "
            "which the application's name on that page links to (mostly http://DRIVER:4040)"
        ) from error


def _application(base: str, document: Mapping[str, Any], attempt: str | None) -> Application:
    attempts = document.get("attempts")
    if not isinstance(attempts, list) or not attempts:
        raise NotSparkError(f"an application without attempts at {base}")
    found = next((a for a in attempts if a.get("attemptId") == attempt), attempts[0])
    return Application(
        base=base,
        id=str(document["id"]),
        name=str(document.get("name") or document["id"]),
        attempt=found.get("attemptId"),
        spark=found.get("appSparkVersion") or None,
        ended=bool(found.get("completed")),
    )
