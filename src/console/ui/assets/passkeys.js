/**
 * Forms that a passkey answers, shown only here: without scripts there are no passkeys. A form says by
 * `data-passkey` what it does (`create` or `get`) and by `data-options` where the options for it are. A button with `data-confirm` confirms its form with a passkey
 * instead of the password; the options for that are at its value.
 */
(() => {
  const { browserSupportsWebAuthn, startAuthentication, startRegistration } = SimpleWebAuthnBrowser;
  if (!browserSupportsWebAuthn()) return;

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
      throw new Error(`Too many changes. You can try again in ${seconds} seconds.`);
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
   * @param {string | undefined} confirmPath
   */
  async function ask(form, confirmPath) {
    const { passkey, options } = form.dataset;
    const unused = "No passkey was used. Try again when you are ready.";
    const unadded = "No passkey was added. Try again when you are ready.";
    if (confirmPath !== undefined) await perform(form, confirmPath, startAuthentication, unused);
    if (passkey === "create") await perform(form, options, startRegistration, unadded);
    if (passkey === "get") await perform(form, options, startAuthentication, unused);
  }

  /**
   * @param {HTMLFormElement} form
   * @param {HTMLButtonElement | null} button
   * @param {HTMLElement} problem
   */
  async function send(form, button, problem) {
    const { current, response } = form.elements;
    const confirmPath = button?.dataset.confirm;
    response.value = "";
    problem.hidden = true;
    // A passkey confirms instead of the password.
    if (current && confirmPath !== undefined) current.disabled = true;
    try {
      if (!form.reportValidity()) {
        if (current) current.disabled = false;
        return;
      }
      if (button) button.disabled = true;
      await ask(form, confirmPath);
      // The password was checked with the options.
      if (current) current.disabled = true;
      form.submit();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      if (button) button.disabled = false;
      if (current) current.disabled = false;
    }
  }

  for (const button of document.querySelectorAll("button[data-confirm]")) button.hidden = false;
  for (const form of document.querySelectorAll("form:is([data-passkey], :has([data-confirm]))")) {
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
  }
})();
