# Stores one signal: python3 send.py. The key is in the variable SIGNALBOX_KEY.
import email.utils, http.client, json, os, random, socket, ssl, sys, time, uuid
import urllib.error, urllib.request

URL = "https://signals.example.com/v1/signals"
KEY = os.environ.get("SIGNALBOX_KEY") or sys.exit(
    "Set SIGNALBOX_KEY: read -rs SIGNALBOX_KEY && export SIGNALBOX_KEY"
)
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}

def new_id() -> str:
    """Returns a UUID v7, which begins with the time."""
    now = f"{time.time_ns() // 1_000_000:012x}"
    return f"{now[:8]}-{now[8:]}-7{str(uuid.uuid4())[15:]}"

def seconds(retry_after: str) -> float:
    """Returns how long to wait. The header has seconds or, from some proxies, a date."""
    try:
        return float(retry_after)
    except ValueError:
        date = email.utils.parsedate_tz(retry_after)
        return email.utils.mktime_tz(date) - time.time() if date else 0

def send(signal: dict, attempts: int = 8) -> dict:
    """Returns the answer; exits if no retry can help, or none has helped."""
    # Made once per signal, before the first attempt: this is what makes a retry safe.
    signal = {"client_signal_id": new_id(), **signal}
    request = urllib.request.Request(URL, json.dumps(signal).encode(), HEADERS)
    for attempt in range(1, attempts + 1):
        wait = random.uniform(0, min(30, 0.2 * 2**attempt))  # full jitter
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            problem = f"{error.code} {error.read().decode()}"
            if error.code != 429 and error.code < 500:
                sys.exit(f"{URL}: {problem}")
            wait = max(wait, seconds(error.headers.get("Retry-After", "0")))
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            problem = getattr(error, "reason", error)
            if isinstance(problem, ssl.SSLCertVerificationError):
                sys.exit(f"{URL}: {problem}\nFor a private certificate, set SSL_CERT_FILE=cert.pem.")
            if type(problem) is ssl.SSLError:  # a subclass is a broken connection
                sys.exit(f"{URL}: {problem}\nIs it http or https?")
            if isinstance(problem, socket.gaierror) and problem.errno != socket.EAI_AGAIN:
                sys.exit(f"{URL}: {problem}")
        print(f"attempt {attempt} of {attempts}: {URL}: {problem!s}", file=sys.stderr)
        time.sleep(wait)
    sys.exit(f"Outcome unknown, send again: {signal}")

print(send({"source": "venue_2", "type": "crypto", "symbol": "BTC/USDT", "side": "open"}))
