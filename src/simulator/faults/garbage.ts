const DEPTH = 100_000;

const bodies = {
  text: () => Buffer.from('upstream connect error or disconnect/reset before headers'),
  html: () => Buffer.from('<!doctype html><title>Sign in</title><h1>Session expired</h1>'),
  /** JSON with one byte that is not valid UTF-8. */
  utf8: () => Buffer.from('[{"id":"caf\xe9","status":"RUNNING"}]', 'latin1'),
  nesting: () =>
    Buffer.from(`[{"id":"deep","status":"RUNNING","x":${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}}]`),
  object: () => Buffer.from('{"items":[],"next":null}'),
  null: () => Buffer.from('null'),
  empty: () => Buffer.alloc(0),
  twice: () => Buffer.from('[][]'),
};

/** Bodies that are no listing. `nesting` is JSON that is nested too deeply. */
export type Garbage = keyof typeof bodies;

export function isGarbage(text: string): text is Garbage {
  return Object.hasOwn(bodies, text);
}

export const GARBAGES: readonly string[] = Object.keys(bodies);

export function garbage(variant: Garbage): Buffer {
  return bodies[variant]();
}
