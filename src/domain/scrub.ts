/**
 * Returns a text with `[redacted]` for each key in it. With `enough`, the function reads a long text only as far as that
 * many characters of the result need, and may leave out what follows.
 */
export type Scrub = (text: string, enough?: number) => string;
