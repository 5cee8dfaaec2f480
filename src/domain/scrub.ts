/**
 * Returns the text with each API key replaced by `[redacted]`. With `enough`, a long text is read only as far as needed for
 * that many characters of the result; the rest may be left out.
 */
export type Scrub = (text: string, enough?: number) => string;
