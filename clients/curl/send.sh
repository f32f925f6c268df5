#!/bin/sh
# Stores one signal: sh send.sh. The key is in the variable SIGNALBOX_KEY.
URL='https://signals.example.com/v1/signals'
OUTCOME=''
if [ -z "$SIGNALBOX_KEY" ]; then
  echo "Set SIGNALBOX_KEY: stty -echo; read -r SIGNALBOX_KEY; stty echo; export SIGNALBOX_KEY" >&2
  exit 1
fi
# A UUID v7, made once: every attempt sends the same id, so nothing is stored twice.
TIME=$(printf '%012x' "$(date +%s)000")
RANDOM_ID=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)
ID="${TIME%????}-${TIME#????????}-7${RANDOM_ID#???????????????}"

# A proxy would get the key in the clear.
case "$URL" in http:*) export NO_PROXY='*' no_proxy='*' ;; esac
for WAIT in 0 1 2 4 8 16 32; do
  sleep $WAIT
  # The key goes through stdin: every user of the machine can see a process's arguments.
  ANSWER=$(printf 'Authorization: Bearer %s\n' "$SIGNALBOX_KEY" |
    curl -sS --max-time 10 "$URL" -H @- -H 'Content-Type: application/json' -w ' %{http_code}' \
      -d '{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","direction":"long",
           "price":64250.5,"quantity":0.25,"client_signal_id":"'"$ID"'",
           "metadata":{"take_profit":66000,"stop_loss":63000}}' 2>&1)
  RESULT="$?:$ANSWER" # curl's exit code, what it printed, and the status
  ANSWER="$URL: ${ANSWER% 000}"
  case "$RESULT" in
    0:*'"id":"'*'"deduped":'*' '2??) RESULT="${RESULT#0:}"; echo "${RESULT% *}"; exit 0 ;;
    35:*'wrong version number'* | 35:*'unexpected TLS'*) ANSWER="$ANSWER Is it http or https?"; break ;;
    60:*'target host'*) ANSWER="$ANSWER Use a name that the certificate has."; break ;;
    60:*) ANSWER="$ANSWER For a private certificate, set CURL_CA_BUNDLE=cert.pem."; break ;;
    0:*'"error":"'*' '429 | 6:* | 7:*) ;; # not stored: a retry can help
    0:*'"error":"'*' '4??) ANSWER="No retry can help: $ANSWER"; break ;;
    0:* | 1:*HTTP* | 8:* | 16:* | 18:* | 28:* | 35:* | 52:* | 55:* | 56:* | 92:*) OUTCOME=" It may be stored: send $ID again." ;;
    *) ANSWER="No retry can help: $ANSWER"; break ;;
  esac
  echo "No answer yet: $ANSWER" >&2
done
echo "$ANSWER$OUTCOME" >&2
exit 1
