"""Sends signals to Signalbox, each stored exactly once. For Python 3.9 and later, without dependencies.

It is not published: copy this file into your bot.

    signalbox = Signalbox("https://signals.example.com", key)
    stored = signalbox.send({"source": "venue_2", "type": "crypto", "symbol": "BTC/USDT", "side": "open"})

To trust a private certificate, set SSL_CERT_FILE=cert.pem before the program starts.
"""

from __future__ import annotations

import email.utils, http.client, json, logging, random, re, socket, ssl, time, uuid
import urllib.error, urllib.parse, urllib.request
from typing import Any, Dict, List, Literal, TypedDict

_log = logging.getLogger("signalbox")


class _Required(TypedDict):
    source: Literal["venue_1", "venue_2", "venue_3"]
    type: Literal["prediction_market", "crypto", "stock"]
    symbol: str
    side: Literal["open", "close"]


class Signal(_Required, total=False):
    """Signals with the same client_signal_id are stored once. Derive it from the bot's own event, so that
    a bot that restarts sends the same id again. Without it, Signalbox.send makes a UUID v7."""

    direction: Literal["long", "short", "buy", "sell"]
    price: float
    quantity: float
    signal_time: int  # the bot's time, epoch milliseconds
    client_signal_id: str
    metadata: Dict[str, Any]


class _Found(TypedDict):
    id: str
    deduped: bool  # this client_signal_id was stored before; id is the original signal's
    differs: List[str]  # the fields of a duplicate that differ from the original's


class Stored(_Found, total=False):
    received_at: int  # only of a new signal


class SignalboxError(Exception):
    """The signal was refused, or there was no answer in all attempts.

    status: the status of the answer, or None if there was none.
    code: as in the API's errors, such as "validation_failed", or the name of the exception.
    fields: with "validation_failed", the reason per invalid field.
    signal: as it was sent.
    may_be_stored: an attempt had no clear answer. Send `signal` again, with its client_signal_id, to find out.
    """

    def __init__(self, problem, status, code, fields, signal, may_be_stored, gave_up=False):
        if may_be_stored or gave_up:
            problem += "\nGave up: for a longer downtime, set attempts. " if gave_up else "\n"
            problem += "It may be stored" if may_be_stored else "It is not stored"
            problem += f": send it again with client_signal_id {signal['client_signal_id']}."
        super().__init__(problem)
        self.status, self.code, self.fields = status, code, fields
        self.signal, self.may_be_stored = signal, may_be_stored


class _EveryAnswer(urllib.request.HTTPErrorProcessor):
    """Returns errors as answers. Follows no redirect: it would take the key to another server."""

    def http_response(self, request, response):
        return response

    https_response = http_response


class Signalbox:
    """`url` must be https, except for loopback. Threads can share one."""

    def __init__(self, url: str, key: str, *, attempts: float = 8, timeout: float = 10) -> None:
        if "://" not in url:
            raise ValueError(f"{url}: write http://127.0.0.1:8080, or https:// and your server's name.")
        scheme, host = urllib.parse.urlsplit(url)[0], urllib.parse.urlsplit(url).hostname or ""
        is_loopback = re.fullmatch(r"localhost|127(\.\d+){3}|::1", host)
        if scheme != "https" and not (scheme == "http" and is_loopback):
            raise ValueError(f"{url}: use https, so that nobody on the way can read the key.")
        if host.endswith(".example.com"):
            raise ValueError(f"{url}: change the URL to your server's address.")
        if not re.fullmatch("[!-~]+", key):
            raise ValueError("The key is empty, or has a space or a line break in it.")
        self._url = re.sub("/*(/v1/signals)?/*$", "", url) + "/v1/signals"
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._attempts, self._timeout = attempts, timeout
        # A proxy would get the key in the clear.
        no_proxy = [urllib.request.ProxyHandler({})] if scheme == "http" else []
        self._opener = urllib.request.build_opener(_EveryAnswer, *no_proxy)

    def send(self, signal: Signal) -> Stored:
        """Returns when the signal is on disk. Raises SignalboxError. Warns of each retry in the log."""
        # Made before the first attempt: every attempt sends the same body, which is what makes it safe.
        client_signal_id = signal.get("client_signal_id")
        signal = {**signal, "client_signal_id": _uuid7() if client_signal_id is None else client_signal_id}
        fields = _not_json(signal)
        if fields:
            problem = "; ".join(f"{name}: {reason}" for name, reason in fields.items())
            raise SignalboxError(f"Not sent. {problem}", None, "validation_failed", fields, signal, False)
        request = urllib.request.Request(self._url, json.dumps(signal).encode(), self._headers)
        attempt, may_be_stored = 1, False
        while True:
            status, fields, retry_after = None, {}, 0.0
            try:
                with self._opener.open(request, timeout=self._timeout) as answer:
                    status, text = answer.status, answer.read().decode(errors="replace")
                    retry_after = _seconds(answer.headers.get("Retry-After", "0"))
                    differs = re.findall(r"\w+", answer.headers.get("X-Duplicate-Differs", ""))
                body, is_ok = _parse(text), 200 <= status < 300
                if is_ok and isinstance(body.get("id"), str) and isinstance(body.get("deduped"), bool):
                    return {**body, "differs": differs}
                # Any other answer may be a middle box's, which may have passed on the request.
                is_unclear = not (400 <= status < 500 and isinstance(body.get("error"), str))
                problem, can_retry = f"{status} {text[:1000]}", is_unclear or status == 429
                code, fields = body.get("error", str(status)), body.get("fields", {})
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                # urllib wraps what happens before the request is sent.
                is_connecting = isinstance(error, urllib.error.URLError)
                error = error.reason if isinstance(getattr(error, "reason", None), OSError) else error
                status, code, advice = None, type(error).__name__, _advice(error, is_connecting)
                problem, can_retry = f"{code}: {error}{advice or ''}", advice is None
                is_unclear = can_retry and not isinstance(error, (ConnectionRefusedError, socket.gaierror))
            problem = f"{self._url}: {problem}"
            may_be_stored = may_be_stored or is_unclear
            if not can_retry or attempt >= self._attempts:
                raise SignalboxError(problem, status, code, fields, signal, may_be_stored, can_retry)
            _log.warning("attempt %d of %s: %s", attempt, self._attempts, problem)
            backoff = random.uniform(0.5, 1) * min(30, 0.2 * 2 ** min(attempt, 10))
            time.sleep(min(3600, max(backoff, retry_after)))
            attempt += 1


def _not_json(signal: Signal) -> Dict[str, str]:
    """Returns the reason per field that JSON cannot contain, such as a Decimal or NaN."""
    fields = {}
    for name, value in signal.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            fields[name] = str(error)
    return fields


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


def _seconds(retry_after: str) -> float:
    """The header has seconds or, from some proxies, a date."""
    try:
        return float(retry_after)
    except ValueError:
        date = email.utils.parsedate_tz(retry_after)
    try:
        return email.utils.mktime_tz(date) - time.time() if date else 0
    except (ValueError, OverflowError):  # a year that Python does not know
        return 0


def _uuid7() -> str:
    """UUIDs of version 7 begin with the time, which keeps the server's index small and fast."""
    now = f"{time.time_ns() // 1_000_000:012x}"
    return f"{now[:8]}-{now[8:]}-7{str(uuid.uuid4())[15:]}"
