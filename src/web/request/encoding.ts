/** How an answer is encoded. */
export type Encoding = 'identity' | 'gzip';

/** Chooses by `Accept-Encoding`: gzip, if the client takes it and does not prefer the plain answer. */
export function chooseEncoding(acceptEncoding: string | undefined): Encoding {
  const weights = new Map<string, number>();
  for (const item of (acceptEncoding ?? '').split(',')) {
    const [coding = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase());
    weights.set(coding === 'x-gzip' ? 'gzip' : coding, weightOf(parameters));
  }
  const gzip = weights.get('gzip') ?? weights.get('*') ?? 0;
  return gzip > 0 && gzip >= (weights.get('identity') ?? 0) ? 'gzip' : 'identity';
}

/** Returns the weight `q`, 1 by default; 0 if it is not a number, so that nobody gets what he may have refused. */
function weightOf(parameters: readonly string[]): number {
  const q = parameters.find((parameter) => /^q\s*=/.test(parameter));
  return q === undefined ? 1 : Number(q.slice(q.indexOf('=') + 1)) || 0;
}
