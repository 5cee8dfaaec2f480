import { decodeEscapes } from './escapes.ts';

/** A text that gives a key away. */
export interface KeyForm {
  readonly text: string;
  /** Characters before and after it that hold some bits of the key. */
  readonly before: 0 | 1;
  readonly after: 0 | 1;
}

/** A shorter form, as of a key without its own escapes, would match ordinary text. */
const MIN_LENGTH = 6;

/**
 * Returns the texts that give a key away, in a text with or without its escapes: the key, as it is and without its own
 * escapes, in hexadecimal of small letters, and in base64 and base64url at each place in the encoded bytes. The base64 of a
 * key has at least 10 characters of 6 bits each that depend on the key alone, so that ordinary text does not match.
 */
export function formsOf(key: string): readonly KeyForm[] {
  const inBytes = [Buffer.from(key, 'latin1'), Buffer.from(key, 'utf8')];
  const forms = [
    whole(key),
    whole(decodeEscapes(key).text),
    // Its own backslashes may be lost in those of the escapes before they could begin anything.
    whole(decodeEscapes(key.replaceAll('\\', '')).text),
    ...inBytes.flatMap((bytes) => {
      const leads = [0, 1, 2].flatMap((lead) => inBase64(bytes, lead));
      return [whole(bytes.toString('hex')), ...leads];
    }),
  ].filter(({ text }) => text.length >= MIN_LENGTH);
  return [...new Map(forms.map((form) => [form.text, form])).values()];
}

function whole(text: string): KeyForm {
  return { text, before: 0, after: 0 };
}

/** The characters that hold bits of these bytes alone, `lead` bytes of something else standing before them. */
function inBase64(bytes: Buffer, lead: number): readonly KeyForm[] {
  const encoded = Buffer.concat([Buffer.alloc(lead), bytes]).toString('base64');
  const begin = (lead * 8) / 6;
  const end = ((lead + bytes.length) * 8) / 6;
  const text = encoded.slice(Math.ceil(begin), Math.floor(end));
  const urlText = text.replaceAll('+', '-').replaceAll('/', '_');
  const before = Number.isInteger(begin) ? 0 : 1;
  const after = Number.isInteger(end) ? 0 : 1;
  return [text, urlText].map((each) => ({ text: each, before, after }));
}
