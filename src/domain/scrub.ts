/**
 * Returns the text with each API key replaced by `[redacted]`. `maxLength` allows it to stop after that many characters of
 * the result.
 */
export type Scrub = (text: string, maxLength?: number) => string;
