/** Text of users without characters that act on the page that shows it. */

/** Control characters (C0, C1), and characters that change the direction or the lines of a text. */
const ACTING = /[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** Control characters as visible ones: ␛ for an escape, \\u202e for a change of direction. */
export function symbols(text: string): string {
  return text.replace(ACTING, (letter) => {
    const code = letter.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "␡" : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}
