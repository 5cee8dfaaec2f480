/** TLS, logins and headers of the HTTP interface (docs/specification.md#protection). */
export interface Protection {
  /** Undefined: plain HTTP. */
  readonly tls: TlsSettings | undefined;
  /** A bcrypt hash, `$2b$`, by user; empty: nobody has to log in. */
  readonly users: ReadonlyMap<string, string>;
  /** To set on every answer. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface TlsSettings {
  /** What Node's `tls.createSecureContext` takes. */
  readonly context: {
    readonly cert: string;
    readonly key: string;
    /** Who vouches for clients. */
    readonly ca: string | undefined;
  };
  readonly clientAuth: ClientAuth;
}

/** As Go's crypto/tls names them. */
export type ClientAuth =
  | 'NoClientCert'
  | 'RequestClientCert'
  | 'RequireAnyClientCert'
  | 'VerifyClientCertIfGiven'
  | 'RequireAndVerifyClientCert';

/** A protection that changes at run time. */
export interface ChangingProtection {
  readonly first: Protection;
  /** As it is now; the same object until it changes. Undefined if it has been unreadable for too long: nobody may enter. */
  now(): Promise<Protection | undefined>;
}
