"""Reads signals from Signalbox in the order of storage. For Python 3.9 and later, without dependencies.

It is not published: copy this file into your program.

    feed = Feed("https://signals.example.com:8082", key, after=load_cursor())
    for signal in feed:
        act_and_save_cursor(signal, signal["id"])

A signal's id is the cursor: a program that continues after it misses nothing, and gets nothing twice.
To trust a private certificate, set SSL_CERT_FILE=cert.pem before the program starts.
"""

from __future__ import annotations

import decimal, http.client, json, logging, random, re, ssl, time
import urllib.error, urllib.parse, urllib.request
from typing import Any, Dict, Iterator, Literal, Optional, TypedDict

_log = logging.getLogger("signalbox")

WAIT_S = 30
TIMEOUT_S = WAIT_S + 30  # the longest wait for the next byte
BACKOFF_S_MAX = 30


class StoredSignal(TypedDict):
    id: str  # a ULID; strictly increases in the order of storage
    desk: str
    received_at: int  # by the server's clock, epoch milliseconds
    key_id: str
    key_label: Optional[str]
    source: Literal["venue_1", "venue_2", "venue_3"]
    type: Literal["prediction_market", "crypto", "stock"]
    symbol: str
    side: Literal["open", "close"]
    direction: Optional[Literal["long", "short", "buy", "sell"]]
    price: Optional[float]
    quantity: Optional[float]
    signal_time: Optional[int]
    client_signal_id: Optional[str]
    metadata: Optional[Dict[str, Any]]


class FeedError(Exception):
    """The request was refused, or the URL is wrong: no retry can help.

    status: the status of the answer, or None if there was none.
    code: as in the feed's errors, such as "validation_failed", or the name of the exception.
    fields: with "validation_failed", the reason per parameter. after: the database was restored, see docs/feed.md.
    """

    def __init__(self, problem, status, code, fields):
        super().__init__(problem)
        self.status, self.code, self.fields = status, code, fields


class _Retry(Exception):
    """Another attempt may help, after so many seconds."""

    def __init__(self, problem, after=0.0):
        super().__init__(problem)
        self.after = after


class _EveryAnswer(urllib.request.HTTPErrorProcessor):
    """Returns errors as answers. Follows no redirect: it would take the key to another server."""

    def http_response(self, request, response):
        return response

    https_response = http_response


class Feed:
    """`url` is the address of --read-listen, and must be https, except for loopback. `key` is a read key. `after` is
    the id of the last signal that was handled, "now", or None for the beginning. `desk`: only its signals; a key for
    one desk implies it. `limit`: signals per request, at most 1000."""

    def __init__(
        self, url: str, key: str, *, after: str | None, desk: str | None = None, limit: int | None = None
    ) -> None:
        if "://" not in url:
            raise ValueError(f"{url}: write http://127.0.0.1:8082, or https:// and your server's name.")
        scheme, host = urllib.parse.urlsplit(url)[0], urllib.parse.urlsplit(url).hostname or ""
        is_loopback = re.fullmatch(r"localhost|127(\.\d+){3}|::1", host)
        if scheme != "https" and not (scheme == "http" and is_loopback):
            raise ValueError(f"{url}: use https, so that nobody on the way can read the key.")
        if host.endswith(".example.com"):
            raise ValueError(f"{url}: change the URL to your server's address.")
        if not re.fullmatch("sbr_[0-9a-f]{64}", key):
            raise ValueError("A read key is sbr_ and 64 hexadecimal digits, without a line break.")
        self._url = re.sub("/*(/feed)?/*$", "", url) + "/feed"
        self._headers = {"Authorization": f"Bearer {key}"}
        self._after = after
        self._asked = {"desk": desk, "limit": limit}
        # A proxy would get the key in the clear.
        no_proxy = [urllib.request.ProxyHandler({})] if scheme == "http" else []
        self._opener = urllib.request.build_opener(_EveryAnswer, *no_proxy)

    def __iter__(self) -> Iterator[StoredSignal]:
        """Yields each signal once, and waits for more. It retries for ever what a retry can help, with a warning in
        the log, and raises FeedError for the rest."""
        after, attempt = self._after, 0
        while True:
            try:
                signals, after = self._read(after)
            except _Retry as problem:
                attempt += 1
                _log.warning("attempt %d: %s", attempt, problem)
                backoff = random.uniform(0, min(BACKOFF_S_MAX, 0.2 * 2 ** min(attempt, 10)))
                time.sleep(max(backoff, problem.after))
                continue
            attempt = 0
            yield from signals

    def _read(self, after: str | None):
        wait = 0 if after == "now" else WAIT_S  # If that wait were cut, "now" would be later.
        asked = {**self._asked, "after": after, "wait": wait}
        asked = {name: value for name, value in asked.items() if value is not None}
        request = urllib.request.Request(f"{self._url}?{urllib.parse.urlencode(asked)}", headers=self._headers)
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                status, text = answer.status, answer.read().decode(errors="replace")
                retry_after = answer.headers.get("Retry-After", "")
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            # urllib wraps what happens before the request is sent.
            is_connecting = isinstance(error, urllib.error.URLError)
            error = error.reason if isinstance(getattr(error, "reason", None), OSError) else error
            code, advice = type(error).__name__, _advice(error, is_connecting)
            problem = f"{self._url}: {code}: {error}{advice or ''}"
            raise FeedError(problem, None, code, {}) if advice else _Retry(problem) from error
        if status == 200:
            return _page(text)
        problem = f"{self._url}: {status} {text[:1000]}"
        body = _parse(text)
        # Any other answer may be a middle box's.
        is_refusal = 400 <= status < 500 and isinstance(body.get("error"), str)
        if is_refusal and status != 429:
            raise FeedError(problem, status, body["error"], body.get("fields", {}))
        raise _Retry(problem, min(3600, int(retry_after)) if retry_after.isdigit() else 0)


def _page(text: str):
    """The last line has the next cursor: without it the answer was cut."""
    *lines, end = text.rstrip("\n").split("\n")
    after = _parse(end)
    if "next" not in after:
        raise _Retry("the answer was cut")
    return (json.loads(line, parse_int=_integer) for line in lines), after["next"]


def _integer(digits: str) -> int | decimal.Decimal:
    """Metadata may have integers with more digits than Python converts (sys.set_int_max_str_digits)."""
    try:
        return int(digits)
    except ValueError:
        return decimal.Decimal(digits)


def _advice(error: Exception, is_connecting: bool) -> str | None:
    """Returns None if another attempt can help."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if "not valid for" in str(error):
            return "\nUse a name that the certificate has."
        return "\nFor a private certificate, set SSL_CERT_FILE=cert.pem."
    if is_connecting and getattr(error, "reason", None) in ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL"):
        return "\nIs it http or https?"
    is_impossible = isinstance(error, (UnicodeError, http.client.InvalidURL))
    return "\nChange the URL to your server's address." if is_impossible else None


def _parse(text: str) -> dict:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
