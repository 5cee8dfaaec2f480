/** What the servers of child.ts serve, and to whom. */
export interface Served {
  readonly ports: Readonly<Record<ServerKind, number>>;
  /** Paths of the files of the status page. */
  readonly assets: readonly string[];
}

/** `open` lets everybody in, `login` users, `certificate` clients with a certificate. */
export type ServerKind = 'open' | 'login' | 'certificate';

/** In whatever is for users only. */
export const PROTECTED = 'PROTECTED';
export const USER = 'alice';
export const PASSWORD = 'open: sesame ü';
/** Ids that a path cannot hold as they are. */
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
