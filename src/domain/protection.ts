/** TLS and logins of the HTTP interface (docs/specification.md#protection). */
export interface Protection {
  /** Undefined for plain HTTP. */
  readonly tls: TlsSettings | undefined;
  /** The bcrypt hash (`$2b$`) of each user's password; empty if no login is needed. */
  readonly users: ReadonlyMap<string, string>;
}

export interface TlsSettings {
  /** Options of Node's `tls.createSecureContext`: contents of PEM files, and versions. */
  readonly context: {
    readonly cert: string;
    readonly key: string;
    /** CA certificates that client certificates are verified against. */
    readonly ca: string | undefined;
    readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
    readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3';
  };
  readonly clientAuth: ClientAuth;
}

/** Which client certificates are requested and verified; the names are those of Go's crypto/tls. */
export const CLIENT_AUTH_TYPES = [
  'NoClientCert',
  'VerifyClientCertIfGiven',
  'RequireAndVerifyClientCert',
] as const;
export type ClientAuth = (typeof CLIENT_AUTH_TYPES)[number];
