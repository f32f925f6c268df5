/** The README's examples, run as a reader runs them. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { requirePrograms } from "../_programs.ts";
import { query, startTestApp, temporaryFolder } from "../_setup.ts";

setDefaultTimeout(60_000);
requirePrograms("faults");

const readme = await Bun.file("README.md").text();

const examples = [
  { language: "sh", file: "example.sh", command: "sh" },
  { language: "ts", file: "example.ts", command: process.execPath },
];

test.each(examples)(
  "the example in $language stores its signal",
  async ({ language, file, command }) => {
    const { url, key, dataDir } = await startTestApp();
    const blocks = [...readme.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"))];
    const example = blocks
      .map(([, text = ""]) => text)
      .find((text) => text.includes("/v1/signals"));
    const path = join(temporaryFolder(), file);
    await Bun.write(path, String(example).replace("https://signals.example.com", url));
    const child = Bun.spawn([command, path], {
      env: { ...process.env, SIGNALBOX_KEY: key },
      stdout: "pipe",
      stderr: "inherit",
    });
    expect(await new Response(child.stdout).text()).toContain("deduped");
    expect(await child.exited).toBe(0);
    const [row] = query<{ client_signal_id: string }>(
      dataDir,
      "SELECT client_signal_id FROM signals",
    );
    expect(row?.client_signal_id).toHaveLength(36);
  },
);
