/** Addresses and contents of the servers of child.ts. */
export interface Served {
  readonly ports: Readonly<Record<ServerKind, number>>;
  /** Paths of the files of the status page. */
  readonly assets: readonly string[];
}

/** `open` admits every client, `login` users, and `certificate` clients with a certificate. */
export type ServerKind = 'open' | 'login' | 'certificate';

/** Text in every answer that requires a login. */
export const PROTECTED = 'PROTECTED';
export const USER = 'alice';
export const PASSWORD = 'open: sesame ü';
/** Ids that have to be encoded in a path. */
export const PROJECTS: readonly string[] = [
  'p',
  'a/b',
  '100%',
  '%41',
  'ü',
  'a b',
  '../x',
  '-',
  'a\nb',
  'x?#y',
  'metrics',
];
