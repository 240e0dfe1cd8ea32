/** Between a command line as it is typed and the words that are run. */

/** Signs that mean something to a shell outside of quotes, so that only a shell can run the line. */
const FOR_A_SHELL = /[|&;<>()$`*?[\]~!#\n\\]/;
const SHELL = ["/bin/sh", "-c"] as const;

/** The words of a line without anything for a shell in it; undefined if it needs one. */
function wordsOf(line: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < line.length; at += 1) {
    const sign = line.charAt(at);
    if (sign === "'" || sign === '"') {
      const end = line.indexOf(sign, at + 1);
      const inside = line.slice(at + 1, end);
      // In double quotes a shell still looks for variables and the like.
      if (end === -1 || (sign === '"' && /[$`\\!]/.test(inside))) return undefined;
      word = (word ?? "") + inside;
      at = end;
    } else if (sign === " " || sign === "\t") {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      if (FOR_A_SHELL.test(sign)) return undefined;
      word = (word ?? "") + sign;
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}

export interface Command {
  readonly words: readonly string[];
  readonly isShell: boolean;
}

/** The command of a typed line: the program itself, or a shell if the line needs one. */
export function commandOf(line: string): Command {
  const text = line.trim();
  const words = wordsOf(text);
  // A variable in front of a program is the shell's business too.
  if (words === undefined || /^\w+=/.test(words[0] ?? "")) return { words: [...SHELL, text], isShell: true };
  return { words, isShell: false };
}

/** A command as one would type it. */
export function lineOf(command: readonly string[]): string {
  const [shell, flag, script] = command;
  if (
    command.length === 3 &&
    shell === SHELL[0] &&
    flag === SHELL[1] &&
    script !== undefined &&
    commandOf(script).isShell
  )
    return script;
  return command.map(quoted).join(" ");
}

/** A word that a shell hands on as it is. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}
