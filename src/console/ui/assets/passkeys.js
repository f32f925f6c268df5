/**
 * Forms that a passkey answers. A form says by `data-passkey` what it does (`create` or `get`), and by
 * `data-options` where its options are. A button with `data-confirm` confirms its form with a passkey
 * instead of the password; the options for that are at its value.
 */
const { browserSupportsWebAuthn, startAuthentication, startRegistration } = SimpleWebAuthnBrowser;

const UNUSED = "No passkey was used. Try again when you are ready.";
const UNADDED = "No passkey was added. Try again when you are ready.";

/**
 * @param {HTMLFormElement} form
 * @param {string} path
 * @returns {Promise<object>} the options for a ceremony
 */
async function fetchOptions(form, path) {
  const body = new URLSearchParams(new FormData(form));
  const answer = await fetch(path, { method: "POST", body });
  const isJson = answer.headers.get("content-type")?.startsWith("application/json");
  if (answer.status === 429 && !isJson) {
    const seconds = answer.headers.get("retry-after");
    throw new Error(`Too many changes. Try again in ${seconds} seconds.`);
  }
  if (!isJson) throw new Error("You were signed out, or the page is out of date: load it again.");
  const { problem, options } = await answer.json();
  if (problem !== undefined) throw new Error(problem);
  return options;
}

/**
 * @param {HTMLFormElement} form
 * @param {string} path
 * @param {(ceremony: { optionsJSON: object }) => Promise<object>} ceremony
 * @param {string} refusal what is said when the member cancels
 */
async function perform(form, path, ceremony, refusal) {
  const optionsJSON = await fetchOptions(form, path);
  try {
    form.elements.response.value = JSON.stringify(await ceremony({ optionsJSON }));
  } catch (error) {
    if (error.name === "NotAllowedError") throw new Error(refusal, { cause: error });
    if (error.name !== "InvalidStateError") throw error;
    throw new Error("This device has a passkey for you already.", { cause: error });
  }
}

/**
 * @param {HTMLFormElement} form
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} problem
 */
async function send(form, button, problem) {
  const { current, response } = form.elements;
  const { passkey, options } = form.dataset;
  const { confirm } = button.dataset;
  const disablePassword = (isDisabled) => {
    if (current) current.disabled = isDisabled;
  };
  response.value = "";
  problem.hidden = true;
  // A passkey confirms instead of the password.
  disablePassword(confirm !== undefined);
  try {
    if (!form.reportValidity()) return disablePassword(false);
    button.disabled = true;
    if (confirm !== undefined) await perform(form, confirm, startAuthentication, UNUSED);
    if (passkey === "create") await perform(form, options, startRegistration, UNADDED);
    if (passkey === "get") await perform(form, options, startAuthentication, UNUSED);
    // The password was checked with the options.
    disablePassword(true);
    form.submit();
  } catch (error) {
    problem.textContent = error.message;
    problem.hidden = false;
    button.disabled = false;
    disablePassword(false);
  }
}

const forms = browserSupportsWebAuthn()
  ? document.querySelectorAll("form:is([data-passkey], :has([data-confirm]))")
  : [];
for (const form of forms) {
  const problem = document.createElement("p");
  problem.className = "problem";
  problem.setAttribute("role", "alert");
  problem.hidden = true;
  form.prepend(problem);
  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (form.dataset.passkey === undefined && button?.dataset.confirm === undefined) return;
    event.preventDefault();
    void send(form, button, problem);
  });
  form.hidden = false;
  for (const button of form.querySelectorAll("[data-confirm]")) button.hidden = false;
}
