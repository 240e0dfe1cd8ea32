/** A password to be typed once from a note: without letters that look alike. */
const LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const LENGTH = 18;

export function makePassword(): string {
  let made = "";
  while (made.length < LENGTH) {
    for (const byte of crypto.getRandomValues(new Uint8Array(LENGTH))) {
      // Bytes beyond a whole number of alphabets would make some letters likelier.
      if (byte < 256 - (256 % LETTERS.length) && made.length < LENGTH) made += LETTERS[byte % LETTERS.length] ?? "";
    }
  }
  return made;
}
