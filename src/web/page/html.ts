import type { html } from 'hono/html';

/** Markup made by hono's `html`, which escapes the texts in it. */
export type Html = ReturnType<typeof html>;
