import { decodeEscapes } from './escapes.ts';

/** A text from which a key can be recovered. */
export interface KeyForm {
  readonly text: string;
  /** Number of neighbouring characters that hold some bits of the key. */
  readonly before: 0 | 1;
  readonly after: 0 | 1;
}

/** Shorter forms, such as a key without its own escapes, would match ordinary text. */
const MIN_LENGTH = 6;

/**
 * Returns the forms of a key to search for: the key itself, the key without its own escapes, its lower-case
 * hexadecimal, and its base64 and base64url at each offset in the encoded bytes. At least 10 characters of the base64
 * depend on the key alone, so ordinary text does not match.
 */
export function formsOf(key: string): readonly KeyForm[] {
  const inBytes = [Buffer.from(key, 'latin1'), Buffer.from(key, 'utf8')];
  const forms = [
    whole(key),
    whole(decodeEscapes(key).text),
    // The key's own backslashes may be dropped together with those of escapes around it.
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

/** Returns the base64 characters that depend on `bytes` alone when `lead` other bytes come before them. */
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
