/** Patterns that classify a statement by its text. */
const PATTERNS = {
  /** Commits polls, or settles a failure. */
  writes: /INSERT INTO evalwatch\.(?:transition|settlement)\b/,
  commits: /version = (?:\w+\.)?version \+ 1/,
  /** Changes the configured projects if it returns a number. */
  configures: /UPDATE evalwatch\.configuration c SET epoch\b/,
  /** Gives a worker projects. */
  claims: /RETURNING p\.id, p\.epoch\b/,
  postponesFailure: /UPDATE evalwatch\.failure f\s+SET tries = \$2/,
  claimsFailures: /UPDATE evalwatch\.failure f SET claimed_by = \$4\s+FROM due\b/,
  beginsLease: /INSERT INTO evalwatch\.worker\b/,
  /** Renews a lease if it returns a row. */
  renewsLease: /UPDATE evalwatch\.worker SET expires_at\b/,
  /** Reads the leases of all workers. */
  readsLeases: /\bAS expires_us\b/,
  /** Gives projects back. */
  releases: /SET owner = NULL, .*\s+WHERE owner = \$1 AND id IN\b/,
  endsLease: /DELETE FROM evalwatch\.worker WHERE worker = \$1$/,
  grants: /UPDATE evalwatch\.rate\b/,
};

/** Kinds of a statement; it can have several. */
export type StatementKinds = Readonly<Record<keyof typeof PATTERNS, boolean>>;

const kindsOfTexts = new Map<string, StatementKinds>();

export function kindsOf(text: string): StatementKinds {
  let kinds = kindsOfTexts.get(text);
  if (kinds === undefined) {
    const found = Object.entries(PATTERNS).map(([name, pattern]) => [name, pattern.test(text)]);
    kinds = Object.fromEntries(found) as StatementKinds;
    kindsOfTexts.set(text, kinds);
  }
  return kinds;
}
