/** The script that `--backup-command` becomes. */
import { UserError } from "../lib/errors.ts";

/** In the environment of the script and of all that it starts: the path of the backup. */
export const BACKUP_FILE_VARIABLE = "SIGNALBOX_BACKUP_FILE";

/** A quoted part, an escaped character, or `{}`. */
const TOKEN = /'[^']*'|"(?:\\.|[^"\\])*"|\\.|\{\}/gs;
const WORDS = ["{}", '"{}"', "'{}'"];

/**
 * The shell reads the path from a variable, never as a part of the script, so nothing in it is run. Throws `UserError`
 * for `{}` as a part of a quoted text, where the variable would not be expanded, or would be split.
 */
export function backupScript(command: string): string {
  return command.replaceAll(TOKEN, (token) => {
    if (WORDS.includes(token)) return `"$${BACKUP_FILE_VARIABLE}"`;
    if (!token.includes("{}")) return token;
    throw new UserError(
      `Inside quotes, write $${BACKUP_FILE_VARIABLE} instead of {}, such as "file=@$${BACKUP_FILE_VARIABLE}".`,
    );
  });
}
