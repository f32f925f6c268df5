# Stores one signal: python3 send.py. The key is in the variable SIGNALBOX_KEY.
import os, sys
from signalbox import Signalbox, SignalboxError

key = os.environ.get("SIGNALBOX_KEY") or sys.exit(
    "Set SIGNALBOX_KEY: stty -echo; read -r SIGNALBOX_KEY; stty echo; export SIGNALBOX_KEY"
)
signalbox = Signalbox("https://signals.example.com", key)

try:
    print(signalbox.send({"source": "venue_2", "type": "crypto", "symbol": "BTC/USDT", "side": "open"}))
except SignalboxError as error:
    sys.exit(str(error))
