/** The times of a filter in the reader's own zone. What is sent, and stands in the address, stays UTC. */
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** In every zone, these have years of four digits. */
const MIN_MS = Date.parse("0001-01-02T00:00:00Z");
const MAX_MS = Date.parse("9999-12-30T00:00:00Z");

const inBounds = (at) => Math.min(Math.max(at, MIN_MS), MAX_MS);
const offsetMs = (at) => new Date(at).getTimezoneOffset() * MINUTE_MS;

/** As in the value of `<input type="datetime-local">`. */
const asText = (at) => new Date(at).toISOString().slice(0, "yyyy-mm-ddThh:mm:ss.mmm".length);
const toLocal = (at) => asText(at - offsetMs(at));

/**
 * When clocks are put back, an hour is shown twice: `isLast` for the second. An hour that they leave out
 * when they are put forward is taken for the hour after it (ECMA-262, 21.4.1.26).
 */
function fromLocal(text, isLast) {
  const first = inBounds(new Date(text).getTime());
  const asUtc = Date.parse(`${text}Z`);
  const second = asUtc + offsetMs(asUtc + DAY_MS);
  return isLast && first < second && toLocal(first) === toLocal(second) ? second : first;
}

/** Links to a page with a filter are short: what is empty is not sent. */
for (const form of document.querySelectorAll(".filter")) {
  form.addEventListener("formdata", ({ formData }) => {
    for (const { name, value } of form.elements) if (value === "") formData.delete(name);
  });
}

for (const input of document.querySelectorAll(".filter input[type='datetime-local']")) {
  // Not what the browser may have filled in: that may be of either zone.
  const sent = input.defaultValue;
  const at = Date.parse(`${sent}Z`);
  input.value = Number.isNaN(at) ? "" : toLocal(inBounds(at));
  const shown = input.value;
  for (const label of input.labels) {
    label.textContent = label.textContent.replace("(UTC)", "(your time)");
  }
  input.form.addEventListener("formdata", ({ formData }) => {
    const { name, value } = input;
    if (value === "") return;
    // What was not touched is sent as it came: its hour may be one that is shown twice.
    const utc = value === shown ? sent : asText(fromLocal(value, name === "to"));
    formData.set(name, utc.replace(/(:00)?\.000$/, ""));
  });
}
