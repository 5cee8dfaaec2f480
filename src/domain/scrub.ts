/** Returns the text with each API key replaced by `[redacted]`. */
export type Scrub = (text: string) => string;
