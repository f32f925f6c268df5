#!/bin/sh
# Stores one signal: sh send.sh. The key is in the variable SIGNALBOX_KEY.
# For a private certificate: CURL_CA_BUNDLE=cert.pem sh send.sh (or curl's --cacert)
URL='https://signals.example.com/v1/signals'

# A UUID v7, made once: every attempt sends the same id, so nothing is stored twice.
TIME=$(printf '%012x' "$(date +%s)000")
RANDOM_ID=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)
ID="${TIME%????}-${TIME#????????}-7${RANDOM_ID#???????????????}"

for WAIT in 0 1 2 4 8 16 32; do
  sleep $WAIT
  # The key goes through stdin: every user of the machine can see a process's arguments.
  ANSWER=$(printf 'Authorization: Bearer %s\n' "$SIGNALBOX_KEY" |
    curl -sS --max-time 10 "$URL" -H @- -H 'Content-Type: application/json' -w ' %{http_code}' \
      -d '{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","direction":"long",
           "price":64250.5,"quantity":0.25,"client_signal_id":"'"$ID"'",
           "metadata":{"take_profit":66000,"stop_loss":63000}}')
  case "$?:${ANSWER##* }" in # curl's exit code, and the status
    0:2??) echo "${ANSWER% *}"; exit 0 ;;
    0:429 | 0:5?? | 7:* | 16:* | 18:* | 28:* | 52:* | 55:* | 56:* | 92:*) ;; # a retry can help
    *) echo "No retry can help: $ANSWER" >&2; exit 1 ;;
  esac
  echo "No answer yet: $ANSWER" >&2
done
echo "Outcome unknown: send $ID again." >&2
exit 1
