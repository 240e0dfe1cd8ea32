/** The beginning of a CSV file as rows of cells. */

/** More is not drawn. */
export const MOST_ROWS = 500;
export const MOST_COLUMNS = 50;

export interface Sheet {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly isCut: boolean;
}

export function isSheet(name: string): boolean {
  return /\.(csv|tsv)$/i.test(name);
}

/** The first row is the head. Of a text that was cut, the last row may be incomplete and is left out. */
export function sheetOf(text: string, isCut: boolean): Sheet {
  const { rows, isDone } = rowsOf(text, separatorOf(text), MOST_ROWS + 1);
  const whole = isCut && isDone ? rows.slice(0, -1) : rows;
  const columns = Math.max(0, ...whole.map((row) => row.length));
  const [head = [], ...body] = whole.map((row) => row.slice(0, MOST_COLUMNS));
  return { head, rows: body, isCut: isCut || !isDone || columns > MOST_COLUMNS };
}

/** The one that is most frequent in the first line. */
function separatorOf(text: string): string {
  const line = text.slice(0, text.search(/[\r\n]|$/));
  const count = (separator: string) => line.split(separator).length;
  return [",", ";", "\t"].reduce((best, one) => (count(one) > count(best) ? one : best));
}

function rowsOf(text: string, separator: string, most: number): { rows: string[][]; isDone: boolean } {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  const endRow = () => {
    row.push(cell);
    // Empty lines are no rows.
    if (row.length > 1 || cell !== "") rows.push(row);
    row = [];
    cell = "";
  };
  for (let at = text.startsWith("\uFEFF") ? 1 : 0; at < text.length; at += 1) {
    const char = text[at] ?? "";
    if (isQuoted) {
      if (char !== '"') cell += char;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else isQuoted = false;
    } else if (char === '"' && cell === "") isQuoted = true;
    else if (char === separator) {
      row.push(cell);
      cell = "";
    } else if (char === "\n") {
      endRow();
      if (rows.length === most) return { rows, isDone: at === text.length - 1 };
    } else if (char !== "\r") cell += char;
  }
  endRow();
  return { rows, isDone: true };
}
