/**
 * Forms that a passkey answers, shown only here: without scripts there are no passkeys. A form says by
 * `data-passkey` what it does (`create` or `get`) and by `data-options` where the options for it are.
 */
(() => {
  const { browserSupportsWebAuthn, startAuthentication, startRegistration } = SimpleWebAuthnBrowser;
  if (!browserSupportsWebAuthn()) return;

  /**
   * @param {HTMLFormElement} form
   * @returns {Promise<object>} what the authenticator said
   */
  async function ask(form) {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.options, { method: "POST", body });
    const isJson = answer.headers.get("content-type")?.startsWith("application/json");
    if (answer.status === 429 && !isJson) throw new Error("Wait a minute, then try again.");
    if (!isJson) throw new Error("The page is out of date: load it again.");
    const { problem, options } = await answer.json();
    if (problem !== undefined) throw new Error(problem);
    const isNew = form.dataset.passkey === "create";
    return isNew
      ? startRegistration({ optionsJSON: options })
      : startAuthentication({ optionsJSON: options });
  }

  /** @param {unknown} error */
  function explain(error) {
    if (error.name === "NotAllowedError")
      return "No passkey was used. Try again when you are ready.";
    if (error.name === "InvalidStateError") return "This device has a passkey for you already.";
    return error.message;
  }

  /**
   * @param {HTMLFormElement} form
   * @param {HTMLElement} problem
   */
  async function send(form, problem) {
    const button = form.querySelector("button:not([type])");
    button.disabled = true;
    problem.hidden = true;
    try {
      form.elements.response.value = JSON.stringify(await ask(form));
      // It was looked at with the options.
      for (const input of form.querySelectorAll("input[data-once]")) input.disabled = true;
      form.submit();
    } catch (error) {
      button.disabled = false;
      problem.textContent = explain(error);
      problem.hidden = false;
    }
  }

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const problem = document.createElement("p");
    problem.className = "problem";
    problem.setAttribute("role", "alert");
    problem.hidden = true;
    form.prepend(problem);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void send(form, problem);
    });
    form.hidden = false;
  }
})();
