/** The first minute on a terminal, from what docs/tour.md shows. */

const STYLE = `
  body { margin: 0; color-scheme: light dark; }
  main { width: max-content; display: grid; gap: 12px; background: light-dark(#fff, #0d1117); }
  pre {
    margin: 0; padding: 14px 16px; border-radius: 8px;
    font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", "Liberation Mono", monospace;
    color: light-dark(#24292f, #d5dae1); background: light-dark(#f6f8fa, #161b22);
    border: 1px solid light-dark(#d0d7de, #30363d);
  }
  b { color: light-dark(#0550ae, #79c0ff); font-weight: normal; }
  i { color: light-dark(#116329, #7ee787); font-style: normal; }`;

export async function terminalHtml(): Promise<string> {
  const [, section = ""] = (await Bun.file("docs/tour.md").text()).split("## The first signal\n");
  const blocks = [...(section.split("\n## ")[0] ?? "").matchAll(/```(sh|text)\n([^]*?)\n```/g)];
  // The README has another command that starts the server.
  const [server, ...client] = blocks
    .slice(1, 4)
    .map(([, language, text = ""]) =>
      language === "sh" ? `<b>$ ${Bun.escapeHTML(text)}</b>` : coloured(text),
    );
  const panes = `<pre>${server}</pre><pre>${client.join("\n")}</pre>`;
  return `<style>${STYLE}</style><main>${panes}</main>`;
}

/** As the log is on a terminal. */
function coloured(text: string): string {
  return Bun.escapeHTML(text).replaceAll(/(?<=^\[[\d:.]+\] )INFO/gm, "<i>INFO</i>");
}
