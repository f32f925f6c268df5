#!/bin/sh
# Stores one signal: sh send.sh. The key is in the variable SIGNALBOX_KEY.
# For a private certificate: CURL_CA_BUNDLE=cert.pem sh send.sh (or curl's --cacert)
URL='https://signals.example.com/v1/signals'

# A UUID v7, made once: every attempt sends the same id, so nothing is stored twice.
TIME=$(printf '%012x' "$(date +%s)000")
RANDOM_ID=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)
ID="${TIME%????}-${TIME#????????}-7${RANDOM_ID#???????????????}"

# curl retries 429, 5xx, time-outs and refused connections; the loop retries broken ones.
for WAIT in 1 2 4 8 16 32; do
  # A process's arguments are visible to other users: the key goes through stdin.
  printf 'Authorization: Bearer %s\n' "$SIGNALBOX_KEY" |
    curl --no-progress-meter --fail-with-body "$URL" -H @- -H 'Content-Type: application/json' \
      --max-time 10 --retry 8 --retry-connrefused --retry-max-time 60 \
      -d '{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","direction":"long",
           "price":64250.5,"quantity":0.25,"client_signal_id":"'"$ID"'",
           "metadata":{"take_profit":66000,"stop_loss":63000}}'
  CODE=$?
  case $CODE in
    16 | 18 | 52 | 55 | 56 | 92) sleep $WAIT ;; # the connection broke
    *) exit $CODE ;;
  esac
done
echo "Outcome unknown: send $ID again." >&2
exit $CODE
