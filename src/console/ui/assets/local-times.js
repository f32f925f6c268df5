/** The times of a filter in the reader's zone. What is sent, and stands in the address, stays UTC. */
const MINUTE_MS = 60_000;
/** In every zone, these have years of four digits. */
const MIN_MS = Date.parse("0001-01-02T00:00:00Z");
const MAX_MS = Date.parse("9999-12-30T00:00:00Z");

const inBounds = (at) => Math.min(Math.max(at, MIN_MS), MAX_MS);

/** As in the value of `<input type="datetime-local">`. */
const asText = (at) => new Date(at).toISOString().slice(0, "yyyy-mm-ddThh:mm:ss.mmm".length);
const toLocal = (at) => asText(at - new Date(at).getTimezoneOffset() * MINUTE_MS);

const fromLocal = (text) => inBounds(new Date(text).getTime());

/** Links to a page with a filter are short: what is empty is not sent. */
for (const form of document.querySelectorAll(".filter")) {
  form.addEventListener("formdata", ({ formData }) => {
    for (const { name, value } of form.elements) if (value === "") formData.delete(name);
  });
}

const inputs = document.querySelectorAll(".filter input[type='datetime-local']");
for (const input of timeZone === "UTC" ? [] : inputs) {
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
    // What was not touched is sent as it came: its hour may be one that clocks show twice.
    const utc = value === shown ? sent : asText(fromLocal(value));
    formData.set(name, utc.replace(/(:00)?\.000$/, ""));
  });
}
