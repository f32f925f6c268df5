/** `signalbox desk require-passkeys`: whether a desk's members may sign in with passwords. */
import { resolve } from "node:path";
import { Command } from "commander";
import { hasNamedHost } from "../net/address.ts";
import { askConsoleUrl } from "../ops/client.ts";
import { SqliteMembers } from "../store/sqlite/members.ts";
import { SqliteRegistry } from "../store/sqlite/registry.ts";
import { dataOption, withDatabase } from "./options.ts";
import { printNote } from "./print.ts";

export function requirePasskeysCommand(): Command {
  return new Command("require-passkeys")
    .description("let a desk's members sign in with passkeys only")
    .argument("<name>", "the desk's name")
    .option("--off", "allow passwords again")
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
The password of a member who has a passkey stops working at once, and sessions that began with it end.
For a member who has none, the password leads only to the page that adds a passkey. New links offer
only passkeys. Passkeys need a name: start serve with --console-url, such as https://console.example.com.

Examples:
  $ signalbox desk require-passkeys alpha
  $ signalbox desk require-passkeys alpha --off`,
    )
    .action(async (desk: string, options: { off?: true; data: string }) => {
      const isRequired = options.off !== true;
      const without = withDatabase(options.data, (db) => {
        new SqliteRegistry(db).requirePasskeys(desk, isRequired);
        return new SqliteMembers(db).list(desk).filter(({ passkeys }) => passkeys === 0);
      });
      if (!isRequired) {
        printNote(`Members of desk "${desk}" may sign in with passwords or passkeys.`);
        return;
      }
      printNote(`Members of desk "${desk}" sign in with passkeys only.`);
      for (const { email } of without) {
        printNote(`${email} has no passkey yet, and is asked to add one at the next sign-in.`);
      }
      if (await isConsoleNameless(options.data)) {
        printNote(
          "The running server's console has no name, only an address, so browsers make no passkeys for it and members cannot sign in: restart serve with --console-url, such as https://console.example.com.",
        );
      }
    });
}

async function isConsoleNameless(data: string): Promise<boolean> {
  const url = await askConsoleUrl(resolve(data));
  return url !== null && URL.canParse(url) && !hasNamedHost(url);
}
